"""Loop watchdog: notices from another thread which job blocks the event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from rowlock.db.safe_logger import SafeLogger

log = SafeLogger("rowlock.worker")

# A loop that has not turned for so many seconds is blocked; it is pinged this often.
_BLOCKED_AFTER = 1.0
PING_EVERY = 0.5


class LoopWatchdog:
    """Pings the loop now and then; logs once that it is blocked, and by which job, and once that it goes on."""

    def __init__(self, loop: asyncio.AbstractEventLoop, job_of: Callable[[asyncio.Task[Any]], str | None]) -> None:
        self._loop = loop
        self._job_of = job_of
        self._pinged_at = time.monotonic()
        self._answered_at: float | None = self._pinged_at
        self._is_blocked = False
        self._culprit: str | None = None

    def blocked(self) -> tuple[float | None, str | None]:
        """For how many seconds the loop has been blocked, and by what as far as is known; nothing while it turns."""
        if not self._is_blocked or self._answered_at is not None:
            return None, None
        return time.monotonic() - self._pinged_at, self._culprit

    def check(self) -> None:
        """Look for the reply, and ping again; to be called about every PING_EVERY seconds."""
        now = time.monotonic()
        if self._answered_at is None:
            if not self._is_blocked and now - self._pinged_at > _BLOCKED_AFTER:
                self._is_blocked = True
                self._warn(now - self._pinged_at)
            return
        self._is_blocked = False
        if now - self._pinged_at >= PING_EVERY:
            self._pinged_at, self._answered_at = now, None
            with suppress(RuntimeError):  # the loop is closed: its worker has left us behind
                self._loop.call_soon_threadsafe(self._pong)

    def _pong(self) -> None:
        """On the loop."""
        self._answered_at = time.monotonic()
        if self._is_blocked:
            log.warning("the event loop goes on; it was blocked for %.1f s", self._answered_at - self._pinged_at)

    def _warn(self, seconds: float) -> None:
        task = asyncio.current_task(self._loop)
        culprit = self._culprit = None if task is None else self._job_of(task)
        log.warning(
            "the event loop has been blocked for %.1f s by %s: nothing else of this worker runs meanwhile, though its "
            "lease is kept; move what blocks it to a sync task, or to asyncio.to_thread",
            seconds,
            culprit or "something that is not a job",
        )
