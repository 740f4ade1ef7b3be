"""Time-outs: whatever does not end is left behind, counted and shown, and enough of it wears a process out."""

from __future__ import annotations

import asyncio
import logging
import threading
from contextlib import suppress
from datetime import timedelta

import pytest

from rowlock import Retry, Rowlock, current_job
from rowlock.errors import LeaseLost
from tests.depth import deep
from tests.house.reading import PACKAGE
from tests.waiting import until
from tests.worker.working import Db, ended, one, work_until, working

SOON = timedelta(milliseconds=50)
STUCK = "select coalesce(sum(stuck), 0) from rowlock.workers"


def test_a_thread_that_times_out_is_told_counted_and_replaced(
    app: Rowlock, db: Db, caplog: pytest.LogCaptureFixture
) -> None:
    over, told = threading.Event(), list[tuple[bool, str]]()

    @app.task(name="hangs", timeout=SOON, retry=Retry.none())
    def hangs() -> None:
        over.wait(30)
        try:
            current_job().check()
        except LeaseLost as error:
            told.append((current_job().cancelled, str(error)))
            raise

    @app.task(name="quick")
    def quick() -> None: ...

    hangs.enqueue()
    with working(app, threads=2):
        until(lambda: ended(db))
        until(lambda: one(db, STUCK) == 1, what="the worker says that one is stuck")
        assert [worker.stuck for worker in app.stats().fleet.workers or ()] == [1]
        app.enqueue_many(quick.bind() for _ in range(10))
        until(lambda: len(ended(db)) == 11)
        over.set()
        until(lambda: one(db, STUCK) == 0, what="the worker says that nothing is stuck")

    assert ended(db)[0] == ("hangs", "failed", "exhausted", 1)
    trace = one(db, "select errors[1] ->> 'traceback' from rowlock.history where task = 'hangs'")
    assert "in hangs\n    over.wait(30)\n" in trace  # where it hung
    assert str(PACKAGE) not in trace.partition("in hangs")[0]
    assert [cancelled for cancelled, _ in told] == [True]
    assert "took longer than its timeout" in told[0][1]
    assert "hangs" in caplog.text


def test_time_does_not_pass_while_an_attempt_waits_for_a_thread(app: Rowlock, db: Db) -> None:
    """One thread, and each of them takes over half of what it may take."""
    pause = threading.Event()

    @app.task(name="waits", timeout=timedelta(seconds=1), retry=Retry.none())
    def waits() -> None:
        pause.wait(0.4)

    app.enqueue_many(waits.bind() for _ in range(5))
    work_until(app, lambda: len(ended(db)) == 5, threads=1, slots=5)

    assert {row[1] for row in ended(db)} == {"succeeded"}


@deep
def test_a_coroutine_that_swallows_its_time_out_is_left_behind(app: Rowlock, db: Db) -> None:
    over, told = asyncio.Event(), list[bool]()

    @app.task(name="stubborn", timeout=SOON, retry=Retry.none())
    async def stubborn() -> None:
        while not over.is_set() and len(told) < 3:
            with suppress(asyncio.CancelledError):
                await over.wait()
            told.append(current_job().cancelled)

    @app.task(name="frees")
    async def frees() -> None:
        over.set()

    stubborn.enqueue()
    with working(app, slots=1, threads=2):
        until(lambda: ended(db))
        until(lambda: one(db, STUCK) == 1, what="the worker says that one is stuck")
        frees.enqueue()
        until(lambda: len(ended(db)) == 2)
        until(lambda: one(db, STUCK) == 0, what="the worker says that nothing is stuck")

    assert ended(db) == [("stubborn", "failed", "exhausted", 1), ("frees", "succeeded", None, 0)]
    assert told[0] is True


def test_a_worker_within_an_app_starts_anew_when_too_much_is_stuck(
    app: Rowlock, db: Db, caplog: pytest.LogCaptureFixture
) -> None:
    over = threading.Event()

    @app.task(name="hangs", timeout=SOON, retry=Retry.none())
    def hangs() -> None:
        over.wait(30)

    app.enqueue_many(hangs.bind() for _ in range(2))
    with caplog.at_level(logging.WARNING, logger="rowlock.worker"), working(app, threads=2):
        until(lambda: len(ended(db)) == 2)
        until(lambda: "what is stuck stays until this process is replaced" in caplog.text)
        app.enqueue("hangs")
        until(lambda: len(ended(db)) == 3)
        over.set()

    assert "is worn out: 2 of its attempts are stuck" in caplog.text
