"""Statements that only look: where jobs are, what workers hold, what happened."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pydantic_core import from_json

from rowlock.model.answer import Event
from rowlock.model.ids import NIL
from rowlock.store.intervals import instant
from rowlock.store.query import Query, Row, plain_array


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
    """A worker on the books. `lease` is the number of seconds that are left of its lease; below 0 it has run out.

    Its claims are those that found jobs, in the last minute in which there were any, and how many seconds they took.
    """

    id: str
    host: str
    pid: int
    slots: int
    held: int
    lease: float
    lasts: float
    blocked: float | None
    blocked_by: str | None
    queues: list[str]
    started_at: str
    version: str
    stuck: int
    restarts: int
    fault: str | None
    failing: str | None
    failing_since: str | None
    claims: int
    claimed: int
    claim_seconds: float
    claim_slowest: float


def places(ids: Iterable[str]) -> Query[Place]:
    """Where these jobs are: one row for each, none for a job that nobody has, two for one that ended twice."""
    return Query("job_locate", {"ids": plain_array(ids)}, Place._make)


def workers() -> Query[WorkerNow]:
    """Every worker on the books."""
    return Query("worker_list", {}, WorkerNow._make)


def events(*, limit: int, job: str | None = None, before: Event | None = None) -> Query[Event]:
    """The latest events, newest first, of one job or of all; those before `before`."""
    return Query(
        "event_list",
        {
            "limit": str(limit),
            "job": job,
            "before_at": "infinity" if before is None else instant(before.at),
            "before_id": NIL if before is None else str(before.id),
        },
        read_event,
    )


def read_event(row: Row) -> Event:
    """A row of an event, its details as text."""
    event_id, at, kind, job, actor, login, details = row
    return Event(
        UUID(event_id),
        datetime.fromisoformat(at),
        kind,
        None if job is None else UUID(job),
        actor,
        from_json(details),
        login,
    )
