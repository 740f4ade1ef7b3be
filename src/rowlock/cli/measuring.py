"""What `rowlock bench` measures: a few figures of one database, by the library that its users use."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

from rowlock.app.app import Rowlock
from rowlock.app.tasks import Task
from rowlock.cli.opened import clock
from rowlock.model.spec import DEFAULT_QUEUE
from rowlock.worker.worker import Worker

# Enough for a p99 that is not one unlucky commit, few enough for a far database.
SAMPLES = 200
_BULK = 5_000
_SLOTS = 100
_SPAN = timedelta(seconds=30)

Track = Callable[[str, int, int], object]


@dataclass(frozen=True, slots=True)
class Spread:
    """Times of one thing done again and again, in milliseconds."""

    p50_ms: float
    p99_ms: float

    @classmethod
    def of(cls, seconds: list[float]) -> Spread:
        """The median, and what one in a hundred exceeds."""
        ordered = sorted(seconds)
        return cls(
            *(round(ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000, 3) for share in (0.5, 0.99))
        )


@dataclass(frozen=True, slots=True)
class Figures:
    """What was measured. Rates are jobs per second."""

    jobs: int
    samples: int
    round_trip: Spread
    enqueue_one: Spread
    enqueue_many_per_second: float
    drain_per_second: float
    latency: Spread

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON knows it."""
        return asdict(self)


def measure(app: Rowlock, *, jobs: int, track: Track) -> Figures:
    """Measure a database with nothing but an empty schema in it; `track` is told what is done, how far, of how much."""
    return asyncio.run(_Bench(app, jobs=jobs, track=track).run())


class _Bench:
    def __init__(self, app: Rowlock, *, jobs: int, track: Track) -> None:
        self._app = app
        self._jobs = jobs
        self._samples = min(SAMPLES, jobs)
        self._track = track
        self._ran = 0
        self._last_start = 0.0
        self._one_ran, self._all_ran = asyncio.Event(), asyncio.Event()
        self._task: Task[[], None] = app.task(name="rowlock.bench.nothing")(self._nothing)

    async def _nothing(self) -> None:
        self._last_start = time.perf_counter()
        self._ran += 1
        self._one_ran.set()
        if self._ran == self._jobs:
            self._all_ran.set()

    async def run(self) -> Figures:
        """One figure after the other; the bulk that one of them enqueues is what the next one drains."""
        async with self._app:
            round_trip = await self._timed("round trips", self._ask)
            bulk = await self._enqueue_many()
            drain = await self._drain()
            latency = await self._latency()
            one = await self._timed("enqueues, one by one", self._task.aenqueue)
        return Figures(self._jobs, self._samples, round_trip, one, bulk, drain, latency)

    async def _ask(self) -> object:
        return await self._app.database.aconverse(clock, atomic=False)

    async def _timed(self, what: str, once: Callable[[], Awaitable[object]]) -> Spread:
        await once()  # opens the connection
        taken = []
        for n in range(self._samples):
            begun = time.perf_counter()
            await once()
            taken.append(time.perf_counter() - begun)
            self._track(what, n + 1, self._samples)
        return Spread.of(taken)

    async def _enqueue_many(self) -> float:
        begun = time.perf_counter()
        for start in range(0, self._jobs, _BULK):
            count = min(_BULK, self._jobs - start)
            await self._app.aenqueue_many(self._task.bind() for _ in range(count))
            self._track("enqueue in bulk", start + count, self._jobs)
        return self._rate(begun)

    async def _drain(self) -> float:
        async with self._worker():
            begun = time.perf_counter()
            while not self._all_ran.is_set():
                self._track("drain", self._ran, self._jobs)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._all_ran.wait(), 0.1)
        # Left when the last outcome has been written: that is the end of a job.
        self._track("drain", self._jobs, self._jobs)
        return self._rate(begun)

    async def _latency(self) -> Spread:
        """From the call of `aenqueue` to the handler's first line, by a worker that was parked."""
        taken = []
        async with self._worker():
            for n in range(self._samples):
                self._one_ran.clear()
                begun = time.perf_counter()
                await self._task.aenqueue()
                await self._one_ran.wait()
                taken.append(self._last_start - begun)
                self._track("latency", n + 1, self._samples)
        return Spread.of(taken)

    def _worker(self) -> Worker:
        # All of it said, so that no $ROWLOCK_QUEUES of the user's production is measured instead.
        return self._app.worker(queues=DEFAULT_QUEUE, slots=_SLOTS, lease=_SPAN, grace=_SPAN)

    def _rate(self, begun: float) -> float:
        return round(self._jobs / (time.perf_counter() - begun), 1)
