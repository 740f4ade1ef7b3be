"""Job: the handle that enqueue returns."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent import futures
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast
from uuid import UUID

from pydantic_core import from_json

from rowlock.app.checks import check_actor, check_why
from rowlock.app.verbs import Exchange, Verb, averb, refuse_in_loop, verb
from rowlock.db.borrowed import in_transaction
from rowlock.db.database import Database
from rowlock.db.results import ResultWaiters
from rowlock.errors import (
    InvalidOption,
    JobCancelled,
    JobFailed,
    JobNotFound,
    NoResult,
    ResultTimeout,
    RowlockError,
)
from rowlock.model.row import JobEnd
from rowlock.model.spec import Handler, Keep
from rowlock.store import jobs
from rowlock.store.query import Conversation, alone
from rowlock.store.schema import make_partitions

if TYPE_CHECKING:
    from rowlock.model.explanation import Explanation
    from rowlock.model.record import JobRecord

R_co = TypeVar("R_co", covariant=True)

_AS_USUAL = Keep()


class Job(Generic[R_co]):
    """A job that was enqueued. `created` is False when its key already belonged to a job, which this then is."""

    __slots__ = ("_borrowed", "_handler", "_id", "_keep", "_room", "created", "queue", "task")

    def __init__(
        self,
        job_id: str,
        *,
        task: str,
        queue: str,
        created: bool = True,
        room: ResultWaiters,
        handler: Handler,
        keep: Keep = _AS_USUAL,
        borrowed: Callable[[], object | None] | None = None,
    ) -> None:
        self._id = job_id
        self.task = task
        self.queue = queue
        self.created = created
        self._room = room
        self._handler = handler
        self._keep = keep
        self._borrowed = borrowed  # the caller's connection, by which it was enqueued, if that is still there

    @property
    def id(self) -> UUID:
        """The job's id, a UUIDv7: ids of one process sort by the time they were made."""
        return UUID(self._id)

    # Two bodies: a thread waits for a future of its own kind, a task for that of its loop.

    def result(self, timeout: timedelta | None = None) -> R_co:
        """Wait for the end of the job and return what its handler returned.

        Raises JobFailed, JobCancelled, NoResult or JobNotFound if there is no such value, and ResultTimeout if the job
        has not ended in time; a timeout of zero only looks.
        """
        seconds = self._checked(timeout)
        refuse_in_loop("job.result", "await job.aresult(…)")
        uncommitted = self._may_be_uncommitted()
        database = self._room.database
        if (block := database.within.block()) is not None or seconds == 0:
            looked = database.converse(partial(alone, jobs.ends([self._id])), connection=block, atomic=False)
            if looked or seconds == 0:
                return self._value(looked[0] if looked else None, timeout, uncommitted=uncommitted)
            if uncommitted:
                raise self._missing(uncommitted=True, seen=False)
        end = self._room.enter(self._id)
        try:
            futures.wait([end], seconds)
            ended = end.result() if end.done() else None
            return self._value(ended, timeout, uncommitted=uncommitted or block is not None)
        finally:
            end.cancel()

    async def aresult(self, timeout: timedelta | None = None) -> R_co:
        """Wait for the end of the job and return what its handler returned.

        Raises JobFailed, JobCancelled, NoResult or JobNotFound if there is no such value, and ResultTimeout if the job
        has not ended in time; a timeout of zero only looks.
        """
        seconds = self._checked(timeout)
        uncommitted = self._may_be_uncommitted()
        database = self._room.database
        if (block := await database.within.ablock()) is not None or seconds == 0:
            looked = await database.aconverse(partial(alone, jobs.ends([self._id])), connection=block, atomic=False)
            if looked or seconds == 0:
                return self._value(looked[0] if looked else None, timeout, uncommitted=uncommitted)
            if uncommitted:
                raise self._missing(uncommitted=True, seen=False)
        end = asyncio.wrap_future(self._room.enter(self._id))
        try:
            await asyncio.wait([end], timeout=seconds)
            ended = end.result() if end.done() else None
            return self._value(ended, timeout, uncommitted=uncommitted or block is not None)
        finally:
            end.cancel()

    @verb("job")
    def record(self) -> Verb[JobRecord]:
        """The job as it is now; JobNotFound when it is neither live nor in history."""
        return (yield from Exchange(self._room.database, partial(show, self.id), atomic=False))

    arecord = averb(record)

    @verb("job")
    def explain(self) -> Verb[Explanation]:
        """Explain why the job is not running, or what became of it: a sentence, the facts behind it, and what to do."""
        from rowlock.explain import explain_job  # noqa: PLC0415  whoever only enqueues does without

        handler = self._handler if self._handler.result.is_declared else None  # else only its name is known here
        explaining = partial(
            explain_job,
            self.id,
            known=lambda _task, _version: handler,
            keep=self._handler.spec.keep or self._keep,
            uncommitted=self._may_be_uncommitted(),
        )
        return (yield from Exchange(self._room.database, explaining))

    aexplain = averb(explain)

    @verb("job.cancel", instead="await job.acancel()")
    def cancel(self, *, by: str | None = None, why: str | None = None, connection: object | None = None) -> Verb[bool]:
        """Cancel the job. True: it never runs, retries or succeeds again. False: too late, its outcome stands.

        A running handler is asked to stop, and cancelled if it is a coroutine; until it has ended, the job's key is
        held. A workflow that has begun ends when a worker has undone what it did. Like an enqueue it joins the
        transaction of `connection`, or of the one that it is `within`: then all of this holds from the commit on.
        JobNotFound when it is neither live nor in history. `by` and `why` are for the job's event.
        """
        from rowlock.store import operations  # noqa: PLC0415  whoever only enqueues does without

        database, actor, reason = self._room.database, check_actor(by), check_why(why)
        keep = (self._handler.spec.keep or self._keep).cancelled

        def cancelling() -> Conversation[bool]:
            cancelled = yield from operations.cancel_one(self._id, actor=actor, why=reason, keep=keep)
            if cancelled is None:
                raise not_found(self.id)
            return cancelled

        lent = database.within.choose(connection)
        yield from Exchange(database, partial(make_partitions, longest=self._keep.longest), connection=lent)
        return (yield from Exchange(database, cancelling, connection=lent))

    acancel = averb(cancel)

    @verb("job")
    def signal(self, name: str, payload: object = None, *, key: str | None = None) -> Verb[bool]:
        """Send the job, a workflow, a signal. True: it is stored. False: one with this `key` was sent before.

        SignalRefused when it has ended or is being cancelled. It joins the transaction of the connection that it is
        `within`, like an enqueue.
        """
        return send_signal(self._room.database, self.id, name, payload, key=key, keep=self._keep)

    asignal = averb(signal)

    # What a result, or its absence, means

    def _checked(self, timeout: timedelta | None) -> float | None:
        """The timeout in seconds; raises NoResult for a job that will never have one."""
        if timeout is not None and not isinstance(timeout, timedelta):
            raise InvalidOption(f"timeout={timeout!r} must be a timedelta; write timedelta(seconds=…)")
        if not self._handler.spec.history:
            raise NoResult(self.id, f"{self.task} is declared with history=False: its jobs leave no result to wait for")
        # A lock waits for 292 years at most.
        return None if timeout is None else min(max(timeout.total_seconds(), 0.0), threading.TIMEOUT_MAX)

    def _may_be_uncommitted(self) -> bool:
        """Whether the transaction that enqueued it is open; asked before the job is looked for, and not found."""
        connection = self._borrowed() if self._borrowed is not None else None
        return connection is not None and in_transaction(connection)

    def _value(self, ending: JobEnd | None, timeout: timedelta | None, *, uncommitted: bool) -> R_co:
        if ending is None:
            raise ResultTimeout(self.id, self.task, timeout or timedelta(0))
        match ending.state:
            case "succeeded":
                return cast("R_co", self._handler.result.decode(ending.result))
            case "failed":
                raise self._failed(ending)
            case "cancelled":
                raise JobCancelled(self.id, self.task, ending.reason or "no reason given")
            case _:
                raise self._missing(uncommitted=uncommitted, seen=ending.seen)

    def _failed(self, ending: JobEnd) -> JobFailed:
        error = from_json(ending.error) if ending.error is not None else {}
        return JobFailed(
            self.id,
            self.task,
            reason=ending.reason or "no reason given",
            error_type=error.get("type", "unknown"),
            message=error.get("message", ""),
            remote_traceback=error.get("traceback", ""),
            attempts=ending.failures or 0,
        )

    def _missing(self, *, uncommitted: bool, seen: bool) -> RowlockError:
        """Why a job is neither live nor in history."""
        job = f"job {self._id} of {self.task}"
        if seen and self._handler.result.is_declared:
            return JobNotFound(self.id, f"{job} is gone: somebody has deleted it while its result was waited for")
        if seen:
            return NoResult(self.id, f"{job} has ended without a trace: its worker keeps no history of this task")
        if uncommitted:
            return RowlockError(
                f"{job} cannot be seen from outside: the connection that enqueued it is in a transaction, so it is not "
                "committed yet, or was rolled back; commit first, then wait for the result"
            )
        if self._borrowed is not None:
            return JobNotFound(self.id, f"{job} is not there: the transaction that enqueued it was rolled back")
        return NoResult(self.id, f"{job} has left history: its time there is over, or somebody has deleted it")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Job) and self._id == other._id

    def __hash__(self) -> int:
        return hash(self._id)

    def __repr__(self) -> str:
        return f"<Job {self._id} of {self.task} on {self.queue}>"


