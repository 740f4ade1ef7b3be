"""Looking for jobs: windows of ids, newest first, through live and ended ones alike.

One statement looks at a bounded number of rows, whatever is asked for and whatever is there. Where it ended, the next
one begins; so a look can be stopped and taken up again, with nothing to remember but an id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import date, datetime, timedelta
from functools import partial
from typing import Final, NamedTuple, Protocol
from uuid import UUID

from rowlock.model.answer import Page, Preview
from rowlock.model.filter import ENDED, LIVE, STATES, Filter
from rowlock.model.ids import NIL, TOP
from rowlock.model.record import COLUMNS, JobRecord, State
from rowlock.model.verb import Verb
from rowlock.store.intervals import instant
from rowlock.store.query import Conversation, Query, Row, plain_array

# Jobs that one statement looks at, and that one transaction of a verb locks at most.
WINDOW = 2_000
# And the first of a page, which mostly finds what it wants among the newest.
_FIRST = 250
# Ids are made by enqueuers' clocks, created_at by the database's: so far they may differ.
_SKEW = timedelta(days=1)
_SAMPLES = 5
# Where these stand in a row of a look, after what says how far it went.
_CLAIMS, _VERSION, _PARENT = (4 + COLUMNS.index(name) for name in ("claims", "version", "parent"))
_MOST_COUNTED = 10_000


class Found(NamedTuple):
    """A job that matches; its record, if it was wanted whole; the day on which it expires, if it has ended.

    `begun` is as in a record.
    """

    id: str
    task: str
    state: State
    expires_on: date | None
    record: JobRecord | None
    begun: bool = False


class Window(NamedTuple):
    """What a look found, newest first, and the id at which it ended; None when there is nothing more to look at.

    `looked` is how many jobs it has looked at.
    """

    found: list[Found]
    edge: UUID | None
    looked: int = 0


class Newest(NamedTuple):
    """Records that were found, newest first; where the looks ended, as in a Window, and at how many jobs they were."""

    records: list[JobRecord]
    edge: UUID | None
    looked: int


class Seen(NamedTuple):
    """A row of a look: how many jobs it looked at, the last id, the newest creation, and one that matches or none."""

    looked: int
    edge: str | None
    newest: datetime | None
    found: Found | None


class Build(Protocol):
    """A look at one window of live, or of ended, jobs."""

    def __call__(
        self,
        asked: Filter,
        *,
        states: frozenset[State],
        before: str,
        down_to: str,
        ids: list[str] | None,
        limit: int,
        whole: bool,
        window: int = WINDOW,
    ) -> Query[Seen]:
        """The query."""


class BuildEnded(Build, Protocol):
    """A look at one window of ended jobs: with `end`, at those that ended before then, the latest first."""

    def __call__(
        self,
        asked: Filter,
        *,
        states: frozenset[State],
        before: str,
        down_to: str,
        ids: list[str] | None,
        limit: int,
        whole: bool,
        window: int = WINDOW,
        end: datetime | None = None,
    ) -> Query[Seen]:
        """The query."""


# How to look at live jobs, and at ended ones.
Looks = tuple[Build, BuildEnded]
# Asked after every window: whether to leave it at what was found.
Enough = Callable[[], bool]


def never() -> bool:
    """Look until everything was looked at."""
    return False


def page(
    asked: Filter, *, limit: int, before: UUID | None, looks: Looks | None = None, enough: Enough = never
) -> Conversation[Page]:
    """A page of records; one more is looked for, to know whether there is a next page."""
    states = asked.states or frozenset(STATES)
    newest = yield from _newest(asked, states=states, limit=limit + 1, before=before, looks=looks, enough=enough)
    records = newest.records
    return Page(tuple(records[:limit]), records[limit - 1].id if len(records) > limit else newest.edge, newest.looked)


def preview(asked: Filter, verb: Verb, *, looks: Looks | None = None, enough: Enough = never) -> Conversation[Preview]:
    """What a verb would do."""
    states, targets = verb.states(asked), verb.targets(asked)
    newest = yield from _newest(asked, states=targets, limit=_SAMPLES, looks=looks, enough=enough)
    samples = [record for record in newest.records if not (verb.spares and record.begun)]
    found: list[Found] = []
    before: UUID | None = None
    while len(found) <= _MOST_COUNTED:
        window = yield from look(asked, states=states, before=before, limit=WINDOW, whole=False)
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


def first_window(limit: int) -> int:
    """At how many jobs to look first, for so many that match."""
    return min(WINDOW, max(_FIRST, 2 * limit))


def _newest(
    asked: Filter,
    *,
    states: frozenset[State],
    limit: int,
    before: UUID | None = None,
    looks: Looks | None = None,
    enough: Enough = never,
) -> Conversation[Newest]:
    """So many records, however many windows it takes to find them, unless it is enough before."""
    records: list[JobRecord] = []
    looked, size = 0, first_window(limit)
    while True:
        left = limit - len(records)
        window = yield from look(asked, states=states, before=before, limit=left, whole=True, looks=looks, window=size)
        records += [row.record for row in window.found if row.record is not None]
        looked += window.looked
        before = window.edge
        if before is None or len(records) == limit or enough():
            return Newest(records, before, looked)
        size = WINDOW


def look(
    asked: Filter,
    *,
    states: frozenset[State],
    before: UUID | None,
    limit: int,
    whole: bool,
    looks: Looks | None = None,
    window: int | None = None,
) -> Conversation[Window]:
    """Look at the next window: at most `limit` jobs in these states that match.

    Live jobs come first: one that ends in between is then seen twice, and not missed.
    """
    at_live, at_ended = looks or (live, ended)
    size = WINDOW if window is None else window
    start = TOP if before is None else str(before)
    ids, rest = _next_ids(asked, start)
    edge = ids[-1] if ids and rest else None
    seen: list[Seen] = []
    found: dict[str, Found] = {}
    living: frozenset[State] = frozenset() if asked.is_of_ended else states & LIVE
    for wanted, build in ((living, at_live), (states & ENDED, at_ended)):
        if not wanted or ids == []:
            continue
        rows = yield build(
            asked,
            states=wanted,
            before=start,
            down_to=edge or NIL,
            ids=ids,
            limit=limit,
            whole=whole,
            window=size,
        )
        matching = [row.found for row in rows if row.found is not None]
        found |= {row.id: row for row in matching}
        ended_at = _edge(rows, matching, limit=limit, window=None if ids is not None else size)
        edge = max(filter(None, (edge, ended_at)), default=None)
        seen += rows[:1]
    newest_first = sorted((row for row in found.values() if edge is None or row.id >= edge), key=_id, reverse=True)
    if len(newest_first) > limit:
        newest_first = newest_first[:limit]
        edge = newest_first[-1].id
    looked = sum(row.looked for row in seen)
    if edge is None or _all_too_old(asked, seen):
        return Window(newest_first, None, looked)
    return Window(newest_first, UUID(edge), looked)


def _next_ids(asked: Filter, before: str) -> tuple[list[str] | None, bool]:
    """The next ids to look at, if the filter names ids, and whether there are more."""
    if asked.ids is None:
        return None, False
    left = [text for text in map(str, asked.ids) if text < before]
    return left[:WINDOW], len(left) > WINDOW


def _edge(rows: list[Seen], matching: list[Found], *, limit: int, window: int | None) -> str | None:
    """Where this look ended: at the last job answered, or at the last one looked at; None if there were no more."""
    if len(matching) == limit:
        return matching[-1].id
    return rows[0].edge if rows[0].looked == window else None


def _all_too_old(asked: Filter, seen: Iterable[Seen]) -> bool:
    """Whether all that was looked at is older than asked for, by so much that what is below must be older still."""
    since = asked.since
    return since is not None and all(row.newest is None or row.newest < since - _SKEW for row in seen)


def _id(row: Found) -> str:
    return row.id


def live(
    asked: Filter,
    *,
    states: frozenset[State],
    before: str,
    down_to: str,  # noqa: ARG001  both are called alike
    ids: list[str] | None,
    limit: int,
    whole: bool,
    window: int = WINDOW,
    brief: bool = False,
) -> Query[Seen]:
    """Look at live jobs, as far as a window goes."""
    return Query(
        "job_scan",
        {
            "queue": asked.queue,
            "task": asked.task,
            "tag": asked.tag,
            "key": asked.key,
            "args": asked.args_json,
            "since": moment(asked.since),
            "until": moment(asked.until),
            "error": _error(asked),
            "reason": asked.reason,
            "ids": None if ids is None else plain_array(ids),
            "states": plain_array(states),
            "before": before,
            "window": str(window),
            "limit": str(limit),
            "whole": str(whole),
            "brief": str(brief),
        },
        seen_whole if whole else _seen,
    )


def ended(
    asked: Filter,
    *,
    states: frozenset[State],
    before: str,
    down_to: str,
    ids: list[str] | None,
    limit: int,
    whole: bool,
    window: int = WINDOW,
    brief: bool = False,
    end: datetime | None = None,
) -> Query[Seen]:
    """Look at ended jobs, as far as a window goes and no further than `down_to`; with `end` by when they ended."""
    return Query(
        "history_scan",
        {
            "queue": asked.queue,
            "task": asked.task,
            "tag": asked.tag,
            "key": asked.key,
            "args": asked.args_json,
            "since": moment(asked.since),
            "until": moment(asked.until),
            "ended_after": moment(asked.ended_after),
            "ended_before": moment(asked.ended_before),
            "error": _error(asked),
            "reason": asked.reason,
            "ids": None if ids is None else plain_array(ids),
            "states": plain_array(states),
            "before": before,
            "window": str(window),
            "limit": str(limit),
            "whole": str(whole),
            "brief": str(brief),
            "down_to": down_to,
            "trouble": str("succeeded" not in states),
            "by_end": str(end is not None),
            "before_end": moment(end),
            "oldest": oldest(asked),
        },
        seen_whole if whole else _seen,
    )


BRIEF: Final[Looks] = (partial(live, brief=True), partial(ended, brief=True))
"""Looks for lists: without arguments, results and all errors but the beginning of the last one."""


def moment(at: datetime | None) -> str | None:
    """An instant as a parameter."""
    return None if at is None else instant(at)


def oldest(asked: Filter) -> str:
    """What ended before this does not match: a job ends after it was created, so `since` counts too."""
    since = None if asked.since is None else asked.since - _SKEW
    return moment(max(filter(None, (asked.ended_after, since)), default=None)) or "-infinity"


def _error(asked: Filter) -> str | None:
    """The type of an error as it is stored: Python's own have no module."""
    return None if asked.error is None else asked.error.removeprefix("builtins.")


def _seen(row: Row) -> Seen:
    looked, edge, newest, expires_on, job_id, task, _queue, state, *_ = row
    begun = state in LIVE and (row[_PARENT] is not None or (row[_VERSION] is not None and row[_CLAIMS] > 0))
    found = None if job_id is None else Found(job_id, task, state, expires_on, None, begun)
    return Seen(looked, edge, None if newest is None else datetime.fromisoformat(newest), found)


def seen_whole(row: Row) -> Seen:
    """A row of a look that wants whole records."""
    seen = _seen(row)
    return seen if seen.found is None else seen._replace(found=seen.found._replace(record=JobRecord.read(row[4:])))
