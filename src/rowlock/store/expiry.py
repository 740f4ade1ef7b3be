"""Jobs and the clock: the end of those not worth starting any more, and those that are late because it was set back."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from rowlock.store.intervals import interval
from rowlock.store.jobs import PRIORITIES
from rowlock.store.query import Query, array, first, plain_array

# Jobs that one statement ends.
CHUNK = 1_000
# Jobs that one statement brings forward when the clock was set back, and with which delays.
HASTENED_AT_ONCE = 1_000
_HASTENED_WITHIN = timedelta(hours=1)
# Jobs that are looked at to see whether the clock was set back: of each lane, and in all.
_COMPARED_EACH, _COMPARED = 1_000, 10_000


def expire(*, keep: timedelta, limit: int = CHUNK, without: Iterable[str] = ()) -> Query[int]:
    """End a chunk of the jobs that have expired and do not run, kept in history for `keep`; answers how many."""
    return Query("job_expire", {"limit": str(limit), "keep": interval(keep), "without": plain_array(without)}, first)


def peek(*, without: Iterable[str] = ()) -> Query[str]:
    """The id of the job that would be ended first, if there is one."""
    return Query("expired_peek", {"without": plain_array(without)}, first)


def hasten(*, by: timedelta, queues: Iterable[str]) -> Query[str]:
    """Bring forward jobs that the database's clock, set back `by` so much, has made late; answers their ids."""
    return Query(
        "job_hasten",
        {
            "by": interval(by),
            "within": interval(_HASTENED_WITHIN),
            "queues": array(queues),
            "priorities": plain_array(map(str, PRIORITIES)),
            "limit": str(HASTENED_AT_ONCE),
        },
        first,
    )


def compare(*, queues: Iterable[str]) -> Query[float | None]:
    """By how many seconds jobs that are not due yet are ahead of the database's clock, where that was set back."""
    return Query(
        "clock_compare",
        {
            "queues": array(queues),
            "priorities": plain_array(map(str, PRIORITIES)),
            "each": str(_COMPARED_EACH),
            "limit": str(_COMPARED),
        },
        first,
    )
