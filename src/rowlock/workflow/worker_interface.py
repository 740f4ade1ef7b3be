"""Worker interface: what a workflow needs of the worker that runs it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from rowlock.db.borrowed.joining import TransactionEnd
from rowlock.errors import LeaseLost
from rowlock.model.row import ClaimedJob
from rowlock.model.workflow.step import NewChild, Signal, StepUpdate, StoredStep


class AttemptHandle(Protocol):
    """The attempt that runs a workflow."""

    @property
    def row(self) -> ClaimedJob:
        """The job as it was claimed."""

    @property
    def cancel_requested(self) -> bool:
        """Whether somebody has asked to cancel it."""

    @property
    def lost(self) -> str | None:
        """Why the attempt does not own its job any more."""

    @property
    def undoing(self) -> bool:
        """Whether it undoes the workflow: that runs to its end, even if somebody asks to cancel it."""

    @undoing.setter
    def undoing(self, value: bool) -> None: ...

    def lease_lost(self, why: str) -> LeaseLost:
        """The error that says so."""


@dataclass(slots=True)
class LoadedHistory:
    """What a workflow remembers, the signals that nobody has taken, and when that was so, by the database's clock."""

    steps: list[StoredStep] = field(default_factory=list)
    signals: list[Signal] = field(default_factory=list)  # in the order in which they came
    at: str | None = None  # None where nothing was read


class StepStore(Protocol):
    """Reads and writes what workflows remember. Every write is fenced by the attempt's token."""

    async def load(self, row: ClaimedJob) -> LoadedHistory:
        """What a workflow remembers."""

    async def record(self, row: ClaimedJob, steps: Sequence[StepUpdate], *, state: str | None) -> None:
        """Write down steps, and `ctx.state` if it has changed; LeaseLost if the job is not this attempt's any more."""

    async def spawn(self, row: ClaimedJob, children: Sequence[NewChild]) -> None:
        """Write down children and enqueue them, both or neither; LeaseLost as above."""

    async def abandon(self, children: Sequence[str]) -> None:
        """Ask to cancel children whose workflow ends."""

    async def state(self, row: ClaimedJob) -> str | None:
        """The last `ctx.state` that was written."""

    def now(self) -> datetime:
        """The database's time."""

    def is_ours(self) -> bool:
        """Whether this worker may trust its lease still; a step that begins later may be recorded by another worker."""


class TransactionProvider(Protocol):
    """Opens transactions: on the connection given, else on one of its own, which the block is given."""

    def choose(self, named: object | None) -> object | None:
        """The connection meant where a call has named this one: as for an enqueue, that may be the app's own."""

    def transaction(self, connection: object | None, last: TransactionEnd) -> AbstractContextManager[object]:
        """A transaction that ends with these words, for sync functions."""

    def atransaction(self, connection: object | None, last: TransactionEnd) -> AbstractAsyncContextManager[object]:
        """A transaction that ends with these words, for async functions."""


@dataclass(frozen=True, slots=True)
class Environment:
    """What all workflows of a worker have in common."""

    store: StepStore
    transactions: TransactionProvider
    # Runs a sync function in a thread, and returns what it returns or raises what it raises.
    in_thread: Callable[[Any, Callable[[], object]], Awaitable[object]]
    is_draining: Callable[[], bool]
