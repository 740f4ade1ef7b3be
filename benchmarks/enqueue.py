"""How fast jobs come in: in bulk, from many callers at once, one by one, and through callers' own connections."""

from __future__ import annotations

import asyncio
import time
from functools import partial

from benchmarks import kinds
from benchmarks.arena import Arena
from benchmarks.limit import BareLoop, new_jobs, ready_made, rehearsed
from benchmarks.measure import Broken, Case, Effort, Target, Track, interleave
from benchmarks.tasks import SCHEMA, app, noop
from rowlock.store import enqueue
from rowlock.store.enqueue import enqueue_all

_UNIT = "jobs/s"
_CALLERS = 200


def measure(arena: Arena, effort: Effort, track: Track) -> list[Case]:
    """No worker is there: what is measured is the way in."""
    bulk = effort.sized(full=100_000, quick=50_000)
    few = min(bulk, 300 if effort.quick else 1_000)
    many = min(bulk, few * 10)
    figures = interleave(
        {
            "many": partial(_many, arena, bulk),
            "array insert": partial(_array_insert, arena, bulk),
            "own statements": partial(_own_statements, arena, bulk),
            "callers=200": partial(_callers, arena, many, callers=_CALLERS),
            "one caller": partial(_callers, arena, few, callers=1),
            "one": partial(_one, arena, few),
            "one insert": partial(_one_insert, arena, few),
        },
        rounds=effort.repeated(full=5, quick=3),
        track=track,
    )
    array_insert = f"array inserts of {enqueue.CHUNK:,} jobs, their text ready-made, in one transaction"
    own = "what enqueue_many itself sends, its text ready-made, in one transaction"
    single = "inserts of one job, its text ready-made, on one connection"
    return [
        _case(
            "many", figures["many"], figures["array insert"], array_insert, Target(at_least=60_000, ratio_at_least=0.35)
        ),
        _case("many-own-statements", figures["many"], figures["own statements"], own, None),
        _case("callers=200", figures["callers=200"], figures["one caller"], "one caller", Target(ratio_at_least=5)),
        _case("one", figures["one"], figures["one insert"], single, None),
        *kinds.measure(arena, effort, track),
    ]


def _case(case: str, rowlock: list[float], limit: list[float], limit_is: str, target: Target | None) -> Case:
    return Case(
        scenario="enqueue",
        case=case,
        unit=_UNIT,
        rowlock_rounds=rowlock,
        limit_rounds=limit,
        limit_is=limit_is,
        target=target,
    )


def _many(arena: Arena, count: int) -> float:
    """Binding and checking the arguments included: it is what a caller waits for."""
    _empty(arena)
    began = time.monotonic()
    app.enqueue_many([noop.bind(n) for n in range(count)])
    return _rate(arena, count, began)


def _array_insert(arena: Arena, count: int) -> float:
    _empty(arena)
    queries = ready_made(count)
    with BareLoop(arena.conninfo) as bare:
        began = time.monotonic()
        with bare.connection.transaction():
            for query in queries:
                bare.send(query)
        return _rate(arena, count, began)


def _own_statements(arena: Arena, count: int) -> float:
    with BareLoop(arena.conninfo) as bare:
        said = rehearsed(enqueue_all(new_jobs(count)), bare)
        _empty(arena)
        began = time.monotonic()
        with bare.connection.transaction():
            for query in said:
                bare.send(query)
        return _rate(arena, count, began)


def _callers(arena: Arena, count: int, *, callers: int) -> float:
    """Each caller enqueues its share one after the other, and waits each time until the job is on disk."""
    _empty(arena)
    return asyncio.run(_call(arena, count, callers))


async def _call(arena: Arena, count: int, callers: int) -> float:
    async def caller(share: range) -> None:
        for n in share:
            await noop.aenqueue(n)

    await noop.aenqueue(0)  # opens the connection
    began = time.monotonic()
    await asyncio.gather(*(caller(range(start, count, callers)) for start in range(callers)))
    rate = _rate(arena, count, began, before=1)
    await app.aclose()
    return rate


def _one(arena: Arena, count: int) -> float:
    _empty(arena)
    noop.enqueue(0)  # opens the connection
    began = time.monotonic()
    for n in range(count):
        noop.enqueue(n)
    return _rate(arena, count, began, before=1)


def _one_insert(arena: Arena, count: int) -> float:
    _empty(arena)
    first, *queries = ready_made(count + 1, size=1)
    with BareLoop(arena.conninfo) as bare:
        bare.send(first)  # prepares the statement
        began = time.monotonic()
        for query in queries:
            bare.send(query)
        return _rate(arena, count, began, before=1)


def _empty(arena: Arena) -> None:
    arena.clear()
    arena.calm()


def _rate(arena: Arena, count: int, began: float, *, before: int = 0) -> float:
    """Jobs per second until now, once it is sure that they are there."""
    ended = time.monotonic()
    there = arena.ask(f"select count(*) from {SCHEMA}.jobs")
    if there != count + before:
        raise Broken(f"{count + before} jobs were enqueued, and {there} are there")
    return count / (ended - began)
