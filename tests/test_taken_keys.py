"""What a taken key means to the next caller: one after the other, in bulk, in transactions, and at once."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from rowlock import Job, Key, Rowlock
from rowlock.errors import KeyTaken
from rowlock.model.key import Taken
from rowlock.model.outcome import HandedBack, Retried
from rowlock.model.row import ClaimedJob
from tests.depth import deep
from tests.engine import Engine
from tests.keyed import DEBOUNCE, HOUR, HOURLY, MINUTE, REPLACE, Db, T, declared, holders, live
from tests.rows import travel
from tests.test_keys import until_held_up
from tests.worker.working import one


@pytest.fixture
def task(app: Rowlock) -> T:
    return declared(app, "t")


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    """A worker's statements."""
    engine = Engine(url)
    yield engine
    engine.close()


def wait_of(db: Db, job: Job[Any]) -> timedelta:
    """How long after its enqueue a job may run."""
    wait: timedelta = one(db, "select run_at - created_at from rowlock.jobs where id = %s", job.id)
    return wait


# When it is taken


def test_the_holder_is_returned(task: T, db: Db) -> None:
    first = task.using(key="k").enqueue(1)

    again = task.using(key=Key("k", taken="return")).enqueue(2)

    assert (again, again.created) == (first, False)
    assert live(db) == [(first.id, 1, "k")]


def test_nothing_is_enqueued_whoever_holds_the_key(app: Rowlock, task: T, db: Db) -> None:
    first = task.using(key="k").enqueue(1)
    skip = Key("k", taken="skip")

    again, other = task.using(key=skip).enqueue(2), declared(app, "other").using(key=skip).enqueue(3)

    assert [(job.id, job.task, job.created) for job in (again, other)] == [(first.id, "t", False)] * 2
    assert live(db) == [(first.id, 1, "k")]


def test_a_taken_key_is_told_with_all_facts_where_it_was_to_be_free(task: T, db: Db) -> None:
    first = task.using(key="k").enqueue(1)

    with pytest.raises(KeyTaken, match=rf"^key 'k' belongs to job {first.id} of task t; wait for its end") as caught:
        task.using(key=Key("k", taken="raise")).enqueue(2)

    assert (caught.value.key, caught.value.job, caught.value.task) == ("k", first.id, "t")
    assert live(db) == [(first.id, 1, "k")]


def test_a_key_within_its_period_is_told_where_it_was_to_be_free(task: T, engine: Engine) -> None:
    first = task.using(key=HOURLY).enqueue(1)
    engine.settle(*engine.claim())

    with pytest.raises(KeyTaken, match=str(first.id)):
        task.using(key=Key("k", period=HOUR, taken="raise")).enqueue(2)


@pytest.mark.parametrize("taken", ["return", "raise", "replace", "debounce"])
def test_a_key_of_another_task_is_taken_for_all_but_skip(app: Rowlock, task: T, db: Db, taken: Taken) -> None:
    first = task.using(key="k", delay=MINUTE).enqueue(1)
    key = Key("k", taken=taken, at_most=HOUR if taken == "debounce" else None)

    with pytest.raises(KeyTaken, match=f"job {first.id} of task t; use another key for other"):
        declared(app, "other").using(key=key, delay=MINUTE).enqueue(2)

    assert live(db) == [(first.id, 1, "k")]


# Replace


def test_a_job_that_has_not_started_gets_the_new_arguments(task: T, db: Db) -> None:
    first = task.using(key=REPLACE, delay=MINUTE, priority=2).enqueue(1)

    again = task.using(key=REPLACE).enqueue(2)

    assert (again, again.created) == (first, False)
    assert live(db) == [(first.id, 2, "k")]
    assert wait_of(db, first) == MINUTE
    assert one(db, "select priority from rowlock.jobs") == 2


def test_what_the_new_call_names_is_replaced_too(task: T, db: Db) -> None:
    at = datetime.now(UTC) + 5 * HOUR
    task.using(key="k", delay=MINUTE).enqueue(1)

    task.using(key=REPLACE, run_at=at, priority=-3, expires=MINUTE).enqueue(2)

    row = db.execute("select run_at, priority, expires_at from rowlock.jobs").fetchone()
    assert row == (at, -3, at + MINUTE)


