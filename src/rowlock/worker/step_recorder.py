"""Step recorder: reads and writes what workflows remember, for all of them together.

Requests pile up while the statement before is under way, as outcomes do for the settler, in whose loop this runs: the
next one takes them all.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from math import inf
from time import monotonic
from typing import Generic, TypeVar
from uuid import UUID

from rowlock.db.errors import Refused
from rowlock.db.safe_logger import SafeLogger
from rowlock.db.worker_connection import ReconnectingConnection
from rowlock.errors import LeaseLost, WorkflowError
from rowlock.model.row import ClaimedJob
from rowlock.model.workflow.step import NewChild, StepUpdate, StoredStep
from rowlock.store import jobs, schema, settle
from rowlock.store.query import LARGEST_STATEMENT
from rowlock.store.workflows import steps
from rowlock.workflow.worker_interface import LoadedHistory

T = TypeVar("T")
W = TypeVar("W", bound="StepUpdate | NewChild")

log = SafeLogger("rowlock.worker")

# Rows in one statement: so many that the commit is shared, so few that nobody waits long for it.
_LARGEST_BATCH = 1_000
# Tries of a batch before it is halved. What stands alone is tried again after growing pauses: three times if others
# could be written meanwhile, and more often if not, for then it is the server that is ill.
_TRIES = 2
_TRIES_ALONE, _MOST_TRIES = 3, 9
_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 60.0
# What a workflow may remember in all. PostgreSQL makes one JSON text of it in the end, which it cannot beyond 1 GB, and
# which must take less than the deadline of a settle.
LARGEST_RECORD = 64 * 1024 * 1024
_UNDOING = ("undo", "failure")
# So many requests that are done together are released in two parts: see StepRecorder._release.
_WORTH_PARTING = 16
# A row that somebody else has locked is tried again after so many seconds; a child that is to be cancelled, after more.
_LOCKED_PAUSE, _LONGEST_LOCKED_PAUSE = 0.05, 1.0


@dataclass(slots=True)
class _Request(Generic[W]):
    """Something to write, for an attempt that waits until it is written."""

    row: ClaimedJob
    what: Sequence[W]
    state: str | None
    done: asyncio.Future[None]
    since: float = field(default_factory=monotonic)
    failures: int = 0


class StepRecorder:
    """The memory of a worker's workflows."""

    def __init__(self, *, wake: Callable[[], None], actor: str, is_ours: Callable[[], bool]) -> None:
        """`wake` says that there is something to do; `is_ours` tells whether the worker may trust its lease."""
        self._wake = wake
        self.is_ours = is_ours
        self._actor = actor
        self._loads: dict[str, tuple[ClaimedJob, asyncio.Future[LoadedHistory]]] = {}
        self._records: deque[_Request[StepUpdate]] = deque()
        self._children: deque[_Request[NewChild]] = deque()
        self._rest: deque[Callable[[ReconnectingConnection], Awaitable[None]]] = deque()
        self._clock: tuple[datetime, float] | None = None
        self._good_at = 0.0  # when something was written at last
        self._sizes: dict[str, int] = {}  # of what workflows remember, by token, as far as we have seen it
        self.last_states: dict[str, str] = {}  # the last `ctx.state` of workflows, by token, for the settle

    @property
    def is_due(self) -> bool:
        """Whether there is something to read or to write."""
        return bool(self._records or self._loads or self._children or self._rest)

    # What workflows ask

    def now(self) -> datetime:
        """The database's time: as it was last read, and the time since."""
        now, at = self._clock or (datetime.now(UTC), monotonic())  # set before the first attempt begins
        return now + timedelta(seconds=monotonic() - at)

    def set_clock(self, now: datetime) -> None:
        """The database's time is this."""
        self._clock = (now, monotonic())

    async def load(self, row: ClaimedJob) -> LoadedHistory:
        """What a workflow remembers; one that has just been enqueued remembers nothing."""
        if row.claims <= 1 and not row.wakes and self._clock is not None:
            return LoadedHistory()
        done: asyncio.Future[LoadedHistory] = asyncio.get_running_loop().create_future()
        self._loads[row.token] = (row, done)
        self._wake()
        return await done

    def size(self, row: ClaimedJob) -> int:
        """How many characters this workflow remembers."""
        return self._sizes.get(row.token, 0)

    def forget(self, rows: Iterable[ClaimedJob]) -> None:
        """These attempts are over."""
        if self._sizes or self.last_states:
            for row in rows:
                self._sizes.pop(row.token, None)
                self.last_states.pop(row.token, None)

    def _grow(self, row: ClaimedJob, records: Sequence[StepUpdate]) -> None:
        """Count what is to be written; WorkflowError if it is too much, but for what undoes, and what has failed."""
        grows = sum(map(_size, records))
        before = self.size(row)
        size = before + grows
        if size > LARGEST_RECORD and not all(record.kind in _UNDOING or record.state == "failed" for record in records):
            raise WorkflowError(
                f"the workflow would remember {size / 2**20:.0f} MiB, more than {LARGEST_RECORD // 2**20}; keep what "
                "is large in a table or store of your own and return its place, or start over with ctx.restart(…)"
            )
        if before <= LARGEST_RECORD // 2 < size:
            log.warning(
                "%s %s remembers %.0f MiB, and may remember no more than %d; it is read whole at every wake",
                row.task,
                row.id,
                size / 2**20,
                LARGEST_RECORD // 2**20,
            )
        self._sizes[row.token] = size

    async def record(self, row: ClaimedJob, records: Sequence[StepUpdate], *, state: str | None) -> None:
        """Write down steps, and `ctx.state` if it has changed; LeaseLost if the job is not this attempt's any more."""
        self._grow(row, records)
        await self._request(self._records, row, records, state)

    async def spawn(self, row: ClaimedJob, children: Sequence[NewChild]) -> None:
        """Write down children and enqueue them, both or neither; LeaseLost as above."""
        left = deque(children)
        while left:
            await self._request(self._children, row, _fill(left, lambda child: (1, _size(child))), None)

    async def abandon(self, children: Sequence[str]) -> None:
        """Ask to cancel children whose workflow ends."""
        left, since, pause = list(children), monotonic(), _LOCKED_PAUSE
        while left:
            left = await self._on_connection(partial(self._abandon, left, since))
            if left:  # somebody has them locked, or the server is ill
                await asyncio.sleep(pause)
                pause = min(pause * 2, _LONGEST_LOCKED_PAUSE)

    async def _abandon(self, children: Sequence[str], since: float, link: ReconnectingConnection) -> list[str]:
        """Those that are left for later. What is refused is halved; a child that is refused alone runs on."""
        try:
            return (await link.run(settle.abandon_children(children, actor=self._actor), tries=_tries(children)))[0]
        except Refused as error:
            if len(children) > 1:
                middle = len(children) // 2
                halves = children[:middle], children[middle:]
                return [child for half in halves for child in await self._abandon(half, since, link)]
            if error.unclear and self._good_at <= since:
                return list(children)
            log.error("PostgreSQL refuses to cancel the child %s (%s)", children[0], error)  # noqa: TRY400
            return []

    async def state(self, row: ClaimedJob) -> str | None:
        """The last `ctx.state` that was written."""
        return next(
            iter(await self._on_connection(lambda link: link.run(settle.workflow_state(row), tries=_TRIES))), None
        )

    async def _request(self, queue: deque[_Request[W]], row: ClaimedJob, what: Sequence[W], state: str | None) -> None:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(_Request(row, what, state, done))
        self._wake()
        await done

    async def _on_connection(self, send: Callable[[ReconnectingConnection], Awaitable[T]]) -> T:
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        async def run(link: ReconnectingConnection) -> None:
            try:
                result = await send(link)
            except Refused as error:
                if not done.done():
                    done.set_exception(_refused(error))
                return
            if not done.done():
                done.set_result(result)

        self._rest.append(run)
        self._wake()
        return await done

    # What the settler's loop does

    async def run_due(self, link: ReconnectingConnection) -> None:
        """Read and write what is due: one statement of each kind."""
        if self._loads:
            await self._load(link)
        if self._records:
            await self._write(link, _taken(self._records))
        if self._children:
            await self._spawn(link, _taken(self._children))
        while self._rest:
            await self._rest.popleft()(link)

    async def _load(self, link: ReconnectingConnection) -> None:
        loads, self._loads = self._loads, {}
        await self._load_part(link, list(loads.values()))

    async def _load_part(
        self, link: ReconnectingConnection, loads: Sequence[tuple[ClaimedJob, asyncio.Future[LoadedHistory]]]
    ) -> None:
        """Read what these remember; where that fails again and again, halved until who cannot be read stands alone."""
        try:
            found = await self._look_up(link, [row for row, _ in loads])
        except Refused as error:
            if len(loads) > 1:
                middle = len(loads) // 2
                await self._load_part(link, loads[:middle])
                await self._load_part(link, loads[middle:])
            elif not loads[0][1].done():
                loads[0][1].set_exception(_refused(error))
            return
        for row, done in loads:
            if not done.done():  # else its attempt is over, and nobody would take the size away
                self._sizes[row.token] = sum(map(_size, found[row.id].steps))
                done.set_result(found[row.id])

    async def _look_up(self, link: ReconnectingConnection, rows: Sequence[ClaimedJob]) -> dict[str, LoadedHistory]:
        found = {row.id: LoadedHistory() for row in rows}
        signalled = [row.id for row in rows if row.wakes]
        at: str | None = None
        for job, step, at in await link.run(steps.load(found), tries=_TRIES):
            found[job].steps.append(step)
            found[job].at = at
        if at is not None:
            self.set_clock(datetime.fromisoformat(at))
        elif self._clock is None:
            self.set_clock(*await link.run(schema.now()))
        for job, signal in await link.run(steps.load_signals(signalled), tries=_TRIES) if signalled else ():
            found[job].signals.append(signal)
        return found

    async def _write(self, link: ReconnectingConnection, batch: list[_Request[StepUpdate]]) -> None:
        written = [(request.row, record) for request in batch for record in request.what]
        states = {request.row.token: request.state for request in batch if request.state is not None}
        try:
            answer = await link.run(steps.record(written, told=states), tries=_tries(batch))
        except Refused as error:
            await self._halve(link, batch, self._write, self._records, error)
            return
        self._good_at = monotonic()
        if answer:
            self.set_clock(datetime.fromisoformat(answer[0].now))
        await self._accepted(link, batch, {token for token, _ in answer}, self._records)

    async def _spawn(self, link: ReconnectingConnection, batch: list[_Request[NewChild]]) -> None:
        born = [(request.row, child) for request in batch for child in request.what]
        try:
            accepted = await link.converse(lambda: steps.spawn_all(born), tries=_tries(batch))
        except Refused as error:
            await self._halve(link, batch, self._spawn, self._children, error)
            return
        self._good_at = monotonic()
        await self._accepted(link, batch, accepted, self._children)

    async def _accepted(
        self, link: ReconnectingConnection, batch: list[_Request[W]], tokens: set[str], queue: deque[_Request[W]]
    ) -> None:
        """Some rows were skipped. Still ours: somebody has them locked, so once more. Else the job is lost."""
        missing = [request for request in batch if request.row.token not in tokens]
        ours = {token for token, _ in await link.run(jobs.held([one.row for one in missing]))} if missing else set()
        for request in missing:
            if request.row.token in ours:
                asyncio.get_running_loop().call_later(_LOCKED_PAUSE, self._again, queue, request)
            elif not request.done.done():
                request.done.set_exception(_lost(request.row))
        self._release([request for request in batch if request.row.token in tokens] if missing else batch)

    def _release(self, written: list[_Request[W]]) -> None:
        """Released all at once, many would all come back at once, and PostgreSQL would have nothing to do until then.

        So the second half of them is released when the first half has had its turn (11 % more workflows of five steps a
        second). If others are waiting, it has work.
        """
        first = len(written) // 2 if len(written) >= _WORTH_PARTING and not self.is_due else len(written)
        _tell(written[:first])
        if first < len(written):
            asyncio.get_running_loop().call_soon(_tell, written[first:])  # it stands behind them

    def _again(self, queue: deque[_Request[W]], request: _Request[W]) -> None:
        queue.append(request)
        self._wake()

    async def _halve(
        self,
        link: ReconnectingConnection,
        batch: list[_Request[W]],
        write: Callable[[ReconnectingConnection, list[_Request[W]]], Awaitable[None]],
        queue: deque[_Request[W]],
        error: Refused,
    ) -> None:
        """Something cannot be written: halved until it stands alone; in the end its workflow gets the error."""
        if len(batch) > 1:
            middle = len(batch) // 2
            await write(link, batch[:middle])
            await write(link, batch[middle:])
            return
        [request] = batch
        request.failures += 1
        enough = _TRIES_ALONE if self._good_at > request.since else inf if error.unclear else _MOST_TRIES
        if not error.certain and request.failures < enough:
            pause = min(_FIRST_PAUSE * 2 ** min(request.failures - 1, 16), _LONGEST_PAUSE)
            asyncio.get_running_loop().call_later(pause, self._again, queue, request)
        elif not request.done.done():
            request.done.set_exception(_refused(error))


