"""Renew: a thread with a connection of its own keeps the worker's lease, and does the upkeep in between.

A thread, because a handler that blocks the event loop must not cost the worker its lease.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from rowlock.db.session import Steady, Unreachable
from rowlock.store import workers

log = logging.getLogger("rowlock.worker")


@dataclass(slots=True)
class Chore:
    """Something to do every so often, by any worker."""

    name: str
    every: timedelta
    do: Callable[[Steady], None]
    due: float = field(default=0.0)


class Renewer:
    """The thread that renews."""

    def __init__(
        self,
        *,
        connection: Steady,
        worker: str,
        lease: timedelta,
        lost: Callable[[], object],
        chores: Sequence[Chore],
    ) -> None:
        self._connection = connection
        self._worker = worker
        self._lease = lease
        self._lost = lost
        self._chores = [Chore("renew", lease / 3, self._renew), *chores]
        self._lost_it = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rowlock-renew", daemon=True)

    def start(self) -> None:
        """Start renewing; the worker has just registered."""
        now = time.monotonic()
        for chore in self._chores:
            # The lease is fresh; other chores come soon, and not on all workers at once.
            wait = chore.every.total_seconds()
            chore.due = now + (wait if chore.do == self._renew else min(wait, 1.0) * random.random())
        self._thread.start()

    def stop(self) -> None:
        """Stop renewing, and wait for a chore under way."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            chore = min(self._chores, key=lambda chore: chore.due)
            if self._stop.wait(max(0.0, chore.due - time.monotonic())):
                return
            try:
                chore.do(self._connection)
            except Unreachable as outage:
                log.warning("%s: the database does not answer (%s); trying again", chore.name, outage)
            except Exception:
                log.exception("%s failed; it will be tried again", chore.name)
            if self._lost_it:
                return
            chore.due = time.monotonic() + chore.every.total_seconds() * random.uniform(0.9, 1.0)

    def _renew(self, connection: Steady) -> None:
        if not connection.run(workers.renew(worker=self._worker, lease=self._lease)):
            self._lost_it = True
            self._lost()
