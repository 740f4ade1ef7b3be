"""The end of jobs that are not worth starting any more."""

from __future__ import annotations

from datetime import timedelta

from rowlock.store.intervals import interval
from rowlock.store.query import Query, first

# Jobs that one statement ends.
CHUNK = 1_000


def expire(*, keep: timedelta) -> Query[int]:
    """End a chunk of the jobs that have expired and do not run, kept in history for `keep`; answers how many."""
    return Query("job_expire", {"limit": str(CHUNK), "keep": interval(keep)}, first)
