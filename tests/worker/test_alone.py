"""Alone: a job that workers died of runs by itself, so that nobody else pays for it."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from rowlock import Rowlock
from rowlock.worker import run
from tests.waiting import until
from tests.worker.process import worker_process
from tests.worker.working import Db, ended, one, working


def suspect(db: Db, job_id: object) -> None:
    db.execute("update rowlock.jobs set crashes = 2 where id = %s", [job_id])


def test_a_suspect_waits_until_nothing_else_runs_and_nothing_else_runs_beside_it(app: Rowlock, db: Db) -> None:
    over, seen = threading.Event(), list[int]()
    running = "select count(*) from rowlock.jobs where state = 'running'"

    @app.task(name="holds")
    def holds() -> None:
        over.wait(30)

    @app.task(name="suspect")
    def suspected() -> None:
        seen.append(one(db, running))

    @app.task(name="other")
    def other() -> None: ...

    with working(app):
        holds.enqueue()
        until(lambda: one(db, running) == 1)
        with db.transaction():
            job = suspected.using(connection=db).enqueue()
            suspect(db, job.id)
            for _ in range(20):
                other.using(connection=db).enqueue()
        until(lambda: one(db, "select state = 'running' from rowlock.jobs where id = %s", job.id))
        assert seen == []
        over.set()
        until(lambda: len(ended(db)) == 22)

    assert seen == [1]
    assert {row[1] for row in ended(db)} == {"succeeded"}


def test_a_suspect_for_which_there_is_no_way_is_put_off(app: Rowlock, db: Db, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_ALONE_WITHIN", timedelta(milliseconds=100))
    over = threading.Event()

    @app.task(name="holds")
    def holds() -> None:
        over.wait(30)

    @app.task(name="suspect")
    def suspected() -> None: ...

    with working(app):
        holds.enqueue()
        until(lambda: one(db, "select state = 'running' from rowlock.jobs"))
        with db.transaction():
            job = suspected.using(connection=db).enqueue()
            suspect(db, job.id)
        until(lambda: one(db, "select claims >= 2 from rowlock.jobs where id = %s", job.id))
        assert one(db, "select failures from rowlock.jobs where id = %s", job.id) == 0
        over.set()
        until(lambda: len(ended(db)) == 2)


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
