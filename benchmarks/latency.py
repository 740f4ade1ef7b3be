"""How soon an idle worker has done a job that was just enqueued."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import NamedTuple

from benchmarks.arena import Arena
from benchmarks.limit import BARE_QUEUE, BareLoop, ready_made
from benchmarks.measure import Case, Effort, Target, Track, interleave, percentile
from benchmarks.tasks import stamp
from benchmarks.worker_process import WorkerProcess
from rowlock.db.session import connect

_EVERY = timedelta(milliseconds=50)
# A transaction that enqueues stays open for two of these.
_OPEN_FOR = 2
_SLOTS = 100
_BARE = "in a bare loop on one connection, at the same pace"


class Waits(NamedTuple):
    """Seconds until each job had begun, and until it was settled."""

    begun: list[float]
    settled: list[float]


def measure(arena: Arena, effort: Effort, track: Track) -> list[Case]:
    """The bare loop's jobs are on a queue of their own, so the worker stays idle, and there, while it runs."""
    count = effort.sized(full=200, quick=60)
    late = max(1, count // 4)
    with WorkerProcess(slots=_SLOTS) as worker, BareLoop(arena.conninfo, queue=BARE_QUEUE) as bare:
        _rowlock(worker, 10)
        _bare(bare, 10)
        waits = interleave(
            {
                "a job every 50 ms": partial(_rowlock, worker, count),
                "bare loop": partial(_bare, bare, count),
                "late commits": partial(_rowlock_late, arena, worker, late),
                "bare loop, late commits": partial(_bare_late, bare, late),
            },
            rounds=effort.repeated(full=5, quick=3),
            track=track,
        )
    return _cases(*waits.values())


def _cases(rowlock: list[Waits], bare: list[Waits], late: list[Waits], bare_late: list[Waits]) -> list[Case]:
    settled = [waits.settled for waits in rowlock], [waits.settled for waits in bare]
    begun = [waits.begun for waits in rowlock], [waits.begun for waits in bare]
    begun_late = [waits.begun for waits in late], [waits.begun for waits in bare_late]
    three, two = f"enqueue, claim, settle {_BARE}", f"enqueue, claim {_BARE}"
    commit = f"commit, claim {_BARE}"
    return [
        _case("settled", *settled, share=0.5, limit_is=three, target=Target(ratio_at_most=1.4)),
        _case("settled-p99", *settled, share=0.99, limit_is=three, target=Target(ratio_at_most=3)),
        _case("start", *begun, share=0.5, limit_is=two),
        _case("start-p99", *begun, share=0.99, limit_is=two),
        _case("late-commit", *begun_late, share=0.5, limit_is=commit),
        _case("late-commit-p99", *begun_late, share=0.99, limit_is=commit),
    ]


def _case(
    case: str,
    rowlock: list[list[float]],
    limit: list[list[float]],
    *,
    share: float,
    limit_is: str,
    target: Target | None = None,
) -> Case:
    return Case(
        scenario="latency",
        case=case,
        unit="ms",
        rowlock_rounds=[percentile(waits, share) * 1_000 for waits in rowlock],
        limit_rounds=[percentile(waits, share) * 1_000 for waits in limit],
        limit_is=limit_is,
        target=target,
        details={"jobs": sum(map(len, rowlock))},
    )


def _rowlock(worker: WorkerProcess, count: int) -> Waits:
    called: dict[str, float] = {}
    worker.expect(count)
    for n in _ticks(count):
        now = time.monotonic()
        called[str(stamp.enqueue(n).id)] = now
    worker.wait_settled()
    journal = worker.journal()
    return Waits(
        begun=[journal[job].begun - at for job, at in called.items()],
        settled=[journal[job].settled - at for job, at in called.items()],
    )


def _bare(bare: BareLoop, count: int) -> Waits:
    waits = Waits([], [])
    queries = ready_made(count, queue=BARE_QUEUE, size=1)
    for n in _ticks(count):
        called = time.monotonic()
        bare.send(queries[n])
        rows = bare.claim(_SLOTS)
        waits.begun.append(time.monotonic() - called)
        bare.settle(rows)
        waits.settled.append(time.monotonic() - called)
    return waits


def _rowlock_late(arena: Arena, worker: WorkerProcess, count: int) -> Waits:
    """Counted from COMMIT until the job has begun; other jobs came and went while its transaction was open."""
    committed: dict[str, float] = {}
    late = ""
    worker.expect(count * (_OPEN_FOR + 1))
    with connect(arena.conninfo, name="bench") as connection:
        for n in _ticks(count * (_OPEN_FOR + 1)):
            if n % (_OPEN_FOR + 1) < _OPEN_FOR:
                if n % (_OPEN_FOR + 1) == 0:
                    connection.execute("begin")
                    late = str(stamp.using(connection=connection).enqueue(n).id)
                stamp.enqueue(n)
            else:
                committed[late] = time.monotonic()
                connection.execute("commit")
        worker.wait_settled()
    journal = worker.journal()
    return Waits([journal[job].begun - at for job, at in committed.items()], [])


def _bare_late(bare: BareLoop, count: int) -> Waits:
    waits = Waits([], [])
    queries = ready_made(count, queue=BARE_QUEUE, size=1)
    for n in _ticks(count, every=_EVERY * (_OPEN_FOR + 1)):
        bare.connection.execute("begin")
        bare.send(queries[n])
        time.sleep((_EVERY * _OPEN_FOR).total_seconds())
        committed = time.monotonic()
        bare.connection.execute("commit")
        rows = bare.claim(_SLOTS)
        waits.begun.append(time.monotonic() - committed)
        bare.settle(rows)
    return waits


def _ticks(count: int, every: timedelta = _EVERY) -> Iterator[int]:
    """Count at a steady pace."""
    due = time.monotonic()
    for n in range(count):
        time.sleep(max(0.0, due - time.monotonic()))
        yield n
        due += every.total_seconds()
