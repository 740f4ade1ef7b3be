"""Keys: one live job for each, whoever asks, however many ask at once, and whatever becomes of the first."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.rows import TupleRow

from rowlock import Job, Rowlock, Task
from rowlock.errors import KeyTaken
from rowlock.store.enqueue import CHUNK
from tests.engine import Engine
from tests.waiting import until

Db = psycopg.Connection[TupleRow]
T = Task[[], None]


@pytest.fixture
def task(app: Rowlock) -> T:
    return declared(app, "t")


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    """A worker's statements."""
    engine = Engine(url)
    yield engine
    engine.close()


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as threads:
        yield threads


def declared(app: Rowlock, name: str) -> T:
    def nothing() -> None:
        return None

    return app.task(name=name)(nothing)


def jobs(db: Db) -> list[UUID]:
    return [job for (job,) in db.execute("select id from rowlock.jobs order by id")]


def until_held_up(db: Db, done: Future[Any]) -> None:
    """See that a caller waits for another's transaction."""
    until(lambda: db.execute("select from pg_locks where not granted").fetchall(), what="a caller that waits")
    assert not done.done()


# One after the other


def test_the_same_key_twice_is_the_same_job(task: T, db: Db) -> None:
    first = task.using(key="k").enqueue()
    again = task.using(key="k").enqueue()

    assert first.created
    assert not again.created
    assert again == first
    assert jobs(db) == [first.id]


def test_the_same_key_twice_is_the_same_job_in_a_loop(app: Rowlock, task: T, db: Db) -> None:
    async def enqueue() -> list[Job[None]]:
        async with app:
            return [await task.using(key="k").aenqueue() for _ in range(2)]

    first, again = asyncio.run(enqueue())

    assert (first.created, again.created) == (True, False)
    assert jobs(db) == [first.id] == [again.id]


def test_other_keys_are_other_jobs(task: T, db: Db) -> None:
    keys = ["k", "K", "k ", " k", "ķ", "k\n", '"k"', "{k}"]

    made = [task.using(key=key).enqueue() for key in keys]

    assert all(job.created for job in made)
    assert len(jobs(db)) == len(keys)


def test_a_key_is_free_when_its_job_has_ended(task: T, engine: Engine, db: Db) -> None:
    first = task.using(key="k").enqueue()
    engine.settle(*engine.claim())

    second = task.using(key="k").enqueue()

    assert second.created
    assert jobs(db) == [second.id] != [first.id]


def test_a_key_is_held_while_its_job_runs(task: T, engine: Engine) -> None:
    first = task.using(key="k").enqueue()
    engine.claim()

    assert task.using(key="k").enqueue() == first


def test_a_key_of_another_task_is_taken(app: Rowlock, task: T, db: Db) -> None:
    first = task.using(key="k").enqueue()

    with pytest.raises(KeyTaken, match=rf"^key 'k' belongs to job {first.id} of task t; use another key for other$"):
        declared(app, "other").using(key="k").enqueue()

    assert jobs(db) == [first.id]


def test_a_handle_on_an_earlier_job_says_where_that_job_is(task: T) -> None:
    first = task.using(key="k", queue="first").enqueue()

    again = task.using(key="k", queue="second").enqueue()

    assert again == first
    assert again.queue == "first"


# At once


def test_a_second_caller_gets_the_winners_job_when_it_commits(
    task: T, url: str, db: Db, threads: ThreadPoolExecutor
) -> None:
    with psycopg.connect(url) as winner:
        first = task.using(connection=winner, key="k").enqueue()
        second = threads.submit(task.using(key="k").enqueue)
        until_held_up(db, second)

        winner.commit()

    assert second.result() == first
    assert not second.result().created
    assert jobs(db) == [first.id]


def test_a_second_caller_gets_its_own_job_when_the_winner_rolls_back(
    task: T, url: str, db: Db, threads: ThreadPoolExecutor
) -> None:
    with psycopg.connect(url) as winner:
        task.using(connection=winner, key="k").enqueue()
        second = threads.submit(task.using(key="k").enqueue)
        until_held_up(db, second)

        winner.rollback()

    assert second.result().created
    assert jobs(db) == [second.result().id]


def test_two_callers_in_transactions_of_their_own_get_one_job(
    task: T, url: str, db: Db, threads: ThreadPoolExecutor
) -> None:
    with psycopg.connect(url) as one, psycopg.connect(url) as other:
        first = task.using(connection=one, key="k").enqueue()
        second = threads.submit(task.using(connection=other, key="k").enqueue)
        until_held_up(db, second)

        one.commit()
        assert second.result() == first
        other.rollback()

    assert jobs(db) == [first.id]


@pytest.mark.parametrize("outcome", ["commit", "rollback"])
def test_two_callers_in_a_loop_get_one_job(app: Rowlock, task: T, url: str, db: Db, outcome: str) -> None:
    async def callers() -> None:
        async with app, await psycopg.AsyncConnection.connect(url) as winner:
            first = await task.using(connection=winner, key="k").aenqueue()
            second = asyncio.create_task(task.using(key="k").aenqueue())
            third = asyncio.create_task(task.using(key="k").aenqueue())
            await asyncio.to_thread(
                until, lambda: len(db.execute("select from pg_locks where not granted").fetchall()) >= 2
            )

            await getattr(winner, outcome)()

            assert await second == await third
            assert ((await second) == first) is (outcome == "commit")

    asyncio.run(callers())

    assert len(jobs(db)) == 1


