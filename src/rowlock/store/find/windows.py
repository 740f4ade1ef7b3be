"""Windows: bounded looks at live and ended jobs, newest first.

One statement looks at a bounded number of rows, whatever is asked for and whatever is there. Where it ended, the next
one begins; so a look can be stopped and taken up again, with nothing to remember but an id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date, datetime, timedelta
from functools import partial
from operator import itemgetter
from typing import Final, NamedTuple, Protocol
from uuid import UUID

from rowlock.model.filter import ENDED, LIVE, Filter
from rowlock.model.ids import NIL, TOP
from rowlock.model.record import COLUMNS, JobRecord, State
from rowlock.store.query import Conversation, Query, Row, instant, plain_array

# Jobs that one statement looks at, and that one transaction of a verb locks at most.
WINDOW = 2_000
# And the first of a page, which mostly finds what it wants among the newest.
_FIRST = 250
# Ids are made by enqueuers' clocks, created_at by the database's: so far they may differ.
_SKEW = timedelta(days=1)
# What a match takes of a record's columns.
_matched = itemgetter(*map(COLUMNS.index, ("id", "task", "state", "claims", "version", "parent")))


class Match(NamedTuple):
    """A job that matches; its record, if it was wanted whole; the day on which it expires, if it has ended.

    `begun` is as in a record.
    """

    id: str
    task: str
    state: State
    expires_on: date | None
    record: JobRecord | None
    begun: bool = False


class MatchWindow(NamedTuple):
    """The matches of a window, newest first, and the id at which it ended; None when there is nothing more to scan.

    `looked` is how many jobs it has looked at.
    """

    found: list[Match]
    edge: UUID | None
    looked: int = 0


class ScanRow(NamedTuple):
    """A row of a scan: how many jobs it looked at, the last id, the newest creation, and one that matches or none."""

    looked: int
    edge: str | None
    newest: datetime | None
    found: Match | None


class Scan(Protocol):
    """A statement that scans one window of live, or of ended, jobs."""

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
    ) -> Query[ScanRow]:
        """The query."""


class ScanEnded(Scan, Protocol):
    """A statement that scans one window of ended jobs: with `end`, those that ended before then, the latest first."""

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
    ) -> Query[ScanRow]:
        """The query."""


# How to scan live jobs, and ended ones.
Scans = tuple[Scan, ScanEnded]
# Asked after every window: whether to leave it at what was found.
Enough = Callable[[], bool]


def never() -> bool:
    """Look until everything was looked at."""
    return False


def first_window(limit: int) -> int:
    """At how many jobs to look first, for so many that match."""
    return min(WINDOW, max(_FIRST, 2 * limit))


def next_window(
    asked: Filter,
    *,
    states: frozenset[State],
    before: UUID | None,
    limit: int,
    whole: bool,
    looks: Scans | None = None,
    window: int | None = None,
) -> Conversation[MatchWindow]:
    """Look at the next window: at most `limit` jobs in these states that match.

    Live jobs come first: one that ends in between is then seen twice, and not missed.
    """
    at_live, at_ended = looks or (scan_live, scan_ended)
    size = WINDOW if window is None else window
    start = TOP if before is None else str(before)
    ids, rest = _next_ids(asked, start)
    edge = ids[-1] if ids and rest else None
    seen: list[ScanRow] = []
    found: dict[str, Match] = {}
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
        return MatchWindow(newest_first, None, looked)
    return MatchWindow(newest_first, UUID(edge), looked)


def _next_ids(asked: Filter, before: str) -> tuple[list[str] | None, bool]:
    """The next ids to look at, if the filter names ids, and whether there are more."""
    if asked.ids is None:
        return None, False
    left = [text for text in map(str, asked.ids) if text < before]
    return left[:WINDOW], len(left) > WINDOW


def _edge(rows: list[ScanRow], matching: list[Match], *, limit: int, window: int | None) -> str | None:
    """Where this look ended: at the last job returned, or at the last one looked at; None if there were no more."""
    if len(matching) == limit:
        return matching[-1].id
    return rows[0].edge if rows[0].looked == window else None


def _all_too_old(asked: Filter, seen: Iterable[ScanRow]) -> bool:
    """Whether all that was looked at is older than asked for, by so much that what is below must be older still."""
    since = asked.since
    return since is not None and all(row.newest is None or row.newest < since - _SKEW for row in seen)


def _id(row: Match) -> str:
    return row.id


def scan_live(
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
) -> Query[ScanRow]:
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
        read_whole if whole else _read_match,
    )


def scan_ended(
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
) -> Query[ScanRow]:
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
        read_whole if whole else _read_match,
    )


def outline_live(
    asked: Filter,
    *,
    states: frozenset[State],
    before: str,
    down_to: str,  # noqa: ARG001  both are called alike
    ids: list[str] | None,
    limit: int,
    whole: bool,  # noqa: ARG001  it never is
    window: int = WINDOW,
) -> Query[ScanRow]:
    """Look at live jobs, as far as a window goes."""
    return Query(
        "job_outline",
        {
            "queue": asked.queue,
            "task": asked.task,
            "tag": asked.tag,
            "key": asked.key,
            "since": moment(asked.since),
            "until": moment(asked.until),
            "reason": asked.reason,
            "ids": None if ids is None else plain_array(ids),
            "states": plain_array(states),
            "before": before,
            "window": str(window),
            "limit": str(limit),
        },
        read_whole,
    )


def outline_ended(
    asked: Filter,
    *,
    states: frozenset[State],
    before: str,
    down_to: str,
    ids: list[str] | None,
    limit: int,
    whole: bool,  # noqa: ARG001  it never is
    window: int = WINDOW,
    end: datetime | None = None,
) -> Query[ScanRow]:
    """Look at ended jobs, as far as a window goes and no further than `down_to`; with `end` by when they ended."""
    return Query(
        "history_outline",
        {
            "queue": asked.queue,
            "task": asked.task,
            "tag": asked.tag,
            "key": asked.key,
            "since": moment(asked.since),
            "until": moment(asked.until),
            "ended_after": moment(asked.ended_after),
            "ended_before": moment(asked.ended_before),
            "reason": asked.reason,
            "ids": None if ids is None else plain_array(ids),
            "states": plain_array(states),
            "before": before,
            "window": str(window),
            "limit": str(limit),
            "down_to": down_to,
            "trouble": str("succeeded" not in states),
            "by_end": str(end is not None),
            "before_end": moment(end),
            "oldest": oldest(asked),
        },
        read_whole,
    )


BRIEF: Final[Scans] = (partial(scan_live, brief=True), partial(scan_ended, brief=True))
"""Scans for lists: without arguments, results and all errors but the beginning of the last one."""
OUTLINES: Final[Scans] = (outline_live, outline_ended)


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


def _read_match(row: Row) -> ScanRow:
    looked, edge, newest, expires_on, *record = row
    job_id, task, state, claims, version, parent = _matched(record)
    begun = state in LIVE and (parent is not None or (version is not None and claims > 0))
    found = None if job_id is None else Match(job_id, task, state, expires_on, None, begun)
    return ScanRow(looked, edge, None if newest is None else datetime.fromisoformat(newest), found)


def read_whole(row: Row) -> ScanRow:
    """Read a row of a scan for whole records."""
    seen = _read_match(row)
    return seen if seen.found is None else seen._replace(found=seen.found._replace(record=JobRecord.read(row[4:])))
