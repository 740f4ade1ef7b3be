"""What gets on is not what its workers die of, and what several share is remembered once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from rowlock import Rowlock
from rowlock.testing import drain
from rowlock.workflow.context import Context
from tests.rows import Db
from tests.worker.working import one
from tests.workflow.playing import HOUR, ONCE, play, steps


def test_a_step_that_is_recorded_takes_the_crashes_before_it_off(app: Rowlock, db: Db) -> None:
    counted: list[int] = []

    def look() -> None:
        counted.append(one(db, "select crashes from rowlock.jobs"))

    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        await ctx.step(look)
        await ctx.using(name="again").step(look)

    w.enqueue()
    db.execute("update rowlock.jobs set crashes = 2, claims = 2")
    drain(app)

    assert counted == [2, 0]


@pytest.mark.parametrize("times", [1, 2])
def test_waits_that_share_one_are_remembered_once_and_see_the_same_end(app: Rowlock, times: int) -> None:
    @app.workflow(name="w")
    async def w(ctx: Context) -> list[Any]:
        shared = ctx.signal("go", timeout=HOUR)
        waits: list[Callable[[], Any]] = [lambda: ctx.any(shared, again=shared)] * times
        return (
            [(await first).value for first in [wait() for wait in waits]]
            if times == 1
            else [first.value for first in await asyncio.gather(*(wait() for wait in waits))]
        )

    job = w.enqueue()
    drain(app)
    assert ("go", "open") in steps(app, job)
    app.signal(job, "go", "gone")

    assert play(app, job) == ["gone"] * times


def test_a_fork_of_what_was_undone_begins_anew(app: Rowlock) -> None:
    log: list[str] = []

    @app.workflow(name="w", retry=ONCE)
    async def w(ctx: Context) -> str:
        await ctx.step(log.append, "reserve")
        ctx.undo(log.append, "release")
        await ctx.using(name="ship").step(ship)
        return "shipped"

    async def ship() -> None:
        if "release" not in log:
            raise ValueError("no van")

    job = w.enqueue()
    drain(app)
    fork = app.workflows.fork(job.id, from_step="ship")

    assert play(app, fork) == "shipped"
    assert log == ["reserve", "release", "reserve"]
