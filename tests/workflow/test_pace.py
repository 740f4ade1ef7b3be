"""Long workflows: a replay lets others run, and the most that one may remember is counted once."""

from __future__ import annotations

import asyncio

import pytest

from rowlock import Rowlock
from rowlock.testing import drain
from rowlock.workflow import execution
from rowlock.workflow.context import Context
from tests.workflow.playing import MOMENT, blocked, ended


async def nothing() -> None: ...


def test_a_long_replay_lets_others_run(app: Rowlock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "_REPLAYED_AT_ONCE", 10)
    turns: list[int] = []

    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        others: list[int] = []
        for number in range(25):
            asyncio.get_running_loop().call_soon(others.append, number)
            await ctx.step(nothing)
        turns.append(len(others))
        await ctx.sleep(MOMENT)

    w.enqueue()
    drain(app)

    assert turns == [25, 20]  # the replay has let them run twice, and then had only five steps to go


def test_what_is_waited_for_counts_once_among_the_most_that_are_remembered(
    app: Rowlock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execution, "MOST_STEPS", 3)

    @app.workflow(name="w")
    async def w(ctx: Context, steps: int) -> str:
        for _ in range(steps):
            await ctx.step(nothing)
        await ctx.signal("go")
        return "went"

    fits, too_long = w.enqueue(2), w.enqueue(3)
    parked = ended(drain(app))
    app.signal(fits, "go")
    drain(app)

    assert sorted(parked) == ["blocked", "parked"]
    assert fits.result() == "went"
    assert "3 is the most that one remembers" in blocked(too_long)
