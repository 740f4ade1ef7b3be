"""Workflows for the crews of the fault suite: each tells the oracle what its steps did, and what it knows of them.

A step answers something new each time that it runs. So whatever a workflow knows after a step is in every attempt the
same, or the step was run again after it had been recorded.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any
from uuid import uuid4

from rowlock import Context, Retry, Rowlock
from rowlock.errors import ChildFailed
from tests.faults import tasks
from tests.faults.stations import app
from tests.faults.tasks import attempt, oracle
from tests.waiting import auntil, until

__all__ = ["app"]

# The table of the user's that transactions write to: created by the test.
EFFECTS = "create table public.effects (n integer, what text)"

_GATE_LIMIT = 600.0
_SOON = timedelta(milliseconds=10)


def queue(n: int) -> str:
    """Where a workflow of every way, and its child, are to be run."""
    return f"q{n}"


def knows(n: int, what: str, value: object) -> None:
    """Tell what the code of a workflow has before it when it goes on."""
    oracle().write("knows", n=n, step=what, value=value)


async def roll(n: int) -> str:
    """Do something outside, and answer what nobody could know before."""
    value = str(uuid4())
    oracle().write("ran", n=n, step="roll", value=value)
    return value


def roll_in_a_thread(n: int) -> str:
    """The same where it blocks nobody."""
    value = str(uuid4())
    oracle().write("ran", n=n, step="roll in a thread", value=value)
    return value


async def enter(connection: Any, n: int, what: str = "entered") -> str:  # noqa: ANN401  the worker's connection
    """Write something of the user's own."""
    await connection.execute("insert into public.effects values (%s, %s)", [n, what])
    return str(uuid4())


async def take_back(n: int, what: str) -> None:
    """Undo something."""
    oracle().write("taken back", n=n, step=what)


@app.workflow(name="take every way", version=2, retry=Retry(attempts=5, base=timedelta(0)))
async def take_every_way(ctx: Context, n: int) -> str:
    """A step and a transaction, a sleep, a signal and a child, and nothing that goes wrong."""
    with attempt(n=n) as token:
        knows(n, "carried", ctx.state["carried"])
        knows(n, "roll", await ctx.step(roll, n))
        ctx.undo(take_back, n, "roll")
        knows(n, "enter", await ctx.transaction(enter, n))
        _, payload = await asyncio.gather(ctx.sleep(_SOON), ctx.signal("paid"))
        knows(n, "signal", payload)
        knows(n, "child", await ctx.run(tasks.touch.using(queue=queue(n)).bind(n)))
        return token


@take_every_way.migration(1)
def carry(state: dict[str, Any]) -> dict[str, Any]:
    """The first version had said nothing of itself."""
    return {**state, "carried": True}


# Nobody runs this: a job of it is carried over to the code above.
_earlier = Rowlock()


@_earlier.workflow(name="take every way", version=1)
async def take_every_way_once(ctx: Context, n: int) -> str:
    """What was deployed before."""
    raise NotImplementedError


@app.workflow(name="turn back", retry=Retry(attempts=5, base=timedelta(0)), fails_on=RuntimeError)
async def turn_back(ctx: Context, n: int) -> None:
    """Do two things, leave a child behind, fail, and undo both."""
    with attempt(n=n):
        ctx.undo(take_back, n, "first")
        knows(n, "roll in a thread", await ctx.step(roll_in_a_thread, n))
        ctx.undo(take_back, n, "second")
        first = await ctx.any(ctx.run(tasks.stay.using(queue=queue(n)).bind(n, "never")), late=ctx.sleep(_SOON))
        knows(n, "any", first.which)
        raise RuntimeError("no further")


# For those that are frozen in the middle of something


@app.workflow(name="stay in a step", retry=Retry(attempts=1))
async def stay_in_a_step(ctx: Context, n: int, gate: str) -> str:
    """Be done when the gate is open, and then have a child."""
    with attempt(n=n) as token:
        knows(n, "gate", await ctx.step(_pass, n, gate))
        knows(n, "child", await ctx.run(tasks.touch.bind(n)))
        return token


@app.workflow(name="stay in a step in a thread", retry=Retry(attempts=1))
async def stay_in_a_step_in_a_thread(ctx: Context, n: int, gate: str) -> str:
    """The same with a step that nobody can interrupt."""
    with attempt(n=n) as token:
        knows(n, "gate", await ctx.step(_pass_in_a_thread, n, gate))
        return token


@app.workflow(name="stay in a transaction", retry=Retry(attempts=1))
async def stay_in_a_transaction(ctx: Context, n: int, gate: str) -> str:
    """The same with writes of the user's own, by a function that nobody can interrupt."""
    with attempt(n=n) as token:
        knows(n, "gate", await ctx.transaction(_enter_and_pass, n, gate))
        return token


@app.workflow(name="stay before a child", retry=Retry(attempts=1))
async def stay_before_a_child(ctx: Context, n: int, gate: str) -> str:
    """Hold the whole loop until the gate is open, and have a child in the same breath."""
    with attempt(n=n) as token:
        until(lambda: oracle().gate_is_open(gate), what=gate, limit=_GATE_LIMIT)
        knows(n, "child", await ctx.run(tasks.touch.bind(n)))
        return token


async def _pass(n: int, gate: str) -> str:
    value = str(uuid4())
    oracle().write("ran", n=n, step="pass", value=value)
    await auntil(lambda: oracle().gate_is_open(gate), what=gate, limit=_GATE_LIMIT)
    return value


def _pass_in_a_thread(n: int, gate: str) -> str:
    return asyncio.run(_pass(n, gate))


def _enter_and_pass(connection: Any, n: int, gate: str) -> str:  # noqa: ANN401  the worker's connection
    connection.execute("insert into public.effects values (%s, 'entered')", [n])
    return _pass_in_a_thread(n, gate)


# For servers that crash


@app.workflow(name="take a word", retry=Retry(attempts=5, base=timedelta(0)))
async def take_a_word(ctx: Context, n: int) -> str:
    """Do something, then wait until somebody says a word."""
    with attempt(n=n) as token:
        knows(n, "roll", await ctx.step(roll, n))
        knows(n, "word", await ctx.signal("word"))
        return token


# For many at once


@app.workflow(name="nap")
async def nap(ctx: Context, n: int) -> str:
    """Sleep for a day."""
    with attempt(n=n) as token:
        await ctx.sleep(timedelta(days=1))
        return token


@app.workflow(name="have children")
async def have_children(ctx: Context, n: int, count: int) -> str:
    """Wait for many children."""
    with attempt(n=n) as token:
        results = await ctx.map([tasks.touch.bind(n) for _ in range(count)])
        knows(n, "children", len(set(results)))
        return token


@app.workflow(name="lose a child")
async def lose_a_child(ctx: Context, n: int) -> str:
    """Have a child that takes every worker along that runs it."""
    with attempt(n=n) as token:
        try:
            await ctx.run(tasks.die.bind(n, "kill"))
        except ChildFailed as error:
            knows(n, "child", error.reason)
        return token
