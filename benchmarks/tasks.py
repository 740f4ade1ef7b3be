"""The tasks that benchmarks run, known to the process that enqueues and to the one that works."""

# ruff: noqa: ARG001  each carries an argument, as jobs do, and does nothing with it

from __future__ import annotations

import asyncio
import time

from rowlock import Context, Rowlock, current_job

SCHEMA = "rowlock_bench"

app = Rowlock(schema=SCHEMA)

# When each attempt of `stamp` began, by the job's id, on the machine's clock: every process here reads the same one.
begun: dict[str, float] = {}

# What `memoir` waits for.
SIGNAL = "go on"

_RESULT = "x" * 198  # 200 bytes with its quotes


@app.task
async def noop(n: int) -> None:
    """Do nothing."""


@app.task
async def answer(n: int) -> str:
    """Do nothing, and return 200 bytes of JSON."""
    return _RESULT


@app.task
async def nap(n: int) -> None:
    """Hold a slot for a while."""
    await asyncio.sleep(0.05)


@app.task
async def stamp(n: int) -> None:
    """Note when this attempt began."""
    begun[str(current_job().id)] = time.monotonic()


@app.task
async def hold(n: int) -> None:
    """Hold a slot until the worker ends."""
    await asyncio.Event().wait()


async def nothing(n: int) -> int:
    """A step that does nothing."""
    return 1


@app.workflow
async def errand(ctx: Context, n: int) -> None:
    """Five steps that do nothing."""
    for number in range(1, 6):
        await ctx.step(nothing, number)


@app.workflow
async def marathon(ctx: Context, n: int) -> None:
    """Forty steps that do nothing, and when the first began."""
    begun[str(ctx.id)] = time.monotonic()
    for number in range(1, 41):
        await ctx.step(nothing, number)


@app.workflow
async def memoir(ctx: Context, steps: int) -> None:
    """So many steps, of which the last is a signal; note when it has come."""
    for number in range(1, steps):
        await ctx.step(nothing, number)
    await ctx.signal(SIGNAL)
    begun[str(ctx.id)] = time.monotonic()
