"""What an app tells of itself: why a job does not run, how much there is to do, whether the database is healthy."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Sequence
from copy import copy
from datetime import timedelta
from importlib import import_module
from typing import Any, Literal, Self
from uuid import UUID

from rowlock.app.job import refuse_in_loop
from rowlock.app.registry import Tasks
from rowlock.db.database import Database
from rowlock.doctor.examine import TARGET, examine
from rowlock.errors import RowlockError
from rowlock.explain import explain_job
from rowlock.model.checkup import Checkup
from rowlock.model.explanation import Explanation
from rowlock.model.filter import check_id
from rowlock.model.names import MAX_NAME, check_text
from rowlock.model.spec import Keep
from rowlock.model.stats.series import Series, check_span, check_step
from rowlock.model.stats.stats import Stats
from rowlock.store.query import Conversation
from rowlock.store.stats.collect import collect_stats
from rowlock.store.stats.series import rates

ASGI = Callable[[Any, Any, Any], Awaitable[None]]


class Observing:
    """The part of an app that looks."""

    database: Database
    tasks: Tasks
    keep: Keep

    @abstractmethod
    def hold(self, database: Database) -> None:
        """Make what speaks to the database speak to this one."""

    def looking(self, *, within: timedelta) -> Self:
        """This app for whoever only looks: the same tasks, on connections that cannot write, nor look for longer."""
        looker = copy(self)
        looker.hold(self.database.read_only(timeout=within))
        return looker

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

        `auth` says who a request is from: a function of it, plain or async, that answers a
        `rowlock.dashboard.Visitor` or None; or `rowlock.dashboard.Tokens([…])`. `hosts` are the names under which it is
        reached, beside the loopback's. With `read_only` nothing can be changed. `arguments` is the least role that sees
        arguments and results. `webhooks` are the secrets of those who may send signals, else those in
        $ROWLOCK_WEBHOOK_SECRETS.
        """
        # It stands above the app, and its packages come with an extra: so it is looked for when it is asked for.
        try:
            made: ASGI = import_module("rowlock.dashboard").Dashboard(
                self, auth=auth, hosts=hosts, read_only=read_only, arguments=arguments, webhooks=webhooks
            )
        except ModuleNotFoundError as error:
            raise RowlockError(f"the dashboard needs {error.name}; run: pip install 'rowlock[dashboard]'") from error
        return made

    def explain(self, job_id: UUID | str) -> Explanation:
        """Why a job is not running, or what became of it: one sentence, the facts behind it, and what to do."""
        refuse_in_loop("app.explain", "await app.aexplain(…)")
        return self.database.join(explain_job(check_id(job_id), known=self.tasks.handler, keep=self.keep))

    async def aexplain(self, job_id: UUID | str) -> Explanation:
        """Why a job is not running, or what became of it: one sentence, the facts behind it, and what to do."""
        return await self.database.ajoin(explain_job(check_id(job_id), known=self.tasks.handler, keep=self.keep))

    def stats(self) -> Stats:
        """What an operator asks for: queues, tasks, workers, the database. Cheap, however many jobs there are.

        What takes over two seconds, or is not this role's to see, is None, and `unknown` says why.
        """
        refuse_in_loop("app.stats", "await app.astats()")
        return self.database.converse(collect_stats)

    async def astats(self) -> Stats:
        """What an operator asks for: queues, tasks, workers, the database. Cheap, however many jobs there are.

        What takes over two seconds, or is not this role's to see, is None, and `unknown` says why.
        """
        return await self.database.aconverse(collect_stats)

    def rates(
        self,
        *,
        span: timedelta = timedelta(hours=1),
        step: timedelta | None = None,
        queue: str | None = None,
        task: str | None = None,
    ) -> Series:
        """What workers did within the last `span`, a day at most, in steps: for charts, of all, a queue or a task.

        A step is whole minutes: one, five or ten as the span is long, unless you say.
        """
        refuse_in_loop("app.rates", "await app.arates(…)")
        return self.database.converse(_rates(span, step, queue, task))

    async def arates(
        self,
        *,
        span: timedelta = timedelta(hours=1),
        step: timedelta | None = None,
        queue: str | None = None,
        task: str | None = None,
    ) -> Series:
        """What workers did within the last `span`, a day at most, in steps: for charts, of all, a queue or a task.

        A step is whole minutes: one, five or ten as the span is long, unless you say.
        """
        return await self.database.aconverse(_rates(span, step, queue, task))

    def doctor(self, *, target: timedelta = TARGET) -> Checkup:
        """Whether the database is healthy, line by line: green, amber or red, the figure, the reason and the remedy.

        `target` is how long a job may be due before that is too long. A few jobs are made, claimed and undone.
        """
        refuse_in_loop("app.doctor", "await app.adoctor()")
        return examine(self.database, target=target, longest=self.keep.longest)

    async def adoctor(self, *, target: timedelta = TARGET) -> Checkup:
        """Whether the database is healthy, line by line: green, amber or red, the figure, the reason and the remedy.

        `target` is how long a job may be due before that is too long. A few jobs are made, claimed and undone.
        """
        return await asyncio.to_thread(examine, self.database, target=target, longest=self.keep.longest)


def _rates(
    span: timedelta, step: timedelta | None, queue: str | None, task: str | None
) -> Callable[[], Conversation[Series]]:
    """The conversation, once all that it is about has been checked."""
    check_span(span)
    fit = check_step(step, span)
    for name, text in {"queue": queue, "task": task}.items():
        if text is not None:
            check_text(name, text, limit=MAX_NAME)
    return lambda: rates(span=span, step=fit, queue=queue, task=task)
