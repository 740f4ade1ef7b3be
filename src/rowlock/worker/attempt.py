"""Current job: one attempt, as its worker and its handler know it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Protocol, TypeVar, overload
from uuid import UUID

from rowlock.db.session import AsyncConnection, Connection
from rowlock.errors import Cancel, LeaseLost, RowlockError
from rowlock.model.names import check_note, check_share
from rowlock.model.row import ClaimedJob, Fence
from rowlock.store import jobs
from rowlock.store.query import Conversation, alone
from rowlock.worker.transaction import HandlerTransaction, Transaction, TransactionResources, outside_of_a_block

T = TypeVar("T")

# Called with how far an attempt is: a share and a note.
OnProgress = Callable[[ClaimedJob, float, str | None], None]


def ignore_progress(_row: ClaimedJob, _share: float, _note: str | None) -> None:
    """Do nothing: for attempts that nobody watches."""


class HandlerDatabase(Protocol):
    """Holds conversations for handlers, on connections that are not the worker's own. A Database is one."""

    def converse(self, begin: Callable[[], Conversation[T]], *, atomic: bool = True) -> T:
        """Hold a conversation; for sync handlers."""

    async def aconverse(self, begin: Callable[[], Conversation[T]], *, atomic: bool = True) -> T:
        """Hold a conversation; for async handlers."""


class RunningAttempt:
    """One attempt: what its worker and its handler need to know of each other. Any thread may read it."""

    __slots__ = (
        *(
            "cancel_requested",
            "begun",
            "ending",
            "error",
            "fence",
            "in_thread",
            "limit",
            "lost",
            "marked",
            "over",
            "row",
        ),
        *("stopped", "task", "thread", "undoing"),
    )

    def __init__(self, row: ClaimedJob) -> None:
        self.row = row
        # While it runs. Not longer: the two know each other, and only the garbage collector could part them.
        self.task: asyncio.Task[None] | None = None
        # When, by time.perf_counter(). A task that is cancelled before it has begun does nothing at all.
        self.begun = 0.0
        self.marked = row.begun is True  # the database knows that it has begun
        self.stopped = False  # its worker stops, and does not wait for it
        self.over = False  # it has an outcome; its handler may go on all the same
        self.cancel_requested = False  # somebody has asked to cancel the job
        self.undoing = False  # it undoes a workflow: that runs to its end, even if somebody asks to cancel the job
        self.lost: str | None = None  # why the attempt does not own its job any more
        self.in_thread = False  # its handler is running in a thread now
        self.thread: int | None = None  # which
        self.limit: asyncio.Timeout | None = None
        self.fence: Fence | None = None
        self.error: BaseException | None = None  # what its handler raised, until that is logged
        self.ending: HandlerTransaction | None = None  # since its handler has asked for a transaction

    @property
    def must_stop(self) -> bool:
        """Whether its handler should stop."""
        late = self.limit is not None and self.limit.expired()
        return self._is_cancelled or self.over or late or self.lost is not None

    @property
    def committed(self) -> bool:
        """Whether it has ended its job by itself: the database does not hold the job any more, and nothing is lost."""
        return self.ending is not None and self.ending.committed is not None

    @property
    def _is_cancelled(self) -> bool:
        return self.cancel_requested and not self.undoing

    def check(self) -> None:
        """Raise in the handler if it should stop."""
        if self.lost is not None:
            raise self.lease_lost(self.lost)
        if self.limit is not None and self.limit.expired():
            raise self.lease_lost("it took longer than its timeout")
        if self.over:
            raise self.lease_lost("its worker has not waited for it")
        if self._is_cancelled:
            raise Cancel("asked")

    def lease_lost(self, why: str) -> LeaseLost:
        """The error that says that this attempt does not own its job any more."""
        return LeaseLost(UUID(self.row.id), f"this attempt of job {self.row.id} of {self.row.task} is over: {why}")


