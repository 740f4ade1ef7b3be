"""Results: what `job.result()` answers, raises and refuses."""

from __future__ import annotations

import asyncio
import pickle
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from rowlock import Cancel, Job, Retry, Rowlock, RowlockError, Snooze, current_job
from rowlock.errors import InvalidOption, JobCancelled, JobFailed, JobNotFound, NoResult, ResultTimeout
from tests.depth import deep
from tests.waiting import until
from tests.worker.process import worker_process
from tests.worker.working import Db, work_off, working

SOON = timedelta(seconds=30)
NOW = timedelta(0)
LONG = 120.0


@dataclass(frozen=True)
class Parcel:
    """Something with a type of its own."""

    id: UUID
    weights: tuple[float, ...]
    sent: datetime


# Values


def test_a_result_is_what_the_handler_returned(app: Rowlock) -> None:
    @app.task(name="add")
    async def add(a: int, b: int) -> int:
        return a + b

    with working(app):
        answer = add.enqueue(2, 3).result(SOON)

    assert answer == 5


def test_a_result_has_the_type_that_the_task_declares(app: Rowlock) -> None:
    parcel = Parcel(uuid4(), (1.5, 2.0), datetime(2030, 1, 2, tzinfo=UTC))

    @app.task(name="pack")
    def pack(weights: list[float]) -> Parcel:
        return Parcel(parcel.id, tuple(weights), parcel.sent)

    with working(app):
        answer = pack.enqueue([1.5, 2.0]).result(SOON)

    assert answer == parcel


def test_a_handler_that_returns_nothing_has_none_for_a_result(app: Rowlock) -> None:
    @app.task(name="rest")
    def rest() -> None:
        return None

    with working(app):
        assert rest.enqueue().result(SOON) is None


def test_a_result_is_there_for_a_job_that_has_ended_before(app: Rowlock, db: Db) -> None:
    @app.task(name="add")
    async def add(a: int, b: int) -> int:
        return a + b

    job = add.enqueue(2, 3)
    work_off(app, db)

    assert [job.result(), job.result(NOW), asyncio.run(job.aresult()), asyncio.run(job.aresult(NOW))] == [5, 5, 5, 5]


def test_a_result_of_a_task_unknown_here_is_the_plain_value(app: Rowlock, url: str, db: Db) -> None:
    @app.task(name="pack")
    def pack() -> Parcel:
        return Parcel(uuid4(), (1.5,), datetime(2030, 1, 2, tzinfo=UTC))

    with Rowlock(url) as stranger:
        job = stranger.enqueue("pack")
        work_off(app, db)

        assert job.result()["weights"] == [1.5]
        assert stranger.jobs.get(job.id).result()["weights"] == [1.5]


def test_a_retry_in_between_is_waited_through(app: Rowlock) -> None:
    @app.task(name="third time lucky", retry=Retry(attempts=5, base=NOW, cap=NOW))
    async def lucky() -> int:
        if current_job().attempt < 3:
            raise ValueError("not yet")
        return current_job().attempt

    with working(app):
        assert lucky.enqueue().result(SOON) == 3


def test_a_snooze_in_between_is_waited_through(app: Rowlock) -> None:
    slept: list[bool] = []

    @app.task(name="sleepy")
    async def sleepy() -> str:
        if not slept:
            slept.append(True)
            raise Snooze(timedelta(milliseconds=1))
        return "awake"

    with working(app):
        assert sleepy.enqueue().result(SOON) == "awake"


def test_the_holder_of_a_key_can_be_waited_for_by_whoever_asked_again(app: Rowlock) -> None:
    @app.task(name="add")
    async def add(a: int, b: int) -> int:
        return a + b

    first = add.using(key="sum").enqueue(1, 1)
    again = add.using(key="sum").enqueue(2, 2)

    assert not again.created
    with working(app):
        assert (first.result(SOON), again.result(SOON)) == (2, 2)