def test_many_callers_at_once_get_one_job(task: T, db: Db, threads: ThreadPoolExecutor) -> None:
    together = threading.Barrier(8, timeout=60)

    def enqueue(_: int) -> Job[None]:
        together.wait()
        return task.using(key="k").enqueue()

    made = list(threads.map(enqueue, range(8)))

    assert sum(job.created for job in made) == 1
    assert {job.id for job in made} == {*jobs(db)}


def test_callers_get_a_job_while_holders_of_the_key_come_and_go(
    task: T, engine: Engine, db: Db, threads: ThreadPoolExecutor
) -> None:
    def enqueue(_: int) -> list[Job[None]]:
        return [task.using(key="k").enqueue() for _ in range(50)]

    callers = [threads.submit(enqueue, n) for n in range(4)]
    while not all(caller.done() for caller in callers):
        if rows := engine.claim():
            engine.settle(*rows)

    made = [job for caller in callers for job in caller.result()]
    ended = {job for (job,) in db.execute("select id from rowlock.history")}
    assert {job.id for job in made} == ended | {*jobs(db)}
    assert sum(job.created for job in made) == len(ended) + len(jobs(db))
    assert len(jobs(db)) <= 1


# In bulk


def test_a_bulk_with_one_key_twice_makes_one_job(app: Rowlock, task: T, db: Db) -> None:
    made = app.enqueue_many([task.using(key=key).bind() for key in ("a", "b", "a", "b", "a")])

    assert [job.created for job in made] == [True, True, False, False, False]
    assert [job.id for job in made] == [made[0].id, made[1].id, made[0].id, made[1].id, made[0].id]
    assert len(jobs(db)) == 2


def test_a_bulk_joins_the_jobs_that_are_there(app: Rowlock, task: T, db: Db) -> None:
    there = task.using(key="b").enqueue()

    made = app.enqueue_many([task.using(key="c").bind(), task.using(key="b").bind(), task.bind()])

    assert [job.created for job in made] == [True, False, True]
    assert made[1] == there
    assert len(jobs(db)) == 3


def test_a_bulk_of_several_statements_keeps_the_order_of_its_handles(app: Rowlock, task: T, db: Db) -> None:
    keys = [f"key {n % (CHUNK + 100)}" for n in range(2 * CHUNK)]
    random.Random(5).shuffle(keys)

    made = app.enqueue_many([task.using(key=key).bind() for key in keys])

    held = {key: job for key, job in db.execute("select key, id from rowlock.jobs")}  # noqa: C416  rows are of any length
    assert [job.id for job in made] == [held[key] for key in keys]
    assert sum(job.created for job in made) == len(held) == CHUNK + 100


@pytest.mark.parametrize("others", [1, 600])
def test_a_bulk_with_a_taken_key_enqueues_nothing(app: Rowlock, task: T, db: Db, others: int) -> None:
    there = declared(app, "other").using(key="taken").enqueue()

    with pytest.raises(KeyTaken):
        app.enqueue_many(
            [task.bind(), *(task.using(key=f"free {n}").bind() for n in range(others)), task.using(key="taken").bind()]
        )

    assert jobs(db) == [there.id]
    assert db.execute("select key from rowlock.keys").fetchall() == [("taken",)]


@pytest.mark.parametrize("mode", ["autocommit", "transaction"])
def test_a_bulk_with_a_taken_key_enqueues_nothing_on_the_callers_connection(
    app: Rowlock, task: T, url: str, db: Db, mode: str
) -> None:
    there = declared(app, "other").using(key="taken").enqueue()

    with psycopg.connect(url, autocommit=mode == "autocommit") as mine:
        with pytest.raises(KeyTaken):
            app.enqueue_many([task.using(key=key).bind() for key in ("free", "taken")], connection=mine)
        mine.commit()

    assert jobs(db) == [there.id]


def test_bulks_that_share_keys_do_not_deadlock(app: Rowlock, task: T, db: Db, threads: ThreadPoolExecutor) -> None:
    keys = [f"key {n}" for n in range(300)]

    def enqueue(seed: int) -> list[Job[None]]:
        mine = random.Random(seed).sample(keys, len(keys))
        return app.enqueue_many([task.using(key=key).bind() for key in mine])

    for round_ in range(3):
        db.execute("truncate rowlock.jobs, rowlock.keys")
        made = [job for jobs in threads.map(enqueue, range(round_ * 8, round_ * 8 + 8)) for job in jobs]

        assert sum(job.created for job in made) == len(keys)
        assert {job.id for job in made} == {*jobs(db)}


def test_bulks_that_share_keys_in_transactions_do_not_deadlock(
    app: Rowlock, task: T, url: str, db: Db, threads: ThreadPoolExecutor
) -> None:
    keys = [f"key {n}" for n in range(200)]

    def enqueue(seed: int) -> list[Job[None]]:
        mine = random.Random(seed).sample(keys, len(keys))
        with psycopg.connect(url) as connection:
            return app.enqueue_many([task.using(key=key).bind() for key in mine], connection=connection)

    made = [job for jobs in threads.map(enqueue, range(8)) for job in jobs]

    assert sum(job.created for job in made) == len(keys)
    assert len(jobs(db)) == len(keys)
