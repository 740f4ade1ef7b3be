"""How times cross the wire."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache

# PostgreSQL's timestamps end in the year 294276; a job further away than a century is a mistake or means "never".
_LONGEST = timedelta(days=36525)


@lru_cache(1024)
def interval(delay: timedelta) -> str:
    """A duration as PostgreSQL reads it, exact to the microsecond and at most a century."""
    delay = min(delay, _LONGEST)
    return f"{delay.days} days {delay.seconds}.{delay.microseconds:06d} seconds"


def later(now: datetime, delay: timedelta) -> str:
    """The moment so long after now, at most a century."""
    return instant(now + min(delay, _LONGEST))


def instant(moment: datetime) -> str:
    """An aware moment as PostgreSQL reads it."""
    return moment.astimezone(UTC).isoformat()
