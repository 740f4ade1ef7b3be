"""What goes on failing is said again and again: in the log, and in the row of its worker."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta

import pytest

from rowlock import Rowlock
from rowlock.db.thread_connection import ReconnectingSyncConnection
from rowlock.store.query import DEFAULT_SCHEMA
from tests.waiting import until
from tests.worker.breaking import breaks
from tests.worker.working import Db, ended, one, working

LEASE = timedelta(seconds=1)
STOPS = "delete from rowlock.duties where name = 'pauses'"  # so that nobody can end pauses any more
GOES_ON = "insert into rowlock.duties (name) values ('pauses')"


def said(caplog: pytest.LogCaptureFixture, what: str) -> list[str]:
    """The warnings and errors that begin so."""
    return [one.getMessage() for one in caplog.records if one.levelname != "DEBUG" and what in one.getMessage()]


def test_a_chore_that_goes_on_failing_is_told_of_again_until_it_works(
    app: Rowlock, db: Db, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("rowlock.worker.lease._LOG_EVERY", 0.1)
    caplog.set_level("INFO")
    db.execute(STOPS)

    with working(app, lease=LEASE):
        until(lambda: len(said(caplog, "resuming failed")) >= 3)
        db.execute(GOES_ON)
        until(lambda: said(caplog, "resuming works again"))

    assert all("s now" in line for line in said(caplog, "resuming failed")[1:])


def test_the_chore_that_has_been_failing_the_longest_stands_in_its_workers_row_until_it_works(
    app: Rowlock, db: Db, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rowlock.worker.registration._FAILING_FOR", 0.1)
    db.execute(STOPS)

    with working(app, lease=LEASE):
        failing = until(lambda: one(db, "select max(failing) from rowlock.workers"))
        db.execute(GOES_ON)
        until(lambda: one(db, "select failing is null from rowlock.workers"))

    assert failing.startswith("resuming failed (table duties of schema 'rowlock' has lost its row 'pauses'")


def test_a_duty_that_fails_for_the_whole_fleet_is_not_taken_for_one_that_works(
    app: Rowlock, db: Db, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("rowlock.worker.registration._FAILING_FOR", 0.1)
    caplog.set_level("INFO")
    db.execute("create sequence public.turns")  # it counts on, whatever is rolled back
    app.tasks.pause("nightly", duration=timedelta(milliseconds=1))
    breaks(db, "pauses", "nextval('public.turns') > 0", event="delete")

    with working(app, lease=LEASE), working(app, lease=LEASE):
        until(lambda: one(db, "select count(failing) = 2 from rowlock.workers"))
        turns = one(db, "select last_value from public.turns")
        until(lambda: one(db, "select last_value from public.turns") >= turns + 4)
        still = one(db, "select count(failing) from rowlock.workers")
        worked = said(caplog, "resuming works again")
        db.execute("drop trigger broken on rowlock.pauses")
        until(lambda: one(db, "select count(failing) = 0 from rowlock.workers"))

    assert (still, worked) == (2, [])
    assert len(said(caplog, "resuming works again")) == 2


@pytest.mark.parametrize("done", [True, False])
def test_a_duty_that_was_begun_and_not_finished_is_due_again_after_a_minute(db: Db, url: str, *, done: bool) -> None:
    db.execute(
        "update rowlock.duties set begun_at = rowlock.now() - interval '2 minutes', done = %s where name = 'retention'",
        [done],
    )

    with (
        closing(ReconnectingSyncConnection(url, DEFAULT_SCHEMA, name="one")) as one_,
        closing(ReconnectingSyncConnection(url, DEFAULT_SCHEMA, name="two")) as two,
    ):
        first = one_.turn("retention", every=timedelta(hours=1))
        second = two.turn("retention", every=timedelta(hours=1))
        one_.finish("retention")
        third = two.turn("retention", every=timedelta(hours=1))

    assert (first.ours, second.ours, third.ours) == (not done, False, False)
    assert (second.done, third.done) == (done, True)


def test_a_statement_that_goes_on_failing_is_told_of_again(
    app: Rowlock, db: Db, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("rowlock.db.worker_connection._TELL_EVERY", 0.1)

    @app.task(name="quick")
    async def quick() -> None: ...

    breaks(db, "history", "true", "42501")
    quick.enqueue()
    with working(app):
        until(lambda: len(said(caplog, "job_settle failed")) >= 3)
        db.execute("drop trigger broken on rowlock.history")
        until(lambda: ended(db))

    assert "s now; trying again" in said(caplog, "job_settle failed")[2]
