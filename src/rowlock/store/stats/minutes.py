"""Minutes: what workers did in each, by queue and task."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from rowlock.model.stats.histogram import Histogram, pack, unpack
from rowlock.store.query import Query, Row, array, first, instant, interval, plain_array

# Workers write every so often, so a minute is not all there when it ends.
WRITE_EVERY = timedelta(seconds=10)
LAG = 1.5 * WRITE_EVERY


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


class Sums(NamedTuple):
    """What all workers did: how many, how long attempts took, and how long claimed jobs had been due."""

    claimed: int
    succeeded: int
    failed: int
    cancelled: int
    retried: int
    durations: Histogram
    waits: Histogram


class SumsInStep(NamedTuple):
    """What all workers did in one step of a series, and how many rows say so."""

    at: datetime
    is_wanted: bool  # or of another queue or task
    looked: int
    sums: Sums


class SumsByTask(NamedTuple):
    """What all workers did for a queue and a task."""

    queue: str
    task: str
    sums: Sums


class DoneByTask(NamedTuple):
    """What all workers did for a queue and a task over a span of time."""

    queue: str
    task: str
    claimed: int
    completed: int
    retried: int
    failed: int


def write(tallies: Sequence[Tally], *, worker: str, claims: Claims) -> Query[float]:
    """Write what a worker has counted, and how its claims went; returns the database's time in seconds since 1970."""
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
            "durations": plain_array(map(pack, durations)),
            "waited": plain_array(map(str, waited)),
            "longest": plain_array(map(str, longest)),
            "waits": plain_array(map(pack, waits)),
            "claims": str(claims.claims),
            "claim_rows": str(claims.claimed),
            "claim_seconds": str(claims.seconds),
            "claim_slowest": str(claims.slowest),
        },
        first,
    )


def remove(limit: int) -> Query[int]:
    """Remove minutes that are over a day old; returns how many rows."""
    return Query("minute_remove", {"limit": str(limit)}, first)


def merge(*, age: timedelta, limit: int) -> Query[int]:
    """Merge the rows of different workers, of minutes that are so old; returns how many minutes."""
    return Query("minute_merge", {"age": interval(age), "limit": str(limit)}, first)


def done(span: timedelta) -> Query[DoneByTask]:
    """What all workers did in the last full minutes."""
    return Query("minute_sum", {"lag": interval(LAG), "span": interval(span)}, DoneByTask._make)


def series(*, since: datetime, step: timedelta, queue: str | None, task: str | None, most: int) -> Query[SumsInStep]:
    """What all workers did since then, step by step, for a queue or a task or all, from the newest rows at most."""
    return Query(
        "minute_series",
        {"since": instant(since), "step": interval(step), "queue": queue, "task": task, "most": str(most)},
        lambda row: SumsInStep(datetime.fromisoformat(row[0]), row[1], row[2], _sums(row[3:])),
    )


def breakdown(span: timedelta, *, most: int) -> Query[SumsByTask]:
    """What all workers did within a span, by queue and task, from the newest rows at most."""
    return Query(
        "minute_breakdown",
        {"span": interval(span), "most": str(most)},
        lambda row: SumsByTask(row[0], row[1], _sums(row[2:])),
    )


def _sums(row: Row) -> Sums:
    claimed, succeeded, failed, cancelled, retried, durations, seconds, slowest, waits, waited, longest = row
    return Sums(
        claimed=claimed,
        succeeded=succeeded,
        failed=failed,
        cancelled=cancelled,
        retried=retried,
        durations=Histogram(unpack(durations), seconds, slowest),
        waits=Histogram(unpack(waits), waited, longest),
    )
