"""`rowlock bench`: a few figures of one database, measured through the public API."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

import click

from rowlock.app.app import Rowlock
from rowlock.app.tasks import Task
from rowlock.cli.shared.options import AppChoice, app_options, debug_option, read_clock
from rowlock.cli.shared.output import EXIT_CODES_OF_READS, json_option, print_json
from rowlock.db.embedded.disposable import scratch
from rowlock.db.errors import readable_errors
from rowlock.model.spec import DEFAULT_QUEUE
from rowlock.worker.worker import Worker

SCHEMA = "rowlock_bench"
_MOST = 1_000_000
# Enough for a p99 that is not one unlucky commit, few enough for a far database.
SAMPLES = 200
_BULK = 5_000
_SLOTS = 100
_SPAN = timedelta(seconds=30)

Track = Callable[[str, int, int], object]


@click.command(epilog=EXIT_CODES_OF_READS)
@app_options(required=False, with_schema=False)
@click.option(
    "--jobs",
    type=click.IntRange(1, _MOST),
    metavar="N",
    default=20_000,
    show_default=True,
    help="How many jobs to enqueue and to drain.",
)
@json_option
@debug_option
def bench(choice: AppChoice, *, jobs: int, as_json: bool) -> None:
    """Measure Rowlock on your own database.

    In a schema of its own, rowlock_bench, which is dropped at the end: the round trip, enqueues one by one and in bulk,
    a worker in this process that drains them, and how long a job waits for an idle worker.
    """
    # Only here: the other commands start faster without.
    from rowlock.cli.shared.progress_bar import progress_bars  # noqa: PLC0415

    named = choice.open()
    with readable_errors(named.database):
        server = named.database.server()
        there = Rowlock(server.conninfo, schema=SCHEMA, pooler=server.pooler, listen_url=server.listen)
        with scratch(server, SCHEMA), progress_bars() as track:
            result = measure(there, jobs=jobs, track=track)
    if as_json:
        print_json({"database": str(named.database.address), **result.to_dict()})
    else:
        _show(result, str(named.database.address))


def _show(result: BenchResult, where: str) -> None:
    from rowlock.cli.shared.tables import Column, print_table  # noqa: PLC0415  draws

    rows = [
        ("round trip", "", result.round_trip.p50_ms, result.round_trip.p99_ms),
        ("enqueue one", "", result.enqueue_one.p50_ms, result.enqueue_one.p99_ms),
        (f"enqueue {result.jobs:,} in bulk", f"{result.enqueue_many_per_second:,.0f}", "", ""),
        (f"drain {result.jobs:,}", f"{result.drain_per_second:,.0f}", "", ""),
        ("latency, idle worker", "", result.latency.p50_ms, result.latency.p99_ms),
    ]
    columns = [
        Column("", least=20),
        Column("jobs/s", right=True),
        Column("p50 ms", right=True),
        Column("p99 ms", right=True),
    ]
    print_table(columns, rows, title=where)


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
class BenchResult:
    """What was measured. Rates are jobs per second."""

    jobs: int
    samples: int
    round_trip: Spread
    enqueue_one: Spread
    enqueue_many_per_second: float
    drain_per_second: float
    latency: Spread

    def to_dict(self) -> dict[str, Any]:
        """The same for JSON."""
        return asdict(self)


def measure(app: Rowlock, *, jobs: int, track: Track) -> BenchResult:
    """Measure a database with nothing but an empty schema in it; `track` gets what is done, how far, of how much."""
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

    async def run(self) -> BenchResult:
        """One figure after the other; the bulk that one of them enqueues is what the next one drains."""
        async with self._app:
            round_trip = await self._timed("round trips", self._read_clock)
            bulk = await self._enqueue_many()
            drain = await self._drain()
            latency = await self._latency()
            one = await self._timed("enqueues, one by one", self._task.aenqueue)
        return BenchResult(self._jobs, self._samples, round_trip, one, bulk, drain, latency)

    async def _read_clock(self) -> object:
        return await self._app.database.aconverse(read_clock, atomic=False)

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
        # With every option given, so that no $ROWLOCK_QUEUES of the user's production is measured instead.
        return self._app.worker(queues=DEFAULT_QUEUE, slots=_SLOTS, lease=_SPAN, grace=_SPAN)

    def _rate(self, begun: float) -> float:
        return round(self._jobs / (time.perf_counter() - begun), 1)
