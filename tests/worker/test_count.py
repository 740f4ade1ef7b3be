"""Counting: what a worker did comes to stand in rowlock.minutes, once, minute by minute, and old minutes go."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TypeVar
from uuid import uuid4

import psycopg
import pytest

from rowlock import Retry, Rowlock
from rowlock.db.errors import Unreachable
from rowlock.db.thread_connection import ReconnectingSyncConnection
from rowlock.model.outcome import Blocked, Cancelled, Failed, HandedBack, Outcome, Retried, Snoozed, Succeeded
from rowlock.model.row import ClaimedJob
from rowlock.model.stats.histogram import bucket, unpack
from rowlock.store import claim
from rowlock.store.query import Query
from rowlock.store.stats import minutes
from rowlock.testing import travel
from rowlock.worker.counts import Counts
from rowlock.worker.upkeep import merge_minutes, remove_minutes
from tests.engine import Engine
from tests.worker.working import Db, one, work_off

T = TypeVar("T")

ROW = ClaimedJob(str(uuid4()), str(uuid4()), "t", "{}", "q", 0, "", 0, 0, 1, 10, None, False, None, None)
NOON = 1_800_000_000.0  # the start of a minute
COUNTED = (
    "select queue, task, claimed, succeeded, failed, cancelled, retried from rowlock.minutes order by minute, task"
)


class Heard(ReconnectingSyncConnection):
    """A connection that remembers what was said over it."""

    def __init__(self, url: str) -> None:
        super().__init__(url, "rowlock", name="test")
        self.said: list[str] = []

    def run(self, query: Query[T]) -> list[T]:
        self.said.append(query.name)
        return super().run(query)


@pytest.fixture
def connection(url: str) -> Iterator[Heard]:
    heard = Heard(url)
    yield heard
    heard.close()


@pytest.fixture
def counts() -> Counts:
    """Counts that began at the start of a minute."""
    counts = Counts(str(uuid4()))
    counts.begin(NOON)
    return counts


def end(counts: Counts, *outcomes: Outcome, task: str = "t", took: float = 0.01, after: float = 0.0) -> None:
    """Attempts end, so many seconds from now."""
    for outcome in outcomes:
        counts.ended(ROW._replace(task=task), outcome, took, time.perf_counter() + after)


def test_every_outcome_is_counted_by_queue_and_task(counts: Counts, connection: Heard, db: Db) -> None:
    counts.claimed([ROW] * 7 + [ROW._replace(task="u")], 0.25)
    end(counts, Succeeded(None), Succeeded("1"), Failed("{}", "exhausted"), Cancelled("asked"))
    end(counts, Retried("{}", timedelta(1)), Snoozed(timedelta(1)), HandedBack())
    end(counts, Blocked("code", "unknown"), task="u")

    counts.write(connection)

    assert db.execute(COUNTED).fetchall() == [("q", "t", 7, 2, 1, 1, 1), ("q", "u", 1, 0, 0, 0, 0)]


def test_only_attempts_that_returned_or_raised_say_how_long_they_took(
    counts: Counts, connection: Heard, db: Db
) -> None:
    end(counts, Succeeded(None), Failed("{}", "refused"), took=0.5)
    end(counts, Retried("{}", timedelta(1)), took=2.0)
    end(counts, Cancelled("expired"), Snoozed(timedelta(1)), HandedBack(), took=100.0)

    counts.write(connection)

    [(seconds, slowest, durations)] = db.execute(
        "select seconds, slowest, durations::text from rowlock.minutes"
    ).fetchall()
    assert (seconds, slowest) == (3.0, 2.0)
    assert unpack(durations) == {bucket(0.5): 2, bucket(2.0): 1}


def test_every_claim_says_how_long_its_job_had_been_due(counts: Counts, connection: Heard, db: Db) -> None:
    counts.claimed([ROW._replace(waited=0.5), ROW._replace(waited=30.0)], 0.25)
    counts.claimed([ROW._replace(waited=0.5), ROW._replace(task="u", waited=7.0)], 0.25)

    counts.write(connection)

    [first, second] = db.execute("select waited, longest, waits::text from rowlock.minutes order by task").fetchall()
    assert (*first[:2], unpack(first[2])) == (31.0, 30.0, {bucket(0.5): 2, bucket(30.0): 1})
    assert (*second[:2], unpack(second[2])) == (7.0, 7.0, {bucket(7.0): 1})


def test_a_worker_counts_from_run_at_to_the_claim(app: Rowlock, db: Db) -> None:
    app.enqueue_many([app.call("unknown here"), app.call("unknown here")])
    db.execute("update rowlock.jobs set run_at = run_at - interval '1 hour'")
    work_off(app, db)

    [(waited, longest)] = db.execute("select sum(waited), max(longest) from rowlock.minutes").fetchall()

    assert 7_200 <= waited < 7_200 + 600
    assert 3_600 <= longest < 3_600 + 300


def test_what_a_job_waits_is_nothing_when_it_is_taken_up_before_it_is_due(app: Rowlock, url: str, db: Db) -> None:
    app.enqueue("t")
    db.execute("""
        update rowlock.jobs
        set state = 'waiting', waits_for = 'code', reason = 'unknown task', run_at = run_at + interval '1 hour'
    """)

    with closing(Engine(url)) as engine:
        [row] = engine.run(claim.take_up(queues=["default"], tasks=["t"], limit=1, worker=engine.worker))

    assert row.waited == 0.0


def test_a_minute_that_is_written_twice_is_not_counted_twice(counts: Counts, connection: Heard, db: Db) -> None:
    end(counts, Succeeded(None))
    counts.write(connection)
    end(counts, Succeeded(None))

    counts.write(connection)

    assert db.execute(COUNTED).fetchall() == [("q", "t", 0, 2, 0, 0, 0)]


def test_when_nothing_has_changed_nothing_is_said(counts: Counts, connection: Heard) -> None:
    counts.write(connection)
    end(counts, Succeeded(None))
    counts.write(connection)
    counts.write(connection)

    assert connection.said == ["minute_write"]


def test_what_ends_in_the_next_minute_is_counted_there(counts: Counts, connection: Heard, db: Db) -> None:
    end(counts, Succeeded(None), Succeeded(None), after=30)
    end(counts, Succeeded(None), after=90)
    end(counts, Succeeded(None), after=3600)

    counts.write(connection)

    written = db.execute("select extract(epoch from minute)::bigint, succeeded from rowlock.minutes order by 1")
    assert written.fetchall() == [(NOON, 2), (NOON + 60, 1), (NOON + 3600, 1)]


def test_a_clock_that_is_set_back_does_not_undo_what_was_counted(
    app: Rowlock, counts: Counts, connection: Heard, db: Db
) -> None:
    with travel(app, timedelta(days=-7)):
        end(counts, Succeeded(None), Succeeded(None))
        counts.write(connection)  # which tells it the database's time
    end(counts, Succeeded(None), after=61)

    counts.write(connection)

    assert [row[3] for row in db.execute(COUNTED)] == [2, 1]


def test_what_cannot_be_written_is_kept_for_later(counts: Counts, connection: Heard, db: Db) -> None:
    nobody = ReconnectingSyncConnection("postgresql://nobody@127.0.0.1:1/none", "rowlock", name="test")
    end(counts, Succeeded(None))
    with pytest.raises(Unreachable):
        counts.write(nobody)
    end(counts, Succeeded(None), after=61)
    with pytest.raises(Unreachable):
        counts.write(nobody)

    counts.write(connection)

    assert [row[3] for row in db.execute(COUNTED)] == [1, 1]


def test_made_up_names_do_not_fill_the_table(counts: Counts, connection: Heard, db: Db) -> None:
    end(counts, Succeeded(None))
    counts.claimed([ROW._replace(task=f"made up {number}") for number in range(3_000)], 0.1)

    counts.write(connection)

    assert one(db, "select count(*) from rowlock.minutes") == 1_000
    assert one(db, "select succeeded from rowlock.minutes where task = 't'") == 1


def test_a_worker_writes_its_last_counts_when_it_stops(app: Rowlock, db: Db) -> None:
    @app.task(name="works", queue="mail")
    async def works() -> None: ...

    @app.task(name="fails", queue="mail", retry=Retry(attempts=1))
    def fails() -> None:
        raise ValueError

    app.enqueue_many([works.bind(), works.bind(), works.bind(), fails.bind()])
    work_off(app, db, queues="mail")

    counted = (
        "select queue, task, sum(claimed), sum(succeeded), sum(failed) from rowlock.minutes group by 1, 2 order by 2"
    )
    assert db.execute(counted).fetchall() == [("mail", "fails", 1, 0, 1), ("mail", "works", 3, 3, 0)]


def test_counts_are_kept_for_a_day(counts: Counts, connection: Heard, db: Db, app: Rowlock) -> None:
    end(counts, Succeeded(None))
    counts.write(connection)
    db.execute("update rowlock.minutes set minute = rowlock.now()")
    remove_minutes(connection)
    kept = one(db, "select count(*) from rowlock.minutes")
    with travel(app, timedelta(hours=25)):
        remove_minutes(connection)

    assert kept == 1
    assert one(db, "select count(*) from rowlock.minutes") == 0


def test_old_counts_are_removed_a_chunk_at_a_time_and_the_oldest_first(connection: Heard, db: Db) -> None:
    db.execute("""
        insert into rowlock.minutes
        select rowlock.now() - interval '2 days' + minute * interval '1 minute', gen_random_uuid(), 'q', 't',
            minute, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0
        from generate_series(1, 12) as minute
    """)

    removed = [connection.run(minutes.remove(5))[0] for _ in range(2)]

    assert removed == [5, 5]
    assert db.execute("select claimed from rowlock.minutes order by minute").fetchall() == [(11,), (12,)]


# Merging

FACTS = """
    select queue, task, sum(claimed), sum(succeeded), sum(failed), sum(cancelled), sum(retried), sum(seconds),
        max(slowest), sum(durations)::text, sum(waited), max(longest), sum(waits)::text
    from rowlock.minutes group by minute, queue, task order by minute, task
