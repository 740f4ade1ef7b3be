"""Failed jobs in groups, from a bounded number of those that ended last."""

from __future__ import annotations

from dataclasses import replace

from rowlock.model.answer import Cursor, Start
from rowlock.model.failing import Failures, Grouping
from rowlock.model.filter import Filter
from rowlock.store import outline, scan
from rowlock.store.query import Conversation
from rowlock.store.scan import Enough, never

_PAGE = 1_000


def failures(asked: Filter, *, most: int, enough: Enough = never) -> Conversation[Failures]:
    """The failed jobs that match, in groups: so many of them at most, those that ended last."""
    failed = replace(asked, state="failed")
    grouping, counted = Grouping(), 0
    start: Start | None = None
    while True:
        page = yield from outline.page(
            failed, limit=min(_PAGE, most - counted), before=start, looks=scan.BRIEF, enough=enough
        )
        grouping.add(page.records)
        counted += len(page.records)
        start = page.next
        if start is None or counted >= most or enough():
            return Failures(grouping.groups(), counted, start.at if isinstance(start, Cursor) else None)
