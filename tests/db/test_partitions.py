"""History by the day: parts made ahead of need, expired ones dropped, and nobody blocked for long."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import date, timedelta
from itertools import pairwise
from time import monotonic
from typing import cast

import psycopg
import pytest
from psycopg.rows import TupleRow

from rowlock.db import partitions
from rowlock.db.partitions import make_partitions
from rowlock.db.session import Session, connect, run
from rowlock.store import schema

SCHEMA = "rowlock"
WEEK = timedelta(days=7)
MONTH = timedelta(days=30)

Db = psycopg.Connection[TupleRow]


@pytest.fixture
def upkeep(url: str) -> Iterator[Session]:
    """The session on which upkeep does its work."""
    with connect(url, name="rowlock upkeep") as connection:
        yield connection


@pytest.fixture
def today(db: Db) -> date:
    return one(db, "select (rowlock.now() at time zone 'UTC')::date")


def one(db: Db, query: str) -> date:
    row = db.execute(query.encode()).fetchone()
    assert row is not None
    answer: date = row[0]
    return answer


def travel(db: Db, days: int) -> None:
    """Move PostgreSQL's clock, as the first migration says."""
    db.execute(
        f"""
        create or replace function rowlock.now() returns timestamptz
        language sql stable parallel safe
        return statement_timestamp() + interval '{days} days'
        """
    )


def drop_partitions(upkeep: Session, schema: str) -> list[str]:
    """By a machine that has travelled with the database."""
    theirs = one(cast(Db, upkeep), "select (rowlock.now() at time zone 'UTC')::date")
    return partitions.drop_partitions(upkeep, schema, our_today=theirs)


def parts(db: Db, table: str = "history") -> list[date]:
    found = db.execute(
        "select relname from pg_inherits join pg_class on oid = inhrelid where inhparent = %s::regclass order by 1",
        [f"rowlock.{table}"],
    ).fetchall()
    found = [(name,) for (name,) in found if not name.endswith("_spare")]
    return [date.fromisoformat(name.rpartition("_")[2].removesuffix("w")) for (name,) in found]


def bounds(db: Db) -> list[tuple[date, date]]:
    """From where until before where each part of history reaches, as PostgreSQL has it."""
    found = db.execute(
        "select regexp_match(pg_get_expr(relpartbound, oid), $$'(.*)'.*'(.*)'$$) from pg_inherits "
        "join pg_class on oid = inhrelid where inhparent = 'rowlock.history'::regclass order by relname"
    )
    return [(date.fromisoformat(start), date.fromisoformat(end)) for ((start, end),) in found]


def days(start: date, end: date) -> list[date]:
    return [start + timedelta(days=n) for n in range((end - start).days)]


def keep_until(db: Db, day: date) -> None:
    """A job that ended, and is kept until a day."""
    db.execute(
        """
        insert into rowlock.history (
            id, queue, task, state, priority, failures, crashes, claims, attempts, run_at, created_at, ended_at,
            expires_on, args
        ) values (rowlock.uuid7(), 'q', 't', 'succeeded', 0, 0, 0, 1, 1, now(), now(), now(), %s, '{}')
        """,
        [day],
    )


def kept(db: Db) -> list[date]:
    return [day for (day,) in db.execute("select expires_on from rowlock.history order by 1")]


# Made ahead


def test_parts_are_made_from_today_until_a_week_past_the_longest_retention(
    upkeep: Session, db: Db, today: date
) -> None:
    travel(db, 400)
    later = today + timedelta(days=400)

    make_partitions(upkeep, SCHEMA)

    assert [day for day in parts(db) if day >= later] == days(later, later + MONTH + WEEK)


def test_parts_that_are_there_are_left_alone(upkeep: Session, db: Db, today: date) -> None:
    keep_until(db, today)
    before = parts(db)

    make_partitions(upkeep, SCHEMA)

    assert parts(db) == before
    assert kept(db) == [today]


def test_parts_reach_as_far_as_the_app_asks(upkeep: Session, db: Db, today: date) -> None:
    make_partitions(upkeep, SCHEMA, longest=timedelta(days=60))

    assert parts(db) == days(today, today + timedelta(days=60) + WEEK)


def test_parts_reach_as_far_as_the_settings_of_a_queue_ask(upkeep: Session, db: Db, today: date) -> None:
    db.execute("insert into rowlock.queues (name, keep_cancelled) values ('slow', '49 days 1 hour')")

    make_partitions(upkeep, SCHEMA)

    assert parts(db) == days(today, today + timedelta(days=50) + WEEK)


