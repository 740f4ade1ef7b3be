"""A step's tries: counted and put off durably, ended by its policy, and final once they are."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta

import pytest

from rowlock import Cancel, Retry, RetryAfter, Rowlock, Snooze
from rowlock.errors import JobCancelled, JobFailed, StepFailed
from rowlock.testing import drain, travel
from rowlock.workflow.context import Context
from tests.rows import Db
from tests.worker.working import one
from tests.workflow.playing import AT_MOST, AT_ONCE, HOUR, MOMENT, ONCE, ended, kept, play, steps


class Flaky:
    """Fails so many times, and then answers how often it was called."""

    def __init__(self, failures: int, error: BaseException | None = None) -> None:
        self.calls = 0
        self._failures = failures
        self._error = error or ConnectionError("down")

    def call(self) -> int:
        self.calls += 1
        if self.calls <= self._failures:
            raise self._error
        return self.calls

    async def acall(self) -> int:
        return self.call()


# By its policy


def test_each_failed_try_is_logged_with_its_error_and_the_last_one_with_its_traceback(
    app: Rowlock, caplog: pytest.LogCaptureFixture
) -> None:
    @app.workflow(name="w")
    async def w(ctx: Context) -> int:
        return await ctx.using(retry=Retry(attempts=2, base=MOMENT)).step(Flaky(2).call)

    job = w.enqueue()
    with caplog.at_level("INFO", "rowlock.workflow"), travel(app, HOUR):
        drain(app)

    first, last = caplog.records
    assert first.getMessage().startswith(f"w {job.id}: step call failed in try 1 of 2 and is tried again in ")
    assert last.getMessage() == f"w {job.id}: step call failed for good in try 2 of 2: ConnectionError: down"
    assert (first.levelname, last.levelname) == ("WARNING", "ERROR")
    assert {(vars(record)["job_id"], vars(record)["step"]) for record in caplog.records} == {(str(job.id), "call")}
    assert caplog.text.count("raise self._error") == 1


def test_a_step_is_tried_again_by_its_policy_and_nothing_else_is(app: Rowlock) -> None:
    before, flaky, aflaky = Flaky(0), Flaky(2), Flaky(1)

    @app.workflow(name="w", retry=AT_ONCE)
    async def w(ctx: Context) -> list[int]:
        return [await ctx.step(before.call), await ctx.step(flaky.call), await ctx.step(aflaky.acall)]

    job = w.enqueue()
    drained = drain(app)

    assert job.result(AT_MOST) == [1, 3, 2]
    assert ended(drained) == ["parked"] * 3 + ["succeeded"]
    assert before.calls == 1
    assert [(step.key, step.attempts) for step in app.workflows.show(job.id)] == [
        ("call", 0),
        ("call#2", 2),
        ("acall", 1),
    ]


def test_between_two_tries_nothing_is_held_and_the_count_is_durable(app: Rowlock, db: Db) -> None:
    flaky = Flaky(2)

    @app.workflow(name="w")
    async def w(ctx: Context) -> int:
        return await ctx.using(retry=Retry(attempts=3, base=HOUR, cap=HOUR, jitter=0.0)).step(flaky.call)

    job = w.enqueue()
    drain(app)
    first = db.execute(
        "select state, attempts, error ->> 'message', until > rowlock.now() + '59 min' from rowlock.steps"
    )
    waits = first.fetchall()
    row = one(db, "select state || ' ' || (run_at > rowlock.now() + '59 min')::text from rowlock.jobs")
    drain(app)
    with travel(app, HOUR):
        drain(app)
        with travel(app, HOUR):
            drain(app)

    assert waits == [("retrying", 1, "down", True)]
    assert row == "ready true"
    assert (job.result(AT_MOST), flaky.calls) == (3, 3)


def test_a_step_that_has_failed_for_good_has_failed_so_in_every_attempt(app: Rowlock) -> None:
    flaky = Flaky(9)
    caught: list[tuple[str, ...]] = []

    @app.workflow(name="w")
    async def w(ctx: Context) -> str:
        try:
            await ctx.using(name="pay", retry=AT_ONCE).step(flaky.call)
        except StepFailed as error:
            caught.append((error.step, error.error_type, error.message, str(error.attempts), *error.__notes__))
        await ctx.sleep(MOMENT)
        return "without it"

    job = w.enqueue()

    assert play(app, job) == "without it"
    assert flaky.calls == 3
    assert len(caught) == 2
    assert caught[0][:4] == ("pay", "ConnectionError", "down", "3")
    assert "raise self._error" in caught[0][4]
    assert caught[0] == caught[1]
    assert steps(app, job) == [("pay", "failed"), ("sleep", "done")]


def test_a_failure_that_the_code_does_not_catch_fails_the_workflow_at_once(app: Rowlock, db: Db) -> None:
    flaky = Flaky(9)

    @app.workflow(name="w", retry=ONCE)
    async def w(ctx: Context) -> None:
        await ctx.step(flaky.call)

    job = w.enqueue()
    drained = drain(app)

    with pytest.raises(JobFailed, match="step 'call' failed \\(1 attempt\\): ConnectionError: down"):
        job.result(AT_MOST)
    assert ended(drained) == ["failed"]
    assert isinstance(drained.errors[0], StepFailed)
    assert drained.errors[0].error_type == "ConnectionError"
    assert one(db, "select reason from rowlock.history") == "raised"
    assert kept(app, job, "failure") == {"reason": "raised", "step": "call"}


def test_errors_that_the_policy_does_not_want_are_not_tried_again(app: Rowlock) -> None:
    typed, asked = Flaky(9, KeyError("a")), Flaky(9)

    @app.workflow(name="w", retry=Retry(on=ConnectionError))
    async def w(ctx: Context) -> None:
        with pytest.raises(StepFailed, match="1 attempt"):
            await ctx.step(typed.call)
        with pytest.raises(StepFailed, match="1 attempt"):
            await ctx.using(name="asked", retry=Retry(on=lambda error: "up" in str(error))).step(asked.call)

    play(app, w.enqueue())

    assert (typed.calls, asked.calls) == (1, 1)


# In other words


def test_a_step_may_snooze_as_often_as_it_likes_and_spends_nothing(app: Rowlock) -> None:
    flaky = Flaky(5, Snooze(timedelta(0)))

    @app.workflow(name="w", retry=ONCE)
    async def w(ctx: Context) -> int:
        return await ctx.step(flaky.call)

    job = w.enqueue()

    assert play(app, job) == 6
    assert [(step.key, step.attempts) for step in app.workflows.show(job.id)] == [("call", 0)]


def test_retry_after_says_when_and_spends_an_attempt_whatever_the_policy_wants(app: Rowlock, db: Db) -> None:
    flaky = Flaky(9, RetryAfter(HOUR))

    @app.workflow(name="w", retry=Retry(attempts=2, on=KeyError))
    async def w(ctx: Context) -> None:
        await ctx.step(flaky.call)

    job = w.enqueue()
    drain(app)
    due = one(db, "select until between rowlock.now() + '59 min' and rowlock.now() + '61 min' from rowlock.steps")
    with travel(app, HOUR):
        drain(app)

    assert due
    assert flaky.calls == 2
    with pytest.raises(JobFailed, match="RetryAfter"):
        job.result(AT_MOST)


def test_a_step_may_cancel_its_workflow(app: Rowlock) -> None:
    undone: list[str] = []

    def refuse() -> None:
        raise Cancel("not for sale")

    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        ctx.undo(undone.append, "it")
        await ctx.step(refuse)

    job = w.enqueue()
    drain(app)

    with pytest.raises(JobCancelled, match="not for sale"):
        job.result(AT_MOST)
    assert undone == ["it"]


# Time-outs


def test_a_try_that_takes_too_long_has_failed(app: Rowlock) -> None:
    began: list[str] = []
    never = threading.Event()

    async def hang() -> None:
        began.append("async")
        await asyncio.Event().wait()

    def hang_in_thread() -> None:
        began.append("sync")
        never.wait(20)

    @app.workflow(name="w", retry=Retry(attempts=2, base=timedelta(0), cap=timedelta(0)))
    async def w(ctx: Context) -> None:
        short = ctx.using(timeout=timedelta(milliseconds=20))
        with pytest.raises(StepFailed, match="TimeoutError: step 'hang' took longer than its"):
            await short.step(hang)
        with pytest.raises(StepFailed, match="TimeoutError: step 'hang_in_thread' took longer"):
            await short.step(hang_in_thread)

    async def story() -> None:
        async with app:
            job = await w.aenqueue()
            async with app.worker(grace=timedelta(seconds=5)):
                await job.aresult(timedelta(seconds=30))
            never.set()

    asyncio.run(story())

    assert began == ["async", "async", "sync", "sync"]


def test_a_timeout_of_its_own_is_an_error_like_any(app: Rowlock) -> None:
    async def hang() -> None:
        async with asyncio.timeout(0):
            await asyncio.Event().wait()

    @app.workflow(name="w", retry=ONCE)
    async def w(ctx: Context) -> None:
        with pytest.raises(StepFailed, match="TimeoutError"):
            await ctx.using(timeout=HOUR).step(hang)

    play(app, w.enqueue())
