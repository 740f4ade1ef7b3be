"""The fence: a number that grows with every attempt, and an end for attempts that do not own their jobs any more."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from rowlock import Retry, Rowlock, current_job
from rowlock.errors import LeaseLost
from rowlock.model.outcome import HandedBack
from rowlock.store import jobs
from rowlock.testing import drain
from rowlock.types import Fence
from tests.engine import Engine
from tests.waiting import until
from tests.worker.working import Db, ended, one, work_off, working

TWICE_MORE = Retry(attempts=3, base=timedelta(0), cap=timedelta(0))


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_the_fence_grows_with_every_attempt(app: Rowlock, db: Db, kind: str) -> None:
    fences: list[Fence] = []

    def sync_job() -> None:
        fences.append(current_job().fence())
        if current_job().attempt < 3:
            raise ValueError

    async def async_job() -> None:
        fences.append(await current_job().afence())
        if current_job().attempt < 3:
            raise ValueError

    task: Any = sync_job if kind == "sync" else async_job
    app.task(name="job", retry=TWICE_MORE)(task)
    app.enqueue("job")
    work_off(app, db)

    assert [fence.attempt for fence in fences] == [1, 2, 3]
    assert {fence.timeline for fence in fences} == {1}
    assert fences == sorted(fences)


def test_it_is_asked_for_once_an_attempt(app: Rowlock, db: Db) -> None:
    changed = "select ctid::text from rowlock.jobs"

    @app.task(name="job")
    async def job() -> bool:
        first, row = await current_job().afence(), one(db, changed)
        return (first, row) == (await current_job().afence(), one(db, changed))

    job.enqueue()
    work_off(app, db)

    assert one(db, "select result from rowlock.history") is True


def test_the_claim_is_on_disk_when_its_number_is_told(url: str, db: Db, durable: None) -> None:
    engine = Engine(url)
    engine.enqueue()
    engine.connection.execute("set synchronous_commit = off")
    [row] = engine.claim()
    claimed = one(db, "select pg_current_wal_insert_lsn()")

    engine.run(jobs.fence(row))

    assert one(db, "select pg_current_wal_flush_lsn() >= %s::pg_lsn", claimed)
    assert engine.connection.execute("show synchronous_commit").fetchone() == ("off",)
    engine.close()


def test_a_stale_attempt_gets_no_number(url: str) -> None:
    engine = Engine(url)
    engine.enqueue()
    [stale] = engine.claim()
    engine.give_back(stale, outcome=HandedBack())
    [current] = engine.claim()

    assert engine.run(jobs.fence(stale)) == []
    assert engine.run(jobs.fence(current)) == [Fence(1, 2)]
    engine.close()


def test_on_a_loop_it_is_awaited(app: Rowlock, db: Db) -> None:
    @app.task(name="job", retry=Retry.none())
    async def job() -> None:
        current_job().fence()

    job.enqueue()
    work_off(app, db)

    assert ended(db) == [("job", "failed", "exhausted", 1)]
    assert "await current_job().afence()" in one(db, "select errors[1]->>'message' from rowlock.history")


def test_in_a_test_it_is_asked_on_the_connection_that_is_drained(app: Rowlock, db: Db) -> None:
    fences: list[Fence] = []

    @app.task(name="sync")
    def sync_job() -> None:
        fences.append(current_job().fence())

    @app.task(name="async")
    async def async_job() -> None:
        fences.append(await current_job().afence())

    with db.transaction(force_rollback=True):
        for task in (sync_job, async_job):
            task.using(connection=db).enqueue()
        done = drain(app, connection=db)

    assert done.succeeded == 2, done.errors
    assert [fence.attempt for fence in fences] == [1, 1]


@pytest.mark.parametrize("before", [True, False])
def test_it_is_asked_for_before_the_block_that_ends_the_job(app: Rowlock, db: Db, *, before: bool) -> None:
    fences: list[Fence] = []

    @app.task(name="sync", retry=Retry.none())
    def sync_job() -> None:
        if before:
            fences.append(current_job().fence())
        with current_job().transaction():
            fences.append(current_job().fence())

    @app.task(name="async", retry=Retry.none())
    async def async_job() -> None:
        if before:
            fences.append(await current_job().afence())
        async with current_job().transaction():
            fences.append(await current_job().afence())

    app.enqueue_many([sync_job.bind(), async_job.bind()])
    work_off(app, db)

    states = [row[:2] for row in db.execute("select state, errors[1]->>'message' from rowlock.history order by state")]
    if before:
        assert (states, len(fences)) == ([("succeeded", None)] * 2, 4)
    else:
        assert [state for state, _ in states] == ["failed"] * 2
        assert all("call it before the `current_job().transaction()` block" in message for _, message in states)


# Lost


@pytest.fixture
def thief(url: str) -> Iterator[Engine]:
    """Another worker, which lives."""
    engine = Engine(url)
    yield engine
    engine.close()


def take_away(db: Db, thief: Engine) -> None:
    db.execute("update rowlock.jobs set token = gen_random_uuid(), worker = %s", [thief.worker])


def test_an_attempt_whose_job_was_taken_away_learns_it_and_changes_nothing(
    app: Rowlock, db: Db, thief: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    """Its row has another token: somebody else has claimed it."""
    started, taken = threading.Event(), threading.Event()
    learned: list[LeaseLost] = []

    @app.task(name="job")
    def job() -> str:
        started.set()
        taken.wait(30)
        try:
            current_job().fence()
        except LeaseLost as error:
            learned.append(error)
            raise
        return "done"

    handle = job.enqueue()
    with working(app):
        until(started.is_set)
        take_away(db, thief)
        taken.set()
        until(lambda: "lease lost, its outcome is discarded" in caplog.text)

    assert [error.job for error in learned] == [handle.id]
    assert ended(db) == []
    assert one(db, "select state || failures || crashes from rowlock.jobs") == "running00"
    assert caplog.text.count("lease lost") == 1


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_job_that_the_database_does_not_hold_for_us_any_more_is_stopped(
    app: Rowlock, db: Db, thief: Engine, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody has asked the handler to look: the worker finds out when it renews."""
    started, stopped = threading.Event(), threading.Event()
    learned: list[type[BaseException]] = []

    def learn() -> None:
        try:
            current_job().progress(0.5)
        except BaseException as error:
            learned.append(type(error))

    @app.task(name="sync")
    def sync_job() -> None:
        started.set()
        until(lambda: current_job().cancelled)
        learn()
        stopped.set()

    @app.task(name="async")
    async def async_job() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            learn()
            stopped.set()

    app.enqueue(kind)
    with working(app, lease=timedelta(seconds=1.5)):
        until(started.is_set)
        take_away(db, thief)
        until(stopped.is_set)
        until(lambda: "discarded" in caplog.text)

    assert learned == [LeaseLost]
    assert ended(db) == []


def test_current_job_says_that_there_is_nothing_to_stop_for(app: Rowlock, db: Db) -> None:
    @app.task(name="job")
    async def job() -> bool:
        current_job().check()
        return current_job().cancelled

    job.enqueue()
    work_off(app, db)

    assert one(db, "select result from rowlock.history") is False