# Other ends


def test_a_failed_job_raises_what_happened_on_its_worker(app: Rowlock) -> None:
    @app.task(name="sink", retry=Retry(attempts=2, base=NOW, cap=NOW))
    def sink() -> int:
        raise LookupError("no bottom")

    job = sink.enqueue()
    with working(app), pytest.raises(JobFailed) as caught:
        job.result(SOON)

    error = caught.value
    assert (error.job, error.task, error.reason, error.attempts) == (job.id, "sink", "exhausted", 2)
    assert (error.error_type, error.message) == ("LookupError", "no bottom")
    assert 'raise LookupError("no bottom")' in error.remote_traceback
    assert 'raise LookupError("no bottom")' in "".join(traceback.format_exception(error))
    assert f"job {job.id} of sink failed (exhausted, 2 attempts spent): LookupError: no bottom" == str(error)


@deep
def test_a_poisonous_job_raises_that_its_workers_were_lost(url: str) -> None:
    with Rowlock(url) as app, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(app.enqueue("kill").result, timedelta(seconds=4 * LONG))

        for _ in range(3):
            with worker_process(url, lease=1) as worker:
                worker.wait(LONG)
        with worker_process(url, lease=1), pytest.raises(JobFailed) as caught:  # who rescues it the third time
            waiting.result(LONG)

    assert (caught.value.reason, caught.value.error_type, caught.value.attempts) == ("poison", "WorkerLost", 0)


def test_a_cancelled_job_raises_its_reason(app: Rowlock) -> None:
    @app.task(name="give up")
    def give_up() -> None:
        raise Cancel("the customer has left")

    with working(app), pytest.raises(JobCancelled, match="the customer has left") as caught:
        give_up.enqueue().result(SOON)

    assert caught.value.reason == "the customer has left"


def test_a_job_that_has_not_ended_in_time_raises_a_timeout_and_can_be_waited_for_again(app: Rowlock) -> None:
    @app.task(name="add")
    async def add(a: int, b: int) -> int:
        return a + b

    job = add.enqueue(2, 3)

    for timeout in (timedelta(milliseconds=1), NOW):
        with pytest.raises(ResultTimeout, match="has not ended within") as caught:
            job.result(timeout)
        assert isinstance(caught.value, TimeoutError)
        with pytest.raises(ResultTimeout):
            asyncio.run(job.aresult(timeout))
    with working(app):
        assert job.result(SOON) == 5


def test_a_task_without_history_has_no_result_and_says_so_at_once(app: Rowlock) -> None:
    @app.task(name="quick", history=False)
    def quick() -> int:
        return 1

    job = quick.enqueue()

    with pytest.raises(NoResult, match="history=False"):
        job.result()
    with pytest.raises(NoResult, match="history=False"):
        asyncio.run(job.aresult())


def test_a_job_that_ends_without_a_trace_while_a_stranger_waits_has_no_result(app: Rowlock, url: str) -> None:
    @app.task(name="quick", history=False)
    def quick() -> int:
        return 1

    with Rowlock(url) as stranger, ThreadPoolExecutor(1) as pool:
        job = stranger.enqueue("quick")
        waiting = pool.submit(job.result)
        until(lambda: one_waits(stranger, job))
        with working(app), pytest.raises(NoResult, match="keeps no history"):
            waiting.result()


def test_a_job_whose_time_in_history_is_over_has_no_result(app: Rowlock, db: Db) -> None:
    @app.task(name="add")
    async def add(a: int, b: int) -> int:
        return a + b

    job = add.enqueue(1, 2)
    work_off(app, db)
    db.execute("delete from rowlock.history")

    with pytest.raises(NoResult, match="its time there is over, or somebody has deleted it"):
        job.result()


