"""Rowlock: the app, its tasks and its database."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from datetime import timedelta
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar
from uuid import UUID

from rowlock.app.checks import check_optional_name
from rowlock.app.enqueue import Enqueuer
from rowlock.app.job import Job, send_signal
from rowlock.app.registry import AppTasks, Tasks
from rowlock.app.resources import Resources, call_unknown
from rowlock.app.tasks import Call
from rowlock.app.verbs import Exchange, Verb, athread, averb, refuse_in_loop, verb
from rowlock.db.address import find_address
from rowlock.db.database import Database
from rowlock.db.results import ResultWaiters
from rowlock.errors import InvalidOption, RowlockError, TaskError
from rowlock.model.names import unversioned
from rowlock.model.spec import Handler, Keep
from rowlock.worker.around import Around, Async, Plain, check_maker

if TYPE_CHECKING:
    from rowlock.app.jobs import Jobs
    from rowlock.app.queues import AppQueues
    from rowlock.app.schedules import Schedules
    from rowlock.app.workflows import Workflows
    from rowlock.model.checkup import Checkup
    from rowlock.model.stats.series import Series
    from rowlock.model.stats.stats import Stats
    from rowlock.worker.worker import Worker

ASGI = Callable[[Any, Any, Any], Awaitable[None]]

R = TypeVar("R")
AroundFunction = TypeVar("AroundFunction", bound=Around)


class Rowlock:
    """An app: its tasks and its database.

    The database is `url`, else $ROWLOCK_URL, else $DATABASE_URL; `embedded` is the folder of a private server instead.
    The schema is `schema`, else $ROWLOCK_SCHEMA, else "rowlock". The environment is read when it is first needed.
    `imports` are the modules that a worker loads to know the tasks. `lifespan` is a function of the app that returns a
    context manager, plain or async: a worker lives inside it. `connection` is called at each enqueue: it returns the
    connection of yours to use, or None. Making an app does no I/O.

    `pooler` says whether a pooler in transaction mode, such as PgBouncer, stands before the database; unless it is said
    here or in $ROWLOCK_POOLER, that is found out. `listen_url`, else $ROWLOCK_LISTEN_URL, is an address around it, for
    notifications. `deadline`, else $ROWLOCK_DEADLINE, is how long a call waits for the database: 30 seconds.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        embedded: str | Path | None = None,
        schema: str | None = None,
        imports: Sequence[str] = (),
        keep: Keep | None = None,
        lifespan: Callable[[Rowlock], Plain | Async] = nullcontext,
        connection: Callable[[], object | None] | None = None,
        pooler: bool | None = None,
        listen_url: str | None = None,
        deadline: timedelta | None = None,
    ) -> None:
        if url is not None and embedded is not None:
            raise InvalidOption("give url= or embedded=, not both")
        check_maker(lifespan, "lifespan=")
        self.imports = tuple(imports)
        self.arounds: list[Around] = []
        self.lifespan: Callable[[], Plain | Async] = partial(lifespan, self)
        self.keep = keep or Keep()
        self.tasks = AppTasks(self)
        self.task = self.tasks.task  # @app.task, or @app.task(queue="mail", retry=Retry(attempts=5))
        self.workflow = self.tasks.workflow  # @app.workflow, or @app.workflow(version=2)
        self._set_database(
            Database(
                lambda: find_address(url, embedded),
                schema,
                pooler=pooler,
                listen_url=listen_url,
                deadline=deadline,
                connection=connection,
            )
        )

    def _set_database(self, database: Database) -> None:
        """Use this database from now on."""
        self.database = self.tasks.database = database
        self.waiting_room = ResultWaiters(database)
        self._resources = Resources(database, self.waiting_room, self.tasks, self.keep)
        self.enqueuer = Enqueuer(self._resources)
        for name in ("jobs", "queues", "schedules", "workflows"):  # made when they are first used
            self.__dict__.pop(name, None)

    @cached_property
    def jobs(self) -> Jobs:
        """What operators read of jobs, and change."""
        from rowlock.app.jobs import Jobs  # noqa: PLC0415  whoever only enqueues does without

        return Jobs(self._resources, self.enqueuer)

    @cached_property
    def queues(self) -> AppQueues:
        """What operators read of queues, and their pauses."""
        from rowlock.app.queues import AppQueues  # noqa: PLC0415  whoever only enqueues does without

        return AppQueues(self._resources)

    @cached_property
    def schedules(self) -> Schedules:
        """The schedules that are declared or added, and what operators change of them."""
        from rowlock.app.schedules import Schedules  # noqa: PLC0415  whoever only enqueues does without

        return Schedules(self._resources)

    @cached_property
    def workflows(self) -> Workflows:
        """What operators read of workflows, and change."""
        from rowlock.app.workflows import Workflows  # noqa: PLC0415  whoever only enqueues does without

        return Workflows(self._resources)

    def read_only(self, *, timeout: timedelta) -> Self:
        """This app on connections that cannot write, and whose statements take no longer than `timeout`."""
        reader = copy(self)
        reader.tasks = copy(self.tasks)
        reader._set_database(self.database.read_only(timeout=timeout))  # noqa: SLF001  a copy of this one
        return reader

    # Declaring tasks

    def include(self, tasks: Tasks) -> None:
        """Add tasks that were collected without an app."""
        for task in tasks:
            if task.app not in (None, self):
                raise TaskError(f"task {task.name!r} is already in another app")
            self.tasks.add(task)

    def around(self, function: AroundFunction) -> AroundFunction:
        """Put a context manager around every attempt: a function of the CurrentJob that returns one, plain or async.

        The first declared is outermost. Plain ones are entered in the thread of a sync handler, async ones on the loop.
        Around a workflow's attempt all of them are entered on the loop; the plain ones once more around each of its
        plain functions, in the thread that runs it: steps, undos and transactions.
        """
        check_maker(function, "@app.around")
        self.arounds.append(function)
        return function

    # Enqueuing

    def enqueue(self, name: str, /, *args: object, **kwargs: object) -> Job[Any]:
        """Enqueue by name, for code that cannot import the task; arguments by name unless this process knows it."""
        return self.call(name, *args, **kwargs).enqueue()

    async def aenqueue(self, name: str, /, *args: object, **kwargs: object) -> Job[Any]:
        """Enqueue by name, for code that cannot import the task; arguments by name unless this process knows it."""
        return await self.call(name, *args, **kwargs).aenqueue()

    def call(self, name: str, /, *args: object, **kwargs: object) -> Call[Any]:
        """A call by name as a value, for `enqueue_many` and `app.schedules.add`: of the same arguments as `enqueue`.

        NAME@VERSION is one version of a workflow.
        """
        task = self.tasks.get(*unversioned(name))
        return call_unknown(self, name, args, kwargs) if task is None else task.bind(*args, **kwargs)

    @verb("app")
    def enqueue_many(self, calls: Iterable[Call[R]], *, connection: object | None = None) -> Verb[list[Job[R]]]:
        """Enqueue many calls, all or none; 100,000 at once are fine."""
        return self.enqueuer.many(calls, connection)

    aenqueue_many = averb(enqueue_many)

    def within(self, connection: object | None) -> AbstractContextManager[None]:
        """Enqueue inside this connection's transaction: `with app.within(connection):`, in async code too.

        It holds for every enqueue and signal inside that names no connection of its own; None means Rowlock's own.
        """
        return self.database.within.lend(connection)

    # Workflows

    @verb("app")
    def signal(
        self,
        target: UUID | str | Job[Any],
        name: str,
        payload: object = None,
        *,
        key: str | None = None,
        connection: object | None = None,
        by: str | None = None,
        why: str | None = None,
    ) -> Verb[bool]:
        """Send a signal to a workflow, by its Job, its id or its key; a `str` that is a UUID is an id.

        True: it is stored, and one wait for that name takes it, however early or late it comes. False: one with this
        `key` was sent before. SignalRefused: the workflow has ended, or is being cancelled. Like an enqueue it joins
        the transaction of `connection`, or of the one that it is `within`. `by` is for somebody who sends it by hand:
        then an event is written, with `why`.
        """
        return send_signal(
            self.database, target, name, payload, key=key, keep=self.keep, connection=connection, by=by, why=why
        )

    asignal = averb(signal)

    # Operating

    @verb("app")
    def stats(self) -> Verb[Stats]:
        """Figures for operators: queues, tasks, workers, the database. Cheap, however many jobs there are.

        A part that takes over two seconds, or that this role may not see, is None, and `unknown` says why.
        """
        from rowlock.store.stats.collect import collect_stats  # noqa: PLC0415  whoever only enqueues does without

        return (yield from Exchange(self.database, collect_stats, apart=True))

    astats = averb(stats)

    @verb("app")
    def rates(
        self,
        *,
        span: timedelta = timedelta(hours=1),
        step: timedelta | None = None,
        queue: str | None = None,
        task: str | None = None,
    ) -> Verb[Series]:
        """A series of what workers did within the last `span`, a day at most: for charts, of all, a queue or a task.

        A step is whole minutes: one, five or ten as the span is long, unless you say.
        """
        from rowlock.model.stats.series import check_span, check_step  # noqa: PLC0415  whoever only enqueues does without
        from rowlock.store.stats.series import rates  # noqa: PLC0415  whoever only enqueues does without

        check_span(span)
        check_optional_name("queue", queue)
        check_optional_name("task", task)
        measuring = partial(rates, span=span, step=check_step(step, span), queue=queue, task=task)
        return (yield from Exchange(self.database, measuring, apart=True))

    arates = averb(rates)

    def doctor(self, *, target: timedelta = timedelta(minutes=1)) -> Checkup:
        """A checkup of the database, line by line: green, amber or red, the figure, the reason and the remedy.

        `target` is how long a job may be due before that is too long. A few jobs are made, claimed and undone.
        """
        from rowlock.doctor.examine import examine  # noqa: PLC0415  whoever only enqueues does without

        refuse_in_loop("app.doctor", "await app.adoctor()")
        return examine(self.database, target=target, longest=self.keep.longest)

    adoctor = athread(doctor)

    def dashboard(
        self,
        *,
        auth: Callable[[Any], object],
        hosts: Iterable[str] = (),
        read_only: bool = False,
        arguments: Literal["viewer", "operator", "admin"] = "operator",
        webhooks: Sequence[str] | None = None,
    ) -> ASGI:
        """The dashboard of this app, as an ASGI app to mount in yours: `Mount("/rowlock", app.dashboard(auth=who))`.

        `auth` says who a request is from: a function of it, plain or async, that returns a
        `rowlock.dashboard.Visitor` or None; or `rowlock.dashboard.Tokens([…])`. `hosts` are the names under which it is
        reached, beside the loopback's. With `read_only` nothing can be changed. `arguments` is the least role that sees
        arguments and results. `webhooks` are the secrets of those who may send signals, else those in
        $ROWLOCK_WEBHOOK_SECRETS.
        """
        # It stands above the app, and its packages come with an extra: so it is imported when it is called for.
        try:
            made: ASGI = import_module("rowlock.dashboard").Dashboard(
                self, auth=auth, hosts=hosts, read_only=read_only, arguments=arguments, webhooks=webhooks
            )
        except ModuleNotFoundError as error:
            raise RowlockError(f"the dashboard needs {error.name}; run: pip install 'rowlock[dashboard]'") from error
        return made

    # Living

    def migrate(self, *, roles: bool = False) -> list[str]:
        """Bring the database's schema up to date; returns the names of the migrations applied.

        With `roles`, also make the roles rowlock_enqueue, _results, _worker, _viewer and _operator, and give each the
        rights it needs and no others.
        """
        return [f"{migration.version:04d}_{migration.name}" for migration in self.database.migrate(roles=roles)]

    amigrate = athread(migrate)

    def worker(
        self,
        *,
        queues: str | Sequence[str] | Mapping[str, float] | None = None,
        slots: int | None = None,
        threads: int | None = None,
        lease: timedelta | None = None,
        renew: timedelta | None = None,
        deadline: timedelta | None = None,
        grace: timedelta | None = None,
    ) -> Worker:
        """A worker of this app's jobs: `async with app.worker(queues=["mail", "default"], slots=100):`.

        Queues in a sequence are strict, each looked into only when those before it are empty; in a mapping they have
        weights. Sync handlers run in `threads` (at most 32 unless asked). `grace` is what running jobs get at the end.
        A worker holds its jobs under a `lease`, which it must `renew` in time; `deadline` is how long it waits
        for the database. Those two follow from the lease unless given.
        What is not given comes from the environment ($ROWLOCK_SLOTS …), else it is the queue `default`, 100 slots and
        30 seconds each of lease and grace.
        """
        from rowlock.worker.worker import Worker  # noqa: PLC0415  whoever only enqueues does without

        return Worker(
            handlers=self.load(),
            schedules=self.tasks.schedules(),
            database=self.database,
            keep=self.keep,
            queues=queues,
            slots=slots,
            threads=threads,
            lease=lease,
            renew=renew,
            deadline=deadline,
            grace=grace,
            arounds=self.arounds,
            lifespan=self.lifespan,
        )

    def load(self) -> dict[str, Handler]:
        """Import the modules of `imports`; returns the code of all tasks, by name and alias."""
        for module in self.imports:
            import_module(module)
        for task in self.tasks:
            task.prepare()
        return self.tasks.handlers()

    def close(self) -> None:
        """Close the connections of sync callers, and the listener for results when nobody waits for one."""
        self.waiting_room.close()
        self.database.close()

    async def aclose(self) -> None:
        """Close this app's idle connections, and the listener for results when nobody waits for one."""
        await asyncio.to_thread(self.waiting_room.close)
        await self.database.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.aclose()
