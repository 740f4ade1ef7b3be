"""Jobs as far as this role may read them: whole, else without arguments, results and errors.

Which of the two it is, PostgreSQL says, by refusing: a right may be had in more ways than we could ask about.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final
from uuid import UUID

from rowlock.model.answer import Cursor, Page, Start, start_of
from rowlock.model.filter import Filter
from rowlock.model.record import JobRecord, State
from rowlock.store import by_end, jobs, scan
from rowlock.store.atomic import all_or_nothing
from rowlock.store.query import Conversation, Query, alone, plain_array
from rowlock.store.scan import WINDOW, Enough, Looks, Seen, moment, never, oldest, seen_whole

_NO_RIGHT: Final = "42501"


def page(
    asked: Filter, *, limit: int, before: Start | None, looks: Looks | None = None, enough: Enough = never
) -> Conversation[Page]:
    """A page of records, by `looks` if this role may; of ended jobs those that ended last come first."""
    try:
        return (yield from _page(asked, limit=limit, before=before, looks=looks, enough=enough))
    except Exception as error:
        if not is_refusal(error) or asked.args is not None or asked.error is not None:
            raise
    return (yield from _page(asked, limit=limit, before=before, looks=_OUTLINES, enough=enough))


def _page(
    asked: Filter, *, limit: int, before: Start | None, looks: Looks | None, enough: Enough
) -> Conversation[Page]:
    start = start_of(asked, before)
    if isinstance(start, Cursor) or (start is None and asked.is_by_end):
        return by_end.page(asked, limit=limit, before=start, look=looks and looks[1], enough=enough)
    return scan.page(asked, limit=limit, before=start, looks=looks, enough=enough)


def show(job_id: UUID, *, inside: bool = False) -> Conversation[list[JobRecord]]:
    """One job as it is now, live or ended; none if it is neither. `inside` a transaction, that goes on if refused."""
    look = alone(jobs.show(str(job_id)))
    try:
        return (yield from (all_or_nothing(look, inside=True) if inside else look))
    except Exception as error:
        if not is_refusal(error):
            raise
    found = yield from scan.page(Filter(ids=[job_id]), limit=1, before=None, looks=_OUTLINES)
    return list(found.records)


def is_refusal(error: Exception) -> bool:
    """Whether PostgreSQL said that this role has not the right to it."""
    return getattr(error, "sqlstate", None) == _NO_RIGHT


def live(
    asked: Filter,
    *,
    states: frozenset[State],
    before: str,
    down_to: str,  # noqa: ARG001  both are called alike
    ids: list[str] | None,
    limit: int,
    whole: bool,  # noqa: ARG001  it never is
    window: int = WINDOW,
) -> Query[Seen]:
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
        seen_whole,
    )


def ended(
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
) -> Query[Seen]:
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
        seen_whole,
    )


_OUTLINES: Final[Looks] = (live, ended)
