"""Parked workers: an enqueue finds them at the same price, whatever dead rows there are."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from rowlock.store import workers
from tests.engine import Engine
from tests.worker.working import Db, one

FOUND = "select count(*) from rowlock.parked where queue = 'default'"


@pytest.fixture
def worker(url: str) -> Iterator[Engine]:
    engine = Engine(url)
    yield engine
    engine.close()


def park(worker: Engine, before: int = 0) -> int:
    [number] = worker.run(workers.park(worker=worker.worker, queues=["default", "other"], before=before))
    return number


def test_a_worker_that_parks_anew_is_there_once_and_is_gone_when_it_leaves(worker: Engine, db: Db) -> None:
    first = park(worker)
    second = park(worker, before=first)
    found = one(db, FOUND)

    worker.run(workers.unpark(worker=worker.worker, queues=["default", "other"], number=second))

    assert second > first
    assert found == 1
    assert one(db, "select count(*) from rowlock.parkings") == 0


def test_an_enqueue_walks_no_more_dead_rows_however_often_workers_have_parked(worker: Engine, db: Db, url: str) -> None:
    with psycopg.connect(url) as reader:
        reader.execute("set transaction isolation level repeatable read")
        reader.execute("select count(*) from rowlock.parkings")
        for _ in range(5):  # each row in a transaction of its own, as far as dead rows go
            db.execute(
                "insert into rowlock.parkings (queue, worker)"
                " select 'default', gen_random_uuid() from generate_series(1, 1000)"
            )
            db.execute("delete from rowlock.parkings")
        number = park(worker)

        found = one(db, FOUND)
        plan = one(db, f"explain (analyze, buffers, format json) {FOUND}")

    assert number > 5_000
    assert found == 1
    assert buffers(plan) < 40, "it has walked all the dead rows"


def test_a_worker_that_parked_long_ago_is_told_how_many_have_since(worker: Engine, db: Db) -> None:
    park(worker)
    db.execute(
        "insert into rowlock.parkings (queue, worker) select 'q', gen_random_uuid() from generate_series(1, 400)"
    )

    assert one(db, FOUND) == 0


def buffers(plan: list[dict[str, dict[str, int]]]) -> int:
    return plan[0]["Plan"]["Shared Hit Blocks"] + plan[0]["Plan"]["Shared Read Blocks"]
