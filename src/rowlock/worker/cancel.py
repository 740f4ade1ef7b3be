"""Cancel: which of our jobs somebody wants cancelled. The row says so; a notification is only a hint to look."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from rowlock.db.link import Link, Refused
from rowlock.store import jobs
from rowlock.worker.run import Runner

log = logging.getLogger("rowlock.worker")

# The notification may be lost: so often we look by ourselves while anything is in hand.
_EVERY = 1.0
# Anybody may notify: no more often than this it makes us look.
_LEAST = 0.05


class Canceller:
    """Looks when it is due, as a part of the settler's loop: `due` wakes it."""

    def __init__(self, *, worker: str, runner: Runner, due: Callable[[], None]) -> None:
        self.is_due = False
        self._worker = worker
        self._runner = runner
        self._due = due
        self._loop = asyncio.get_running_loop()
        self._looked = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Look from now on."""
        self._look_after(_EVERY)

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def notified(self) -> None:
        """Somebody says that there is something to cancel."""
        if self._timer is not None:
            self._look_after(max(0.0, self._looked + _LEAST - self._loop.time()))

    def _look_after(self, seconds: float) -> None:
        self.stop()
        self._timer = self._loop.call_later(seconds, self._look_now)

    def _look_now(self) -> None:
        if self._runner.held:
            self.is_due = True
            self._due()
        self._look_after(_EVERY)

    async def look(self, link: Link) -> None:
        """Look, and tell the runner."""
        self.is_due = False
        self._looked = self._loop.time()
        try:
            tokens = await link.run(jobs.cancelling(worker=self._worker))
        except Refused as error:
            log.error("PostgreSQL does not say what to cancel (%s)", error)  # noqa: TRY400  it is its answer
            return
        if tokens:
            self._runner.cancel_jobs(tokens)
