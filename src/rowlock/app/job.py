"""Jobs as users hold them: the handle that enqueue returns."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent import futures
from datetime import timedelta
from typing import Generic, TypeVar, cast
from uuid import UUID

from pydantic_core import from_json

from rowlock.app.checks import check_actor, check_why
from rowlock.db.borrowed import in_transaction
from rowlock.db.results import ResultWaiters
from rowlock.errors import InvalidOption, JobCancelled, JobFailed, JobNotFound, NoResult, ResultTimeout, RowlockError
from rowlock.explain import explain_job
from rowlock.model.explanation import Explanation
from rowlock.model.record import JobRecord
from rowlock.model.row import JobEnd
from rowlock.model.spec import Handler, Keep
from rowlock.store import operations, results
from rowlock.store.find import pages
from rowlock.store.query import Conversation
from rowlock.store.schema import make_partitions
from rowlock.store.workflows.signals import sending

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

    def result(self, timeout: timedelta | None = None) -> R_co:
        """Wait for the end of the job and answer what its handler returned.

        Raises JobFailed, JobCancelled, NoResult or JobNotFound if there is no such value, and ResultTimeout if the job
        has not ended in time; a timeout of zero only looks.
        """
        seconds = self._checked(timeout)
        refuse_in_loop("job.result", "await job.aresult(…)")
        uncommitted = self._may_be_uncommitted()
        database = self._room.database
        if (block := database.within.block()) is not None or seconds == 0:
            looked = database.converse(self._looking, connection=block, atomic=False)
            if looked or seconds == 0:
                return self._value(looked[0] if looked else None, timeout, uncommitted=uncommitted)
            if uncommitted:
                raise self._missing(uncommitted=True, seen=False)
        end = self._room.enter(self._id)
        try:
            futures.wait([end], seconds)
            return self._value(end.result() if end.done() else None, timeout, uncommitted=uncommitted)
        finally:
            end.cancel()

    async def aresult(self, timeout: timedelta | None = None) -> R_co:
        """Wait for the end of the job and answer what its handler returned.

        Raises JobFailed, JobCancelled, NoResult or JobNotFound if there is no such value, and ResultTimeout if the job
        has not ended in time; a timeout of zero only looks.
        """
        seconds = self._checked(timeout)
        uncommitted = self._may_be_uncommitted()
        database = self._room.database
        if (block := await database.within.ablock()) is not None or seconds == 0:
            looked = await database.aconverse(self._looking, connection=block, atomic=False)
            if looked or seconds == 0:
                return self._value(looked[0] if looked else None, timeout, uncommitted=uncommitted)
            if uncommitted:
                raise self._missing(uncommitted=True, seen=False)
        end = asyncio.wrap_future(self._room.enter(self._id))
        try:
            await asyncio.wait([end], timeout=seconds)
            return self._value(end.result() if end.done() else None, timeout, uncommitted=uncommitted)
        finally:
            end.cancel()

    def _looking(self) -> Conversation[list[JobEnd]]:
        return (yield results.ends([self._id]))

    def record(self) -> JobRecord:
        """The job as it is now; JobNotFound when it is neither live nor in history."""
        refuse_in_loop("job.record", "await job.arecord()")
        return self._room.database.join(lambda: show(self.id), atomic=False)

    async def arecord(self) -> JobRecord:
        """The job as it is now; JobNotFound when it is neither live nor in history."""
        return await self._room.database.ajoin(lambda: show(self.id), atomic=False)

    def explain(self) -> Explanation:
        """Why the job is not running, or what became of it: one sentence, the facts behind it, and what to do."""
        refuse_in_loop("job.explain", "await job.aexplain()")
        return self._room.database.join(self._explaining())

    async def aexplain(self) -> Explanation:
        """Why the job is not running, or what became of it: one sentence, the facts behind it, and what to do."""
        return await self._room.database.ajoin(self._explaining())

    def _explaining(self) -> Callable[[], Conversation[Explanation]]:
        known = self._handler if self._handler.result.is_declared else None  # else only its name is known here
        keep = self._handler.spec.keep or self._keep
        return explain_job(
            self.id, known=lambda _task, _version: known, keep=keep, uncommitted=self._may_be_uncommitted()
        )

    def cancel(self, *, by: str | None = None, why: str | None = None, connection: object | None = None) -> bool:
        """Cancel the job. True: it never runs, retries or succeeds again. False: too late, its outcome stands.

        A running handler is told, and cancelled if it is a coroutine; until it has ended, the job's key is held. A
        workflow that has begun ends when a worker has undone what it did. Like an enqueue it joins the transaction of
        `connection`, or of the one that it is `within`: then all of this holds from the commit on.
        JobNotFound when it is neither live nor in history. `by` and `why` are for the job's event.
        """
        database, cancelling = self._room.database, self._cancelling(by, why)
        lent = database.within.choose(connection)
        if lent is None:
            refuse_in_loop("job.cancel", "await job.acancel()")
        database.converse(lambda: make_partitions(longest=self._keep.longest), connection=lent)
        return database.converse(cancelling, connection=lent)

    async def acancel(self, *, by: str | None = None, why: str | None = None, connection: object | None = None) -> bool:
        """Cancel the job. True: it never runs, retries or succeeds again. False: too late, its outcome stands.

        A running handler is told, and cancelled if it is a coroutine; until it has ended, the job's key is held. A
        workflow that has begun ends when a worker has undone what it did. Like an enqueue it joins the transaction of
        `connection`, or of the one that it is `within`: then all of this holds from the commit on.
        JobNotFound when it is neither live nor in history. `by` and `why` are for the job's event.
        """
        database, cancelling = self._room.database, self._cancelling(by, why)
        lent = database.within.choose(connection)
        await database.aconverse(lambda: make_partitions(longest=self._keep.longest), connection=lent)
        return await database.aconverse(cancelling, connection=lent)

    def _cancelling(self, by: str | None, why: str | None) -> Callable[[], Conversation[bool]]:
        actor, reason = check_actor(by), check_why(why)
        keep = (self._handler.spec.keep or self._keep).cancelled

        def cancelling() -> Conversation[bool]:
            cancelled = yield from operations.cancel_one(self._id, actor=actor, why=reason, keep=keep)
            if cancelled is None:
                raise not_found(self.id)
            return cancelled

        return cancelling

    def signal(self, name: str, payload: object = None, *, key: str | None = None) -> bool:
        """Send the job, a workflow, a signal. True: it is stored. False: one with this `key` was sent before.

        SignalRefused when it has ended or is being cancelled. It joins the transaction of the connection that it is
        `within`, like an enqueue.
        """
        database, converse = self._room.database, sending(self.id, name, payload, key)
        lent = database.within.choose(None)
        if lent is None:
            refuse_in_loop("job.signal", "await job.asignal(…)")
        return database.converse(converse, connection=lent, atomic=False)

    async def asignal(self, name: str, payload: object = None, *, key: str | None = None) -> bool:
        """Send the job, a workflow, a signal. True: it is stored. False: one with this `key` was sent before.

        SignalRefused when it has ended or is being cancelled. It joins the transaction of the connection that it is
        `within`, like an enqueue.
        """
        database, converse = self._room.database, sending(self.id, name, payload, key)
        return await database.aconverse(converse, connection=database.within.choose(None), atomic=False)

    # What a wait comes to

    def _checked(self, timeout: timedelta | None) -> float | None:
        """The timeout in seconds; refuses what there is no use in waiting for."""
        if timeout is not None and not isinstance(timeout, timedelta):
            raise InvalidOption(f"timeout={timeout!r} must be a timedelta; write timedelta(seconds=…)")
        if not self._handler.spec.history:
            raise NoResult(self.id, f"{self.task} is declared with history=False: its jobs leave no result to wait for")
        # A lock waits for 292 years at most.
        return None if timeout is None else min(max(timeout.total_seconds(), 0.0), threading.TIMEOUT_MAX)

    def _may_be_uncommitted(self) -> bool:
        """Asked before anybody looks: a job that is not seen after this is then not committed, or rolled back."""
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
            case "skipped":
                raise NoResult(self.id, f"job {self._id} of {self.task} was skipped: {ending.reason}")
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
    found = yield from pages.show(job_id)
    if not found:
        raise not_found(job_id)
    return found[0]


def not_found(job_id: UUID) -> JobNotFound:
    """The error for a job that is neither live nor in history."""
    return JobNotFound(job_id, f"no job {job_id}: not committed, rolled back, deleted, or its time in history is over")


def refuse_in_loop(verb: str, instead: str) -> None:
    """Sync verbs that would wait for the database, or longer, have no place on an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RowlockError(f"{verb} would block the running event loop; use `{instead}`")