def test_a_job_that_is_brought_forward_is_due_now_and_not_before(task: T, engine: Engine, db: Db) -> None:
    job = task.using(key=REPLACE, delay=HOUR).enqueue(1)

    task.using(key=REPLACE, run_at=datetime(2020, 1, 1, tzinfo=UTC)).enqueue(2)

    assert wait_of(db, job) < HOUR
    assert [row.args for row in engine.claim()] == ['{"n":2}']


def test_a_job_between_two_attempts_gets_the_new_arguments(task: T, engine: Engine, db: Db) -> None:
    first = task.using(key=REPLACE).enqueue(1)
    engine.give_back(*engine.claim(), outcome=Retried('{"type": "E", "message": ""}', MINUTE))

    assert task.using(key=REPLACE).enqueue(2) == first
    assert live(db) == [(first.id, 2, "k")]


@pytest.mark.parametrize("key", [REPLACE, DEBOUNCE])
@pytest.mark.parametrize("state", ["running", "cancelling"])
def test_a_job_that_runs_goes_on_without_the_key_and_a_new_one_gets_it(
    task: T, engine: Engine, db: Db, key: Key, state: str
) -> None:
    first = task.using(key="k").enqueue(1)
    rows = engine.claim()
    if state == "cancelling":
        first.cancel()

    again = task.using(key=key, delay=MINUTE).enqueue(2)

    assert again.created
    assert live(db) == [(first.id, 1, None), (again.id, 2, "k")]
    engine.settle(*rows)
    assert holders(db) == {"k": again.id}


def test_a_job_that_lost_its_key_is_retried_without_it(task: T, engine: Engine, db: Db) -> None:
    first = task.using(key=REPLACE).enqueue(1)
    rows = engine.claim()
    again = task.using(key=REPLACE).enqueue(2)

    engine.give_back(*rows, outcome=HandedBack())
    third = task.using(key=REPLACE).enqueue(3)

    assert third == again
    assert live(db) == [(first.id, 1, None), (again.id, 3, "k")]


def test_a_job_that_has_ended_within_its_period_makes_way_for_new_arguments(task: T, engine: Engine, db: Db) -> None:
    task.using(key=HOURLY).enqueue(1)
    engine.settle(*engine.claim())

    again = task.using(key=REPLACE).enqueue(2)

    assert again.created
    assert live(db) == [(again.id, 2, "k")]


# Debounce


def test_a_job_is_put_off_by_each_call_up_to_its_bound(task: T, db: Db) -> None:
    first = task.using(key=DEBOUNCE, delay=40 * MINUTE).enqueue(1)
    waits = []

    for n, passed in enumerate((10 * MINUTE, 15 * MINUTE, 30 * MINUTE), 2):
        travel(db, passed)
        assert task.using(key=DEBOUNCE, delay=40 * MINUTE).enqueue(n) == first
        waits.append(round(wait_of(db, first) / MINUTE))

    assert waits == [50, 55, 60]
    assert live(db) == [(first.id, 4, "k")]


def test_a_job_is_never_brought_forward_by_putting_it_off(task: T, db: Db) -> None:
    first = task.using(key=DEBOUNCE, delay=30 * MINUTE).enqueue(1)

    task.using(key=DEBOUNCE, delay=MINUTE).enqueue(2)
    travel(db, 2 * HOUR)
    task.using(key=DEBOUNCE, delay=MINUTE).enqueue(3)

    assert round(wait_of(db, first) / MINUTE) == 60
    assert live(db) == [(first.id, 3, "k")]


# In bulk, and in transactions


def test_a_bulk_mixes_meanings(app: Rowlock, task: T, engine: Engine, db: Db) -> None:
    there = [task.using(key=key, delay=MINUTE).enqueue(0) for key in ("b", "d", "e")]

    made = app.enqueue_many(
        [
            task.using(key=Key("e", taken="skip")).bind(1),
            task.using(key=Key("d", taken="debounce", at_most=HOUR), delay=2 * MINUTE).bind(2),
            task.bind(3),
            task.using(key="c").bind(4),
            task.using(key=Key("b", taken="replace")).bind(5),
            task.using(key=Key("a", period=HOUR)).bind(6),
            task.using(key=Key("b", taken="replace")).bind(7),
        ]
    )

    assert [job.created for job in made] == [False, False, True, True, False, True, False]
    assert [made[n] for n in (0, 1, 4, 6)] == [there[2], there[1], there[0], there[0]]
    assert {(n, key) for _, n, key in live(db)} == {(0, "e"), (2, "d"), (3, None), (4, "c"), (7, "b"), (6, "a")}


