"""Record: what workflows remember, read and written for all of them together.

Requests pile up while the statement before is under way, as outcomes do for the settler, in whose loop this runs: the
next one takes them all.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from time import monotonic
from typing import Generic, TypeVar
from uuid import UUID

from rowlock.db.link import Link, Refused
from rowlock.errors import LeaseLost, WorkflowError
from rowlock.model.row import Claimed
from rowlock.model.step import Record, Signal, Spawned, Step
from rowlock.store import endings, jobs, schema, steps

T = TypeVar("T")

log = logging.getLogger("rowlock.worker")

# Rows in one statement: so many that the commit is shared, so few that nobody waits long for it.
_LARGEST_BATCH = 1_000
# So many that were answered together are answered in two parts: see Recorder._answer.
_WORTH_PARTING = 16
# A row that somebody else has locked is tried again after this many seconds.
_LOCKED_PAUSE = 0.05


@dataclass(slots=True)
class Loaded:
    """What a workflow remembers, and when that was so."""

    steps: list[Step] = field(default_factory=list)
    signals: list[Signal] = field(default_factory=list)
    at: str | None = None


@dataclass(slots=True)
class _Request(Generic[T]):
    """Something to write, for an attempt that waits until it is written."""

    row: Claimed
    what: Sequence[T]
    told: str | None
    done: asyncio.Future[None]


class Recorder:
    """The memory of a worker's workflows."""

    def __init__(self, *, wake: Callable[[], None], actor: str, is_ours: Callable[[], bool]) -> None:
        """`wake` says that there is something to do; `is_ours` tells whether the worker may trust its lease."""
        self._wake = wake
        self.is_ours = is_ours
        self._actor = actor
        self._loads: dict[str, tuple[Claimed, asyncio.Future[Loaded]]] = {}
        self._records: deque[_Request[Record]] = deque()
        self._children: deque[_Request[Spawned]] = deque()
        self._rest: deque[Callable[[Link], Awaitable[None]]] = deque()
        self._clock: tuple[datetime, float] | None = None
        self.told: dict[str, str] = {}  # what workflows say of themselves at last, by token, for who settles them

    @property
    def is_due(self) -> bool:
        """Whether there is something to read or to write."""
        return bool(self._records or self._loads or self._children or self._rest)

    # What workflows ask

    def now(self) -> datetime:
        """The database's time, as it was last told, and the time since."""
        told, at = self._clock or (datetime.now(UTC), monotonic())  # it is told before the first attempt begins
        return told + timedelta(seconds=monotonic() - at)

    def set_clock(self, now: datetime) -> None:
        """The database's time is this."""
        self._clock = (now, monotonic())

    async def load(self, row: Claimed) -> Loaded:
        """What a workflow remembers; one that has just been enqueued remembers nothing."""
        if row.claims <= 1 and not row.wakes and self._clock is not None:
            return Loaded()
        done: asyncio.Future[Loaded] = asyncio.get_running_loop().create_future()
        self._loads[row.token] = (row, done)
        self._wake()
        return await done

    async def record(self, row: Claimed, records: Sequence[Record], *, told: str | None) -> None:
        """Write down steps, and what the workflow says of itself if that has changed; LeaseLost if it may not."""
        await self._asked(self._records, row, records, told)

    async def spawn(self, row: Claimed, children: Sequence[Spawned]) -> None:
        """Write down children and enqueue them, both or neither; LeaseLost if it may not."""
        for first in range(0, len(children), _LARGEST_BATCH):
            await self._asked(self._children, row, children[first : first + _LARGEST_BATCH], None)

    async def abandon(self, children: Sequence[str]) -> None:
        """Ask to cancel children whose workflow ends."""
        left = list(children)
        while left:
            left = await self._aside(partial(self._abandon, left))
            if left:  # somebody has them locked
                await asyncio.sleep(_LOCKED_PAUSE)

    async def _abandon(self, children: Sequence[str], link: Link) -> list[str]:
        try:
            return (await link.run(endings.abandon(children, actor=self._actor)))[0]
        except Refused as error:
            log.error("PostgreSQL refuses to cancel children (%s)", error)  # noqa: TRY400  it is its answer
            return []

    async def state(self, row: Claimed) -> str | None:
        """What a workflow has said of itself at last."""
        return next(iter(await self._aside(lambda link: link.run(endings.state(row)))), None)

    async def _asked(self, queue: deque[_Request[T]], row: Claimed, what: Sequence[T], told: str | None) -> None:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(_Request(row, what, told, done))
        self._wake()
        await done

    async def _aside(self, say: Callable[[Link], Awaitable[T]]) -> T:
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        async def answer(link: Link) -> None:
            said = await say(link)
            if not done.done():
                done.set_result(said)

        self._rest.append(answer)
        self._wake()
        return await done

    # What the settler's loop does

    async def look(self, link: Link) -> None:
        """Read and write what is due: one statement of each kind."""
        if self._loads:
            await self._load(link)
        if self._records:
            await self._write(link, _taken(self._records))
        if self._children:
            await self._spawn(link, _taken(self._children))
        while self._rest:
            await self._rest.popleft()(link)

    async def _load(self, link: Link) -> None:
        loads, self._loads = self._loads, {}
        found = {row.id: Loaded() for row, _ in loads.values()}
        signalled = [row.id for row, _ in loads.values() if row.wakes]
        at: str | None = None
        for job, step, at in await link.run(steps.load(found)):
            found[job].steps.append(step)
            found[job].at = at
        if at is not None:
            self.set_clock(datetime.fromisoformat(at))
        elif self._clock is None:
            self.set_clock(*await link.run(schema.now()))
        for job, signal in await link.run(steps.load_signals(signalled)) if signalled else ():
            found[job].signals.append(signal)
        for row, done in loads.values():
            if not done.done():
                done.set_result(found[row.id])

    async def _write(self, link: Link, batch: list[_Request[Record]]) -> None:
        written = [(request.row, record) for request in batch for record in request.what]
        told = {request.row.token: request.told for request in batch if request.told is not None}
        try:
            answer = await link.run(steps.record(written, told=told))
        except Refused as error:
            await self._halve(link, batch, self._write, error)
            return
        if answer:
            self.set_clock(datetime.fromisoformat(answer[0].now))
        await self._accepted(link, batch, {token for token, _ in answer}, self._records)

    async def _spawn(self, link: Link, batch: list[_Request[Spawned]]) -> None:
        born = [(request.row, child) for request in batch for child in request.what]
        try:
            accepted = await link.converse(lambda: steps.spawn_all(born))
        except Refused as error:
            await self._halve(link, batch, self._spawn, error)
            return
        await self._accepted(link, batch, accepted, self._children)

    async def _accepted(
        self, link: Link, batch: list[_Request[T]], tokens: set[str], queue: deque[_Request[T]]
    ) -> None:
        """Some rows were skipped. Still ours: somebody has them locked, so once more. Else the job is lost."""
        missing = [request for request in batch if request.row.token not in tokens]
        ours = {token for token, _ in await link.run(jobs.held([one.row for one in missing]))} if missing else set()
        for request in missing:
            if request.row.token in ours:
                asyncio.get_running_loop().call_later(_LOCKED_PAUSE, self._again, queue, request)
            elif not request.done.done():
                request.done.set_exception(_lost(request.row))
        self._answer([request for request in batch if request.row.token in tokens] if missing else batch)

    def _answer(self, written: list[_Request[T]]) -> None:
        """Told all at once, many would all come back at once, and PostgreSQL would have nothing to do until then.

        So the second half of them is told when the first half has had its turn (11 % more workflows of five steps a
        second). If others are waiting, it has work.
        """
        first = len(written) // 2 if len(written) >= _WORTH_PARTING and not self.is_due else len(written)
        _tell(written[:first])
        if first < len(written):
            asyncio.get_running_loop().call_soon(_tell, written[first:])  # it stands behind them

    def _again(self, queue: deque[_Request[T]], request: _Request[T]) -> None:
        queue.append(request)
        self._wake()

    async def _halve(
        self,
        link: Link,
        batch: list[_Request[T]],
        write: Callable[[Link, list[_Request[T]]], Awaitable[None]],
        error: Refused,
    ) -> None:
        """PostgreSQL refuses something: halved until it stands alone, and then its workflow is told."""
        if len(batch) > 1:
            middle = len(batch) // 2
            await write(link, batch[:middle])
            await write(link, batch[middle:])
        elif not batch[0].done.done():
            batch[0].done.set_exception(WorkflowError(f"PostgreSQL refuses what this step is to remember: {error}"))


def _tell(written: Iterable[_Request[T]]) -> None:
    for request in written:
        if not request.done.done():
            request.done.set_result(None)


def _taken(queue: deque[_Request[T]]) -> list[_Request[T]]:
    """As many as go into one statement; those of one workflow may come apart, for each is whole in itself."""
    batch: list[_Request[T]] = []
    room = _LARGEST_BATCH
    while queue and (not batch or len(queue[0].what) <= room):
        room -= len(queue[0].what)
        batch.append(queue.popleft())
    return batch


def _lost(row: Claimed) -> LeaseLost:
    return LeaseLost(UUID(row.id), f"job {row.id} of {row.task} is not this attempt's any more; nothing was written")
