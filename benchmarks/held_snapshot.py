"""Whether a worker slows down while an idle transaction holds its snapshot, so that nothing can be vacuumed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from benchmarks.arena import Arena
from benchmarks.measure import Case, Effort, Target, Track, interleave
from benchmarks.tasks import SCHEMA, app, noop
from benchmarks.worker_process import WorkerProcess
from rowlock.db.session import connect

_ROUNDS = 10
_WARM_UP = 2_000
_WITH = "the first of the ten rounds, under the same held snapshot"
_WITHOUT = "the first of the ten rounds, with no snapshot held, for comparison"


def measure(arena: Arena, effort: Effort, track: Track) -> list[Case]:
    """Jobs pass in ten rounds, each enqueued in one transaction; the last round's rate against the first's."""
    count = effort.sized(full=300_000, quick=60_000) // _ROUNDS
    rates = interleave(
        {"held": partial(_pass, arena, count, hold=True), "free": partial(_pass, arena, count, hold=False)},
        rounds=effort.repeated(full=3, quick=2),
        track=track,
    )
    return [
        _case("held", count, rates["held"], _WITH, Target(ratio_at_least=0.9)),
        _case("free", count, rates["free"], _WITHOUT, None),
    ]


def _case(case: str, count: int, rates: list[list[float]], limit_is: str, target: Target | None) -> Case:
    return Case(
        scenario="held-snapshot",
        case=case,
        unit="jobs/s",
        rowlock_rounds=[one[-1] for one in rates],
        limit_rounds=[one[0] for one in rates],
        limit_is=limit_is,
        target=target,
        details={"jobs": count * _ROUNDS, "rates": [[round(rate) for rate in one] for one in rates]},
    )


def _pass(arena: Arena, count: int, *, hold: bool) -> list[float]:
    arena.clear()
    arena.calm()
    with WorkerProcess(slots=100) as worker:
        _rate(arena, worker, min(count, _WARM_UP))
        with snapshot(arena, hold=hold):
            rates = [_rate(arena, worker, count) for _ in range(_ROUNDS)]
    arena.verify(count * _ROUNDS + min(count, _WARM_UP))
    return rates


@contextmanager
def snapshot(arena: Arena, *, hold: bool) -> Iterator[None]:
    """What a forgotten psql, a dump or a replica with feedback does: a transaction that read once, and stays."""
    with connect(arena.conninfo, name="bench held snapshot") as connection:
        if hold:
            connection.execute("begin isolation level repeatable read")
            connection.execute(f"select from {SCHEMA}.jobs limit 1")
        yield


def _rate(arena: Arena, worker: WorkerProcess, count: int) -> float:
    """From the commit of the jobs until the last one is settled."""
    worker.expect(count)
    calls = [noop.bind(n) for n in range(count)]
    with connect(arena.conninfo, name="bench") as connection:
        connection.execute("begin")
        app.enqueue_many(calls, connection=connection)
        connection.execute("commit")
        committed = time.monotonic()
    return count / (worker.wait_drained(arena) - committed)
