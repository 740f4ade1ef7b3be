"""Assertions about live jobs: what fits, what does not, and what a failing test is told."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from rowlock import Context, Key, Rowlock, RowlockError, Task, Tasks
from rowlock.errors import TaskError
from rowlock.testing import aassert_enqueued, aassert_not_enqueued, assert_enqueued, assert_not_enqueued, drain
from tests.worker.working import Db

HOUR = timedelta(hours=1)
T = Task[..., None]


@pytest.fixture
def task(app: Rowlock) -> T:
    @app.task(name="greet", aliases=["welcome"])
    def greet(number: int, name: str = "you") -> None:
        return None

    return greet


def test_a_task_means_jobs_of_any_arguments(app: Rowlock, task: T) -> None:
    job = task.enqueue(1, "a")

    [record] = assert_enqueued(task)

    assert (record.id, record.args) == (job.id, {"number": 1, "name": "a"})


def test_a_call_means_exactly_its_arguments(task: T) -> None:
    task.enqueue(1, "a")
    task.enqueue(1, "b")

    assert_enqueued(task.bind(1, name="a"))
    assert_not_enqueued(task.bind(1))  # the default is no argument of that job
    with pytest.raises(AssertionError, match="found 0"):
        assert_enqueued(task.bind(2, "a"))


def test_numbers_and_truth_are_not_mixed_up(app: Rowlock) -> None:
    @app.task(name="any")
    def anything(value: object) -> None:
        return None

    app.enqueue("any", value={"b": [1.0], "a": 1})

    assert_enqueued(anything.bind({"a": 1, "b": [1.0]}))
    assert_not_enqueued(anything.bind({"a": True, "b": [1.0]}))
    assert_not_enqueued(anything.bind({"a": 1, "b": [1]}))


def test_a_workflow_means_jobs_of_its_version(app: Rowlock) -> None:
    async def sell(ctx: Context, order: int) -> None: ...

    older, latest = (app.workflow(name="sell", version=version)(sell) for version in (1, 2))
    latest.enqueue(7)

    assert_enqueued(latest.bind(7))
    assert_not_enqueued(older)
    with pytest.raises(AssertionError, match=r"expected .* of sell@1, found 0.*\n.*sell@2"):
        assert_enqueued(older)


def test_a_count_is_exact_and_without_one_any_number_above_none_will_do(task: T) -> None:
    task.enqueue(1, "a")
    task.enqueue(2, "b")

    assert len(assert_enqueued(task, count=2)) == 2
    assert len(assert_enqueued(task, count=None)) == 2
    assert assert_enqueued(task.bind(3, "c"), count=0) == []
    for wrong in (1, 3):
        with pytest.raises(AssertionError, match="found 2"):
            assert_enqueued(task, count=wrong)
    with pytest.raises(AssertionError, match="any live job"):
        assert_enqueued(task.bind(3, "c"), count=None)


def test_options_fit_or_do_not(task: T) -> None:
    noon = datetime(2099, 1, 1, 12, tzinfo=UTC)
    task.using(queue="mail", key="k", tags=["a", "b"], priority=2, run_at=noon).enqueue(1, "a")
    task.using(delay=HOUR).enqueue(2, "b")

    assert_enqueued(task, queue="mail", key="k", tags=["b"], priority=2, run_at=noon)
    assert_enqueued(task, delay=HOUR)
    assert_not_enqueued(task, queue="post")
    assert_enqueued(task, key=Key("k", taken="skip"))
    assert_enqueued(task.using(key=Key("k", taken="replace")).bind(1, "a"))
    assert_not_enqueued(task, key="l")
    assert_not_enqueued(task, tags=["a", "c"])
    assert_not_enqueued(task, priority=3)
    assert_not_enqueued(task, run_at=noon + HOUR)
    assert_not_enqueued(task, delay=2 * HOUR)


def test_the_options_of_a_call_count_too(task: T) -> None:
    task.using(queue="mail", key="k", attempts=2, delay=HOUR).enqueue(1, "a")

    assert_enqueued(task.using(queue="mail", key="k", attempts=2, delay=HOUR).bind(1, "a"))
    assert_not_enqueued(task.using(queue="post").bind(1, "a"))
    assert_not_enqueued(task.using(attempts=3).bind(1, "a"))


def test_a_job_under_a_name_that_the_task_had_before_is_its_own(app: Rowlock, task: T, db: Db) -> None:
    db.execute('select rowlock.enqueue(\'welcome\', \'{"name": "a", "number": 1}\')')

    assert_enqueued(task.bind(1, "a"))


def test_a_call_by_name_will_do(app: Rowlock) -> None:
    app.enqueue("far away", n=1)

    assert_enqueued(app.call("far away", n=1))
    assert_not_enqueued(app.call("far away", n=2))


def test_jobs_that_have_ended_are_not_enqueued(app: Rowlock, task: T) -> None:
    task.enqueue(1, "a")
    drain(app)

    assert_not_enqueued(task)


def test_a_failing_test_is_told_what_there_is_instead(app: Rowlock, task: T) -> None:
    with pytest.raises(AssertionError, match="there is no live job at all"):
        assert_enqueued(task)
    task.using(queue="mail", key="k", tags=["a"], priority=-1, delay=HOUR).enqueue(1, "a")
    app.enqueue("other")

    with pytest.raises(AssertionError) as caught:
        assert_enqueued(task.bind(2, "b"), queue="mail")
    with pytest.raises(AssertionError) as counted:
        assert_enqueued(task, count=3)

    assert str(caught.value) == (
        'expected 1 live job of greet with arguments {"name":"b","number":2}, queue mail, found 0 (*) among these:\n'
        '    greet {"name":"a","number":1} ready on mail, priority -1, key k, tags a, delay 1:00:00\n'
        "    other {} ready on default"
    )
    assert str(counted.value).splitlines()[:2] == [
        "expected 3 live jobs of greet, found 1 (*) among these:",
        '  * greet {"name":"a","number":1} ready on mail, priority -1, key k, tags a, delay 1:00:00',
    ]


def test_a_crowd_is_cut_short(app: Rowlock, task: T) -> None:
    app.enqueue_many(task.bind(number, "a") for number in range(30))

    with pytest.raises(AssertionError) as caught:
        assert_enqueued(task.bind(99, "a"))

    assert str(caught.value).splitlines()[-1] == "    … and 10 more"


def test_a_transaction_is_looked_into_by_its_own_connection(task: T, url: str) -> None:
    with psycopg.connect(url) as connection:
        task.using(connection=connection).enqueue(1, "a")

        assert_enqueued(task, connection=connection)
        assert_not_enqueued(task)


def test_async_tests_assert_too(app: Rowlock, task: T) -> None:
    async def story() -> None:
        async with app:
            await task.aenqueue(1, "a")
            await aassert_enqueued(task.bind(1, "a"))
            await aassert_not_enqueued(task.bind(2, "a"))
            with pytest.raises(AssertionError):
                await aassert_not_enqueued(task)
            with pytest.raises(RowlockError, match="aassert_enqueued"):
                assert_enqueued(task)

    asyncio.run(story())


def test_what_is_no_task_is_refused() -> None:
    @Tasks().task(name="lost")
    def lost() -> None:
        return None

    with pytest.raises(TypeError, match="neither a task nor a call"):
        assert_enqueued("greet")  # type: ignore[arg-type]
    with pytest.raises(TaskError, match="belongs to no app"):
        assert_enqueued(lost)
