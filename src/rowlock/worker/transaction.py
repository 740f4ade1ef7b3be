"""Transaction: a handler's writes and its job's end, committed together or not at all.

No lock is taken on the job before the end of the block. There the settle is the last thing said before the commit, by
the attempt's own token: an attempt that has lost its job finds no row, and what it wrote is rolled back.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
    nullcontext,
)
from dataclasses import dataclass, field
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from rowlock.db.borrowed.joining import TransactionEnd
from rowlock.db.safe_logger import SafeLogger
from rowlock.errors import LeaseLost, RowlockError
from rowlock.model.outcome import Committed, Ended, Failed, HandedBack, Outcome, Retried, Succeeded
from rowlock.model.row import ClaimedJob
from rowlock.model.spec import Handler
from rowlock.store.query import Conversation
from rowlock.store.settle import settle_in_transaction
from rowlock.workflow.worker_interface import TransactionProvider

if TYPE_CHECKING:
    from rowlock.worker.attempt import RunningAttempt

log = SafeLogger("rowlock.worker")

Sync = TypeVar("Sync")
Async = TypeVar("Async")


@dataclass(frozen=True, slots=True)
class TransactionResources:
    """What attempts need to end their jobs by themselves.

    `keep` is how long history keeps a job, and `last_progress` an attempt's progress that has not been written yet.
    """

    transactions: TransactionProvider
    handlers: Mapping[str, Handler]
    keep: Callable[[ClaimedJob, Ended], timedelta | None]
    last_progress: Callable[[ClaimedJob], Sequence[tuple[ClaimedJob, float, str | None]]]
    # The tokens of attempts with an open block: nobody else writes to their rows meanwhile, for a block above READ
    # COMMITTED would be refused then.
    open: set[str] = field(default_factory=set)


class HandlerTransaction:
    """Ends an attempt's job by itself: in one transaction at a time, and in none after the one that commits."""

    __slots__ = ("_attempt", "_is_open", "_resources", "_result", "committed", "doubted", "misfit")

    def __init__(self, attempt: RunningAttempt, resources: TransactionResources) -> None:
        self._attempt = attempt
        self._resources = resources
        self._is_open = False
        self._result: str | None = None
        self.committed: Committed | None = None
        self.misfit: Exception | None = None  # the error of a result that did not fit
        # The lease that was lost as seen on a connection of the handler's, which may lead to another database: then the
        # job is still ours, and to hand it back would be to do the same forever. So it is an error, fenced like any.
        self.doubted: LeaseLost | None = None

    def give(self, result: object) -> None:
        """Take the job's result."""
        if not self._is_open:
            raise outside_of_a_block()
        try:
            self._result = self._resources.handlers[self._attempt.row.code].result.encode(result)
        except Exception as error:  # of a result that cannot be stored, or of its own serializer
            self.misfit = error
            raise

    @contextmanager
    def block(self, connection: object | None) -> Iterator[object]:
        """The block of a sync handler."""
        connection = self._resources.transactions.choose(connection)
        with self._opened(connection) as last, self._resources.transactions.transaction(connection, last) as lent:
            yield lent

    @asynccontextmanager
    async def ablock(self, connection: object | None) -> AsyncIterator[object]:
        """The block of an async handler."""
        connection = self._resources.transactions.choose(connection)
        with self._opened(connection) as last:
            async with self._resources.transactions.atransaction(connection, last) as lent:
                yield lent

    @contextmanager
    def _opened(self, connection: object | None) -> Iterator[TransactionEnd]:
        row = self._attempt.row
        if self.committed is not None:
            raise RowlockError(
                f"job {row.id} of {row.task} has ended: its transaction is committed, and can be only once"
            )
        if self._is_open:
            raise RowlockError(f"job {row.id} of {row.task} is in a transaction already; go on in that one")
        self._attempt.check()
        self._is_open, self._result = True, None
        self._resources.open.add(row.token)
        try:
            yield TransactionEnd(self._end, self._commit)
        except LeaseLost as error:
            if connection is not None and self._attempt.lost is None:
                self.doubted = error
            raise
        finally:
            self._is_open = False
            self._resources.open.discard(row.token)

    def _end(self) -> Conversation[None]:
        self._attempt.check()
        row, outcome = self._attempt.row, Succeeded(self._result)
        return settle_in_transaction(
            row, outcome, keep=self._resources.keep(row, outcome), said=self._resources.last_progress(row)
        )

    def _commit(self) -> None:
        self.committed = Committed(self._result)

    def instead_of(self, outcome: Outcome) -> Outcome:
        """What became of the attempt, when this is what its handler came to."""
        if self.committed is None:
            return outcome
        match outcome:
            case HandedBack() | Succeeded(None):
                pass
            case Succeeded(result) if result == self.committed.result:
                pass
            case _:
                row = self._attempt.row
                log.error(
                    "%s %s has succeeded: its transaction is committed, and what its handler did after it (%s) changes "
                    "nothing; let the transaction be the last thing that it does",
                    row.task,
                    row.id,
                    _in_words(outcome),
                )
        return self.committed


class Transaction(Generic[Sync, Async]):
    """The block in which a handler's writes and the end of its job belong together: `with`, or `async with`."""

    __slots__ = ("_ablock", "_begin", "_block", "_connection")

    def __init__(self, begin: Callable[[], HandlerTransaction], connection: object | None) -> None:
        self._begin = begin
        self._connection = connection
        self._block: AbstractContextManager[object] = nullcontext()
        self._ablock: AbstractAsyncContextManager[object] = nullcontext()

    def __enter__(self) -> Sync:
        self._block = self._begin().block(self._connection)
        return cast("Sync", self._block.__enter__())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return self._block.__exit__(kind, error, trace)

    async def __aenter__(self) -> Async:
        self._ablock = self._begin().ablock(self._connection)
        return cast("Async", await self._ablock.__aenter__())

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._ablock.__aexit__(kind, error, trace)


def outside_of_a_block() -> RowlockError:
    """A result was given where no transaction is open."""
    return RowlockError(
        "give_result() belongs inside of `with current_job().transaction():`; elsewhere, let the handler return it"
    )


def _in_words(outcome: Outcome) -> str:
    match outcome:
        case Retried(failure) | Failed(failure):
            return str(json.loads(failure)["type"])
        case Succeeded():
            return "another result"
        case _:
            return type(outcome).__name__.lower()
