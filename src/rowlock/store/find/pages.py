"""Pages: of jobs, as far as this role may read them.

PostgreSQL tells whether a role may read arguments, results and errors, by refusing: a right may be had in more ways
than we could ask about. Of ended jobs a window is the next rows of an index by `ended_at`. Each partition has that
index, and PostgreSQL merges them: the latest jobs are found without a look at the others, however many there are.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final, NamedTuple
from uuid import UUID

from rowlock.model.failure_groups import Failures, Grouping
from rowlock.model.filter import ENDED, STATES, Filter
from rowlock.model.ids import NIL, TOP
from rowlock.model.record import JobRecord, State
from rowlock.model.results import Cursor, Page, Preview, Start, start_of
from rowlock.model.verb import BulkVerb
from rowlock.store import jobs
from rowlock.store.find import windows
from rowlock.store.find.windows import (
    BRIEF,
    OUTLINES,
    Enough,
    Match,
    ScanEnded,
    Scans,
    first_window,
    never,
    next_window,
)
from rowlock.store.query import Conversation, alone
from rowlock.store.transaction import all_or_nothing

_NO_RIGHT: Final = "42501"
_SAMPLES = 5
_MOST_COUNTED = 10_000
# Failed jobs that are read at once to group them.
_FAILURES_AT_ONCE = 1_000
_END = Cursor(datetime.max.replace(tzinfo=UTC), UUID(TOP))


def page(
    asked: Filter, *, limit: int, before: Start | None, looks: Scans | None = None, enough: Enough = never
) -> Conversation[Page]:
    """A page of records, by `looks` if this role may; of ended jobs those that ended last come first."""
    try:
        return (yield from _page_by(asked, limit=limit, before=before, looks=looks, enough=enough))
    except Exception as error:
        if not is_refusal(error) or asked.args is not None or asked.error is not None:
            raise
    return (yield from _page_by(asked, limit=limit, before=before, looks=OUTLINES, enough=enough))


def _page_by(
    asked: Filter, *, limit: int, before: Start | None, looks: Scans | None, enough: Enough
) -> Conversation[Page]:
    start = start_of(asked, before)
    if isinstance(start, Cursor) or (start is None and asked.is_by_end):
        return page_by_end(asked, limit=limit, before=start, look=looks and looks[1], enough=enough)
    return newest_page(asked, limit=limit, before=start, looks=looks, enough=enough)


def newest_page(
    asked: Filter, *, limit: int, before: UUID | None, looks: Scans | None = None, enough: Enough = never
) -> Conversation[Page]:
    """A page of jobs, newest first; one more is looked for, to know whether there is a next page."""
    states = asked.states or frozenset(STATES)
    newest = yield from _newest(asked, states=states, limit=limit + 1, before=before, looks=looks, enough=enough)
    records = newest.records
    return Page(tuple(records[:limit]), records[limit - 1].id if len(records) > limit else newest.edge, newest.looked)


class Newest(NamedTuple):
    """Records that match, newest first; where the search ended, as in a MatchWindow; and how many jobs it looked at."""

    records: list[JobRecord]
    edge: UUID | None
    looked: int


def _newest(
    asked: Filter,
    *,
    states: frozenset[State],
    limit: int,
    before: UUID | None = None,
    looks: Scans | None = None,
    enough: Enough = never,
) -> Conversation[Newest]:
    """The newest `limit` records, however many windows it takes to find them, unless `enough` stops it."""
    records: list[JobRecord] = []
    looked, size = 0, first_window(limit)
    while True:
        left = limit - len(records)
        window = yield from next_window(
            asked, states=states, before=before, limit=left, whole=True, looks=looks, window=size
        )
        records += [row.record for row in window.found if row.record is not None]
        looked += window.looked
        before = window.edge
        if before is None or len(records) == limit or enough():
            return Newest(records, before, looked)
        size = windows.WINDOW


def page_by_end(
    asked: Filter,
    *,
    limit: int,
    before: Cursor | None,
    look: ScanEnded | None = None,
    enough: Enough = never,
) -> Conversation[Page]:
    """A page of ended jobs, those that ended last first; one more is looked for, as in `newest_page`."""
    build, states = look or windows.scan_ended, asked.states or ENDED
    records: list[JobRecord] = []
    place, looked, size = before or _END, 0, first_window(limit + 1)
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
        size = windows.WINDOW


def show(job_id: UUID, *, inside: bool = False) -> Conversation[list[JobRecord]]:
    """One job as it is now, live or ended; none if it is neither. `inside` a transaction, that goes on if refused."""
    look = alone(jobs.show(str(job_id)))
    try:
        return (yield from (all_or_nothing(look, inside=True) if inside else look))
    except Exception as error:
        if not is_refusal(error):
            raise
    found = yield from newest_page(Filter(ids=[job_id]), limit=1, before=None, looks=OUTLINES)
    return list(found.records)


def is_refusal(error: Exception) -> bool:
    """Whether PostgreSQL said that this role has not the right to it."""
    return getattr(error, "sqlstate", None) == _NO_RIGHT


def preview(
    asked: Filter, verb: BulkVerb, *, looks: Scans | None = None, enough: Enough = never
) -> Conversation[Preview]:
    """What a verb would do."""
    states, targets = verb.states(asked), verb.targets(asked)
    newest = yield from _newest(asked, states=targets, limit=_SAMPLES, looks=looks, enough=enough)
    samples = [record for record in newest.records if not (verb.spares and record.begun)]
    found: list[Match] = []
    before: UUID | None = None
    while len(found) <= _MOST_COUNTED:
        window = yield from next_window(asked, states=states, before=before, limit=windows.WINDOW, whole=False)
        found += window.found
        before = window.edge
        if before is None or enough():
            break
    counted = found[:_MOST_COUNTED]
    changes = [row for row in counted if row.state in targets and not (verb.spares and row.begun)]
    return Preview(
        verb=verb.name,
        count=len(changes),
        passed_over=len(counted) - len(changes),
        capped=before is not None or len(found) > _MOST_COUNTED,
        tasks=dict(Counter(row.task for row in changes).most_common()),
        states=dict(Counter(row.state for row in changes).most_common()),
        samples=tuple(samples),
    )


def failure_groups(asked: Filter, *, most: int, enough: Enough = never) -> Conversation[Failures]:
    """The failed jobs that match, in groups: so many of them at most, those that ended last."""
    failed = replace(asked, state="failed")
    grouping, counted = Grouping(), 0
    start: Start | None = None
    while True:
        found = yield from page(
            failed, limit=min(_FAILURES_AT_ONCE, most - counted), before=start, looks=BRIEF, enough=enough
        )
        grouping.add(found.records)
        counted += len(found.records)
        start = found.next
        if start is None or counted >= most or enough():
            return Failures(grouping.groups(), counted, start.at if isinstance(start, Cursor) else None)
