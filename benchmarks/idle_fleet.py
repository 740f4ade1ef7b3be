"""What a fleet without work costs the server, before and after many jobs went through under a held snapshot."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from benchmarks.arena import Arena
from benchmarks.held_snapshot import snapshot
from benchmarks.measure import Broken, Case, Effort, Target, Track
from benchmarks.tasks import app, noop
from benchmarks.worker_process import WorkerProcess

_MOST_WORKERS = 20
_JOBS_PER_WORKER = 5_000
_JOBS_PER_SECOND = 10_000
_LONGEST_WINDOW = 60
_CHUNK = 20_000
# Waiting for a round of jobs, this many seconds for each thousand of them.
_PATIENCE = 1.0
_LIMIT_IS = "the same fleet before, with no snapshot held"
_TARGET = Target(ratio_at_most=1.5)


class Cost(NamedTuple):
    """What the fleet's sessions have used, so far or in a second."""

    cpu: float  # milliseconds
    buffers: float
    transactions: float


def measure(arena: Arena, effort: Effort, track: Track) -> list[Case]:
    """Idle workers, each a process; then jobs pass under a held snapshot, and the same workers are idle again."""
    count = effort.sized(full=1_000_000, quick=100_000)
    rounds = effort.repeated(full=3, quick=2)
    size = min(_MOST_WORKERS, max(2, count // _JOBS_PER_WORKER))
    lasting = timedelta(seconds=min(_LONGEST_WINDOW, max(1, count // _JOBS_PER_SECOND)))
    track.begin(2 * rounds + 3)
    arena.clear()
    arena.calm()
    with _fleet(size) as fleet:
        track.step(f"{size} workers calm down")
        time.sleep(lasting.total_seconds())
        free = [_idle(arena, fleet, lasting, track, f"idle, {number + 1} of {rounds}") for number in range(rounds)]
        with snapshot(arena, hold=True):
            track.step(f"{count:,} jobs pass under a held snapshot")
            _pass(arena, count)
            track.step("the workers calm down again")
            time.sleep(lasting.total_seconds())
            held = [
                _idle(arena, fleet, lasting, track, f"idle under it, {number + 1} of {rounds}")
                for number in range(rounds)
            ]
    arena.verify(count)
    details = {"workers": size, "jobs": count, "seconds": lasting.total_seconds()}
    units = {"cpu": "ms/s of the server", "buffers": "buffers/s", "transactions": "transactions/s"}
    return [
        Case(
            scenario="idle-fleet",
            case=case,
            unit=unit,
            rowlock_rounds=[getattr(cost, case) for cost in held],
            limit_rounds=[getattr(cost, case) for cost in free],
            limit_is=_LIMIT_IS,
            target=_TARGET,
            details=details,
        )
        for case, unit in units.items()
    ]


@contextmanager
def _fleet(size: int) -> Iterator[list[WorkerProcess]]:
    """They start all at once, and each has sent its first claim when this is entered."""
    with ExitStack() as stack:
        with ThreadPoolExecutor(size) as pool:
            workers = list(pool.map(stack.enter_context, [WorkerProcess(slots=10) for _ in range(size)]))
        yield workers


def _pass(arena: Arena, count: int) -> None:
    for start in range(0, count, _CHUNK):
        app.enqueue_many([noop.bind(n) for n in range(start, min(count, start + _CHUNK))])
    deadline = time.monotonic() + max(60.0, count / 1000 * _PATIENCE)
    while not arena.drained():
        if time.monotonic() > deadline:
            raise Broken(f"{count:,} jobs have not passed within {max(60.0, count / 1000 * _PATIENCE):,.0f} s")
        time.sleep(0.5)


def _idle(arena: Arena, fleet: list[WorkerProcess], lasting: timedelta, track: Track, words: str) -> Cost:
    """What a second costs, over a while."""
    track.step(words)
    began, before = time.monotonic(), _used(arena, len(fleet))
    time.sleep(lasting.total_seconds())
    after, took = _used(arena, len(fleet)), time.monotonic() - began
    return Cost(*((new - old) / took for old, new in zip(before, after, strict=True)))


def _used(arena: Arena, size: int) -> Cost:
    """The fleet's sessions. The one that asks this is among the buffers and transactions, with the same each time."""
    pids = arena.ask(
        "select array_agg(pid) from pg_stat_activity where application_name ~ '^rowlock (claim|settle|renew)'"
    )
    if len(pids or ()) != 3 * size:
        raise Broken(f"{size} workers should have {3 * size} sessions; they have {len(pids or ())}")
    row = arena.connection.execute(
        "select blks_hit + blks_read, xact_commit from pg_stat_database where datname = current_database()"
    ).fetchone()
    assert row is not None
    return Cost(sum(map(_cpu, pids)), *map(float, row))


def _cpu(pid: int) -> float:
    """Milliseconds of a process of this machine, to the nanosecond: an idle session uses less than the clock's tick."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[0]) / 1e6
    except OSError as error:
        raise Broken(
            f"idle-fleet reads what the server's processes use from /proc of this machine ({error}); "
            "unset ROWLOCK_URL to use an embedded server"
        ) from error
