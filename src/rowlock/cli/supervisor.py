"""Supervisor of `worker --processes N`: it keeps N children running; they end with it."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import random
import signal
import sys
import time
from asyncio.subprocess import Process
from collections.abc import Sequence
from contextlib import suppress

log = logging.getLogger("rowlock.worker")

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)

_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 30.0
# A child that lived this many seconds was well: its end is not one of a row of failures.
_WELL = 10.0
_PR_SET_PDEATHSIG = 1


class Supervisor:
    """Keeps `count` children running until it is told to stop; then waits for them all."""

    def __init__(self, command: Sequence[str], *, count: int) -> None:
        self._command = command
        self._count = count
        self._children: dict[int, Process] = {}
        self._stopping = asyncio.Event()
        self._clean = True

    async def run(self) -> bool:
        """Return when every child has ended; False if one of them did not end well after it was told to stop."""
        loop = asyncio.get_running_loop()
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, self._forward, number)
        await asyncio.gather(*(self._keep(place) for place in range(1, self._count + 1)))
        return self._clean

    def _forward(self, number: signal.Signals) -> None:
        log.info("%s: passed on to %d worker processes", number.name, len(self._children))
        self._stopping.set()
        for child in self._children.values():
            _send(child, number)

    async def _keep(self, place: int) -> None:
        """Start a child, and another whenever it ends by itself, after a pause that grows while they fail."""
        failures = 0
        while not self._stopping.is_set():
            started = time.monotonic()
            code = await self._run_child(place)
            if self._stopping.is_set():
                self._clean &= code in {0, -signal.SIGTERM, -signal.SIGINT}
                return
            failures = 0 if time.monotonic() - started > _WELL else failures + 1
            pause = min(_FIRST_PAUSE * 2.0**failures, _LONGEST_PAUSE) * random.uniform(0.5, 1.0)
            log.error("worker process %d %s; starting another in %.1f s", place, _ending(code), pause)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause)

    async def _run_child(self, place: int) -> int:
        # In a process group of its own: Ctrl-C in a terminal reaches the whole group of the parent, which passes it on.
        child = await asyncio.create_subprocess_exec(*self._command, process_group=0)
        self._children[place] = child
        log.info("worker process %d has pid %d", place, child.pid)
        if self._stopping.is_set():  # stopped while it was being started
            _send(child, signal.SIGTERM)
        try:
            return await child.wait()
        finally:
            del self._children[place]


def child_command(command: Sequence[str]) -> list[str]:
    """The command of a child: that of its parent, but for one process that ends with this one."""
    return [*command, "--processes", "1", "--parent", str(os.getpid())]


def end_with(parent: int) -> None:
    """Ask the kernel for SIGTERM when the parent ends, however it ends; exit at once if it already has."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        sys.exit(0)


def _send(child: Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):  # it has just ended
        child.send_signal(number)


def _ending(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    with suppress(ValueError):
        return f"was killed by {signal.Signals(-code).name}"
    return f"was killed by signal {-code}"