def show(job_id: UUID) -> Conversation[JobRecord]:
    """A job as it is now; JobNotFound when it is neither live nor in history."""
    from rowlock.store.find import pages  # noqa: PLC0415  whoever only enqueues does without

    found = yield from pages.show(job_id)
    if not found:
        raise not_found(job_id)
    return found[0]


def not_found(job_id: UUID) -> JobNotFound:
    """The error for a job that is neither live nor in history."""
    return JobNotFound(job_id, f"no job {job_id}: not committed, rolled back, deleted, or its time in history is over")


def send_signal(
    database: Database,
    target: UUID | str | Job[Any],
    name: str,
    payload: object,
    *,
    key: str | None,
    keep: Keep,
    connection: object | None = None,
    by: str | None = None,
    why: str | None = None,
) -> Verb[bool]:
    """Send a signal to a workflow; with an event if somebody sends it by hand."""
    if by is None and why is not None:
        raise InvalidOption("why= is for an event, and that is written with by=; say who sends it")
    from rowlock.store.workflows.signals import sending  # noqa: PLC0415  whoever only enqueues does without

    actor, reason = None if by is None else check_actor(by), check_why(why)
    begin = sending(target.id if isinstance(target, Job) else target, name, payload, key, actor=actor, why=reason)
    lent = database.within.choose(connection)
    if by is not None:
        yield from Exchange(database, partial(make_partitions, longest=keep.longest))
    return (yield from Exchange(database, begin, connection=lent, atomic=False))