def test_a_bulk_with_a_taken_key_changes_nothing(app: Rowlock, task: T, db: Db) -> None:
    there = task.using(key="a").enqueue(1)
    taken = declared(app, "other").using(key="b").enqueue(2)

    with pytest.raises(KeyTaken):
        app.enqueue_many([task.using(key=Key(key, taken="replace")).bind(3) for key in ("a", "b")])

    assert live(db) == [(there.id, 1, "a"), (taken.id, 2, "b")]


@pytest.mark.parametrize("key", [HOURLY, Key("k", taken="skip"), REPLACE, DEBOUNCE], ids=lambda key: key.taken)
@pytest.mark.parametrize("outcome", ["commit", "rollback"])
def test_a_second_caller_waits_for_the_first_and_is_told_what_became_of_it(
    task: T, url: str, db: Db, key: Key, outcome: str
) -> None:
    with ThreadPoolExecutor(1) as threads, psycopg.connect(url) as winner:
        first = task.using(connection=winner, key=key, delay=MINUTE).enqueue(1)
        second = threads.submit(task.using(key=key, delay=MINUTE).enqueue, 2)
        until_held_up(db, second)

        getattr(winner, outcome)()

    assert second.result().created is (outcome == "rollback")
    assert [job for job, _, _ in live(db)] == [second.result().id] == [*holders(db).values()]
    assert (second.result() == first) is (outcome == "commit")
    assert live(db)[0][1] == (2 if key.replaces or outcome == "rollback" else 1)


def test_a_change_is_the_callers_to_undo(task: T, url: str, db: Db) -> None:
    first = task.using(key=REPLACE).enqueue(1)

    with psycopg.connect(url) as mine:
        task.using(connection=mine, key=REPLACE).enqueue(2)
        mine.rollback()

    assert live(db) == [(first.id, 1, "k")]


def test_two_callers_in_a_loop_change_one_job(app: Rowlock, task: T, db: Db) -> None:
    async def enqueue() -> list[Job[None]]:
        async with app:
            return await asyncio.gather(*(task.using(key=REPLACE).aenqueue(n) for n in range(10)))

    made = asyncio.run(enqueue())

    assert sum(job.created for job in made) == 1
    assert {job.id for job in made} == {job for job, _, _ in live(db)}


@deep
def test_callers_that_replace_in_bulk_and_workers_never_deadlock(app: Rowlock, task: T, url: str, db: Db) -> None:
    keys = [f"key {n}" for n in range(40)]
    meanings: list[Taken] = ["replace", "return", "skip", "replace"]
    over = threading.Event()

    def enqueue(seed: int) -> int:
        chance = random.Random(seed)
        made = 0
        for _ in range(6):
            calls = [
                task.using(key=Key(key, taken=chance.choice(meanings))).bind(seed)
                for key in chance.sample(keys, len(keys))
            ]
            with psycopg.connect(url) as mine:
                made += sum(job.created for job in app.enqueue_many(calls, connection=mine))
        return made

    def work() -> int:
        engine, ended = Engine(url), 0
        rows: list[ClaimedJob] = []
        while rows or not over.is_set():
            rows += engine.claim(20)
            if rows:
                settled = {*engine.settle(*rows)}  # a row that a caller has locked is left for the next time
                ended += len(settled)
                rows = [row for row in rows if row.token not in settled]
        engine.close()
        return ended

    with ThreadPoolExecutor(6) as threads:
        workers = [threads.submit(work) for _ in range(2)]
        try:
            made = sum(threads.map(enqueue, range(4)))
        finally:  # else a caller's failure would never be told: they would work on for ever
            over.set()

    ended = sum(worker.result() for worker in workers)
    assert ended + len(live(db)) == made
    assert {(key, job) for job, _, key in live(db)} == {*holders(db).items()}
