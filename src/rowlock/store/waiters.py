"""Statements about those who wait for the end of a job."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from rowlock.model.row import Ending
from rowlock.store.intervals import interval
from rowlock.store.query import Query, first, plain_array


def channel(listener: str) -> str:
    """Where a listener is notified; job_settle.sql says the same."""
    return f"rowlock:{listener}"


def enter(*, listener: str, jobs: Iterable[str]) -> Query[None]:
    """Ask that a listener be notified when these jobs end."""
    return Query("waiter_enter", {"listener": listener, "ids": plain_array(jobs)}, first)


def leave(*, listener: str, jobs: Iterable[str]) -> Query[None]:
    """Take that back."""
    return Query("waiter_leave", {"listener": listener, "ids": plain_array(jobs)}, first)


def clear(*, age: timedelta) -> Query[None]:
    """Remove what listeners that died have left."""
    return Query("waiter_clear", {"age": interval(age)}, first)


def endings(jobs: Iterable[str]) -> Query[Ending]:
    """How these jobs ended; those that live are left out."""
    return Query("job_endings", {"ids": plain_array(jobs)}, lambda row: Ending(*row))
