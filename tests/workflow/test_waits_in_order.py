"""Waits: of several the one that came first, whoever looks and when; and what is waited for no more is closed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from rowlock import Rowlock
from rowlock.errors import SignalTimeout
from rowlock.testing import drain, travel
from rowlock.workflow.context import Context
from tests.rows import Db
from tests.worker.working import one
from tests.workflow.playing import AT_MOST, DAY, HOUR, play, steps

OPEN = "select key, kind from rowlock.steps where state = 'open' order by key"


def test_signals_of_several_names_are_taken_in_the_order_in_which_they_came(app: Rowlock) -> None:
    @app.workflow(name="w")
    async def w(ctx: Context) -> list[str]:
        await ctx.signal("begin")
        return [(await ctx.any(ctx.signal("b"), ctx.signal("a"))).value for _ in range(4)]

    job = w.enqueue()
    drain(app)
    for name, payload in (("a", "1"), ("b", "2"), ("a", "3"), ("b", "4"), ("begin", None)):
        app.signal(job, name, payload)

    assert play(app, job) == ["1", "2", "3", "4"]


@pytest.mark.parametrize("how", ["timeout", "any"])
def test_a_signal_after_its_deadline_is_late_though_nobody_looked_before(app: Rowlock, how: str) -> None:
    @app.workflow(name="w")
    async def w(ctx: Context) -> str:
        if how == "any":
            return str((await ctx.any(paid=ctx.signal("paid"), late=ctx.sleep(HOUR))).which)
        try:
            return str(await ctx.signal("paid", timeout=HOUR))
        except SignalTimeout:
            return "late"

    job = w.enqueue()
    drain(app)
    with travel(app, 2 * HOUR):
        app.signal(job, "paid", "paid")

        assert play(app, job) == "late"


@pytest.mark.parametrize("how", ["timeout", "any"])
def test_a_signal_before_its_deadline_is_in_time_though_nobody_looked_until_after(app: Rowlock, how: str) -> None:
    @app.workflow(name="w")
    async def w(ctx: Context) -> str:
        if how == "any":
            return str((await ctx.any(late=ctx.sleep(HOUR), paid=ctx.signal("paid"))).which)
        return str(await ctx.signal("paid", timeout=HOUR))

    job = w.enqueue()
    drain(app)
    with travel(app, HOUR / 2):
        app.signal(job, "paid", "paid")
    with travel(app, 2 * HOUR):
        assert play(app, job) == "paid"


def test_a_late_signal_is_there_for_the_next_wait(app: Rowlock) -> None:
    @app.workflow(name="w")
    async def w(ctx: Context) -> list[str]:
        try:
            return [await ctx.signal("paid", timeout=HOUR)]
        except SignalTimeout:
            return ["late", await ctx.signal("paid", timeout=DAY)]

    job = w.enqueue()
    drain(app)
    with travel(app, 2 * HOUR):
        app.signal(job, "paid", "7")
        assert play(app, job) == ["late", "7"]


def test_of_a_child_and_a_signal_the_first_that_came_wins(app: Rowlock) -> None:
    @app.task(name="child")
    def child() -> str:
        return "child"

    @app.workflow(name="w")
    async def w(ctx: Context) -> Any:  # noqa: ANN401  which
        await ctx.signal("begin")
        first = await ctx.any(ctx.run(child.bind()), ctx.signal("told"))
        return [first.which, first.value]

    early, late = w.enqueue(), w.enqueue()
    drain(app)
    app.signal(early, "told", "signal")
    for job in (early, late):
        app.signal(job, "begin")

    assert play(app, early) == [1, "signal"]
    assert play(app, late) == [0, "child"]


def test_what_lost_is_closed_and_wakes_and_asks_nobody_for_nothing(app: Rowlock, db: Db) -> None:
    @app.workflow(name="w")
    async def w(ctx: Context) -> int:
        for reminders in range(100):
            first = await ctx.any(idle=ctx.sleep(DAY), approved=ctx.signal("approved", schema=bool))
            if first.which == "approved":
                return reminders
        return -1

    job = w.enqueue()
    drain(app)
    for _ in range(3):
        app.signal(job, "unwanted")  # has it look, and park again
        drain(app)
    for day in range(1, 4):
        with travel(app, day * DAY + HOUR):
            drain(app)

            assert len(db.execute(OPEN).fetchall()) == 2
            [approval] = db.execute("select key from rowlock.steps where state = 'open' and kind = 'signal'").fetchall()
            assert approval == (f"approved#{day + 1}",)
    app.signal(job, "approved", payload=True)
    assert play(app, job) == 3
    assert dict(steps(app, job))["approved"] == "closed"


def test_ten_open_waits_wake_it_once_each_and_never_for_nothing(app: Rowlock, db: Db) -> None:
    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        for _ in range(10):
            await ctx.any(ctx.signal("message"), ctx.sleep(HOUR))
        await ctx.signal("end")

    job = w.enqueue()
    drain(app)
    for _ in range(10):
        app.signal(job, "message")
        drain(app)
    claims = one(db, "select claims from rowlock.jobs")
    with travel(app, 2 * HOUR):
        drain(app)

    assert one(db, "select claims from rowlock.jobs") == claims
    assert db.execute(OPEN).fetchall() == [("end", "signal")]


def test_a_wait_that_lost_may_be_waited_for_again_and_keeps_its_time(app: Rowlock, db: Db) -> None:
    @app.workflow(name="w")
    async def w(ctx: Context) -> list[Any]:
        deadline, said = ctx.sleep(DAY), ctx.signal("said", timeout=2 * DAY)
        first = await ctx.any(ctx.signal("go"), deadline, said)
        await ctx.signal("between")
        return [first.which, (await ctx.any(deadline, said)).which]

    job = w.enqueue()
    drain(app)
    app.signal(job, "go")
    drain(app)
    assert db.execute(OPEN).fetchall() == [("between", "signal")]
    app.signal(job, "between")
    drain(app)
    assert db.execute(OPEN).fetchall() == [("said", "signal"), ("sleep", "sleep")]
    assert one(db, "select until < rowlock.now() + interval '25 hours' from rowlock.steps where key = 'sleep'")
    with travel(app, DAY + timedelta(minutes=1)):
        drain(app)

        assert job.result(AT_MOST) == [0, 0]
