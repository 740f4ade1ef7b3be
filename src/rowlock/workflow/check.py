"""Check: replays code against what a workflow remembers, and changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import NoReturn
from uuid import UUID

from rowlock.db.borrowed.joining import TransactionEnd
from rowlock.errors import InvalidArguments, LeaseLost, WorkflowChanged
from rowlock.model.failure import describe
from rowlock.model.row import ClaimedJob
from rowlock.model.spec import Handler
from rowlock.model.workflow.step import NewChild, StepUpdate, StoredStep
from rowlock.workflow.context import Context, Restart
from rowlock.workflow.execution import Execution
from rowlock.workflow.worker_interface import Environment, LoadedHistory

# Code that only replays waits for nothing. What it does outside of steps it does for real, and may wait there forever.
_WITHIN = 10.0


async def difference(row: ClaimedJob, handler: Handler, steps: Sequence[StoredStep], *, now: datetime) -> str | None:
    """Where the code differs from what a workflow remembers, in a sentence; None if it fits."""
    try:
        args, kwargs = handler.arguments.decode(row.args)
    except InvalidArguments as error:
        return f"arguments do not fit {row.task!r}: {error}"
    environment = Environment(
        store=ReplayEnvironment(now), transactions=ReplayEnvironment(now), in_thread=_never, is_draining=lambda: False
    )
    execution = Execution(_Looking(row), handler, LoadedHistory(list(steps)), environment, replays=True)
    replay = asyncio.create_task(_replayed(execution, args, kwargs))
    done, _ = await asyncio.wait({replay}, timeout=_WITHIN)
    if not done:
        replay.cancel()
        await asyncio.wait({replay}, timeout=_WITHIN)
        return (
            f"the code has not come to where its record ends within {_WITHIN:.0f} s: it waits for something that is no "
            "step, sleep, signal or child"
        )
    return replay.result()


async def _replayed(execution: Execution, args: tuple[object, ...], kwargs: dict[str, object]) -> str | None:
    execution.begin()
    execution.enter()
    does = "the code waits"
    try:
        await execution.handler.function(Context(execution), *args, **kwargs)
        does = "the code has come to its end"
    except asyncio.CancelledError:
        if execution.ending is None:
            raise  # it is we who give up
        execution.forget_cancellation()
    except Restart:
        does = "the code restarts"
    except WorkflowChanged:
        pass  # the execution knows
    except BaseException as error:
        fault = describe(error)
        does = f"the code raises {fault.type}: {fault.message}"
    finally:
        await execution.close()
    return _verdict(execution, does)


def _verdict(execution: Execution, does: str) -> str | None:
    try:
        if execution.changed is not None:
            raise execution.changed
        execution.history.check_end(does)
        for work in reversed(execution.undos):
            execution.history.find(work.place, "undo", work.given)
    except WorkflowChanged as changed:
        return str(changed)
    return None


@dataclass(slots=True)
class _Looking:
    """Nobody's attempt."""

    row: ClaimedJob
    cancel_requested: bool = False
    undoing: bool = False
    lost: str | None = None

    def lease_lost(self, why: str) -> LeaseLost:
        return LeaseLost(UUID(self.row.id), why)


async def _never(_held: object, _function: object) -> object:
    _refuse()


@dataclass(frozen=True, slots=True)
class ReplayEnvironment:
    """The environment of a replay, in place of a worker's: nothing can be written, and no transaction opened."""

    at: datetime

    def now(self) -> datetime:
        """The database's time when the replay began."""
        return self.at

    def is_ours(self) -> bool:
        """Nobody can take it away."""
        return True

    async def load(self, row: ClaimedJob) -> LoadedHistory:  # noqa: ARG002  a StepStore
        """Refused: what there is was read before."""
        _refuse()

    async def record(self, row: ClaimedJob, steps: Sequence[StepUpdate], *, state: str | None) -> None:  # noqa: ARG002  a StepStore
        """Refused."""
        _refuse()

    async def spawn(self, row: ClaimedJob, children: Sequence[NewChild]) -> None:  # noqa: ARG002  a StepStore
        """Refused."""
        _refuse()

    async def abandon(self, children: Sequence[str]) -> None:  # noqa: ARG002  a StepStore
        """Refused."""
        _refuse()

    async def state(self, row: ClaimedJob) -> str | None:  # noqa: ARG002  a StepStore
        """Refused."""
        _refuse()

    def choose(self, named: object | None) -> object | None:  # noqa: ARG002  a TransactionProvider
        """Refused."""
        _refuse()

    def transaction(self, connection: object | None, last: TransactionEnd) -> AbstractContextManager[object]:  # noqa: ARG002  a TransactionProvider
        """Refused."""
        _refuse()

    def atransaction(self, connection: object | None, last: TransactionEnd) -> AbstractAsyncContextManager[object]:  # noqa: ARG002  a TransactionProvider
        """Refused."""
        _refuse()


def _refuse() -> NoReturn:
    raise AssertionError("a replay that only looks has begun something")
