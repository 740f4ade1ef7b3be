"""Undo: what was done is undone, the latest first, when a workflow fails or is cancelled; each durably, and once."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from typing import Any

import pytest

from rowlock import Cancel, Retry, Rowlock, current_job
from rowlock.errors import JobCancelled, JobFailed, WorkflowError
from rowlock.testing import drain, travel
from rowlock.workflow.context import Context
from tests.rows import Db
from tests.waiting import auntil, until
from tests.worker.working import one, work_until
from tests.workflow.playing import AT_MOST, AT_ONCE, HOUR, MOMENT, ONCE, blocked, ended, kept, play, steps


class Shop:
    """What was done, and undone."""

    def __init__(self) -> None:
        self.log: list[str] = []

    def do(self, what: str) -> str:
        self.log.append(f"do {what}")
        return what

    def undo(self, what: str) -> None:
        self.log.append(f"undo {what}")


def test_a_workflow_that_fails_undoes_the_latest_first_and_is_failed_then(app: Rowlock) -> None:
    shop = Shop()

    @app.workflow(name="w", fails_on=ValueError)
    async def w(ctx: Context) -> None:
        for what in ("a", "b"):
            await ctx.step(shop.do, what)
            ctx.undo(shop.undo, what)
            await ctx.sleep(MOMENT)
        ctx.using(name="call off").undo(shop.undo, what="c")
        raise ValueError("sold out")

    job = w.enqueue()
    drain(app)

    with pytest.raises(JobFailed, match="sold out") as caught:
        job.result(AT_MOST)
    assert caught.value.reason == "raised"
    assert shop.log == ["do a", "do b", "undo c", "undo b", "undo a"]
    assert steps(app, job)[-4:] == [
        ("failure", "done"),
        ("undo/call off", "done"),
        ("undo/undo#2", "done"),
        ("undo/undo", "done"),
    ]


def test_one_that_succeeds_undoes_nothing(app: Rowlock) -> None:
    shop = Shop()

    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        ctx.undo(shop.undo, "a")
        await ctx.sleep(MOMENT)

    play(app, w.enqueue())

    assert shop.log == []


def test_one_that_cancels_itself_is_undone(app: Rowlock) -> None:
    shop = Shop()

    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        ctx.undo(shop.undo, "a")
        raise Cancel("nobody wants it")

    job = w.enqueue()
    drain(app)

    with pytest.raises(JobCancelled, match="nobody wants it"):
        job.result(AT_MOST)
    assert shop.log == ["undo a"]


def test_one_that_is_cancelled_while_it_waits_is_undone_and_begins_nothing_new(app: Rowlock, db: Db) -> None:
    shop = Shop()

    @app.workflow(name="w")
    async def w(ctx: Context, wait: str) -> None:
        await ctx.step(shop.do, "a")
        ctx.undo(shop.undo, "a")
        if wait == "signal":
            await ctx.signal("go")
        else:
            await ctx.sleep(HOUR)
        await ctx.step(shop.do, "b")

    jobs = [w.enqueue("signal"), w.enqueue("sleep")]
    drain(app)
    for job in jobs:
        job.cancel(why="no more")
    with travel(app, HOUR):
        drain(app)

    assert shop.log == ["do a"] * 2 + ["undo a"] * 2
    assert db.execute("select state, reason from rowlock.history").fetchall() == [("cancelled", "asked")] * 2


def test_one_that_is_cancelled_before_it_has_begun_has_nothing_to_undo(app: Rowlock) -> None:
    shop = Shop()

    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        ctx.undo(shop.undo, "a")

    job = w.enqueue()
    job.cancel()

    assert len(drain(app)) == 0
    assert shop.log == []


def test_an_undo_that_fails_is_tried_again_and_those_that_are_done_are_not(app: Rowlock) -> None:
    shop = Shop()

    def flaky(what: str) -> None:
        shop.undo(what)
        if shop.log.count(f"undo {what}") < 3:
            raise ConnectionError("down")

    @app.workflow(name="w", retry=Retry(attempts=3, base=HOUR, cap=HOUR, jitter=0.0), fails_on=ValueError)
    async def w(ctx: Context) -> None:
        ctx.undo(shop.undo, "a")
        ctx.using(retry=AT_ONCE).undo(flaky, "b")
        ctx.undo(flaky, "c")
        ctx.undo(shop.undo, "d")
        raise ValueError("no")

    job = w.enqueue()
    drain(app)
    parked = list(shop.log)
    with travel(app, HOUR):
        drain(app)
    with travel(app, 2 * HOUR):
        drain(app)

    assert parked == ["undo d", "undo c"]
    assert shop.log == ["undo d", *["undo c"] * 3, *["undo b"] * 3, "undo a"]
    with pytest.raises(JobFailed, match="ValueError: no"):
        job.result(AT_MOST)


def test_an_undo_that_fails_for_good_does_not_keep_the_others_and_is_named(app: Rowlock, db: Db) -> None:
    shop = Shop()

    def broken() -> None:
        raise KeyError("gone")

    @app.workflow(name="w", retry=ONCE, fails_on=ValueError)
    async def w(ctx: Context) -> None:
        ctx.undo(shop.undo, "a")
        ctx.undo(broken)
        ctx.undo(shop.undo, "c")
        raise ValueError("no")

    job = w.enqueue()
    drain(app)

    assert shop.log == ["undo c", "undo a"]
    assert one(db, "select reason from rowlock.history") == "raised; could not be undone: undo/broken"
    assert steps(app, job)[1:] == [("undo/undo#2", "done"), ("undo/broken", "failed"), ("undo/undo", "done")]


def test_branches_that_end_in_another_order_are_undone_each_once(app: Rowlock) -> None:
    """The stack is made anew by each replay, in which they end in the order of the code."""
    shop, turn = Shop(), asyncio.Event()

    async def reserve(what: str) -> str:
        if what == "a":
            await turn.wait()
        turn.set()
        return shop.do(what)

    def release(what: str) -> None:
        shop.undo(what)
        if shop.log.count(f"undo {what}") < 2:
            raise ConnectionError("down")

    @app.workflow(name="w", retry=AT_ONCE, fails_on=ValueError)
    async def w(ctx: Context) -> None:
        async def branch(what: str) -> None:
            await ctx.step(reserve, what)
            ctx.undo(release, what)

        await asyncio.gather(branch("a"), branch("b"))
        raise ValueError("no")

    job = w.enqueue()
    drain(app)

    assert shop.log[:2] == ["do b", "do a"]
    assert sorted(shop.log[2:]) == ["undo a"] * 2 + ["undo b"] * 2
    assert dict(steps(app, job))["undo/1/release"] == dict(steps(app, job))["undo/2/release"] == "done"


def test_what_was_recorded_in_the_moment_of_a_failure_elsewhere_is_undone(app: Rowlock) -> None:
    """Its branch had no time to say so; a replay has."""
    shop = Shop()

    async def fails() -> None:
        raise ValueError("no")

    @app.workflow(name="w", retry=ONCE)
    async def w(ctx: Context) -> None:
        async def branch(what: str) -> None:
            await ctx.using(name=what).step(shop.do, what)
            ctx.undo(shop.undo, what)

        async with asyncio.TaskGroup() as group:
            for what in "abc":
                group.create_task(branch(what))
            group.create_task(ctx.step(fails))

    job = w.enqueue()
    drain(app)

    recorded = {key.partition("/")[2] for key, state in steps(app, job) if state == "done" and key[:1].isdigit()}
    assert {entry.removeprefix("undo ") for entry in shop.log if entry.startswith("undo")} == recorded
    with pytest.raises(JobFailed):
        job.result(AT_MOST)


def test_one_that_is_cancelled_while_it_runs_is_stopped_and_undone(app: Rowlock, db: Db) -> None:
    shop, began = Shop(), threading.Event()

    async def hang(what: str) -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            shop.log.append(f"stopped {what}")

    def hang_in_thread(what: str) -> None:
        began.set()
        until(lambda: current_job().cancelled, what="the thread is told")
        shop.do(what)

    @app.workflow(name="w")
    async def w(ctx: Context, kind: str) -> None:
        await ctx.step(shop.do, "a")
        ctx.undo(shop.undo, "a")
        await ctx.step(hang if kind == "async" else hang_in_thread, kind)
        ctx.undo(shop.undo, kind)
        await ctx.step(shop.do, "never")

    async def story(kind: str) -> None:
        began.clear()
        async with app.worker(grace=timedelta(seconds=5)):
            job = await w.aenqueue(kind)
            await auntil(began.is_set)
            await job.acancel()
            with pytest.raises(JobCancelled):
                await job.aresult(timedelta(seconds=30))

    async def stories() -> None:
        async with app:
            await story("async")
            await story("sync")

    asyncio.run(stories())

    assert shop.log[:3] == ["do a", "stopped async", "undo a"]
    assert shop.log[3:] == ["do a", "do sync", "undo sync", "undo a"]
    assert db.execute("select state, reason from rowlock.history").fetchall() == [("cancelled", "asked")] * 2


def test_one_that_is_cancelled_at_its_very_end_is_undone(app: Rowlock, db: Db) -> None:
    """It returns, and somebody has asked meanwhile: it has succeeded for nobody."""
    shop = Shop()

    @app.workflow(name="w")
    async def w(ctx: Context) -> str:
        await ctx.step(shop.do, "a")
        ctx.undo(shop.undo, "a")
        await asyncio.to_thread(lambda: app.jobs.get(ctx.id).cancel())
        return "done"

    w.enqueue()
    drain(app)

    assert shop.log == ["do a", "undo a"]
    assert db.execute("select state, reason from rowlock.history").fetchall() == [("cancelled", "asked")]


def test_workers_that_die_of_it_fail_it_and_it_is_undone(app: Rowlock, db: Db) -> None:
    shop = Shop()

    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        await ctx.step(shop.do, "a")
        ctx.undo(shop.undo, "a")
        await ctx.signal("go")
        shop.log.append("never")

    w.enqueue()
    drain(app)
    db.execute("update rowlock.jobs set crashes = 3, state = 'ready', waits_for = null, wakes_at = null")
    work_until(app, lambda: one(db, "select count(*) from rowlock.history"))

    assert shop.log == ["do a", "undo a"]
    assert db.execute("select state, reason from rowlock.history").fetchall() == [("failed", "poison")]


def test_a_workflow_that_parks_is_none_that_workers_die_of(app: Rowlock, db: Db) -> None:
    """In weeks many workers may die: only those count that died since it last came to a wait."""

    @app.workflow(name="w")
    async def w(ctx: Context) -> str:
        await ctx.signal("go")
        return "went"

    job = w.enqueue()
    for _ in range(4):
        db.execute("update rowlock.jobs set crashes = crashes + 1, state = 'ready', waits_for = null")
        drain(app)
    app.signal(job, "go")

    assert play(app, job) == "went"


def test_what_could_not_be_said_of_itself_does_not_keep_it_from_being_undone(app: Rowlock) -> None:
    shop = Shop()

    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        ctx.undo(shop.undo, "a")
        ctx.state["shop"] = shop
        await ctx.step(shop.do, "b")

    job = w.enqueue()
    drain(app)

    assert "cannot be JSON" in blocked(job)
    job.cancel()
    drain(app)

    assert shop.log == ["do b", "undo a"]
    with pytest.raises(JobCancelled):
        job.result(AT_MOST)


def test_an_undo_is_said_in_the_workflows_own_code(app: Rowlock) -> None:
    @app.workflow(name="w")
    async def w(ctx: Context) -> str:
        def step() -> None:
            with pytest.raises(WorkflowError, match=r"ctx.undo\(…\) inside of a step"):
                ctx.undo(print)

        await ctx.step(step)
        with pytest.raises(WorkflowError, match="a lambda has no name"):
            ctx.undo(lambda: None)
        return "told"

    assert play(app, w.enqueue()) == "told"


def test_what_an_undo_is_known_by_outside_is_the_same_in_every_try(app: Rowlock) -> None:
    keys: list[Any] = []

    @app.workflow(name="w", retry=AT_ONCE, fails_on=ValueError)
    async def w(ctx: Context) -> None:
        def refund() -> None:
            keys.append(ctx.idempotency_key)
            if len(keys) < 3:
                raise ConnectionError("down")

        keys_before.append(ctx.idempotency_key)
        ctx.undo(refund)
        raise ValueError("no")

    keys_before: list[str] = []
    job = w.enqueue()
    attempts = ended(drain(app))

    assert attempts == ["parked", "parked", "failed"]
    assert len(set(keys)) == 1
    assert keys[0] not in keys_before
    assert kept(app, job, "failure")["step"] is None
