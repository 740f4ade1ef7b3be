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


def test_a_worker_that_parked_long_ago_parks_anew_when_nobody_else_is_on_one_of_its_queues(
    worker: Engine, db: Db
) -> None:
    number = park(worker)
    others_park(db, "q", 199)
    at_first = renew(worker, number)
    others_park(db, "default", 1)
    with_another_on_one = renew(worker, number)
    others_park(db, "q", 199)
    others_park(db, "default", 1)
    others_park(db, "other", 1)
    with_others_on_both = renew(worker, with_another_on_one)

    assert at_first == number
    assert with_another_on_one > number
    assert with_others_on_both == with_another_on_one
    assert one(db, "select count(*) from rowlock.parkings where worker = %s", worker.worker) == 2


def test_idle_workers_do_not_park_anew_because_of_one_another_however_many_they_are(worker: Engine, db: Db) -> None:
    numbers = [park(worker) for _ in range(500)]
    others_park(db, "q", 100)

    assert [renew(worker, number) for number in numbers[::50]] == numbers[::50]


def others_park(db: Db, queue: str, count: int) -> None:
    db.execute(
        "insert into rowlock.parkings (queue, worker) select %s, gen_random_uuid() from generate_series(1, %s)",
        [queue, count],
    )


def renew(worker: Engine, number: int) -> int:
    queues = ["default", "other"]
    [now] = worker.run(workers.park(worker=worker.worker, queues=queues, before=number, renews=True))
    return now


def buffers(plan: list[dict[str, dict[str, int]]]) -> int:
    return plan[0]["Plan"]["Shared Hit Blocks"] + plan[0]["Plan"]["Shared Read Blocks"]