def test_a_job_that_is_deleted_while_it_is_waited_for_is_not_found(app: Rowlock, db: Db) -> None:
    @app.task(name="add")
    async def add(a: int, b: int) -> int:
        return a + b

    job = add.enqueue(1, 2)

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(job.result)
        until(lambda: one_waits(app, job))
        db.execute("delete from rowlock.jobs")
        with pytest.raises(JobNotFound, match="deleted it while"):
            waiting.result()


def one_waits(app: Rowlock, job: Job[Any]) -> bool:
    """Whether the room has seen this job live."""
    return str(job.id) in app.waiting_room._seen


# Transactions


def test_a_result_cannot_be_waited_for_inside_the_transaction_that_enqueued_the_job(app: Rowlock, url: str) -> None:
    with psycopg.connect(url) as connection:
        job = app.call("t").task.using(connection=connection).enqueue()

        with pytest.raises(RowlockError, match="commit first, then wait"):
            job.result()
        connection.commit()

        with pytest.raises(ResultTimeout):
            job.result(NOW)


async def waited_inside(url: str) -> None:
    async with Rowlock(url) as app, await psycopg.AsyncConnection.connect(url) as connection:
        job = await app.call("t").task.using(connection=connection).aenqueue()
        with pytest.raises(RowlockError, match="commit first, then wait"):
            await job.aresult()


def test_an_async_result_cannot_be_waited_for_inside_the_transaction_that_enqueued_the_job(url: str) -> None:
    asyncio.run(waited_inside(url))


def test_a_job_that_was_rolled_back_is_not_found(app: Rowlock, url: str) -> None:
    with psycopg.connect(url) as connection:
        job = app.call("t").task.using(connection=connection).enqueue()
        connection.rollback()

        with pytest.raises(JobNotFound, match="rolled back"):
            job.result()
        with pytest.raises(JobNotFound, match=str(job.id)):
            job.record()


def test_a_job_whose_connection_is_gone_is_not_found(app: Rowlock, url: str) -> None:
    with psycopg.connect(url) as connection:
        job = app.call("t").task.using(connection=connection).enqueue()
        connection.rollback()
    del connection

    with pytest.raises(JobNotFound, match="rolled back"):
        job.result()


# Misuse


def test_a_sync_wait_on_an_event_loop_is_refused(app: Rowlock) -> None:
    job = app.enqueue("t")

    async def misuse() -> None:
        with pytest.raises(RowlockError, match=r"use `await job\.aresult\(…\)`"):
            job.result()
        with pytest.raises(RowlockError, match=r"use `await job\.arecord\(\)`"):
            job.record()
        with pytest.raises(RowlockError, match=r"use `await app\.jobs\.aget\(…\)`"):
            app.jobs.get(job.id)

    asyncio.run(misuse())


def test_a_timeout_in_seconds_is_refused(app: Rowlock) -> None:
    job = app.enqueue("t")

    with pytest.raises(InvalidOption, match="timedelta"):
        job.result(5)  # type: ignore[arg-type]


def test_the_longest_timeout_there_is_can_be_given(app: Rowlock) -> None:
    @app.task(name="add")
    async def add(a: int, b: int) -> int:
        return a + b

    with working(app):
        assert add.enqueue(1, 2).result(timedelta.max) == 3
        assert asyncio.run(add.enqueue(1, 2).aresult(timedelta.max)) == 3


@pytest.mark.parametrize(
    "error",
    [
        JobFailed(
            uuid4(), "t", reason="poison", error_type="E", message="m", remote_traceback="Traceback …", attempts=1
        ),
        JobCancelled(uuid4(), "t", "asked"),
        JobNotFound(uuid4(), "no such job"),
        NoResult(uuid4(), "none"),
        ResultTimeout(uuid4(), "t", SOON),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_can_travel_between_processes(error: Exception) -> None:
    other = pickle.loads(pickle.dumps(error))  # noqa: S301  our own, just made

    assert (type(other), str(other), vars(other)) == (type(error), str(error), vars(error))
    assert traceback.format_exception(other) == traceback.format_exception(error)
