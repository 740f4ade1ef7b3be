"""How fast one worker process empties a queue of no-op jobs, history kept."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from benchmarks.arena import Arena
from benchmarks.limit import BareLoop
from benchmarks.measure import Case, Effort, Target, Track, interleave
from benchmarks.tasks import answer, noop
from benchmarks.worker_process import WorkerProcess
from rowlock import Task

_BATCH = 1_000
_UNIT = "jobs/s"
_BARE = f"claim and settle of {_BATCH:,} jobs at a time, in a bare loop on one connection"


def measure(arena: Arena, effort: Effort, track: Track) -> list[Case]:
    """Every side gets the same table: loaded, vacuumed, checkpointed; and a new process or connection."""
    count = effort.sized(full=100_000, quick=20_000)
    figures = interleave(
        {
            "limit": partial(_limit, arena, count),
            "slots=100": partial(drained, arena, count, slots=100, task=noop),
            "slots=10": partial(drained, arena, count, slots=10, task=noop),
            "results": partial(drained, arena, count, slots=100, task=answer),
        },
        rounds=effort.repeated(full=5, quick=3),
        track=track,
    )
    limits = {
        "slots=100": (figures["limit"], _BARE, Target(at_least=20_000, ratio_at_least=0.6)),
        "slots=10": (figures["limit"], _BARE, Target(at_least=8_000)),
        "results": (figures["slots=100"], "Rowlock without results (slots=100)", Target(ratio_at_least=0.8)),
    }
    return [
        Case(
            scenario="drain",
            case=case,
            unit=_UNIT,
            rowlock_rounds=figures[case],
            limit_rounds=limit,
            limit_is=limit_is,
            target=target,
            details={"jobs": count},
        )
        for case, (limit, limit_is, target) in limits.items()
    ]


def _limit(arena: Arena, count: int) -> float:
    arena.fill([noop.bind(n) for n in range(count)])
    with BareLoop(arena.conninfo) as bare:
        began = time.monotonic()
        bare.drain(_BATCH)
        ended = time.monotonic()
    arena.verify(count)
    return count / (ended - began)


def drained(arena: Arena, count: int, *, slots: int, task: Task[[int], Any]) -> float:
    """Jobs a second that one worker process ends."""
    arena.fill([task.bind(n) for n in range(count)])
    with WorkerProcess(slots=slots, expect=count) as worker:
        ended = worker.wait_drained(arena)
    arena.verify(count)
    return count / (ended - worker.started)
