"""Events: what was done, and by whom."""

from __future__ import annotations

from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from pydantic_core import from_json

from rowlock.model.ids import NIL
from rowlock.model.results import Cursor, Event, EventPage
from rowlock.store.query import Conversation, Query, Row, instant

# A look at so many of a million events, none of which is wanted, takes 60 ms.
WINDOW: Final = 20_000


def page(
    *,
    kind: str | None,
    actor: str | None,
    job: UUID | None,
    before: Cursor | None,
    limit: int,
    window: int = WINDOW,
) -> Conversation[EventPage]:
    """The same as a page, and where the next one goes on."""
    if kind is None and actor is None:
        window = limit  # every event is one that is wanted
    rows = yield scan(kind=kind, actor=actor, job=job, before=before, limit=limit, window=window)
    looked, edge, _ = rows[0]
    events = tuple(row.event for row in rows if row.event is not None)
    if len(events) == limit:
        return EventPage(events, Cursor(events[-1].at, events[-1].id), looked)
    return EventPage(events, edge if looked >= window else None, looked)


class EventRow(NamedTuple):
    """An event that was found, if any was; how many were looked at for it, and the last of these."""

    looked: int
    edge: Cursor | None
    event: Event | None


def scan(
    *,
    kind: str | None,
    actor: str | None,
    job: UUID | None,
    before: Cursor | None,
    limit: int,
    window: int = WINDOW,
) -> Query[EventRow]:
    """Look at the newest events before a place, so many at most: of this kind, by whoever is named so, of this job."""
    return Query(
        "event_scan",
        {
            "kind": kind,
            "actor": actor,
            "job": None if job is None else str(job),
            "before_at": "infinity" if before is None else instant(before.at),
            "before_id": NIL if before is None else str(before.id),
            "limit": str(limit),
            "window": str(window),
        },
        _event_row,
    )


def latest(*, limit: int, job: str | None = None, before: Event | None = None) -> Query[Event]:
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


def _event_row(row: Row) -> EventRow:
    looked, at, event_id, *event = row
    edge = None if at is None else Cursor(datetime.fromisoformat(at), UUID(event_id))
    return EventRow(looked, edge, None if event[0] is None else read_event(tuple(event)))


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


def login(kind: str, *, actor: str, address: str, role: str | None) -> Query[None]:
    """Write down that somebody has logged in or out of the dashboard, or has failed to."""
    return Query("event_login", {"kind": kind, "actor": actor, "address": address, "role": role}, lambda _row: None)
