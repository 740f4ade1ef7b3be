"""The claim: what it takes, in which order, and what it costs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import psycopg
import pytest
from psycopg.rows import TupleRow

from rowlock.store import workers
from rowlock.store.claim import PRIORITIES, Lane
from tests.engine import Engine

Db = psycopg.Connection[TupleRow]


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    engine = Engine(url)
    yield engine
    engine.close()


def test_higher_priorities_come_first_and_within_one_the_oldest(engine: Engine) -> None:
    low = engine.enqueue(2, priority=-4)
    old = engine.enqueue(2, priority=3)
    new = engine.enqueue(2, priority=3)

    first, second, third = engine.claim(2), engine.claim(2), engine.claim(2)

    assert [sorted(row.id for row in rows) for rows in (first, second, third)] == [old, new, low]


def test_a_claim_takes_no_more_than_its_limit(engine: Engine) -> None:
    for priority in PRIORITIES:
        engine.enqueue(10, priority=priority)

    claimed = engine.claim(15)

    assert len(claimed) == 15
    assert {row.priority for row in claimed} == {4, 3}


def test_every_row_gets_a_token_of_its_own(engine: Engine) -> None:
    engine.enqueue(100)

    claimed = engine.claim(100)

    assert len({row.token for row in claimed}) == 100


def test_a_job_is_not_claimed_before_it_is_due(engine: Engine, db: Db) -> None:
    engine.enqueue(1, delay=timedelta(hours=1))
    assert engine.claim() == []

    travel(db, timedelta(hours=2))

    assert len(engine.claim()) == 1


def test_two_claimers_never_get_the_same_job(engine: Engine, url: str) -> None:
    ids = engine.enqueue(100)
    other = Engine(url)

    with engine.connection.transaction():
        mine = engine.claim(60)
        theirs = other.claim(60)

    assert sorted([row.id for row in mine] + [row.id for row in theirs]) == ids
    other.close()


def test_a_worker_without_a_fresh_lease_claims_nothing(engine: Engine, db: Db) -> None:
    engine.enqueue(1)
    db.execute("update rowlock.workers set lease = rowlock.now() - interval '1 second'")

    assert engine.claim() == []


def test_a_queue_is_not_looked_into_unasked(engine: Engine) -> None:
    engine.enqueue(1, queue="other")

    assert engine.claim() == []
    assert len(engine.claim(lanes=[Lane("other", 0)])) == 1


def test_a_claim_starts_at_its_floor_even_when_a_million_jobs_share_one_run_at(engine: Engine, db: Db) -> None:
    engine.enqueue(3)
    db.execute("update rowlock.jobs set run_at = (select min(run_at) from rowlock.jobs)")
    first = engine.claim(1)[0]

    above = engine.claim(10, lanes=[Lane("default", 0, first.run_at, first.id)])

    assert len(above) == 2
    assert all(row.id > first.id for row in above)


def test_a_late_commit_below_the_floor_is_found_from_the_bottom(engine: Engine, url: str) -> None:
    late = Engine(url)
    with late.connection.transaction():
        [late_id] = late.enqueue(1)
        engine.enqueue(1)
        [claimed] = engine.claim()
        floor = [Lane("default", 0, claimed.run_at, claimed.id)]
        assert engine.claim() == []

    assert engine.claim(lanes=floor) == []
    assert [row.id for row in engine.claim()] == [late_id]
    late.close()


def test_a_job_locked_by_someone_else_is_passed_over(engine: Engine, url: str) -> None:
    locked, free = engine.enqueue(2)
    with psycopg.connect(url) as holder:
        holder.execute("select from rowlock.jobs where id = %s for update", [locked])

        assert [row.id for row in engine.claim()] == [free]


@pytest.mark.usefixtures("durable")
def test_claims_do_not_wait_for_the_disk_and_settles_do(engine: Engine, db: Db) -> None:
    engine.enqueue(50)

    before = syncs(engine, db)
    claimed = [engine.claim(1)[0] for _ in range(50)]
    between = syncs(engine, db)
    for row in claimed:
        engine.settle(row)
    after = syncs(engine, db)

    # The background writer syncs now and then whatever we do.
    assert between - before <= 10
    assert after - between >= 50


def syncs(engine: Engine, db: Db) -> int:
    """How often the server has synced its log."""
    engine.connection.execute("select pg_stat_force_next_flush()")
    wal, io = "select wal_sync from pg_stat_wal", "select sum(fsyncs) from pg_stat_io where object = 'wal'"
    row = db.execute(io if db.info.server_version >= 180000 else wal).fetchone()
    assert row is not None
    return int(row[0])


def travel(db: Db, delta: timedelta) -> None:
    """Move the database's clock."""
    db.execute(
        psycopg.sql.SQL(
            "create or replace function rowlock.now() returns timestamptz language sql stable"
            " return statement_timestamp() + {}::interval"
        ).format(psycopg.sql.Literal(str(delta.total_seconds()) + " seconds"))
    )


def test_tokens_differ_in_sessions_of_one_seed_and_in_claims_of_one_job(url: str) -> None:
    """A client of a transaction pooler may have set it."""
    one, other = Engine(url), Engine(url)
    one.enqueue(2)
    rows = []

    for engine in (one, other, one):
        engine.connection.execute("select setseed(0.5)")
        rows += engine.claim(1)
        one.run(workers.hand_back(worker=one.worker))

    assert rows[0].id == rows[1].id != rows[2].id
    assert len({row.token for row in rows}) == 3
    one.close()
    other.close()
