"""What a worker asks of PostgreSQL while there is nothing to do."""

from __future__ import annotations

import time
from datetime import timedelta

from benchmarks.arena import Arena
from benchmarks.measure import Case, Effort, Target, Track
from benchmarks.wire import Wire, tapped
from benchmarks.worker_process import WorkerProcess

_MOST_STATEMENTS = 3.0
_MOST_CONNECTIONS = 3
# A worker that has just parked looks a few times more, and does its first upkeep.
_CALM_AFTER = timedelta(seconds=2)
_ALLOWED = "the most that is allowed"


def measure(arena: Arena, effort: Effort, track: Track) -> list[Case]:
    """Statements per second, and connections, of an idle worker process with 100 slots, counted on the wire."""
    rounds = effort.repeated(full=3, quick=2)
    lasting = timedelta(seconds=effort.sized(full=20, quick=10))
    track.begin(rounds + 1)
    with tapped(arena) as wire, WorkerProcess(slots=100, url=wire.conninfo):
        track.step("worker calms down")
        time.sleep(_CALM_AFTER.total_seconds())
        rates, connections = [], []
        for number in range(rounds):
            track.step(f"round {number + 1} of {rounds}")
            rate, most = _watch(wire, lasting)
            rates.append(rate)
            connections.append(most)
    return [
        _case("statements", "statements/s", rates, limit=_MOST_STATEMENTS),
        _case("connections", "connections", connections, limit=_MOST_CONNECTIONS),
    ]


def _case(case: str, unit: str, figures: list[float], *, limit: float) -> Case:
    return Case(
        scenario="idle",
        case=case,
        unit=unit,
        rowlock_rounds=figures,
        limit_rounds=[limit],
        limit_is=_ALLOWED,
        target=Target(at_most=limit),
    )


def _watch(wire: Wire, lasting: timedelta) -> tuple[float, float]:
    """Statements per second over a while, and the most connections that were open at once."""
    before, began, most = wire.statements, time.monotonic(), 0
    while (waited := time.monotonic() - began) < lasting.total_seconds():
        most = max(most, wire.connections)
        time.sleep(0.05)
    return (wire.statements - before) / waited, most
