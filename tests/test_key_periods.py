"""Keys with a period: held when their job has succeeded, until the period is over; and free when it has not."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from rowlock import Filter, Key, Rowlock
from rowlock.model.outcome import Cancelled, Ended, Failed
from rowlock.store.enqueue import sweep_keys
from tests.engine import Engine
from tests.keyed import HOUR, HOURLY, REPLACE, Db, T, declared, holders, live
from tests.rows import travel
from tests.waiting import auntil


@pytest.fixture
def task(app: Rowlock) -> T:
    return declared(app, "t")


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    """A worker's statements."""
    engine = Engine(url)
    yield engine
    engine.close()


def test_a_key_with_a_period_is_held_after_its_job_has_succeeded(task: T, engine: Engine, db: Db) -> None:
    first = task.using(key=HOURLY).enqueue(1)
    engine.settle(*engine.claim())

    again = task.using(key=HOURLY).enqueue(2)
    plain = task.using(key="k").enqueue(3)

    assert (again, again.created, again.queue) == (first, False, "default")
    assert (plain, plain.created) == (first, False)
    assert live(db) == []


@pytest.mark.parametrize("key", [HOURLY, Key("k", period=HOUR, taken="raise"), "k", Key("k", taken="skip"), REPLACE])
def test_a_key_is_free_when_its_period_is_over(task: T, engine: Engine, db: Db, key: str | Key) -> None:
    task.using(key=HOURLY).enqueue(1)
    engine.settle(*engine.claim())
    travel(db, HOUR)

    again = task.using(key=key).enqueue(2)

    assert again.created
    assert live(db) == [(again.id, 2, "k")]
    assert holders(db) == {"k": again.id}


def test_a_key_whose_period_is_over_is_free_for_another_task(app: Rowlock, task: T, engine: Engine, db: Db) -> None:
    task.using(key=HOURLY).enqueue(1)
    engine.settle(*engine.claim())
    travel(db, HOUR)

    assert declared(app, "other").using(key="k").enqueue(2).created


@pytest.mark.parametrize("outcome", [Failed("{}", "exhausted"), Cancelled("asked")])
def test_a_job_that_did_not_succeed_frees_its_key_whatever_its_period(task: T, engine: Engine, outcome: Ended) -> None:
    task.using(key=HOURLY).enqueue(1)
    engine.settle(*engine.claim(), outcome=outcome)

    assert task.using(key=HOURLY).enqueue(2).created


def test_a_job_that_succeeds_although_somebody_cancelled_it_frees_its_key(task: T, engine: Engine) -> None:
    job = task.using(key=HOURLY).enqueue(1)
    rows = engine.claim()
    job.cancel()
    engine.settle(*rows)

    assert task.using(key=HOURLY).enqueue(2).created


@pytest.mark.parametrize("verb", ["cancel", "delete"])
def test_an_operator_frees_the_key_of_a_ready_job_whatever_its_period(app: Rowlock, task: T, verb: str) -> None:
    task.using(key=HOURLY).enqueue(1)
    getattr(app.jobs, verb)(Filter(task="t"))

    assert task.using(key=HOURLY).enqueue(2).created


def test_a_job_that_is_deleted_from_history_frees_its_key(app: Rowlock, task: T, engine: Engine) -> None:
    task.using(key=HOURLY).enqueue(1)
    engine.settle(*engine.claim())
    app.jobs.delete(Filter(state="succeeded"))

    assert task.using(key=HOURLY).enqueue(2).created


def test_a_key_is_held_while_its_job_lives_however_short_its_period(task: T, engine: Engine, db: Db) -> None:
    first = task.using(key=HOURLY).enqueue(1)
    rows = engine.claim()
    travel(db, 2 * HOUR)

    assert task.using(key=HOURLY).enqueue(2) == first
    engine.settle(*rows)
    assert task.using(key=HOURLY).enqueue(3).created


def test_a_job_that_is_retried_within_its_period_takes_its_key_again(
    app: Rowlock, task: T, engine: Engine, db: Db
) -> None:
    first = task.using(key=HOURLY).enqueue(1)
    engine.settle(*engine.claim())

    app.jobs.retry(Filter(state="succeeded"))

    assert live(db) == [(first.id, 1, "k")]
    assert task.using(key=HOURLY).enqueue(2) == first
    engine.settle(*engine.claim())
    assert holders(db) == {}


def test_a_sweep_frees_what_is_over_and_leaves_the_rest(task: T, engine: Engine, db: Db) -> None:
    ended = [task.using(key=Key(f"ended {n}", period=n * HOUR)).enqueue(n) for n in (1, 2, 3)]
    engine.settle(*engine.claim())
    runs = task.using(key=Key("live", period=HOUR)).enqueue(4)
    travel(db, 2 * HOUR)

    swept = [engine.run(sweep_keys(2)), engine.run(sweep_keys(2)), engine.run(sweep_keys(2))]

    assert swept == [[2], [1], [0]]
    assert holders(db) == {"ended 3": ended[2].id, "live": runs.id}


def test_any_worker_frees_keys_whose_periods_are_over(app: Rowlock, task: T, engine: Engine, db: Db) -> None:
    task.using(key=HOURLY).enqueue(1)
    engine.settle(*engine.claim())
    travel(db, 2 * HOUR)

    async def work() -> None:
        async with app, app.worker(queues=["another"]):
            await auntil(lambda: not holders(db), what="a key that is freed", limit=60)

    asyncio.run(work())
