"""Drain memory: what workflows remember, on the connection that is drained, one statement after another."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from time import monotonic
from typing import Protocol, TypeVar
from uuid import UUID

from rowlock.errors import LeaseLost
from rowlock.model.row import ClaimedJob
from rowlock.model.workflow.step import NewChild, StepUpdate
from rowlock.store import schema, settle
from rowlock.store.query import Conversation
from rowlock.store.workflows import steps
from rowlock.workflow.branch import inside_step
from rowlock.workflow.worker_interface import LoadedHistory

T = TypeVar("T")

Begin = Callable[[], Conversation[T]]


class Converse(Protocol):
    """Holds a conversation on the connection that is drained, all of it or nothing."""

    def __call__(self, begin: Begin[T], resend: Begin[T] | None = None, /) -> Awaitable[T]: ...


class DrainMemory:
    """The statements of a worker's recorder, without its batches."""

    def __init__(self, converse: Converse) -> None:
        self._converse = converse
        self._clock: tuple[datetime, float] | None = None
        self.last_states: dict[str, str] = {}  # of workflows, by token, for the settle
        # One at a time on the connection: steps side by side would write into each other's savepoints.
        self.turn = asyncio.Lock()

    def now(self) -> datetime:
        """The database's time, as it was when the attempt began, and the time since."""
        if self._clock is None:
            raise AssertionError("no attempt has begun")
        told, at = self._clock
        return told + timedelta(seconds=monotonic() - at)

    def is_ours(self) -> bool:
        """Always: that somebody has taken the job away is noticed when the next step is written."""
        return True

    async def load(self, row: ClaimedJob) -> LoadedHistory:
        """Read what a workflow remembers."""
        loaded = LoadedHistory()

        def ask() -> Conversation[datetime]:
            for _, step, loaded.at in (yield steps.load([row.id])):
                loaded.steps.append(step)
            loaded.signals.extend(signal for _, signal in (yield steps.load_signals([row.id])))
            now: list[datetime] = yield schema.now()
            return now[0]

        self._clock = (await self._held(ask), monotonic())
        return loaded

    async def record(self, row: ClaimedJob, records: Sequence[StepUpdate], *, state: str | None) -> None:
        """Write down steps, and the workflow's state if that has changed."""
        states = {} if state is None else {row.token: state}

        def write() -> Conversation[bool]:
            return bool((yield steps.record([(row, record) for record in records], told=states)))

        _check(row, accepted=await self._held(write))

    async def spawn(self, row: ClaimedJob, children: Sequence[NewChild]) -> None:
        """Write down children and enqueue them."""

        def write() -> Conversation[set[str]]:
            return steps.spawn_all([(row, child) for child in children])

        _check(row, accepted=bool(await self._held(write)))

    async def abandon(self, children: Sequence[str]) -> None:
        """Ask to cancel children whose workflow ends."""

        def ask() -> Conversation[None]:
            yield settle.abandon_children(children, actor="drain")

        await self._held(ask)

    async def state(self, row: ClaimedJob) -> str | None:
        """The last state of a workflow."""

        def ask() -> Conversation[str | None]:
            return next(iter((yield settle.workflow_state(row))), None)

        return await self._held(ask)

    async def _held(self, begin: Begin[T]) -> T:
        with inside_step("what it remembers"):  # tasks that a driver begins here are not the code's own
            async with self.turn:
                return await self._converse(begin)


def _check(row: ClaimedJob, *, accepted: bool) -> None:
    if not accepted:  # then its outcome cannot be written either, and the drain says so
        raise LeaseLost(UUID(row.id), f"job {row.id} of {row.task} is not this drain's any more; nothing was written")
