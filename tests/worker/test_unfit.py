"""The schema is migrated while workers run on: one that cannot use it finishes what it runs, and begins nothing."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from rowlock import Rowlock
from tests.waiting import until
from tests.worker.working import Db, ended, one, working

SOON = {"renew": timedelta(milliseconds=100), "deadline": timedelta(seconds=5)}


def test_a_worker_that_cannot_use_the_schema_any_more_ends_what_it_runs_and_claims_again_when_it_can(
    app: Rowlock, db: Db, caplog: pytest.LogCaptureFixture
) -> None:
    go_on, newer = threading.Event(), "schema 'rowlock' is at version 9999 and needs code for version 9998 or later"

    @app.task(name="long")
    def long() -> None:
        go_on.wait(30)

    long.enqueue()
    with working(app, **SOON):
        until(lambda: one(db, "select count(*) = 1 from rowlock.jobs where begun"))
        db.execute("insert into rowlock.migrations (version, name, compatible) values (9999, 'other', 9998)")

        until(lambda: one(db, "select stopping and fault is not null from rowlock.workers"))
        long.enqueue()
        fault = one(db, "select fault from rowlock.workers")
        workers = app.stats().fleet.workers
        go_on.set()
        until(lambda: ended(db))
        left = one(db, "select state from rowlock.jobs")
        db.execute("delete from rowlock.migrations where version = 9999")
        until(lambda: len(ended(db)) == 2)

        until(lambda: one(db, "select not stopping and fault is null from rowlock.workers"))

    assert fault.startswith(newer)
    assert workers is not None
    assert workers[0].fault == fault
    assert caplog.text.count(f"{newer}, this Rowlock is for 1; upgrade it: until then this worker finishes") == 1
    assert left == "ready"