def test_history_is_kept_by_the_week_where_jobs_are_kept_for_more_than_60_days_and_by_the_day_again_where_not(
    upkeep: Session, db: Db, today: date
) -> None:
    """Parts that are there stay, and the new ones fit to them."""
    days_first = len(parts(db))

    make_partitions(upkeep, SCHEMA, longest=timedelta(days=400))
    weeks = [(start, end) for start, end in bounds(db) if end - start == WEEK]
    singly = len(bounds(db)) - days_first - len(weeks)
    travel(db, 395)
    make_partitions(upkeep, SCHEMA, longest=MONTH)

    whole = bounds(db)
    assert singly < 7  # until the next week begins
    assert len(weeks) >= (400 + 7 - days_first) // 7
    assert {end - start for start, end in whole if start >= weeks[-1][1]} == {timedelta(days=1)}
    assert all(before[1] == after[0] for before, after in pairwise(whole))
    assert whole[-1][1] >= today + timedelta(days=395) + MONTH + WEEK


def test_a_week_of_history_is_dropped_when_all_of_it_has_expired(upkeep: Session, db: Db, today: date) -> None:
    make_partitions(upkeep, SCHEMA, longest=timedelta(days=400))
    week, after = next((start, end) for start, end in bounds(db) if end - start == WEEK)
    keep_until(db, week)
    keep_until(db, after)
    travel(db, (after - today).days - 1)
    drop_partitions(upkeep, SCHEMA)
    until_its_last_day = kept(db)

    travel(db, (after - today).days)

    assert drop_partitions(upkeep, SCHEMA)[0] == f"history_{week:%Y%m%d}w"
    assert until_its_last_day == [week, after]
    assert kept(db) == [after]


def test_events_are_kept_by_the_week(db: Db, today: date) -> None:
    weeks = parts(db, "events")

    assert weeks[0] <= today < weeks[0] + WEEK
    assert {later - earlier for earlier, later in pairwise(weeks)} == {WEEK}
    assert weeks[-1] + WEEK >= today + MONTH + WEEK


def test_ten_makers_at_once_make_each_part_once(url: str, db: Db, today: date) -> None:
    travel(db, 100)
    later = today + timedelta(days=100)
    with ExitStack() as after, ThreadPoolExecutor(10) as threads:
        makers = [after.enter_context(connect(url, name="maker")) for _ in range(10)]

        done = [threads.submit(make_partitions, maker, SCHEMA) for maker in makers]

        assert [future.result() for future in done] == [None] * 10
    assert [day for day in parts(db) if day >= later] == days(later, later + MONTH + WEEK)


def test_making_parts_waits_for_no_reader_and_no_settle(upkeep: Session, url: str, db: Db, today: date) -> None:
    travel(db, 1)
    with psycopg.connect(url) as reader, psycopg.connect(url) as settler:
        reader.execute("select from rowlock.history")
        keep_until(settler, today)

        upkeep.execute("set statement_timeout = '10s'")
        make_partitions(upkeep, SCHEMA)

    assert today + MONTH + WEEK in parts(db)


def test_parts_of_events_reach_a_month_and_a_week_however_short_jobs_are_kept(
    upkeep: Session, db: Db, today: date
) -> None:
    travel(db, 15)
    later = today + timedelta(days=15)

    make_partitions(upkeep, SCHEMA, longest=WEEK)

    assert parts(db, "events")[-1] + WEEK >= later + MONTH + WEEK


def test_an_event_whose_part_is_missing_is_kept_all_the_same_and_expires(upkeep: Session, db: Db, today: date) -> None:
    travel(db, 100)
    log_event = "insert into rowlock.events (kind, actor) values ('cancelled', 'ada') returning expires_on = 'infinity'"
    is_spare = one(db, log_event)
    make_partitions(upkeep, SCHEMA)
    is_spare_later = one(db, log_event)

    travel(db, 131)
    cleared = run(upkeep.cursor(), schema.clear_spare(), SCHEMA)

    assert [is_spare, is_spare_later] == [True, False]
    assert cleared == [1]


# Dropped


def test_nothing_is_dropped_by_the_clock_of_the_database_alone(upkeep: Session, db: Db, today: date) -> None:
    """A server that is 40 days ahead for a minute would cost all of history."""
    keep_until(db, today + timedelta(days=30))
    travel(db, 40)

    dropped = partitions.drop_partitions(upkeep, SCHEMA, our_today=today)

    assert dropped == []
    assert kept(db) == [today + timedelta(days=30)]


def test_expired_parts_are_dropped_and_others_stay(upkeep: Session, db: Db, today: date) -> None:
    for ahead in (0, 4, 5, 6):
        keep_until(db, today + timedelta(days=ahead))
    travel(db, 5)

    dropped = drop_partitions(upkeep, SCHEMA)

    gone = days(today, today + timedelta(days=5))
    assert [name for name in dropped if name.startswith("history")] == [f"history_{day:%Y%m%d}" for day in gone]
    assert kept(db) == [today + timedelta(days=5), today + timedelta(days=6)]
    assert parts(db) == days(today + timedelta(days=5), today + MONTH + WEEK)
    assert db.execute("select from pg_class where relname = any(%s)", [dropped]).fetchall() == []