class CurrentJob:
    """The job that the running handler works on."""

    __slots__ = ("_attempt", "_database", "_on_progress", "_resources", "_row")

    def __init__(
        self,
        attempt: RunningAttempt,
        on_progress: OnProgress,
        database: HandlerDatabase,
        resources: TransactionResources,
    ) -> None:
        self._attempt = attempt
        self._resources = resources
        self._row = attempt.row
        self._on_progress = on_progress
        self._database = database

    @property
    def id(self) -> UUID:
        """The job's id."""
        return UUID(self._row.id)

    @property
    def task(self) -> str:
        """The task's name, as the job has it."""
        return self._row.task

    @property
    def queue(self) -> str:
        """The queue it came from."""
        return self._row.queue

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1; snoozes, crashes and hand-backs are not counted."""
        return self._row.failures + 1

    @property
    def attempts(self) -> int:
        """The number of attempts it has."""
        return self._row.attempts

    @property
    def crashes(self) -> int:
        """The number of workers that died while they ran it."""
        return self._row.crashes

    @property
    def key(self) -> str | None:
        """Its key, if it has one."""
        return self._row.key

    @property
    def tags(self) -> tuple[str, ...]:
        """Its tags."""
        return tuple(self._row.tags or ())

    @property
    def schedule(self) -> str | None:
        """The name of the schedule that made it, if one did."""
        return self._tagged("schedule:")

    @property
    def slot(self) -> datetime | None:
        """The slot of its schedule that it was made for: the instant at which the rule asked for it, in UTC.

        However late it runs, this is the time to work for. None for a job that no slot asked for.
        """
        text = self._tagged("slot:")
        try:
            slot = None if text is None else datetime.fromisoformat(text)
        except ValueError:
            return None  # somebody's own tag
        return None if slot is None or slot.tzinfo is None else slot.astimezone(UTC)

    def _tagged(self, mark: str) -> str | None:
        """What follows the mark in the last tag that has it: those that we add stand behind the user's own."""
        found = [tag.removeprefix(mark) for tag in self.tags if tag.startswith(mark)]
        return found[-1] if found else None

    @property
    def cancelled(self) -> bool:
        """Whether to stop: somebody has asked to cancel the job, or this attempt timed out or does not own it any more.

        A coroutine is cancelled as well; a sync handler is not: it should look here, or call `check`, in loops.
        """
        return self._attempt.must_stop

    def check(self) -> None:
        """Raise what ends this attempt, if it is to stop: Cancel on request, LeaseLost if it does not own its job."""
        self._attempt.check()

    def progress(self, share: float, note: str | None = None) -> None:
        """Report how far this attempt is, from 0 to 1, and what it does, in the job's record.

        It waits for nothing, in async and in sync handlers: the worker writes the latest report about once a second.
        Raises LeaseLost when this attempt does not own its job any more.
        """
        share, note = check_share(share), check_note(note)
        if self._attempt.lost is not None or self._attempt.over:
            self._attempt.check()
        self._on_progress(self._row, share, note)

    def fence(self) -> Fence:
        """A number that grows with every attempt of this job, for a resource outside of PostgreSQL to refuse the stale.

        The first use writes to the database, so that no later attempt can get the same number whatever crashes; so it
        comes before a `transaction`. It raises LeaseLost when this attempt does not own its job any more. In async
        handlers, `await` `afence()`.
        """
        self._attempt.check()
        if self._attempt.fence is None:
            _refuse_in_loop()
            self._refuse_in_block("fence")
            self._attempt.fence = self._fenced(self._database.converse(self._fence, atomic=False))
        return self._attempt.fence

    async def afence(self) -> Fence:
        """A number that grows with every attempt of this job, for a resource outside of PostgreSQL to refuse the stale.

        The first use writes to the database, so that no later attempt can get the same number whatever crashes; so it
        comes before a `transaction`. It raises LeaseLost when this attempt does not own its job any more.
        """
        self._attempt.check()
        if self._attempt.fence is None:
            self._refuse_in_block("afence")
            self._attempt.fence = self._fenced(await self._database.aconverse(self._fence, atomic=False))
        return self._attempt.fence

    @overload
    def transaction(self) -> Transaction[Connection, AsyncConnection]: ...

    @overload
    def transaction(self, connection: T) -> Transaction[T, T]: ...

    def transaction(self, connection: object | None = None) -> Transaction[Any, Any]:
        """A block whose writes are committed together with this job's success, or not at all.

        `async with current_job().transaction() as connection:` in async handlers, `with` in sync ones: on
        `connection`, which is yours; else, as for an enqueue, on the one that it is `within`, or the app's own; else on
        a psycopg connection of the worker's. An error rolls all of it back; so does a lease
        that was lost meanwhile, by LeaseLost. After the block the job has ended: let it be the last thing you do.
        """
        if self._row.version is not None:
            raise RowlockError(
                f"{self._row.task} is a workflow, which goes on after a transaction; use `await ctx.transaction(…)`"
            )
        return Transaction(self._begin, connection)

    def give_result(self, result: T) -> T:
        """Set the job's result inside a `transaction`, which ends the job before the handler returns.

        It returns the result as it is, so that the last line of the block can be `return current_job().give_result(…)`.
        """
        if self._attempt.ending is None:
            raise outside_of_a_block()
        self._attempt.ending.give(result)
        return result

    def _begin(self) -> HandlerTransaction:
        if self._attempt.ending is None:
            self._attempt.ending = HandlerTransaction(self._attempt, self._resources)
        return self._attempt.ending

    def _fence(self) -> Conversation[list[Fence]]:
        return alone(jobs.fence(self._row))

    def _refuse_in_block(self, verb: str) -> None:
        """It would write the job's row beside the block: above READ COMMITTED its end would fail in every attempt."""
        if self._row.token in self._resources.open:
            raise RowlockError(
                f"current_job().{verb}() writes to the job's row, which an open transaction is going to end; "
                f"call it before the `current_job().transaction()` block, in which it then returns the same number"
            )

    def _fenced(self, answer: list[Fence]) -> Fence:
        if not answer:
            raise self._attempt.lease_lost("the database says that the job is not its own")
        return answer[0]

    def __repr__(self) -> str:
        return f"<job {self._row.id} of {self._row.task}, attempt {self.attempt} of {self.attempts}>"


running: ContextVar[CurrentJob] = ContextVar("rowlock_current_job")


def current_job() -> CurrentJob:
    """The job that this handler is running."""
    try:
        return running.get()
    except LookupError:
        raise RowlockError("no job is running here; current_job() works inside a task that a worker runs") from None


def _refuse_in_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RowlockError("current_job().fence() would block the running event loop; use `await current_job().afence()`")
