"""Plans of what `explain` asks: each costs what it answers, however many jobs there are, and stops at its bound."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rowlock import Rowlock
from rowlock.store import explain
from rowlock.types import JobRecord
from tests.engine import Engine
from tests.rows import Db, put, put_many
from tests.store.test_plans import Plan, Prepared

MANY = 30_000


@pytest.fixture
def engine(url: str, db: Db) -> Iterator[Engine]:
    """A session that meets a table which was vacuumed while it was empty, and is not analysed when it is full."""
    db.execute("alter table rowlock.jobs set (autovacuum_enabled = off)")
    db.execute("vacuum analyze rowlock.jobs")
    engine = Engine(url)
    yield engine
    engine.close()


def ahead(engine: Engine, record: JobRecord) -> tuple[int, Plan]:
    """How many are before a job, and what it took to learn that."""
    query = explain.ahead(record)
    engine.connection.execute("deallocate all")
    return engine.run(query)[0].value, Prepared(engine, query).explain(query)


def test_to_count_what_is_before_a_job_costs_what_is_before_it(app: Rowlock, db: Db, engine: Engine) -> None:
    first = put(db)
    put_many(db, MANY)
    last, urgent = put(db), put(db, priority=4)
    put(db, priority=3, run_at="infinity")

    found = [ahead(engine, app.jobs.get(job).record()) for job in (first, last, urgent)]

    assert [count for count, _ in found] == [1, explain.MOST_AHEAD, 0]
    assert [plan.whole_scans() for _, plan in found] == [[], [], []]
    assert found[0][1].rows_touched() < 100
    assert found[1][1].rows_touched() < 4 * explain.MOST_AHEAD
    assert found[2][1].rows_touched() < 100


def test_to_look_at_the_workers_costs_their_slots(db: Db, engine: Engine) -> None:
    put_many(db, MANY)
    for _ in range(100):
        put(db, "running", worker=engine.worker)
    query = explain.candidates(queue="default", task="t")

    plan = Prepared(engine, query).explain(query)

    [worker] = engine.run(query)
    assert (worker.slots, worker.held, worker.free) == (1, 2, 0)
    assert plan.whole_scans() == []
    assert plan.rows_touched() < 20
