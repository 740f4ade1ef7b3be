"""Ended jobs by when they ended, latest first.

A window is the next rows of an index by `ended_at`. Each partition has that index, and PostgreSQL merges them: the
latest jobs are found without a look at the others, however many there are.
"""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from rowlock.model.answer import Cursor, Page
from rowlock.model.filter import ENDED, Filter
from rowlock.model.ids import NIL, TOP
from rowlock.model.record import JobRecord
from rowlock.store import scan
from rowlock.store.query import Conversation
from rowlock.store.scan import BuildEnded, Enough, never

_END = Cursor(datetime.max.replace(tzinfo=UTC), UUID(TOP))


def page(
    asked: Filter,
    *,
    limit: int,
    before: Cursor | None,
    look: BuildEnded | None = None,
    enough: Enough = never,
) -> Conversation[Page]:
    """A page of records; one more is looked for, to know whether there is a next page."""
    build, states = look or scan.ended, asked.states or ENDED
    records: list[JobRecord] = []
    place, looked, size = before or _END, 0, scan.first_window(limit + 1)
    while True:
        left = limit + 1 - len(records)
        rows = yield build(
            asked,
            states=states,
            before=str(place.id),
            down_to=NIL,
            ids=None,
            limit=left,
            whole=True,
            window=size,
            end=place.at,
        )
        found = [row.found.record for row in rows if row.found is not None and row.found.record is not None]
        records += found
        looked += rows[0].looked
        if len(found) == left:
            last = records[limit - 1]
            return Page(tuple(records[:limit]), Cursor(last.ended_at, last.id) if last.ended_at else None, looked)
        if rows[0].edge is None or rows[0].looked < size:
            return Page(tuple(records), None, looked)
        place = Cursor.read(rows[0].edge)
        if enough():
            return Page(tuple(records), place, looked)
        size = scan.WINDOW
