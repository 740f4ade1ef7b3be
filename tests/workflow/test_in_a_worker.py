"""Workflows in a real worker: what every queue control means for them, and what they leave when it stops or dies."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from rowlock import Filter, Rowlock
from rowlock.errors import JobCancelled
from rowlock.testing import drain, travel
from rowlock.workflow.context import Context
from tests.rows import Db
from tests.waiting import auntil
from tests.worker.working import one, work_until, working
from tests.workflow.playing import AT_MOST, AT_ONCE, HOUR, MOMENT, ONCE, ended, steps

SOON = timedelta(seconds=30)


def test_it_works_as_in_a_drain(app: Rowlock, db: Db) -> None:
    """The verbs once, through a worker's own ledger: what the rest of these tests say of a drain's holds there."""
    calls: list[str] = []

    @app.task(name="child")
    async def child(number: int) -> int:
        return number * 10

    async def flaky() -> str:
        calls.append("flaky")
        if calls.count("flaky") < 2:
            raise ConnectionError("down")
        return "up"

    def sync() -> str:
        calls.append("sync")
        return "sync"

    @app.workflow(name="w", retry=AT_ONCE)
    async def w(ctx: Context) -> list[Any]:
        ctx.state["at"] = "steps"
        first = await asyncio.gather(ctx.step(flaky), ctx.step(sync), ctx.transaction(select_one))
        await ctx.sleep(MOMENT)
        ctx.state["at"] = "waits"
        said = await ctx.signal("say")
        late = await ctx.any(ctx.signal("never"), late=ctx.sleep(MOMENT))
        children = await ctx.map([child.bind(number) for number in range(5)], concurrency=2)
        return [*first, said, late.which, await ctx.run(child.bind(7)), children]

    job = w.using(key="w").enqueue()
    with working(app, slots=4):
        app.signal("w", "say", {"a": 1})
        result = job.result(SOON)

    assert result == ["up", "sync", 1, {"a": 1}, "late", 70, [0, 10, 20, 30, 40]]
    assert sorted(calls) == ["flaky", "flaky", "sync"]
    assert job.record().workflow_state == {"at": "waits"}
    assert one(db, "select count(*) from rowlock.steps") == one(db, "select count(*) from rowlock.signals") == 0


async def select_one(connection: Any) -> int:  # noqa: ANN401  a connection of the worker's
    [(number,)] = await (await connection.execute("select 1")).fetchall()
    return int(number)


def test_steps_of_many_workflows_share_their_statements(app: Rowlock, db: Db) -> None:
    async def nothing() -> None: ...

    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        for _ in range(5):
            await ctx.step(nothing)

    app.enqueue_many([w.bind() for _ in range(100)])
    before = one(db, "select sum(xact_commit) from pg_stat_database where datname = current_database()")
    work_until(app, lambda: one(db, "select count(*) = 100 from rowlock.history"), slots=100)
    db.execute("select pg_stat_force_next_flush()")
    after = one(db, "select sum(xact_commit) from pg_stat_database where datname = current_database()")

    assert one(db, "select count(*) from rowlock.history, json_array_elements(steps -> 'steps')") == 500
    assert after - before < 500


# When it stops


def test_a_worker_that_stops_hands_it_back_between_two_steps(app: Rowlock, db: Db) -> None:
    ran: list[int] = []
    began, go_on = asyncio.Event(), asyncio.Event()

    async def step(number: int) -> None:
        ran.append(number)
        began.set()
        await go_on.wait()

    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        for number in range(3):
            await ctx.step(step, number)

    async def story() -> None:
        async with app:
            await w.aenqueue()
            worker = app.worker(grace=SOON)
            async with worker:
                await began.wait()
                asyncio.get_running_loop().call_later(0.2, go_on.set)

    asyncio.run(story())
    row = db.execute("select state, claims, failures, crashes from rowlock.jobs").fetchall()
    go_on.set()
    left = list(ran)
    drain(app)

    assert left == [0]
    assert row == [("ready", 1, 0, 0)]
    assert ran == [0, 1, 2]


def test_one_that_is_cut_off_in_a_step_is_handed_back_and_runs_it_again(app: Rowlock, db: Db) -> None:
    ran: list[str] = []
    began = asyncio.Event()

    async def step() -> None:
        ran.append("step")
        if len(ran) == 1:
            began.set()
            await asyncio.Event().wait()

    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        await ctx.step(step)

    async def story() -> None:
        async with app:
            await w.aenqueue()
            async with app.worker(grace=timedelta(0)):
                await began.wait()

    asyncio.run(story())
    row = db.execute("select state, crashes from rowlock.jobs").fetchall()
    drain(app)

    assert row == [("ready", 0)]
    assert ran == ["step", "step"]


# Every queue control


def test_a_workflow_of_a_task_that_is_paused_waits_where_it_is(app: Rowlock, db: Db) -> None:
    @app.workflow(name="w")
    async def w(ctx: Context) -> str:
        await ctx.signal("go")
        return "went"

    job = w.enqueue()
    drain(app)
    app.tasks.pause("w", why="a rush")
    app.signal(job, "go")
    paused = ended(drain(app))
    row = db.execute("select state, waits_for from rowlock.jobs").fetchall()
    app.tasks.resume("w")

    assert paused == ["blocked"]
    assert row == [("waiting", "pause")]
    drain(app)
    assert job.result(AT_MOST) == "went"


def test_a_workflow_of_a_queue_that_is_paused_is_not_claimed(app: Rowlock) -> None:
    @app.workflow(name="w", queue="side")
    async def w(ctx: Context) -> str:
        await ctx.sleep(MOMENT)
        return "went"

    job = w.enqueue()
    app.queues.pause("side")
    paused = len(drain(app))
    app.queues.resume("side")
    drain(app)

    assert paused == 0
    assert job.result(AT_MOST) == "went"


def test_priority_and_queue_are_kept_over_every_attempt(app: Rowlock, db: Db) -> None:
    order: list[str] = []

    @app.workflow(name="w", queue="side", priority=1)
    async def w(ctx: Context, name: str) -> None:
        await ctx.sleep(MOMENT)
        await ctx.using(name="note").step(lambda: order.append(name))

    w.enqueue("plain")
    w.using(priority=3).enqueue("urgent")
    w.using(priority=-3).enqueue("idle")
    drain(app)

    assert order == ["urgent", "plain", "idle"]
    assert set(db.execute("select queue, priority from rowlock.history")) == {
        ("side", 1),
        ("side", 3),
        ("side", -3),
    }


def test_it_expires_only_as_long_as_it_has_not_begun(app: Rowlock, db: Db) -> None:
    @app.workflow(name="w", expires=HOUR)
    async def w(ctx: Context) -> str:
        await ctx.sleep(2 * HOUR)
        return "went"

    begun = w.enqueue()
    drain(app)
    unbegun = w.enqueue()
    with travel(app, 3 * HOUR):
        drain(app)

    assert begun.result(AT_MOST) == "went"
    with pytest.raises(JobCancelled, match="expired"):
        unbegun.result(AT_MOST)
    assert one(db, "select count(*) from rowlock.jobs") == 0


def test_starting_it_again_by_its_key_is_to_find_it_also_when_it_has_ended(app: Rowlock, db: Db) -> None:
    ran: list[str] = []

    @app.workflow(name="w")
    async def w(ctx: Context) -> str:
        await ctx.using(name="run").step(lambda: ran.append("ran"))
        await ctx.sleep(MOMENT)
        return "done"

    first = w.using(key="order:1").enqueue()
    same = w.using(key="order:1").enqueue()
    drain(app)
    later = w.using(key="order:1").enqueue()
    drain(app)

    assert first.id == same.id == later.id
    assert later.result(AT_MOST) == "done"
    assert ran == ["ran"]
    assert one(db, "select count(*) from rowlock.history") == 1


def test_one_that_has_failed_goes_on_from_the_step_that_failed(app: Rowlock) -> None:
    ran: list[str] = []

    def flaky() -> str:
        ran.append("flaky")
        if len(ran) < 3:
            raise ConnectionError("down")
        return "up"

    @app.workflow(name="w", retry=ONCE)
    async def w(ctx: Context) -> str:
        await ctx.using(name="first").step(lambda: ran.append("first"))
        await ctx.sleep(MOMENT)
        return await ctx.step(flaky)

    job = w.enqueue()
    drain(app)
    app.jobs.retry(Filter(ids=[job.id]))
    drain(app)

    assert ran == ["first", "flaky", "flaky"]
    assert job.result(AT_MOST) == "up"
    assert steps(app, job) == [("first", "done"), ("sleep", "done"), ("flaky", "done")]


def test_a_signal_to_one_that_runs_does_not_run_it_twice(app: Rowlock, db: Db) -> None:
    """It is there at the next wait of that attempt, or at the latest in the one that follows."""
    ran: list[str] = []
    began, go_on = asyncio.Event(), asyncio.Event()

    async def step() -> None:
        ran.append("step")
        began.set()
        await go_on.wait()

    @app.workflow(name="w")
    async def w(ctx: Context) -> Any:  # noqa: ANN401  a payload
        await ctx.step(step)
        return await ctx.signal("go")

    async def story() -> Any:  # noqa: ANN401  a payload
        async with app:
            job = await w.aenqueue()
            async with app.worker(grace=SOON, slots=4), app.worker(grace=SOON):
                await began.wait()
                await app.asignal(job, "go", 1)
                await auntil(lambda: one(db, "select wakes from rowlock.jobs"))
                go_on.set()
                return await job.aresult(SOON)

    assert asyncio.run(story()) == 1
    assert ran == ["step"]


def test_one_that_is_lost_as_it_ends_costs_its_worker_nothing(app: Rowlock, db: Db) -> None:
    """The last thing that it writes is that its sleep is over; by then its job is another's."""

    @app.workflow(name="w")
    async def w(ctx: Context, steal: bool) -> str:  # noqa: FBT001  an argument as JSON has it
        await ctx.sleep(timedelta(0))
        if steal:
            db.execute("update rowlock.jobs set token = gen_random_uuid() where id = %s", [ctx.id])
        return "done"

    stolen = w.enqueue(steal=True)
    with working(app, slots=1):
        other = w.enqueue(steal=False)
        result = other.result(SOON)

    assert result == "done"  # in the only slot
    assert stolen.record().ended_at is None  # that is for whoever holds it now
