"""Statements that move the database's clock, for tests."""

from __future__ import annotations

from datetime import datetime, timedelta

from rowlock.store.intervals import instant, interval
from rowlock.store.query import Conversation, Query, first


def aim(*, to: datetime | None = None, by: timedelta | None = None, ahead: str | None = None) -> Query[str]:
    """Say where the clock is to go; answers how many seconds it is ahead of the server's own now."""
    return Query(
        "clock_aim",
        {"to": None if to is None else instant(to), "by": None if by is None else interval(by), "ahead": ahead},
        first,
    )


def move() -> Query[None]:
    """Move the clock to where it was aimed in this transaction; back to the server's own if it was not."""
    return Query("clock_move", {}, first)


def moved(*, to: datetime | None = None, by: timedelta | None = None, ahead: str | None = None) -> Conversation[str]:
    """Move the clock to an instant, on from where it is, or to so many seconds ahead; answers how far ahead it was."""
    before: str = (yield aim(to=to, by=by, ahead=ahead))[0]
    yield move()
    return before
