"""Leaving: a worker that stops waits neither for what PostgreSQL refuses nor for what somebody has locked."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta

import psycopg
import pytest

from rowlock import Rowlock
from rowlock.worker.worker import Worker
from tests.waiting import auntil
from tests.worker.breaking import breaks
from tests.worker.working import Db, ended, one

LEFT = "not settled before this worker leaves, and handed back to run again: "


@pytest.fixture(autouse=True)
def _in_haste(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rowlock.worker.incarnation._APART_WITHIN", 0.1)
    monkeypatch.setattr("rowlock.worker.incarnation._LEAVE_WITHIN", 10.0)
    monkeypatch.setattr("rowlock.worker.refused._FIRST_PAUSE", 0.01)


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [message for message in caplog.messages if message.startswith(LEFT)]


@pytest.mark.parametrize("state", ["53200", "42501"], ids=["out of memory", "no permission"])
def test_what_postgresql_refuses_goes_back_without_a_crash_and_its_worker_leaves(
    app: Rowlock, db: Db, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    monkeypatch.setattr("rowlock.worker.incarnation._FOR_LEAVING", 9.5)

    @app.task(name="quick")
    async def quick() -> None: ...

    db.execute("create sequence public.failed")
    breaks(db, "history", "nextval('public.failed') > 0", state)  # a sequence counts on, whatever is rolled back
    job = quick.enqueue()

    async def work() -> Worker:
        async with app, app.worker(grace=timedelta(seconds=5)) as worker:
            await auntil(lambda: one(db, "select last_value >= 3 from public.failed"))
        return worker

    worker = asyncio.run(work())

    assert told(caplog) == [f"{LEFT}quick {job.id}"]
    assert db.execute("select state, crashes, failures from rowlock.jobs").fetchall() == [("ready", 0, 0)]
    assert (one(db, "select count(*) from rowlock.workers"), worker.left_jobs) == (0, False)


def test_what_somebody_has_locked_goes_back_as_soon_as_it_is_free(
    app: Rowlock, db: Db, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    began, go = threading.Event(), threading.Event()

    @app.task(name="waits")
    def waits() -> None:
        began.set()
        go.wait(20)

    job = waits.enqueue()

    async def work(holder: psycopg.Connection[tuple[object, ...]]) -> None:
        async with asyncio.TaskGroup() as group, app:
            worker = app.worker(grace=timedelta(seconds=20))
            life = group.create_task(worker.run())
            await auntil(began.is_set)
            holder.execute("select from rowlock.jobs for update")
            worker.stop()
            go.set()
            await auntil(lambda: told(caplog))
            holder.rollback()
            await life

    with psycopg.connect(url) as holder:
        asyncio.run(work(holder))

    assert told(caplog) == [f"{LEFT}waits {job.id}"]
    assert ended(db) == []
    assert db.execute("select state, crashes from rowlock.jobs").fetchall() == [("ready", 0)]
    assert one(db, "select count(*) from rowlock.workers") == 0