"""


def count_together(connection: ReconnectingSyncConnection, db: Db, *, ago: timedelta) -> None:
    """Three workers count for two tasks, and for one of them only two of them do, in a minute of so long ago."""
    for number in range(3):
        counts = Counts(str(uuid4()))
        counts.begin(NOON)
        counts.claimed([ROW._replace(waited=number), ROW._replace(waited=100.0)], 0.25)
        end(counts, Succeeded(None), Failed("{}", "exhausted"), took=0.01 * number)
        if number:
            end(counts, Cancelled("asked"), Retried("{}", timedelta(1)), task="u", took=5.0)
        counts.write(connection)
    db.execute(
        "update rowlock.minutes set minute = date_trunc('minute', rowlock.now()) - %s::interval where minute = %s",
        [ago, datetime.fromtimestamp(NOON, UTC)],
    )


def test_what_workers_did_in_a_minute_that_is_over_is_merged_and_adds_up_to_the_same(connection: Heard, db: Db) -> None:
    count_together(connection, db, ago=timedelta(minutes=10))
    count_together(connection, db, ago=timedelta(minutes=11))
    before = db.execute(FACTS).fetchall()

    merge_minutes(connection)

    assert before[0][:7] == ("q", "t", 6, 3, 3, 0, 0)
    assert unpack(before[0][12]) == {bucket(0.0): 1, bucket(1.0): 1, bucket(2.0): 1, bucket(100.0): 3}
    assert db.execute(FACTS).fetchall() == before
    assert one(db, "select count(*) from rowlock.minutes") == 4


def test_a_minute_that_workers_may_write_yet_is_not_merged(connection: Heard, db: Db) -> None:
    count_together(connection, db, ago=timedelta(minutes=4))

    merge_minutes(connection)

    assert one(db, "select count(*) from rowlock.minutes") == 5


def test_what_comes_after_a_merge_is_merged_with_it(connection: Heard, db: Db) -> None:
    count_together(connection, db, ago=timedelta(minutes=10))
    merge_minutes(connection)
    count_together(connection, db, ago=timedelta(minutes=10))
    before = db.execute(FACTS).fetchall()

    merge_minutes(connection)

    assert before[0][2] == 12
    assert db.execute(FACTS).fetchall() == before
    assert one(db, "select count(*) from rowlock.minutes") == 2


def test_what_is_merged_is_left_as_it_is(connection: Heard, db: Db) -> None:
    count_together(connection, db, ago=timedelta(minutes=10))
    merge_minutes(connection)
    rows = "select ctid, xmin, xmax, worker from rowlock.minutes order by task"
    before = db.execute(rows).fetchall()

    merge_minutes(connection)

    assert db.execute(rows).fetchall() == before


def test_rows_that_somebody_else_merges_are_left_to_them(connection: Heard, db: Db, url: str) -> None:
    count_together(connection, db, ago=timedelta(minutes=10))
    before = db.execute(FACTS).fetchall()
    with psycopg.connect(url) as other:
        other.execute("select from rowlock.minutes where task = 't' for update")
        merge_minutes(connection)
    between = one(db, "select count(*) from rowlock.minutes")

    merge_minutes(connection)

    assert between == 4
    assert db.execute(FACTS).fetchall() == before
    assert one(db, "select count(*) from rowlock.minutes") == 2
