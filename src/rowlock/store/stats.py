"""Statements that only look: where jobs are, what workers hold, what happened."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rowlock.store.query import Query, plain_array


class Place(NamedTuple):
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


class WorkerNow(NamedTuple):
    """A worker on the books. `lease` is the number of seconds that are left of its lease; below 0 it has run out."""

    id: str
    host: str
    pid: int
    slots: int
    held: int
    lease: float


class Event(NamedTuple):
    """Something that an operator or upkeep did: to a job, on behalf of a worker."""

    id: str
    kind: str
    job: str | None
    actor: str
    worker: str | None


def places(ids: Iterable[str]) -> Query[Place]:
    """Where these jobs are: one row for each, none for a job that nobody has, two for one that ended twice."""
    return Query("job_locate", {"ids": plain_array(ids)}, Place._make)


def workers() -> Query[WorkerNow]:
    """Every worker on the books."""
    return Query("worker_list", {}, WorkerNow._make)


def latest_events(limit: int) -> Query[Event]:
    """The latest events, newest first."""
    return Query("event_list", {"limit": str(limit)}, Event._make)