def _tries(batch: Sequence[object]) -> int:
    return _TRIES if len(batch) > 1 else 1


def _refused(error: Refused) -> WorkflowError:
    return WorkflowError(f"PostgreSQL refuses what this workflow is to remember: {error}")


def _tell(written: Iterable[_Request[W]]) -> None:
    for request in written:
        if not request.done.done():
            request.done.set_result(None)


def _taken(queue: deque[_Request[W]]) -> list[_Request[W]]:
    """As many as go into one statement; those of one workflow may come apart, for each is whole in itself."""
    return _fill(queue, lambda request: (len(request.what), sum(map(_size, request.what))))


def _fill(queue: deque[T], measure: Callable[[T], tuple[int, int]]) -> list[T]:
    """Take as many as go into one statement, by rows and by characters: one at the least."""
    batch: list[T] = []
    rows, characters = _LARGEST_BATCH, LARGEST_STATEMENT
    while queue:
        more, longer = measure(queue[0])
        rows, characters = rows - more, characters - longer
        if batch and (rows < 0 or characters < 0):
            break
        batch.append(queue.popleft())
    return batch


def _size(what: StepUpdate | StoredStep | NewChild) -> int:
    """About how many characters it is."""
    size = len(what.input or "")
    if isinstance(what, NewChild):
        return size + len(what.job.args)
    return size + len(what.value or "") + len(what.error or "")


def _lost(row: ClaimedJob) -> LeaseLost:
    return LeaseLost(UUID(row.id), f"job {row.id} of {row.task} is not this attempt's any more; nothing was written")
