"""Counting: what a worker did comes to stand in rowlock.minutes, once, minute by minute, and old minutes go."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from typing import TypeVar
from uuid import uuid4

import pytest

from rowlock import Retry, Rowlock
from rowlock.db.steady import Steady, Unreachable
from rowlock.model.histogram import BOUNDS
from rowlock.model.outcome import Blocked, Cancelled, Failed, HandedBack, Outcome, Retried, Snoozed, Succeeded
from rowlock.model.row import Claimed
from rowlock.store import minutes
from rowlock.store.query import Query
from rowlock.testing import travel
from rowlock.worker.count import Counts
from rowlock.worker.upkeep import remove_minutes
from tests.worker.working import Db, one, work_off

T = TypeVar("T")

ROW = Claimed(str(uuid4()), str(uuid4()), "t", "{}", "q", 0, "", 0, 0, 1, 10, None, False, None, None)
NOON = 1_800_000_000.0  # the start of a minute
COUNTED = (
    "select queue, task, claimed, succeeded, failed, cancelled, retried from rowlock.minutes order by minute, task"
)


class Heard(Steady):
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

    [(seconds, slowest, first, durations)] = db.execute(
        "select seconds, slowest, array_lower(durations, 1), durations::text from rowlock.minutes"
    ).fetchall()
    assert (seconds, slowest) == (3.0, 2.0)
    assert BOUNDS[first - 1] <= 0.5 < BOUNDS[first]
    assert durations.endswith("={2,0,0,0,1}")  # two octaves apart


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
    nobody = Steady("postgresql://nobody@127.0.0.1:1/none", "rowlock", name="test")
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
            minute, 1, 0, 0, 0, 1, 1, '{}'
        from generate_series(1, 12) as minute
    """)

    removed = [connection.run(minutes.remove(5))[0] for _ in range(2)]

    assert removed == [5, 5]
    assert db.execute("select claimed from rowlock.minutes order by minute").fetchall() == [(11,), (12,)]
