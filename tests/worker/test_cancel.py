"""Cancelling jobs that run: the row says so, the handler is told, and the job can only end as cancelled."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from rowlock import Cancel, Filter, Job, Retry, Rowlock, Snooze, current_job
from rowlock.errors import JobCancelled
from tests.waiting import auntil, until
from tests.worker.process import worker_process
from tests.worker.working import Db, ended, one, working

AT_ONCE = Retry(attempts=3, base=timedelta(0), cap=timedelta(0))
CANCELLED = [("job", "cancelled", "asked", 0)]


def mark(db: Db) -> None:
    """What cancelling does to a running job, without a word to its worker."""
    db.execute("update rowlock.jobs set cancel_at = rowlock.now() where state = 'running'")


def test_a_coroutine_is_told_and_then_cancelled(app: Rowlock, db: Db) -> None:
    started, told = threading.Event(), list[bool]()

    @app.task(name="job")
    async def job() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            told.append(current_job().cancelled)

    handle = job.enqueue()
    with working(app):
        until(started.is_set)
        assert handle.cancel(why="a mistake") is True
        until(lambda: ended(db))

    assert told == [True]
    assert ended(db) == CANCELLED
    with pytest.raises(JobCancelled, match="asked"):
        handle.result()


def test_a_coroutine_that_swallows_its_cancellation_and_succeeds_is_cancelled_all_the_same(
    app: Rowlock, db: Db
) -> None:
    started = threading.Event()

    @app.task(name="job")
    async def job() -> str:
        started.set()
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return "done"

    handle = job.enqueue()
    with working(app):
        until(started.is_set)
        assert handle.cancel()
        until(lambda: ended(db))

    assert ended(db) == CANCELLED
    assert one(db, "select result from rowlock.history") is None


@pytest.mark.parametrize("how", ["looks", "checks"])
def test_a_thread_is_told_and_keeps_its_slot_until_it_ends(app: Rowlock, db: Db, how: str) -> None:
    started, told, over = threading.Event(), threading.Event(), threading.Event()
    raised: list[BaseException] = []

    @app.task(name="job")
    def job() -> str:
        started.set()
        until(lambda: current_job().cancelled)
        told.set()
        over.wait(30)
        if how == "checks":
            try:
                current_job().check()
            except BaseException as error:
                raised.append(error)
                raise
        return "done"

    handle = job.enqueue()
    with working(app):
        until(started.is_set)
        assert handle.cancel()
        until(told.is_set)
        assert one(db, "select state from rowlock.jobs") == "running"
        assert handle.record().cancel_at is not None
        over.set()
        until(lambda: ended(db))

    assert ended(db) == CANCELLED
    assert [type(error) for error in raised] == ([Cancel] if how == "checks" else [])


def test_a_thread_that_has_not_begun_is_not_waited_for(app: Rowlock, db: Db) -> None:
    over, ran = threading.Event(), list[int]()

    @app.task(name="job")
    def job(number: int) -> None:
        ran.append(number)
        over.wait(30)

    first, second = job.enqueue(1), job.enqueue(2)
    with working(app, threads=1, slots=2):
        until(lambda: one(db, "select count(*) = 2 from rowlock.jobs where state = 'running'"))
        until(lambda: ran)
        assert second.cancel()
        until(lambda: ended(db))
        assert first.record().state == "running"
        over.set()
        until(lambda: len(ended(db)) == 2)

    assert ran == [1]
    assert [row[1] for row in ended(db)] == ["succeeded", "cancelled"]


def test_a_mark_is_found_without_a_notification(app: Rowlock, db: Db) -> None:
    started = threading.Event()

    @app.task(name="job")
    async def job() -> None:
        started.set()
        await asyncio.Event().wait()

    job.enqueue()
    with working(app):
        until(started.is_set)
        mark(db)
        until(lambda: ended(db))

    assert ended(db) == CANCELLED


def _raise(error: BaseException) -> None:
    raise error


@pytest.mark.parametrize(
    "end",
    [
        lambda: _raise(ValueError("try me again")),
        lambda: _raise(Snooze(timedelta(hours=1))),
        lambda: _raise(SystemExit(3)),
        lambda: {"not": {1, 2}},
        lambda: "done",
    ],
)
def test_a_marked_job_is_cancelled_however_its_attempt_ends(app: Rowlock, db: Db, end: Callable[[], Any]) -> None:
    started, over = threading.Event(), threading.Event()

    @app.task(name="job", retry=AT_ONCE)
    def job() -> Any:  # noqa: ANN401  whatever comes
        started.set()
        over.wait(30)
        return end()

    handle = job.enqueue()
    with working(app):
        until(started.is_set)
        assert handle.cancel()
        over.set()
        until(lambda: ended(db))

    [(_, state, reason, _)] = ended(db)
    assert (state, reason) == ("cancelled", "asked")
    assert one(db, "select count(*) from rowlock.jobs") == 0


def test_a_job_that_is_cancelled_while_its_worker_drains_ends_as_cancelled(app: Rowlock, db: Db) -> None:
    started = threading.Event()

    @app.task(name="job")
    async def job() -> None:
        started.set()
        await asyncio.Event().wait()

    async def work() -> None:
        async with app:
            handle = await job.aenqueue()
            worker = app.worker(grace=timedelta(minutes=5))
            life = asyncio.create_task(worker.run())
            await auntil(started.is_set)
            worker.stop()
            assert await handle.acancel()
            await life

    asyncio.run(work())

    assert ended(db) == CANCELLED


def test_a_marked_job_that_its_worker_hands_back_ends_as_cancelled(app: Rowlock, db: Db) -> None:
    """Told in vain: the thread does not look, and its worker has no patience."""
    started, over = threading.Event(), threading.Event()

    @app.task(name="job")
    def job() -> None:
        started.set()
        over.wait(30)

    async def work() -> None:
        async with app:
            await job.aenqueue()
            async with app.worker(grace=timedelta(0)):
                await auntil(started.is_set)
                mark(db)

    asyncio.run(work())
    over.set()

    assert ended(db) == CANCELLED
    assert one(db, "select count(*) from rowlock.jobs") == 0


def test_a_marked_job_whose_worker_dies_ends_as_cancelled(app: Rowlock, db: Db, url: str) -> None:
    app.enqueue("hold in a thread")
    with worker_process(url, lease=1) as process:
        until(lambda: one(db, "select state = 'running' from rowlock.jobs"))
        assert app.jobs.cancel(Filter.all()).changed == 1
        process.kill()

    with worker_process(url, lease=1):
        until(lambda: ended(db))

    assert [row[1:3] for row in ended(db)] == [("cancelled", "asked")]


def test_the_key_is_held_until_the_attempt_is_over(app: Rowlock, db: Db) -> None:
    started, over = threading.Event(), threading.Event()

    @app.task(name="job")
    def job() -> None:
        started.set()
        over.wait(30)

    handle = job.using(key="k").enqueue()
    with working(app):
        until(started.is_set)
        assert handle.cancel()
        assert not job.using(key="k").enqueue().created
        over.set()
        until(lambda: ended(db))

    assert one(db, "select count(*) from rowlock.keys") == 0


def test_an_operator_may_retry_what_was_cancelled(app: Rowlock, db: Db) -> None:
    started = threading.Event()

    @app.task(name="job")
    async def job() -> str:
        if not started.is_set():
            started.set()
            await asyncio.Event().wait()
        return "ran again"

    handle = job.enqueue()
    with working(app):
        until(started.is_set)
        assert handle.cancel()
        until(lambda: ended(db) == CANCELLED)
        assert app.jobs.retry(Filter(ids=[handle.id], state="cancelled")).changed == 1
        assert handle.result(timedelta(seconds=30)) == "ran again"


def test_what_is_cancelled_in_time_never_succeeds_and_what_is_too_late_has(app: Rowlock, db: Db) -> None:
    """Both at once, again and again: each job has one of two ends, and the caller is told which."""

    @app.task(name="job")
    async def job() -> None:
        await asyncio.sleep(0)

    async def work() -> list[tuple[Job[None], bool]]:
        async with app, app.worker():
            handles = await app.aenqueue_many(job.bind() for _ in range(200))
            answers = await asyncio.gather(*(handle.acancel() for handle in handles))
            await auntil(lambda: one(db, "select count(*) = 0 from rowlock.jobs"))
            return list(zip(handles, answers, strict=True))

    answered = asyncio.run(work())

    states = {str(job_id): state for job_id, state in db.execute("select id, state from rowlock.history")}
    assert {str(handle.id): "cancelled" if answer else "succeeded" for handle, answer in answered} == states
