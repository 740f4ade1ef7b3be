"""A migration on a live system: it lets everybody pass, and what goes on meets the tables as they have become."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta

import psycopg
import pytest
from psycopg.rows import TupleRow

from rowlock import Rowlock
from rowlock.db.errors import Unreachable
from rowlock.db.migrate import migrate
from rowlock.db.session import Session, connect
from rowlock.db.thread_connection import ReconnectingSyncConnection
from rowlock.errors import Locked, SchemaMissing
from rowlock.store import schema, workers
from rowlock.store.schema import Migration
from tests.waiting import until

Db = psycopg.Connection[TupleRow]
NEXT = Migration(2, "more", 1, "alter table rowlock.jobs add column more integer;")


@pytest.fixture
def migrating(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    """The session of code that is one migration ahead of the database."""
    now = schema.migrations()
    monkeypatch.setattr(schema, "migrations", lambda: (*now, NEXT))
    with connect(url, name="rowlock migrate") as session:
        yield session


def enqueue(url: str) -> Callable[[], object]:
    """Somebody who enqueues with no patience."""
    app = Rowlock(url, deadline=timedelta(seconds=10))
    return app.task(name="t")(lambda: None).enqueue


def test_a_migration_that_waits_for_a_reader_lets_others_pass_and_is_done_when_the_reader_has_ended(
    migrating: Session, url: str, db: Db, caplog: pytest.LogCaptureFixture
) -> None:
    with psycopg.connect(url, application_name="report") as reader, ThreadPoolExecutor(1) as thread:
        reader.execute("select from rowlock.jobs")

        migrated = thread.submit(migrate, migrating, "rowlock")
        until(lambda: f"PID {reader.info.backend_pid} ('report'" in caplog.text, what="a word about who reads")
        enqueue(url)()
        reader.rollback()

    assert migrated.result() == [NEXT]
    assert db.execute("select more from rowlock.jobs").fetchall() == [(None,)]


def test_a_migration_that_finds_no_moment_changes_nothing_and_says_who_is_in_its_way(
    migrating: Session, url: str, db: Db
) -> None:
    with psycopg.connect(url, application_name="report") as reader:
        reader.execute("select from rowlock.jobs")

        with pytest.raises(Locked) as locked:
            migrate(migrating, "rowlock", within=timedelta(0))

        assert f"locks are held by PID {reader.info.backend_pid} ('report', user" in str(locked.value)
        assert ", idle in transaction, for 0 s, on jobs)" in str(locked.value) or ", for 1 s, on" in str(locked.value)
    assert db.execute("select max(version) from rowlock.migrations").fetchone() == (1,)


def test_nobody_keeps_a_migration_waiting_without_end_by_an_advisory_lock(
    migrating: Session, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with psycopg.connect(url, application_name="report") as other, ThreadPoolExecutor(1) as thread:
        other.execute("select pg_advisory_xact_lock(hashtextextended('rowlock.migrate', 0))")
        who = f"PID {other.info.backend_pid} ('report'"
        migrating.execute("set statement_timeout = '10s'")

        with pytest.raises(Locked) as locked:
            migrate(migrating, "rowlock", within=timedelta(0))
        migrated = thread.submit(migrate, migrating, "rowlock")
        until(lambda: who in caplog.text, what="a word about who is in the way")
        other.rollback()

    assert who in str(locked.value)
    assert "on the lock of migrations" in str(locked.value)
    assert migrated.result() == [NEXT]


# What goes on meanwhile


def test_a_process_that_goes_on_asks_anew_what_was_prepared_for_the_tables_as_they_were(app: Rowlock, db: Db) -> None:
    job = app.task(name="t")(lambda: None).enqueue()
    before = job.record().failures

    db.execute("alter table rowlock.jobs alter column failures type bigint")

    assert job.record().failures == before == 0


def test_a_worker_renews_on_with_what_was_prepared_for_the_tables_as_they_were(url: str, db: Db) -> None:
    renewing = ReconnectingSyncConnection(url, "rowlock", name="rowlock renew", deadline=5.0)
    renewal = workers.renew(worker="00000000-0000-0000-0000-000000000001")
    renewing.run(renewal)

    db.execute("alter table rowlock.migrations alter column version type bigint")
    with suppress(Unreachable):
        renewing.run(renewal)

    assert renewing.run(renewal) == []
    renewing.close()


def test_a_process_for_another_schema_is_told_what_to_do(app: Rowlock, db: Db) -> None:
    job = app.task(name="t")(lambda: None).enqueue()

    db.execute("alter table rowlock.jobs rename column failures to spent")

    with pytest.raises(SchemaMissing, match=r'column (job\.|")failures"? does not exist.*upgrade Rowlock here'):
        job.record()
