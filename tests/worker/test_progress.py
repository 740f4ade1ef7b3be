"""Progress: what a handler says of how far it is, and where that can be read."""

from __future__ import annotations

import asyncio
import math
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from rowlock import Retry, Rowlock, current_job
from rowlock.errors import InvalidOption
from rowlock.model.record import Progress
from rowlock.model.row import ClaimedJob
from rowlock.store import jobs
from rowlock.types import JobRecord
from rowlock.worker import progress
from rowlock.worker.attempt import CurrentJob, RunningAttempt, ignore_progress
from rowlock.worker.progress import ProgressBoard
from tests.engine import Engine
from tests.waiting import auntil, until
from tests.worker.working import Db, one, work_off, working

ROW = ClaimedJob(
    str(uuid4()), str(uuid4()), "t", "{}", "q", 0, "2024-01-01 00:00:00+00", 0, 0, 1, 1, None, False, None, None
)


def said(record: Progress | None) -> tuple[float, str | None] | None:
    return None if record is None else (record.share, record.note)


# Reading it


def test_progress_of_an_async_handler_is_seen_while_it_runs(app: Rowlock, db: Db) -> None:
    @app.task(name="resize")
    async def resize() -> None:
        current_job().progress(0.4, "resizing")
        await asyncio.to_thread(go_on.wait)

    go_on = threading.Event()
    job = resize.enqueue()

    with working(app):
        seen = until(lambda: job.record().progress)
        go_on.set()

    assert said(seen) == (0.4, "resizing")
    assert seen is not None
    assert seen.at <= one(db, "select rowlock.now()")


def test_progress_of_a_sync_handler_is_seen_while_it_runs(app: Rowlock) -> None:
    @app.task(name="resize")
    def resize() -> None:
        current_job().progress(1)
        go_on.wait()

    go_on = threading.Event()
    job = resize.enqueue()

    with working(app):
        seen = until(lambda: job.record().progress)
        go_on.set()

    assert said(seen) == (1.0, None)


def test_the_last_word_goes_into_history(app: Rowlock, db: Db) -> None:
    @app.task(name="hurry")
    async def hurry() -> None:
        for step in range(10):
            current_job().progress(step / 10, f"step {step}")

    job = hurry.enqueue()
    work_off(app, db)

    assert said(job.record().progress) == (0.9, "step 9")


def test_the_last_word_of_a_failed_job_goes_into_history(app: Rowlock, db: Db) -> None:
    @app.task(name="stumble", retry=Retry(attempts=1))
    def stumble() -> None:
        current_job().progress(0.3)
        raise LookupError

    job = stumble.enqueue()
    work_off(app, db)

    assert said(job.record().progress) == (0.3, None)


def test_words_are_written_now_and_then_but_the_last_one_always(app: Rowlock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_EVERY", 3600.0)
    first_read, more_said, end = threading.Event(), threading.Event(), threading.Event()

    @app.task(name="count")
    def count() -> None:
        current_job().progress(0.1)
        first_read.wait()
        for step in range(100):
            current_job().progress(step / 100)
        more_said.set()
        end.wait()

    job = count.enqueue()
    with working(app):
        until(lambda: job.record().progress)
        first_read.set()
        until(more_said.is_set)
        meanwhile = job.record().progress
        end.set()
        job.result()

    assert said(meanwhile) == (0.1, None)
    assert said(job.record().progress) == (0.99, None)


def test_a_new_attempt_starts_without_progress(app: Rowlock) -> None:
    @app.task(name="again", retry=Retry(attempts=2, base=timedelta(0), cap=timedelta(0)))
    async def again() -> None:
        if current_job().attempt == 1:
            current_job().progress(0.5)
            raise LookupError
        await asyncio.to_thread(go_on.wait)

    go_on = threading.Event()
    job = again.enqueue()

    with working(app):
        second = until(lambda: again_running(job.record()))
        go_on.set()

    assert second is not None
    assert second.progress is None


def again_running(record: JobRecord) -> JobRecord | None:
    """The record, once it is of the second attempt."""
    return record if record.state == "running" and record.claims == 2 else None


# Writing it


def test_a_stale_attempt_cannot_write_progress(url: str, db: Db) -> None:
    engine = Engine(url)
    engine.enqueue()
    (row,) = engine.claim()

    stale = engine.run(jobs.progress([(row._replace(token=str(uuid4())), 0.5, None)]))
    fresh = engine.run(jobs.progress([(row, 0.75, 'a "note"')]))

    assert (stale, fresh) == ([], [row.token])
    assert one(db, "select progress->>'share' || ' ' || (progress->>'note') from rowlock.jobs") == '0.75 a "note"'
    engine.close()


def test_a_row_that_somebody_has_locked_holds_up_nobody(url: str, db: Db) -> None:
    engine = Engine(url)
    engine.enqueue(2)
    locked, free = engine.claim()

    with psycopg.connect(url) as other:
        other.execute("select from rowlock.jobs where id = %s for update", [locked.id])
        written = engine.run(jobs.progress([(locked, 0.5, None), (free, 0.5, None)]))

    assert written == [free.token]
    engine.close()


def test_many_words_from_many_threads_are_taken_once_for_each_attempt() -> None:
    rows = [ROW._replace(token=str(uuid4())) for _ in range(20)]

    async def listen() -> tuple[int, list[Any], list[Any]]:
        called = []
        board = ProgressBoard(lambda: called.append(True))
        with ThreadPoolExecutor(20) as pool:
            list(pool.map(partial(count_up, board), rows))
        await auntil(lambda: board.is_due)
        return len(called), board.take([]), board.take([])

    calls, first, then = asyncio.run(listen())

    assert calls == 1
    assert sorted(first) == sorted((row, 1.0, None) for row in rows)
    assert then == []


def count_up(board: ProgressBoard, row: ClaimedJob) -> None:
    for n in range(1001):
        board.update(row, n / 1000, None)


def test_a_board_gives_only_the_words_of_the_finished_before_all_are_due() -> None:
    one_of, other = ROW, ROW._replace(token=str(uuid4()))

    async def listen() -> tuple[list[Any], list[Any]]:
        board = ProgressBoard(lambda: None)
        board.update(one_of, 0.1, None)
        board.update(other, 0.2, None)
        finished = board.take([other])
        await auntil(lambda: board.is_due)
        return finished, board.take([])

    assert asyncio.run(listen()) == ([(other, 0.2, None)], [(one_of, 0.1, None)])


def test_a_thread_that_its_worker_has_left_behind_may_still_speak() -> None:
    async def make() -> ProgressBoard:
        return ProgressBoard(lambda: None)

    board = asyncio.run(make())

    board.update(ROW, 0.5, None)


# Refused


def current_job_of(row: ClaimedJob) -> CurrentJob:
    """What a handler has in hand that has said nothing yet, so that nobody else need be there."""
    nobody: Any = None
    return CurrentJob(RunningAttempt(row), ignore_progress, nobody, nobody)


@pytest.mark.parametrize("share", [-0.1, 1.1, math.nan, math.inf, True, "0.5", None])
def test_a_share_out_of_range_is_refused(share: Any) -> None:  # noqa: ANN401  on purpose
    with pytest.raises(InvalidOption, match="from 0 to 1"):
        current_job_of(ROW).progress(share)


@pytest.mark.parametrize("note", ["x" * 201, "two\nlines", "nul\x00", "\udc80", 5])
def test_a_note_that_cannot_be_shown_is_refused(note: Any) -> None:  # noqa: ANN401  on purpose
    with pytest.raises(InvalidOption, match="200 printable"):
        current_job_of(ROW).progress(0.5, note)
