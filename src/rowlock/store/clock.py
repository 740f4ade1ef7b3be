"""The database's clock: moved by tests, and what is late when it was set back."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from rowlock.store.claim import PRIORITIES
from rowlock.store.query import Conversation, Query, array, first, instant, interval, plain_array


def aim_clock(*, to: datetime | None = None, by: timedelta | None = None, ahead: str | None = None) -> Query[str]:
    """Say where the clock is to go; returns how many seconds it is ahead of the server's own now."""
    return Query(
        "clock_aim",
        {"to": None if to is None else instant(to), "by": None if by is None else interval(by), "ahead": ahead},
        first,
    )


def move_clock() -> Query[None]:
    """Move the clock to where it was aimed in this transaction; back to the server's own if it was not."""
    return Query("clock_move", {}, first)


def move_clock_to(
    *, to: datetime | None = None, by: timedelta | None = None, ahead: str | None = None
) -> Conversation[str]:
    """Move the clock to an instant, on from where it is, or to so many seconds ahead; returns how far ahead it was."""
    before: str = (yield aim_clock(to=to, by=by, ahead=ahead))[0]
    yield move_clock()
    return before


# Jobs that one statement brings forward when the clock was set back, and with which delays.
HASTENED_AT_ONCE = 1_000


_HASTENED_WITHIN = timedelta(hours=1)


# Jobs that are looked at to see whether the clock was set back: of each lane, and in all.
_COMPARED_EACH, _COMPARED = 1_000, 10_000


def hasten(*, by: timedelta, queues: Iterable[str]) -> Query[str]:
    """Bring forward jobs that the database's clock, set back `by` so much, has made late; returns their ids."""
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


def compare_with_jobs(*, queues: Iterable[str]) -> Query[float | None]:
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
