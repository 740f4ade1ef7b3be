"""Rowlock, the app: what users hold."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar
from uuid import UUID

from rowlock.app.enqueue import Enqueuer
from rowlock.app.job import Job, refuse_in_loop, show
from rowlock.app.jobs import Jobs
from rowlock.app.observe import Observing
from rowlock.app.pauses import Pauses, pausing, resuming
from rowlock.app.registry import Tasks
from rowlock.app.schedules import Schedules
from rowlock.app.signals import Signalling
from rowlock.app.tasks import Call, Task
from rowlock.app.workflows import Workflows
from rowlock.db.address import find_address
from rowlock.db.database import Database
from rowlock.db.results import ResultWaiters
from rowlock.errors import InvalidOption, TaskError, UnknownTask
from rowlock.model.filter import check_id
from rowlock.model.names import unversioned
from rowlock.model.pause import Pause
from rowlock.model.payload.arguments import Result, encode_untyped
from rowlock.model.record import JobRecord
from rowlock.model.spec import AS_DECLARED, Handler, Keep, TaskSpec
from rowlock.worker.around import Around, Async, Plain, check_maker
from rowlock.worker.worker import Worker

P = ParamSpec("P")
R = TypeVar("R")
AroundFunction = TypeVar("AroundFunction", bound=Around)


class Rowlock(Signalling, Observing):
    """An app: its tasks and its database.

    The database is `url`, else $ROWLOCK_URL, else $DATABASE_URL; `embedded` is the folder of a private server instead.
    The schema is `schema`, else $ROWLOCK_SCHEMA, else "rowlock". The environment is read when it is first needed.
    `imports` are the modules that a worker loads to know the tasks. `lifespan` is a function of the app that answers a
    context manager, plain or async: a worker lives inside it. `connection` is asked at each enqueue which connection of
    yours to use, and may answer None. Making an app does no I/O.

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
        self.tasks = Tasks(self)
        self.task = self.tasks.task  # @app.task, or @app.task(queue="mail", retry=Retry(attempts=5))
        self.workflow = self.tasks.workflow  # @app.workflow, or @app.workflow(version=2)
        self.hold(
            Database(
                lambda: find_address(url, embedded),
                schema,
                pooler=pooler,
                listen_url=listen_url,
                deadline=deadline,
                connection=connection,
            )
        )

    def hold(self, database: Database) -> None:
        """Make what speaks to the database speak to this one."""
        self.database = database
        self.waiting_room = ResultWaiters(self.database)
        self.schedules = Schedules(self.waiting_room, self.tasks, self._handler_of, self.keep)
        self.workflows = Workflows(self.waiting_room, self.tasks, self._handler_of, self.keep)
        self._pauses = Pauses(self.database)
        self._enqueuer = Enqueuer(self.database, self.waiting_room, self.keep, handler_of=self._handler_of)
        self.jobs = Jobs(self.database, self.keep, encode=self._encode, enqueuer=self._enqueuer)

    # Declaring tasks

    def include(self, tasks: Tasks) -> None:
        """Take in tasks that were collected without an app."""
        for task in tasks:
            if task.app not in (None, self):
                raise TaskError(f"task {task.name!r} is already in another app")
            self.tasks.add(task)

    def around(self, function: AroundFunction) -> AroundFunction:
        """Put a context manager around every attempt: a function of the CurrentJob that answers one, plain or async.

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
        return self.enqueue_call(self.call(name, args, kwargs))

    async def aenqueue(self, name: str, /, *args: object, **kwargs: object) -> Job[Any]:
        """Enqueue by name, for code that cannot import the task; arguments by name unless this process knows it."""
        return await self.aenqueue_call(self.call(name, args, kwargs))

    def call(self, name: str, args: Sequence[object] = (), kwargs: Mapping[str, object] | None = None) -> Call[Any]:
        """A call by the task's name; NAME@VERSION is one version of a workflow."""
        task = self.tasks.get(*unversioned(name))
        if task is not None:
            return task.bind(*args, **(kwargs or {}))
        if args:
            raise UnknownTask(
                f"task {name!r} is not known here, so its arguments need names: app.enqueue({name!r}, x=…)"
            )
        return Call(self._stranger(name), encode_untyped(kwargs or {}), AS_DECLARED)

    def _stranger(self, name: str) -> Task[..., Any]:
        """A task, or NAME@VERSION a workflow, of which only the name is known."""

        def unknown(**_kwargs: object) -> None:
            raise UnknownTask(f"task {name!r} is not known in this process")

        known, version = unversioned(name)
        task: Task[..., Any] = Task(unknown, TaskSpec(name=known, version=version))
        task.handler = replace(task.handler, result=Result.untyped(f"the result of {name}"))
        task.app = self
        return task

    def enqueue_call(self, call: Call[R]) -> Job[R]:
        """Enqueue one call."""
        return self._enqueuer.many([call], None)[0]

    async def aenqueue_call(self, call: Call[R]) -> Job[R]:
        """Enqueue one call; concurrent calls without a connection or a key share a commit."""
        return await self._enqueuer.aone(call)

    def enqueue_many(self, calls: Iterable[Call[R]], *, connection: object | None = None) -> list[Job[R]]:
        """Enqueue many calls, all or none; 100,000 at once are fine."""
        return self._enqueuer.many(calls, connection)

    async def aenqueue_many(self, calls: Iterable[Call[R]], *, connection: object | None = None) -> list[Job[R]]:
        """Enqueue many calls, all or none; 100,000 at once are fine."""
        return await self._enqueuer.amany(calls, connection)

    def within(self, connection: object | None) -> AbstractContextManager[None]:
        """Enqueue inside this connection's transaction: `with app.within(connection):`, in async code too.

        It holds for every enqueue and signal inside that names no connection of its own; None means Rowlock's own.
        """
        return self.database.within.lend(connection)

    # Looking up

    def get(self, job_id: UUID | str) -> Job[Any]:
        """The job of that id, live or ended; JobNotFound if there is none."""
        refuse_in_loop("app.get", "await app.aget(…)")
        known = check_id(job_id)
        return self._handle(self.database.join(lambda: show(known), atomic=False))

    async def aget(self, job_id: UUID | str) -> Job[Any]:
        """The job of that id, live or ended; JobNotFound if there is none."""
        known = check_id(job_id)
        return self._handle(await self.database.ajoin(lambda: show(known), atomic=False))

    def _handle(self, record: JobRecord) -> Job[Any]:
        return Job(
            str(record.id),
            task=record.task,
            queue=record.queue,
            room=self.waiting_room,
            handler=self._handler_of(record.task, record.version),
            keep=self.keep,
        )

    def _handler_of(self, name: str, version: int | None = None) -> Handler:
        # Whoever enqueues by SQL may name a task as no decorator could.
        return (self.tasks.get(name, version) or self._stranger("unknown")).handler

    def _encode(self, task: str, version: int | None, args: Mapping[str, object]) -> str:
        """Arguments as JSON, checked where this process knows the task."""
        known = self.tasks.get(task, version)
        return encode_untyped(args) if known is None else known.arguments.encode_json(args)

    # Pausing

    def pause(
        self,
        *,
        queue: str | None = None,
        task: str | None = None,
        until: datetime | None = None,
        duration: timedelta | None = None,
        why: str | None = None,
        by: str | None = None,
    ) -> Pause:
        """Start no more jobs of a queue or of a task: until then, for so long, or until somebody resumes.

        A name that nobody uses yet is taken as it is, as `enqueue` takes a queue's; those that people type are checked
        by `rowlock queues pause` and by the dashboard.
        """
        return self._pauses.pause(pausing(queue=queue, task=task, until=until, duration=duration, why=why, by=by))

    async def apause(
        self,
        *,
        queue: str | None = None,
        task: str | None = None,
        until: datetime | None = None,
        duration: timedelta | None = None,
        why: str | None = None,
        by: str | None = None,
    ) -> Pause:
        """Start no more jobs of a queue or of a task: until then, for so long, or until somebody resumes.

        A name that nobody uses yet is taken as it is, as `enqueue` takes a queue's; those that people type are checked
        by `rowlock queues pause` and by the dashboard.
        """
        query = pausing(queue=queue, task=task, until=until, duration=duration, why=why, by=by)
        return await self._pauses.apause(query)

    def resume(
        self, *, queue: str | None = None, task: str | None = None, why: str | None = None, by: str | None = None
    ) -> bool:
        """Let a queue or a task go on; answers whether it was paused."""
        return self._pauses.resume(resuming(queue=queue, task=task, why=why, by=by), task=task)

    async def aresume(
        self, *, queue: str | None = None, task: str | None = None, why: str | None = None, by: str | None = None
    ) -> bool:
        """Let a queue or a task go on; answers whether it was paused."""
        return await self._pauses.aresume(resuming(queue=queue, task=task, why=why, by=by), task=task)

    def pauses(self) -> list[Pause]:
        """The pauses that hold now."""
        return self._pauses.all()

    async def apauses(self) -> list[Pause]:
        """The pauses that hold now."""
        return await self._pauses.aall()

    # Living

    def migrate(self, *, roles: bool = False) -> list[str]:
        """Bring the database's schema up to date; answers the names of the migrations applied.

        With `roles`, also make the roles rowlock_enqueue, _results, _worker, _viewer and _operator, and give each the
        rights it needs and no others.
        """
        return [f"{migration.version:04d}_{migration.name}" for migration in self.database.migrate(roles=roles)]

    async def amigrate(self, *, roles: bool = False) -> list[str]:
        """Bring the database's schema up to date; answers the names of the migrations applied.

        With `roles`, also make the roles rowlock_enqueue, _results, _worker, _viewer and _operator, and give each the
        rights it needs and no others.
        """
        return await asyncio.to_thread(self.migrate, roles=roles)

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
        A worker holds its jobs under a `lease`, which it must `renew` in time; `deadline` is how long the database may
        take to answer it. Those two follow from the lease unless given.
        What is not given comes from the environment ($ROWLOCK_SLOTS …), else it is the queue `default`, 100 slots and
        30 seconds each of lease and grace.
        """
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
        """Import what `imports` names; answers what a worker needs to run the tasks, by name and alias."""
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
