"""Suspects: jobs that workers died of run one at a time beside others, so that the next death is their own."""

from __future__ import annotations

import asyncio
import threading

import pytest

from rowlock import Rowlock
from rowlock.worker import claim
from tests.depth import deep
from tests.waiting import until
from tests.worker.process import worker_process
from tests.worker.working import Db, ended, one, work_off, work_until, working


def set_aside(db: Db, task: str) -> None:
    query = "update rowlock.jobs set crashes = 2, state = 'waiting', waits_for = 'suspect' where task = %s"
    db.execute(query, [task])


def test_a_worker_runs_one_suspect_at_a_time_beside_other_jobs(app: Rowlock, db: Db) -> None:
    together, most, now = 30, 0, 0
    over = asyncio.Event()

    @app.task(name="holds")
    async def holds() -> None:
        await over.wait()

    @app.task(name="suspect")
    async def suspect() -> None:
        nonlocal most, now
        now += 1
        most = max(most, now)
        await asyncio.sleep(0)
        now -= 1
        if one(db, "select count(*) from rowlock.history where task = 'suspect'") >= together - 2:
            over.set()

    with db.transaction():
        app.enqueue_many([*(suspect.bind() for _ in range(together)), holds.bind()], connection=db)
        set_aside(db, "suspect")
    work_off_suspects(app, db)

    assert most == 1
    assert {row[1] for row in ended(db)} == {"succeeded"}
    assert one(db, "select max(claims) from rowlock.history") == 1
    assert len(ended(db)) == together + 1


def work_off_suspects(app: Rowlock, db: Db) -> None:
    work_until(app, lambda: one(db, "select count(*) = 0 from rowlock.jobs"), slots=2)


def test_suspects_that_come_back_as_ready_are_set_aside_at_once(
    app: Rowlock, db: Db, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As retried ones do, and those whose worker was stopped."""

    @app.task(name="suspect")
    async def suspect() -> None: ...

    monkeypatch.setattr(claim, "_SUSPECT_EVERY", 3_600.0)  # it knows of them without a look
    app.enqueue_many(suspect.bind() for _ in range(10))
    db.execute("update rowlock.jobs set crashes = 2")
    work_off_suspects(app, db)

    assert [row[1] for row in ended(db)] == ["succeeded"] * 10
    assert one(db, "select sum(claims) from rowlock.history") == 19  # all but the first were claimed twice


def test_a_suspect_comes_before_the_jobs_of_which_there_are_always_more(app: Rowlock, db: Db) -> None:
    @app.task(name="more")
    async def more() -> None:
        if not one(db, "select exists (select from rowlock.history where task = 'suspect')"):
            more.enqueue()

    @app.task(name="suspect")
    async def suspect() -> None: ...

    app.enqueue_many([*(more.bind() for _ in range(20)), suspect.bind()])
    set_aside(db, "suspect")
    work_off_suspects(app, db)

    assert {row[1] for row in ended(db)} == {"succeeded"}


@deep
def test_a_job_that_kills_its_worker_is_poison_and_its_neighbours_are_not(app: Rowlock, db: Db, url: str) -> None:
    """They hold while it kills; once rescued, they are quick."""
    for _ in range(9):
        app.enqueue("hold")
    app.enqueue("kill")

    deaths = 0
    while one(db, "select count(*) > 0 from rowlock.jobs") and deaths < 10:
        with worker_process(url, lease=1) as process:
            until(lambda: process.poll() is not None or one(db, "select count(*) = 0 from rowlock.jobs"), limit=60)
            deaths += process.poll() is not None

    counted = db.execute("select task, state, reason, count(*) from rowlock.history group by 1, 2, 3 order by 1")
    assert counted.fetchall() == [("hold", "succeeded", None, 9), ("kill", "failed", "poison", 1)]
    assert deaths == 3
    assert one(db, "select max(crashes) from rowlock.history where task = 'hold'") <= 2
    assert "ran there" in one(db, "select errors[3] ->> 'message' from rowlock.history where task = 'kill'")


def test_a_job_claimed_ahead_that_lasts_is_marked_as_begun_and_one_that_waits_is_not(app: Rowlock, db: Db) -> None:
    over = threading.Event()

    @app.task(name="holds")
    def holds() -> None:
        over.wait(60)

    @app.task(name="quick")
    async def quick() -> None: ...

    with working(app, slots=1):
        holds.enqueue()
        until(lambda: one(db, "select count(*) = 1 from rowlock.jobs where begun"))
        over.set()
        until(lambda: len(ended(db)) == 1)
    app.enqueue_many(quick.bind() for _ in range(3))
    work_off(app, db, slots=1)

    assert len(ended(db)) == 4
