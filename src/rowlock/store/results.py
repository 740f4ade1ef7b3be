"""Results: where jobs are, how they ended, and who waits for them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import NamedTuple

from rowlock.model.row import JobEnd
from rowlock.store.query import Query, first, interval, plain_array


class JobStatus(NamedTuple):
    """Where a job is. `due_in` is the number of seconds until it may run; 0 once it may, or has ended."""

    id: str
    task: str
    state: str
    reason: str | None
    failures: int
    crashes: int
    attempts: int
    worker: str | None
    due_in: float


def statuses(ids: Iterable[str]) -> Query[JobStatus]:
    """Where these jobs are: one row for each, none for a job that nobody has, two for one that ended twice."""
    return Query("job_locate", {"ids": plain_array(ids)}, JobStatus._make)


def channel(listener: str) -> str:
    """Where a listener is notified; job_settle.sql says the same."""
    return f"rowlock:{listener}"


def add_waiters(*, listener: str, jobs: Iterable[str]) -> Query[None]:
    """Ask that a listener be notified when these jobs end."""
    return Query("waiter_enter", {"listener": listener, "ids": plain_array(jobs)}, first)


def remove_waiters(*, listener: str, jobs: Iterable[str]) -> Query[None]:
    """Take that back."""
    return Query("waiter_leave", {"listener": listener, "ids": plain_array(jobs)}, first)


def clear_waiters(*, age: timedelta) -> Query[None]:
    """Remove what listeners that died have left."""
    return Query("waiter_clear", {"age": interval(age)}, first)


def ends(jobs: Iterable[str]) -> Query[JobEnd]:
    """How these jobs ended; those that live are left out."""
    return Query("job_endings", {"ids": plain_array(jobs)}, lambda row: JobEnd(*row))
