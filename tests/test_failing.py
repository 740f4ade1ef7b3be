"""`app.jobs.failures`: what failed, in groups, from a bounded number of jobs."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from rowlock import Filter, Rowlock
from rowlock.errors import InvalidOption
from rowlock.model.failure_groups import folded
from rowlock.store.find import pages
from tests.rows import Db, put

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def fail(db: Db, minute: int, message: str, **columns: Any) -> UUID:  # noqa: ANN401  whatever a column takes
    error = json.dumps({"type": columns.pop("type", "ConnectionError"), "message": message, "attempt": 1})
    return put(db, "failed", ended_at=NOON + timedelta(minutes=minute), errors=[error], **columns)


@pytest.mark.parametrize(
    ("message", "pattern"),
    [
        ("order 17 of 2,000.5 not found", "order # of # not found"),
        ("no row 01a1e55a-7b39-7000-8000-0123456789ab", "no row #"),
        ("at 0x7F3a, commit 9fceb02d0ae598e95dc970b74767f19372d61af8", "at #, commit #"),
        ("no \"Ada\" in 'users', `id` is set", "no \"…\" in '…', `…` is set"),
        ("can't open the user's file", "can't open the user's file"),
        ("effaced", "effaced"),
        ("", ""),
    ],
)
def test_what_differs_from_job_to_job_is_left_out(message: str, pattern: str) -> None:
    assert folded(message) == pattern


def test_failed_jobs_are_counted_by_task_and_error_with_when_and_an_example(
    app: Rowlock, db: Db, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "_FAILURES_AT_ONCE", 2)
    fail(db, 1, "order 3 is unknown\nand more")
    latest = fail(db, 9, "order 4 is unknown")
    fail(db, 5, "order 5 is unknown")
    fail(db, 2, "order 6 is unknown", task="other")
    fail(db, 3, "order 7 is unknown", type="KeyError")
    put(db, "failed", reason="poison", ended_at=NOON)
    for state in ("succeeded", "cancelled", "ready"):
        put(db, state)

    found = app.jobs.failures()
    lately = app.jobs.failures(Filter(ended_after=NOON + timedelta(minutes=3)))
    bounded = app.jobs.failures(most=3)

    assert [(group.count, group.task, group.error, group.pattern) for group in found.groups] == [
        (3, "t", "ConnectionError", "order # is unknown"),
        (1, "t", "KeyError", "order # is unknown"),
        (1, "other", "ConnectionError", "order # is unknown"),
        (1, "t", None, "poison"),
    ]
    first = found.groups[0]
    assert (first.first, first.last) == (NOON + timedelta(minutes=1), NOON + timedelta(minutes=9))
    assert (first.example, first.message) == (latest, "order 4 is unknown")
    assert (found.looked, found.back_to) == (6, None)
    assert (lately.looked, lately.back_to, lately.groups[0].count) == (3, None, 2)
    assert (bounded.looked, bounded.back_to) == (3, NOON + timedelta(minutes=3))


@pytest.mark.parametrize("wrong", [{"filter": Filter(state="succeeded")}, {"most": 0}, {"most": True}])
def test_failures_of_other_states_or_of_no_number_are_refused(app: Rowlock, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption):
        app.jobs.failures(**wrong)
