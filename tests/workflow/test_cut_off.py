"""Steps that their own code cuts off: they are remembered as that, and do not run again."""

from __future__ import annotations

import asyncio
from typing import Any

from rowlock import Filter, Retry, Rowlock
from rowlock.errors import StepFailed
from rowlock.testing import drain, travel
from rowlock.workflow.context import Context
from tests.rows import Db
from tests.waiting import auntil
from tests.workflow.playing import HOUR, ONCE, blocked, ended, play, steps


async def _fails() -> None:
    raise ValueError("no")


def test_a_step_that_a_failed_sibling_cuts_off_does_not_run_again(app: Rowlock) -> None:
    began: list[bool] = []

    async def slow() -> None:
        began.append(True)
        await asyncio.Event().wait()

    async def fails() -> None:
        await auntil(lambda: began, what="the sibling has begun")
        raise ValueError("no")

    @app.workflow(name="w", retry=ONCE)
    async def w(ctx: Context) -> list[str]:
        caught: list[str] = []
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(ctx.using(name="cut").step(slow))
                group.create_task(ctx.step(fails))
        except* StepFailed as error:
            caught = [one.step for one in error.exceptions if isinstance(one, StepFailed)]
        for _ in range(5):
            await ctx.signal("go")
        return caught

    job = w.enqueue()
    drain(app)
    for _ in range(5):
        app.signal(job, "go")
        drain(app)

    assert play(app, job) == ["fails"]
    assert began == [True]
    assert dict(steps(app, job))["cut"] == "closed"


def test_a_step_that_is_cut_off_between_two_tries_is_not_tried_again(app: Rowlock) -> None:
    tries: list[bool] = []

    async def down() -> None:
        tries.append(True)
        raise ConnectionError("down")

    @app.workflow(name="w", retry=ONCE)
    async def w(ctx: Context) -> str:
        later = ctx.using(retry=Retry(attempts=9, base=HOUR, cap=HOUR))
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(later.step(down))
                group.create_task(_later(ctx, _fails))
        except* StepFailed:
            pass
        return str(await ctx.signal("go"))

    job = w.enqueue()
    drain(app)
    app.signal(job, "now")
    drain(app)
    with travel(app, 2 * HOUR):
        assert ended(drain(app)) == []
        app.signal(job, "go", "gone")

        assert play(app, job) == "gone"
    assert len(tries) == 1
    assert dict(steps(app, job))["down"] == "closed"


def test_a_wait_that_its_code_cuts_off_is_closed(app: Rowlock, db: Db) -> None:
    @app.workflow(name="w", retry=ONCE)
    async def w(ctx: Context) -> str:
        await ctx.any(ctx.signal("begin"), ctx.sleep(HOUR))
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(_both(ctx))
                group.create_task(_later(ctx, _fails))
        except* StepFailed:
            pass
        return str(await ctx.signal("go"))

    job = w.enqueue()
    drain(app)
    app.signal(job, "begin")
    drain(app)
    assert db.execute("select key from rowlock.steps where state = 'open' order by 1").fetchall() == [
        ("1/approval",),
        ("2/now",),
    ]
    app.signal(job, "now")
    drain(app)
    assert db.execute("select key from rowlock.steps where state = 'open'").fetchall() == [("go",)]
    app.signal(job, "go", "gone")

    assert play(app, job) == "gone"


async def _both(ctx: Context) -> None:
    await ctx.signal("approval", schema=bool)


async def _later(ctx: Context, fails: Any) -> None:  # noqa: ANN401  a function
    await ctx.signal("now")
    await ctx.step(fails)


def test_code_that_waits_for_what_it_had_cut_off_is_changed_code(url: str) -> None:
    began: list[bool] = []

    async def slow() -> None:
        began.append(True)
        await asyncio.Event().wait()

    async def fails() -> None:
        await auntil(lambda: began, what="the sibling has begun")
        raise ValueError("no")

    def deploy(*, changed: bool) -> Rowlock:
        app = Rowlock(url)

        @app.workflow(name="w", retry=ONCE)
        async def w(ctx: Context) -> None:
            if changed:
                await ctx.step(slow)
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(ctx.step(slow))
                    group.create_task(ctx.step(fails))
            except* StepFailed:
                pass
            await ctx.signal("go")

        return app

    with deploy(changed=False) as right:
        job = right.enqueue("w")
        drain(right)
        assert dict(steps(right, job))["slow"] == "closed"
        right.signal(job, "go")
    with deploy(changed=True) as wrong:
        drain(wrong)
        assert "the code waits for step 'slow', which it has cut off, and for nothing else" in blocked(job)


def test_the_cause_of_a_failed_step_is_the_same_in_every_attempt(app: Rowlock) -> None:
    causes: list[object] = []

    @app.workflow(name="w", retry=ONCE)
    async def w(ctx: Context) -> None:
        try:
            await ctx.step(_fails)
        except StepFailed as error:
            causes.append((error.__cause__, error.__context__, error.error_type))
        await ctx.signal("go")

    job = w.enqueue()
    drain(app)
    app.signal(job, "go")
    play(app, job)

    assert causes == [(None, None, "ValueError")] * 2


def test_what_was_cut_off_runs_again_when_the_workflow_is_retried_from_the_failure(app: Rowlock) -> None:
    began: list[bool] = []
    fixed: list[bool] = []

    async def slow() -> str:
        began.append(True)
        if not fixed:
            await asyncio.Event().wait()
        return "slow"

    async def fails() -> str:
        await auntil(lambda: began, what="the sibling has begun")
        if not fixed:
            raise ValueError("no")
        return "fixed"

    @app.workflow(name="w", retry=ONCE)
    async def w(ctx: Context) -> list[str]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(ctx.step(slow)), group.create_task(ctx.step(fails))]
        return [task.result() for task in tasks]

    job = w.enqueue()
    drain(app)
    assert job.record().state == "failed"
    fixed.append(True)
    assert app.jobs.retry(Filter(ids=[job.id])).changed == 1

    assert play(app, job) == ["slow", "fixed"]
