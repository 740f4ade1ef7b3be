"""An undo runs to its end: whatever stops its worker, and whoever cancels what meanwhile, none is left out."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from rowlock import Cancel, Retry, Rowlock, current_job
from rowlock.errors import JobCancelled
from rowlock.testing import drain
from rowlock.worker.lease import Lease
from rowlock.worker.run import Runner
from rowlock.workflow.context import Context
from tests.rows import Db
from tests.waiting import auntil, until
from tests.worker.working import one, work_until
from tests.workflow.playing import AT_ONCE, ONCE

SOON = timedelta(seconds=30)
HISTORY = "select state, reason from rowlock.history where version is not null"


def in_history(db: Db) -> Callable[[], Any]:
    return lambda: one(db, "select exists (select from rowlock.history where version is not null)")


@pytest.mark.parametrize("grace", [timedelta(0), timedelta(seconds=20)], ids=["at once", "in its grace"])
@pytest.mark.parametrize("how", ["failed", "cancelled"])
def test_what_a_stopped_worker_has_not_undone_the_next_one_undoes(
    app: Rowlock, db: Db, how: str, grace: timedelta, monkeypatch: pytest.MonkeyPatch
) -> None:
    log: list[str] = []
    drained: list[bool] = []
    drain_runner = Runner.drain

    def drain(runner: Runner) -> None:
        drain_runner(runner)
        drained.append(True)

    monkeypatch.setattr(Runner, "drain", drain)
    began: list[bool] = []

    async def release(what: str) -> None:
        if not began:
            began.append(True)
            await auntil(lambda: drained, what="the worker gives back what has not begun")
            if not grace:
                await asyncio.Event().wait()
        log.append(what)

    @app.workflow(name="w", fails_on=ValueError)
    async def w(ctx: Context) -> None:
        for what in "abc":
            ctx.undo(release, what)
            await ctx.using(name=what).step(print, what)
        if how == "failed":
            raise ValueError("no")
        await ctx.signal("go")

    async def story() -> None:
        async with app:
            job = await w.aenqueue()
            async with app.worker(grace=grace):
                if how == "cancelled":
                    await auntil(lambda: one(db, "select count(*) from rowlock.jobs where waits_for = 'signal'"))
                    await job.acancel()
                await auntil(lambda: began)
        assert (await job.arecord()).state == "ready"

    asyncio.run(story())
    assert log == ["c"] * bool(grace)
    work_until(app, in_history(db))

    assert log == ["c", "b", "a"]
    assert db.execute(HISTORY).fetchall() == [("failed", "raised") if how == "failed" else ("cancelled", "asked")]


@pytest.mark.parametrize("how", ["failed", "cancelled"])
def test_a_cancel_does_not_stop_an_undo(app: Rowlock, db: Db, how: str) -> None:
    """Its mark stays on the row, and the worker looks for marks again: it has when the other job has stopped."""
    log: list[str] = []

    @app.task(name="other")
    async def other() -> None:
        await asyncio.Event().wait()

    beside = [other.enqueue(), other.enqueue()]

    async def slow() -> None:
        log.append("begin")
        await job.acancel()
        one_beside = beside.pop()
        await one_beside.acancel()
        with pytest.raises(JobCancelled):
            await one_beside.aresult(SOON)
        assert not current_job().cancelled
        log.append("end")

    def slow_in_a_thread() -> None:
        log.append("begin")
        job.cancel()
        one_beside = beside.pop()
        one_beside.cancel()
        with pytest.raises(JobCancelled):
            one_beside.result(SOON)
        current_job().check()
        log.append("end")

    @app.workflow(name="w", fails_on=ValueError)
    async def w(ctx: Context) -> None:
        ctx.undo(slow_in_a_thread)
        ctx.undo(slow)  # first: an attempt is stopped once, and never in a thread
        if how == "failed":
            raise ValueError("no")
        await ctx.signal("go")

    job = w.enqueue()
    if how == "cancelled":
        work_until(app, lambda: one(db, "select count(*) from rowlock.jobs where waits_for = 'signal'"))
        job.cancel()
    work_until(app, in_history(db))

    assert log == ["begin", "end"] * 2
    assert db.execute(HISTORY).fetchall() == [("cancelled", "asked")]


def test_one_that_is_cancelled_outside_of_its_steps_undoes_all_that_it_remembers(app: Rowlock, db: Db) -> None:
    """It hangs, say for a connection, before it comes to an undo. A replay comes to it."""
    log: list[str] = []
    began = threading.Event()

    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        await ctx.step(print, "reserve")
        if not began.is_set():
            began.set()
            await asyncio.Event().wait()
        ctx.undo(log.append, "release")
        await ctx.signal("go")

    async def story() -> None:
        async with app, app.worker(grace=SOON):
            job = await w.aenqueue()
            await auntil(began.is_set)
            await job.acancel()
            with pytest.raises(JobCancelled):
                await job.aresult(SOON)

    asyncio.run(story())

    assert log == ["release"]


def test_a_fork_that_is_cancelled_before_it_begins_undoes_what_it_remembers(app: Rowlock) -> None:
    log: list[str] = []

    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        await ctx.step(print, "reserve")
        ctx.undo(log.append, "release")
        await ctx.signal("go")

    job = w.enqueue()
    drain(app)
    fork = app.workflows.fork(job.id, from_step="go")
    fork.cancel()
    drain(app)

    assert log == ["release"]
    assert fork.record().state == "cancelled"


def test_a_long_branch_that_a_sibling_cuts_short_is_undone_whole(app: Rowlock) -> None:
    """A replay pauses after so many steps, and the sibling fails in that pause, in every replay."""
    log: list[str] = []

    async def fails() -> None:
        raise ValueError("no")

    @app.workflow(name="w", retry=ONCE)
    async def w(ctx: Context) -> None:
        async def long() -> None:
            for number in range(300):
                await ctx.using(name="do").step(int, number)
            ctx.undo(log.append, "the long one")
            done.set()
            await ctx.signal("go")

        async def short() -> None:
            await done.wait()
            await ctx.step(fails)

        done = asyncio.Event()
        if replays:
            done.set()
        replays.append(True)
        async with asyncio.TaskGroup() as group:
            group.create_task(long())
            group.create_task(short())

    replays: list[bool] = []
    job = w.enqueue()
    assert len(drain(app, limit=5)) <= 3

    assert log == ["the long one"]
    assert job.record().reason == "raised"


class Odd(BaseException):
    """Of no kind that anybody knows."""


@pytest.mark.parametrize("error", [Cancel("no"), asyncio.CancelledError(), Odd(), GeneratorExit()], ids=repr)
def test_whatever_an_undo_raises_is_an_error_of_that_undo(app: Rowlock, error: BaseException) -> None:
    log: list[str] = []

    async def odd() -> None:
        log.append("odd")
        raise error

    @app.workflow(name="w", retry=Retry(attempts=2, base=timedelta(0)), fails_on=ValueError)
    async def w(ctx: Context) -> None:
        ctx.undo(log.append, "first")
        ctx.undo(odd)
        raise ValueError("no")

    job = w.enqueue()
    drain(app, limit=5)

    assert log == ["odd", "odd", "first"]
    assert job.record().reason == "raised; could not be undone: undo/odd"


def test_what_could_not_be_undone_is_said_of_one_that_is_cancelled_meanwhile_too(app: Rowlock) -> None:
    def stuck() -> None:
        job.cancel()
        raise ValueError("it does not open")

    @app.workflow(name="w", retry=ONCE, fails_on=ValueError)
    async def w(ctx: Context) -> None:
        ctx.undo(stuck)
        raise ValueError("no")

    job = w.enqueue()
    drain(app)

    assert job.record().reason == "asked; could not be undone: undo/stuck"


def test_a_task_that_the_code_has_left_behind_does_not_make_an_undo_wait(app: Rowlock) -> None:
    log: list[str] = []

    @app.workflow(name="w", retry=AT_ONCE, fails_on=ValueError)
    async def w(ctx: Context) -> None:
        async def stubborn() -> None:
            for _ in range(2):
                try:
                    await ctx.signal("go")
                except asyncio.CancelledError:
                    log.append("swallowed")

        task = asyncio.create_task(stubborn())
        ctx.undo(log.append, "undone")
        await asyncio.sleep(0)
        raise ValueError(task.get_name())

    job = w.enqueue()
    drain(app)

    assert log[-1] == "undone"
    assert job.record().state == "failed"


def test_a_stop_that_the_code_makes_an_error_of_fails_nothing(app: Rowlock, db: Db) -> None:
    log: list[str] = []
    began = threading.Event()

    async def rude() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ConnectionError("closed") from None

    @app.workflow(name="w", retry=ONCE)
    async def w(ctx: Context, kind: str) -> str:
        ctx.undo(log.append, "undone")
        if began.is_set():
            return "well"
        await (ctx.step(rude) if kind == "step" else rude())
        return "never"

    for kind in ("step", "code"):
        began.clear()
        job = w.enqueue(kind)

        async def story() -> None:
            async with app.worker(grace=timedelta(0)):
                await auntil(began.is_set)

        asyncio.run(story())
        until(lambda: one(db, "select count(*) from rowlock.jobs where state = 'ready'"))
        drain(app)
        assert job.result(SOON) == "well"
    assert log == []


def test_a_step_does_not_begin_when_the_lease_is_over(app: Rowlock, db: Db, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its worker was suspended: what it has read of the record may be old, and the step be done by another one."""
    log: list[str] = []

    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        await ctx.step(print, "first")
        if not log:
            log.append("suspended")
            for lease in (one for one in gc.get_objects() if type(one) is Lease):
                monkeypatch.setattr(lease, "_until", 0.0)
        else:
            log.append("comes back")
        await ctx.using(name="second").step(log.append, "second")

    job = w.enqueue()
    work_until(app, in_history(db))

    assert job.record().state == "succeeded"
    assert log[:2] == ["suspended", "comes back"]
