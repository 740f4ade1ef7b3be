"""Statements about duties: what one worker does for the whole fleet."""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple

from rowlock.store.intervals import interval
from rowlock.store.query import Query, first


class Taken(NamedTuple):
    """Whether a duty is ours now; if it comes round every so often, whether the last turn of it was finished."""

    ours: bool
    exists: bool
    done: bool = True


def take(duty: str, *, worker: str | None = None) -> Query[Taken]:
    """Take a duty for the length of a transaction; a `worker` takes it only as long as its own lease holds."""
    return Query("duty_take", {"duty": duty, "worker": worker}, lambda row: Taken(*row))


def turn(duty: str, *, every: timedelta) -> Query[Taken]:
    """Take the turn of a duty that one worker of the fleet has every so often."""
    return Query("duty_turn", {"duty": duty, "every": interval(every)}, lambda row: Taken(*row))


def finish(duty: str) -> Query[str]:
    """Say that a duty whose turn we had is done."""
    return Query("duty_done", {"duty": duty}, first)
