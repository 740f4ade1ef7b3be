"""Statements about minutes: what workers did in each, by queue and task."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from rowlock.store.intervals import interval
from rowlock.store.query import Query, Row, array, first, plain_array

# Workers write every so often, so a minute is not all there when it ends.
WRITE_EVERY = timedelta(seconds=10)
_LAG = 1.5 * WRITE_EVERY


class Tally(NamedTuple):
    """What a worker did for a queue and a task in one minute, which has this number since 1970."""

    minute: int
    queue: str
    task: str
    claimed: int
    succeeded: int
    failed: int
    cancelled: int
    retried: int
    seconds: float
    slowest: float
    durations: tuple[int, ...]
    waited: float
    longest: float
    waits: tuple[int, ...]


class Claims(NamedTuple):
    """Claims that found jobs: how many, what they found, and how long they took, together and at most."""

    claims: int
    claimed: int
    seconds: float
    slowest: float


class Done(NamedTuple):
    """What all workers did for a queue and a task over a span of time."""

    queue: str
    task: str
    claimed: int
    completed: int
    retried: int
    failed: int


class Took(NamedTuple):
    """How long the attempts of a task took, in seconds: together, at most, and how many in each bucket."""

    task: str
    seconds: float
    slowest: float
    buckets: dict[int, int]


def write(tallies: Sequence[Tally], *, worker: str, claims: Claims) -> Query[float]:
    """Write what a worker has counted, and how its claims went; answers the database's time in seconds since 1970."""
    numbers, queues, tasks, claimed, succeeded, failed, cancelled, retried, seconds, slowest, durations, *rest = zip(
        *tallies, strict=True
    )
    waited, longest, waits = rest
    return Query(
        "minute_write",
        {
            "worker": worker,
            "minutes": plain_array(map(str, numbers)),
            "queues": array(queues),
            "tasks": array(tasks),
            "claimed": plain_array(map(str, claimed)),
            "succeeded": plain_array(map(str, succeeded)),
            "failed": plain_array(map(str, failed)),
            "cancelled": plain_array(map(str, cancelled)),
            "retried": plain_array(map(str, retried)),
            "seconds": plain_array(map(str, seconds)),
            "slowest": plain_array(map(str, slowest)),
            "durations": array(map(_from_its_first, durations)),
            "waited": plain_array(map(str, waited)),
            "longest": plain_array(map(str, longest)),
            "waits": array(map(_from_its_first, waits)),
            "claims": str(claims.claims),
            "claim_rows": str(claims.claimed),
            "claim_seconds": str(claims.seconds),
            "claim_slowest": str(claims.slowest),
        },
        first,
    )


def _from_its_first(counts: Sequence[int]) -> str:
    """An array from the first bucket that has any to the last: of fifty, a task's durations fill a few."""
    filled = [number for number, count in enumerate(counts) if count]
    if not filled:
        return "{}"
    start, end = filled[0], filled[-1]
    return f"[{start}:{end}]={plain_array(map(str, counts[start : end + 1]))}"


def remove(limit: int) -> Query[int]:
    """Remove minutes that are over a day old; answers how many rows."""
    return Query("minute_remove", {"limit": str(limit)}, first)


def done(span: timedelta) -> Query[Done]:
    """What all workers did in the last full minutes."""
    return Query("minute_sum", {"lag": interval(_LAG), "span": interval(span)}, Done._make)


def took(most: int) -> Query[Took]:
    """How long attempts took within the last hour, from so many rows at most."""
    return Query("duration_sum", {"most": str(most)}, _took)


def _took(row: Row) -> Took:
    task, seconds, slowest, numbers, attempts = row
    return Took(task, seconds, slowest, dict(zip(numbers, attempts, strict=True)))
