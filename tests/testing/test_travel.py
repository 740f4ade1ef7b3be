"""Travelling: the database's clock is moved for a while, and everything that reads it moves along."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from rowlock import Retry, Rowlock, RowlockError, Task
from rowlock.errors import InvalidOption
from rowlock.testing import drain, travel
from tests.worker.working import Db, one

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


@pytest.fixture
def task(app: Rowlock) -> Task[[], None]:
    @app.task(name="t")
    def task() -> None:
        return None

    return task


def hours_ahead(db: Db) -> int:
    """How far the clock is ahead of the server's own; exactly, for both are of one statement."""
    seconds = one(db, "select extract(epoch from rowlock.now() - statement_timestamp())")
    assert seconds % 3600 == 0
    return int(seconds // 3600)


def clock(db: Db) -> str:
    """The function as PostgreSQL has it."""
    return str(one(db, "select pg_get_functiondef('rowlock.now()'::regprocedure)"))


def test_the_clock_is_moved_goes_on_and_is_put_back_to_the_letter(app: Rowlock, db: Db) -> None:
    before = clock(db)

    with travel(app, timedelta(days=1, hours=1)):
        first, second = one(db, "select rowlock.now()"), one(db, "select rowlock.now()")
        assert hours_ahead(db) == 25
        assert second > first

    assert clock(db) == before


def test_travels_inside_each_other_add_up_and_each_is_put_back(app: Rowlock, db: Db) -> None:
    before = clock(db)

    with travel(app, HOUR):
        with travel(app, 2 * HOUR):
            assert hours_ahead(db) == 3
        assert hours_ahead(db) == 1
        with travel(app, -3 * HOUR):
            assert hours_ahead(db) == -2
        with travel(app, to=datetime(2099, 1, 1, tzinfo=UTC)), travel(app, HOUR):
            assert one(db, "select rowlock.now() between '2099-01-01 01:00Z' and '2099-01-01 02:00Z'")
        assert hours_ahead(db) == 1

    assert clock(db) == before


def test_one_travel_can_be_taken_several_times(app: Rowlock, db: Db) -> None:
    trip = travel(app, HOUR)

    with trip, trip:
        assert hours_ahead(db) == 2

    assert hours_ahead(db) == 0


def test_the_clock_is_put_back_after_an_error(app: Rowlock, db: Db) -> None:
    with pytest.raises(LookupError), travel(app, HOUR):
        raise LookupError

    assert hours_ahead(db) == 0


def test_async_tests_travel_too(app: Rowlock, db: Db) -> None:
    async def story() -> None:
        async with app:
            async with travel(app, HOUR):
                assert hours_ahead(db) == 1
            with pytest.raises(LookupError):
                async with travel(app, HOUR):
                    raise LookupError

    asyncio.run(story())

    assert hours_ahead(db) == 0


def test_delays_pass(app: Rowlock, task: Task[[], None]) -> None:
    task.using(delay=DAY).enqueue()

    assert len(drain(app)) == 0
    with travel(app, timedelta(hours=23)):
        assert len(drain(app)) == 0
        with travel(app, HOUR):
            assert drain(app).succeeded == 1


def test_retries_come_due_one_after_the_other(app: Rowlock) -> None:
    @app.task(name="fails", retry=Retry(attempts=3, base=HOUR, cap=HOUR, jitter=0))
    def fails() -> None:
        raise ValueError("again")

    fails.enqueue()

    assert drain(app).retried == 1
    with travel(app, HOUR):
        assert drain(app).retried == 1
        with travel(app, HOUR):
            assert drain(app).failed == 1


def test_jobs_expire(app: Rowlock, task: Task[[], None]) -> None:
    task.using(expires=HOUR).enqueue()

    with travel(app, HOUR):
        assert drain(app).cancelled == 1


def test_leases_run_out(app: Rowlock, db: Db) -> None:
    db.execute(
        """
        insert into rowlock.workers (id, host, pid, queues, slots, tasks, version, started_at, lease, lasts)
        values (gen_random_uuid(), 'h', 1, '{}', 1, '{}', '0', rowlock.now(), rowlock.now() + interval '30 s', '30 s')
        """
    )

    with travel(app, timedelta(minutes=1)):
        assert one(db, "select count(*) from rowlock.workers where lease < rowlock.now()") == 1


@pytest.mark.parametrize("years", [1, 50])
def test_history_is_kept_in_any_year(years: int, app: Rowlock, db: Db) -> None:
    @app.task(name="ends", retry=Retry.none())
    def ends(*, well: bool) -> None:
        assert well

    with travel(app, years * 365 * DAY):
        ends.enqueue(well=True)
        ends.enqueue(well=False)
        drained = drain(app)

    assert (drained.succeeded, drained.failed) == (1, 1)
    assert one(db, "select min(ended_at) > now() + make_interval(days => %s) from rowlock.history", years * 365 - 1)


def test_a_handler_that_travels_past_the_lease_of_the_drain_is_settled_and_the_next_one_runs(
    app: Rowlock, task: Task[[], None], db: Db
) -> None:
    @app.task(name="traveller")
    def traveller() -> None:
        trip.__enter__()

    trip = travel(app, DAY)
    traveller.enqueue()
    task.enqueue()
    try:
        drained = drain(app)
    finally:
        trip.__exit__(None, None, None)

    assert drained.succeeded == 2
    assert one(db, "select count(*) from rowlock.workers") == 0


# In the caller's transaction


def test_in_a_transaction_nobody_else_notices(app: Rowlock, task: Task[[], None], url: str, db: Db) -> None:
    with psycopg.connect(url) as connection:
        task.using(connection=connection, delay=40 * DAY).enqueue()

        with travel(app, 41 * DAY, connection=connection):
            assert hours_ahead(connection) == 41 * 24
            assert hours_ahead(db) == 0
            assert drain(app, connection=connection).succeeded == 1
        assert hours_ahead(connection) == 0

        connection.rollback()
        assert one(db, "select count(*) from rowlock.jobs") == one(db, "select count(*) from rowlock.history") == 0


def test_a_rollback_puts_the_clock_back_by_itself(app: Rowlock, url: str, db: Db) -> None:
    with psycopg.connect(url) as connection:
        with travel(app, HOUR, connection=connection):
            connection.rollback()
            assert hours_ahead(connection) == 0
        assert hours_ahead(connection) == 0
        connection.commit()

    assert hours_ahead(db) == 0


def test_the_error_that_broke_the_transaction_is_the_one_to_see(app: Rowlock, url: str) -> None:
    with psycopg.connect(url) as connection:
        with pytest.raises(psycopg.errors.DivisionByZero), travel(app, HOUR, connection=connection):
            connection.execute("select 1 / 0")

        connection.rollback()
        assert hours_ahead(connection) == 0


# Refused


def test_a_travel_wants_one_destination(app: Rowlock) -> None:
    for wrong in ({}, {"delta": HOUR, "to": datetime.now(UTC)}):
        with pytest.raises(InvalidOption, match="one of them"):
            travel(app, **wrong)  # type: ignore[arg-type]


def test_a_destination_needs_a_time_zone(app: Rowlock) -> None:
    with pytest.raises(InvalidOption, match="no time zone"):
        travel(app, to=datetime(2099, 1, 1))  # noqa: DTZ001  the fault


def test_in_a_running_loop_the_async_verb_is_named(app: Rowlock) -> None:
    async def story() -> None:
        with travel(app, HOUR):
            pass

    with pytest.raises(RowlockError, match=r"use `async with travel\(…\)`"):
        asyncio.run(story())


def test_a_schema_of_another_name_has_a_clock_of_its_own(url: str, db: Db) -> None:
    with Rowlock(url, schema="else_where") as other:
        other.migrate()
        with travel(other, HOUR):
            assert one(db, "select else_where.now() - rowlock.now() = '1 hour'")
        assert one(db, "select else_where.now() = rowlock.now()")