def test_nothing_is_dropped_on_the_day_it_expires(upkeep: Session, db: Db, today: date) -> None:
    keep_until(db, today)

    assert drop_partitions(upkeep, SCHEMA) == []
    assert kept(db) == [today]


def test_parts_of_events_are_dropped_when_their_week_has_passed(upkeep: Session, db: Db, today: date) -> None:
    first, *others = parts(db, "events")
    travel(db, (first + WEEK - today).days)

    dropped = drop_partitions(upkeep, SCHEMA)

    assert f"events_{first:%Y%m%d}" in dropped
    assert parts(db, "events") == others


def test_a_reader_makes_dropping_give_up_soon_and_the_next_time_succeeds(
    upkeep: Session, url: str, db: Db, today: date
) -> None:
    travel(db, 2)
    with psycopg.connect(url) as reader:
        reader.execute("select from rowlock.history")

        started = monotonic()
        assert drop_partitions(upkeep, SCHEMA) == []
        assert monotonic() - started < 5

        # Nobody waits behind it meanwhile.
        db.execute("set lock_timeout = '2s'")
        keep_until(db, today + timedelta(days=3))
        assert kept(db) == [today + timedelta(days=3)]

    dropped = drop_partitions(upkeep, SCHEMA)  # a week of events, too, on some days of the week
    gone = days(today, today + timedelta(days=2))
    assert [name for name in dropped if name.startswith("history")] == [f"history_{day:%Y%m%d}" for day in gone]
    assert kept(db) == [today + timedelta(days=3)]


def test_the_session_waits_for_locks_again_after_it_gave_up(upkeep: Session, url: str, db: Db) -> None:
    travel(db, 2)
    with psycopg.connect(url) as reader:
        reader.execute("select from rowlock.history")

        drop_partitions(upkeep, SCHEMA)

    assert upkeep.execute("show lock_timeout").fetchone() == ("0",)


def test_an_interrupted_detach_is_finished(upkeep: Session, url: str, db: Db, today: date) -> None:
    travel(db, 1)
    name = f"history_{today:%Y%m%d}"
    with psycopg.connect(url) as reader:
        reader.execute("select from rowlock.history")
        db.execute("set statement_timeout = '300ms'")
        with pytest.raises(psycopg.errors.QueryCanceled):
            db.execute(f"alter table rowlock.history detach partition rowlock.{name} concurrently")
    assert db.execute("select count(*) from pg_inherits where inhdetachpending").fetchone() == (1,)

    dropped = drop_partitions(upkeep, SCHEMA)

    assert [part for part in dropped if part.startswith("history")] == [name]
    assert today not in parts(db)
    assert db.execute("select to_regclass(%s)", [f"rowlock.{name}"]).fetchone() == (None,)


def test_parts_can_be_made_while_an_interrupted_detach_waits(upkeep: Session, url: str, db: Db, today: date) -> None:
    travel(db, 2)
    with psycopg.connect(url) as reader:
        reader.execute("select from rowlock.history")
        assert drop_partitions(upkeep, SCHEMA) == []

        upkeep.execute("set statement_timeout = '10s'")
        make_partitions(upkeep, SCHEMA)

    assert today + MONTH + WEEK + timedelta(days=1) in parts(db)


def test_a_part_that_was_detached_by_a_worker_that_died_then_is_dropped(upkeep: Session, db: Db, today: date) -> None:
    travel(db, 1)
    name = f"history_{today:%Y%m%d}"
    db.execute(f"alter table rowlock.history detach partition rowlock.{name} concurrently")

    drop_partitions(upkeep, SCHEMA)

    assert db.execute("select to_regclass(%s)", [f"rowlock.{name}"]).fetchone() == (None,)


def test_ten_droppers_at_once_drop_each_part_once(url: str, db: Db, today: date) -> None:
    travel(db, 3)
    with ExitStack() as after, ThreadPoolExecutor(10) as threads:
        droppers = [after.enter_context(connect(url, name="dropper")) for _ in range(10)]

        done = [threads.submit(drop_partitions, dropper, SCHEMA) for dropper in droppers]

        named = [name for future in done for name in future.result() if name.startswith("history")]
        assert len(named) == len(set(named))
    with connect(url, name="the next time") as upkeep:
        drop_partitions(upkeep, SCHEMA)
    assert parts(db)[0] == today + timedelta(days=3)
