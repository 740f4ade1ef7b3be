"""Run: attempts in slots, and what became of each. Async handlers run on the loop, sync ones in threads."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from datetime import timedelta

from rowlock.model.handler import Handler
from rowlock.model.outcome import Blocked, Cancelled, Failed, HandedBack, Outcome, Retried, Snoozed, Succeeded
from rowlock.model.row import Claimed
from rowlock.worker.around import Around
from rowlock.worker.attempt import Say
from rowlock.worker.call import Caller, Returned
from rowlock.worker.count import Counts
from rowlock.worker.prefetch import Prefetch

log = logging.getLogger("rowlock.worker")

# What may be finished and not yet settled before claims wait for settles.
_MOST_UNSETTLED = 4_000
# A job claimed ahead waits this long for a slot, then goes back: other workers may be free.
_STALE_AFTER = 1.0
# A handler that swallows its cancellation is left behind after so many seconds.
_CANCEL_WITHIN = 2.0


class Runner:
    """The slots of a worker, and the jobs that wait for one."""

    def __init__(
        self,
        *,
        handlers: Mapping[str, Handler],
        slots: int,
        threads: int,
        finished: Callable[[Claimed, Outcome], None],
        counts: Counts,
        progress: Say,
        arounds: Sequence[Around] = (),
    ) -> None:
        self._slots = slots
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="rowlock")
        self._caller = Caller(handlers=handlers, in_thread=self._in_thread, arounds=arounds, progress=progress)
        self._finished = finished
        self._counts = counts
        self._prefetch = Prefetch(slots)
        self._waiting: deque[tuple[Claimed, float]] = deque()
        self._running: dict[str, asyncio.Task[None]] = {}
        self._held: dict[str, Claimed] = {}
        self._has_room = asyncio.Event()
        self._draining = False
        self._context = copy_context()

    # What the claimer asks

    def room(self) -> int:
        """How many jobs to ask for now; 0 while a claim is not worth its round trip."""
        load = len(self._waiting) + len(self._running)
        room = min(self._slots + self._prefetch.size - load, _MOST_UNSETTLED - len(self._held))
        # With jobs waiting in hand there is time to gather a larger claim.
        return room if room * 2 >= self._prefetch.size or not self._waiting else 0

    async def wait_for_room(self, timeout: float) -> bool:
        """Wait until something has finished; False when `timeout` seconds passed first."""
        self._has_room.clear()
        try:
            async with asyncio.timeout(timeout):
                await self._has_room.wait()
        except TimeoutError:
            return False
        return True

    def take(self, rows: Iterable[Claimed], *, asked: int, round_trip: float) -> None:
        """Take in claimed jobs and start as many as there are slots."""
        now = time.monotonic()
        count = 0
        for row in rows:
            self._held[row.token] = row
            self._waiting.append((row, now))
            count += 1
        self._prefetch.learn(round_trip=round_trip, full=count == asked)
        self._start()

    def known(self) -> list[str]:
        """The ids of every job in hand, finished and unsettled ones included."""
        return [row.id for row in self._held.values()]

    def settled(self, rows: Iterable[Claimed]) -> None:
        """These jobs are out of our hands."""
        for row in rows:
            self._held.pop(row.token, None)
        self._has_room.set()

    def hand_back_stale(self) -> None:
        """Give back jobs that were claimed ahead and have waited too long: handlers have become slow."""
        horizon = time.monotonic() - _STALE_AFTER
        while self._waiting and self._waiting[0][1] < horizon:
            self._finished(self._waiting.popleft()[0], HandedBack())

    # Stopping

    def drain(self) -> None:
        """Start nothing more, and give back what has not started."""
        self._draining = self._caller.draining = True
        while self._waiting:
            self._finished(self._waiting.popleft()[0], HandedBack())

    async def wait(self, grace: timedelta, *, hurry: asyncio.Event) -> None:
        """Wait for running attempts, at most so long, and no longer once there is a hurry."""
        if not self._running:
            return
        hurried = asyncio.ensure_future(hurry.wait())
        ended = asyncio.ensure_future(asyncio.wait(self._running.values()))
        await asyncio.wait({hurried, ended}, timeout=grace.total_seconds(), return_when=asyncio.FIRST_COMPLETED)
        hurried.cancel()
        ended.cancel()

    async def cancel(self) -> None:
        """Cancel what still runs; it is handed back. Nobody waits for long for what will not end, nor for a thread."""
        running = list(self._running.values())
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running, timeout=_CANCEL_WITHIN)

    def close(self) -> None:
        """Let the threads go; one that is stuck in a handler does not hold us."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    # Running

    def _start(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting and len(self._running) < self._slots and not self._draining:
            row, _ = self._waiting.popleft()
            # In a context of its own: the current one may be that of the attempt that has just ended.
            self._running[row.token] = loop.create_task(self._run(row), context=self._context.copy())

    async def _run(self, row: Claimed) -> None:
        """One attempt, from claimed to finished."""
        started = time.perf_counter()
        outcome = await self._caller.attempt(row)
        ended = time.perf_counter()
        took = ended - started
        self._prefetch.ran(took)
        self._counts.ended(row, outcome, took, ended)
        del self._running[row.token]
        self._report(row, outcome, took)
        self._finished(row, outcome)
        self._start()
        self._has_room.set()

    async def _in_thread(self, call: Callable[[], Returned]) -> Returned:
        return await asyncio.get_running_loop().run_in_executor(self._threads, copy_context().run, call)

    def _report(self, row: Claimed, outcome: Outcome, took: float) -> None:
        match outcome:
            case Succeeded():
                if log.isEnabledFor(logging.DEBUG):
                    log.debug("%s %s succeeded in %.3f s", row.task, row.id, took)
            case Failed(reason=reason):
                log.error("%s %s failed for good (%s) in attempt %d", row.task, row.id, reason, row.failures + 1)
            case Retried(delay=delay):
                attempt = row.failures + 1
                log.warning(
                    "%s %s failed in attempt %d of %d; again in %s", row.task, row.id, attempt, row.attempts, delay
                )
            case Blocked("code", reason):
                log.warning("%s %s waits for code: %s", row.task, row.id, reason)
            case Snoozed() | HandedBack() | Cancelled() | Blocked():
                log.info("%s %s: %s", row.task, row.id, outcome)
