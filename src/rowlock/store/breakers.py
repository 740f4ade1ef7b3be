"""Statements about the failures that breakers count."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from operator import attrgetter
from typing import NamedTuple

from rowlock.model.breaker import Breaker
from rowlock.store.intervals import interval
from rowlock.store.query import Query, array, first, plain_array


class Failures(NamedTuple):
    """How often a task has failed just now, the type of the last error, and what its breaker makes of it."""

    task: str
    times: int
    error: str
    breaker: Breaker


def count(failures: Sequence[Failures]) -> Query[str]:
    """Count failures, each task's once; answers the tasks that are paused by it."""
    rows = sorted(failures, key=attrgetter("task"))
    return Query(
        "breaker_count",
        {
            "tasks": array(row.task for row in rows),
            # No more are kept, so no more need be sent.
            "counts": plain_array(str(min(row.times, row.breaker.failures)) for row in rows),
            "limits": plain_array(str(row.breaker.failures) for row in rows),
            "withins": array(interval(row.breaker.within) for row in rows),
            "pauses": array(interval(row.breaker.pause) for row in rows),
            "reasons": array(row.breaker.why(row.error) for row in rows),
        },
        first,
    )


def remove(*, age: timedelta) -> Query[str]:
    """Forget the failures of tasks that have not failed for so long; answers these tasks."""
    return Query("breaker_remove", {"age": interval(age)}, first)
