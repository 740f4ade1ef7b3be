"""The app that the crews of the fault suite work on: every handler tells the oracle what it did.

A handler answers the token of its attempt, so that history shows whose outcome was accepted.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import resource
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import cache

from rowlock import Retry, Rowlock, current_job
from tests.faults.oracle import Oracle
from tests.waiting import auntil, until

app = Rowlock()

# What waits at a gate waits for a test, however slow the machine is.
_GATE_LIMIT = 600.0

oracle = cache(Oracle.of_environment)


@contextmanager
def attempt(**facts: object) -> Iterator[str]:
    """Tell of an attempt: that it began, and how it came to its end."""
    job = current_job()
    token = job._row.token
    told = {"job": str(job.id), "token": token, **facts}
    oracle().write("began", **told, crashes=job.crashes)
    try:
        yield token
    except BaseException as error:
        oracle().write("broken off", **told, error=type(error).__name__)
        raise
    oracle().write("done", **told)


@app.task(name="touch")
async def touch(n: int) -> str:
    """Be done at once."""
    with attempt(n=n) as token:
        return token


@app.task(name="touch in a thread")
def touch_in_a_thread(n: int) -> str:
    """Be done at once."""
    with attempt(n=n) as token:
        return token


@app.task(name="linger")
async def linger(n: int, seconds: float) -> str:
    """Be done after a while."""
    with attempt(n=n) as token:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.Event().wait()
        return token


@app.task(name="linger in a thread")
def linger_in_a_thread(n: int, seconds: float) -> str:
    """Be done after a while."""
    with attempt(n=n) as token:
        threading.Event().wait(seconds)
        return token


@app.task(name="once more", retry=Retry(attempts=2, base=timedelta(0)))
async def once_more(n: int) -> str:
    """Fail at first, then be done."""
    with attempt(n=n) as token:
        if current_job().attempt == 1:
            raise RuntimeError("not yet")
        return token


@app.task(name="stay")
async def stay(n: int, gate: str) -> str:
    """Be done when the gate is open; ask before that whether the job is still this attempt's."""
    with attempt(n=n) as token:
        await auntil(lambda: oracle().gate_is_open(gate), what=gate, limit=_GATE_LIMIT)
        current_job().check()
        return token


@app.task(name="stay in a thread")
def stay_in_a_thread(n: int, gate: str) -> str:
    """Be done when the gate is open; ask before that whether the job is still this attempt's."""
    with attempt(n=n) as token:
        until(lambda: oracle().gate_is_open(gate), what=gate, limit=_GATE_LIMIT)
        current_job().check()
        return token


@app.task(name="stay fenced")
async def stay_fenced(n: int, gate: str) -> str:
    """As `stay`, with a number for resources outside."""
    with attempt(n=n) as token:
        oracle().write("fenced", n=n, token=token, fence=await current_job().afence())
        await auntil(lambda: oracle().gate_is_open(gate), what=gate, limit=_GATE_LIMIT)
        return token


def _segfault() -> None:
    ctypes.string_at(0)


WAYS_TO_DIE: dict[str, Callable[[], object]] = {
    "segfault": _segfault,
    "abort": os.abort,
    "exit": lambda: os._exit(0),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
}


def _die(way: str) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # nobody will look into it
    oracle().write("killing", worker=os.getpid())
    WAYS_TO_DIE[way]()


@app.task(name="die", retry=Retry(attempts=1))
async def die(n: int, way: str) -> None:
    """Take the whole worker along."""
    with attempt(n=n):
        _die(way)


@app.task(name="die in a thread", retry=Retry(attempts=1))
def die_in_a_thread(n: int, way: str) -> None:
    """Take the whole worker along."""
    with attempt(n=n):
        _die(way)
