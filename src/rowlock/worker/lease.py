"""Lease: until when a worker may trust it, and the thread that renews it.

A thread, with a connection of its own, because a handler that blocks the event loop must not cost the worker its lease.
The lease comes first: a chore is given up when it would delay a renewal by more than one deadline, and a renewal that
fails is soon tried again.
"""

from __future__ import annotations

import random
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from math import inf
from typing import Final

from rowlock.db.errors import Unreachable, first_line
from rowlock.db.safe_logger import SafeLogger
from rowlock.db.thread_connection import ReconnectingSyncConnection
from rowlock.store import schema, workers
from rowlock.store.workers import Renewed
from rowlock.worker.loop_watchdog import PING_EVERY, LoopWatchdog
from rowlock.worker.settings import Timing

log = SafeLogger("rowlock.worker")

# After a failed renewal, and between two tries to connect: this many seconds, or half a deadline if that is less.
_LONGEST_PAUSE = 0.5
# A chore that goes on failing is logged again after so many seconds.
_LOG_EVERY = 60.0
# A thread that has nothing under way ends within this many seconds of stop().
_AT_ONCE = 0.2


class Lease:
    """Runs out `margin` before the database would say so: time in which to let go of what this worker runs.

    It is counted from before the renewal was sent. The database counts from when it came, which is later.
    """

    def __init__(self, *, lasts: timedelta, margin: timedelta) -> None:
        self.lasts = lasts
        self._lasts = lasts.total_seconds()
        self._margin = margin.total_seconds()
        self._until = 0.0
        self._offset: float | None = None  # between the two clocks
        self._settles = 0.0
        self.set_back = timedelta(0)  # by how much the database's clock was, until that has been seen to

    def renewed(self, sent: float, answer: float) -> None:
        """A renewal that was sent at this moment was confirmed, at that time of the database's."""
        now = self.now()
        self._until = sent + self._lasts - self._margin
        offset = answer - now
        if self._offset is not None and offset - self._offset > self._margin:
            log.warning(
                "the database's clock was put forward by %.0f s; nobody is rescued for now", offset - self._offset
            )
            self._settles = now + self._lasts
        elif self._offset is not None and self._offset - offset > self._margin:
            log.warning("the database's clock was set back by %.0f s", self._offset - offset)
            self.set_back += timedelta(seconds=self._offset - offset)
        self._offset = offset

    def began(self, unwatched: float | None) -> None:
        """The worker has just registered; for so many seconds, by the database's clock, nobody had looked for the dead.

        Those that live look all the time. So there were none; or that clock was put forward a moment ago.
        """
        if unwatched is not None and unwatched > self._lasts:
            log.info("nobody has looked for dead workers for %.0f s: nobody is rescued for one lease", unwatched)
            self._settles = self.now() + self._lasts

    @property
    def is_unsettled(self) -> bool:
        """Whether the database's clock may have been put forward recently: the living have not yet renewed by it."""
        return self.now() < self._settles

    @staticmethod
    def now() -> float:
        """The moment, by the clock that counts."""
        return boottime()

    @property
    def left(self) -> float:
        """Seconds for which to trust it; none, or fewer, when it is time to let go."""
        return self._until - self.now()


def boottime() -> float:
    """Seconds since this machine was started, those in which it was suspended included, where the system can tell."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # macOS counts them in neither
    return time.clock_gettime(clock)


class Unfinished(Enum):
    """What a chore returns when another worker of the fleet has its turn, and has not done it yet, or could not."""

    UNFINISHED = "unfinished"


UNFINISHED: Final = Unfinished.UNFINISHED


@dataclass(slots=True)
class Chore:
    """Something that a worker does every so often; `do` may return how soon to do it again."""

    name: str
    every: timedelta
    do: Callable[[ReconnectingSyncConnection], timedelta | Unfinished | None]
    even_unfit: bool = False  # also while this code cannot use the schema
    due: float = field(default=0.0)
    failing_since: float | None = field(default=None)  # by time.monotonic(), as the next
    logged_at: float = field(default=-inf)  # when it was last logged
    error: str = field(default="")  # the first line of the last one


class Renewer:
    """The thread that renews."""

    def __init__(
        self,
        *,
        connection: ReconnectingSyncConnection,
        worker: str,
        timing: Timing,
        lease: Lease,
        lost: Callable[[], object],
        watchdog: LoopWatchdog,
        chores: Sequence[Chore],
    ) -> None:
        self._connection = connection
        self._worker = worker
        self._deadline = timing.deadline.total_seconds()
        self._pause = min(_LONGEST_PAUSE, self._deadline / 2)
        self._lease = lease
        self._lost = lost
        self._watchdog = watchdog
        self._renewal = Chore("renewing", timing.renew, self._renew, even_unfit=True)
        self.unfit: str | None = None  # why this code can use the schema no more
        self._chores = list(chores)
        self._not_before = 0.0  # when to try again to open a connection
        self._entered_on: object = None
        self._is_over = False
        self._bell, self._ear = socket.socketpair()
        self._thread = threading.Thread(target=self._run, name="rowlock-renew", daemon=True)

    def start(self) -> None:
        """Start renewing; the worker has just registered."""
        now = time.monotonic()
        self._renewal.due = now + self._renewal.every.total_seconds()
        for chore in self._chores:  # soon, and not on all workers at once
            chore.due = now + min(chore.every.total_seconds(), 1.0) * random.random()
        self._thread.start()

    def stop(self, within: float) -> bool:
        """Stop renewing, within so many seconds: a chore under way is given up. Returns whether that was enough."""
        self._is_over = True
        with suppress(OSError):  # it has ended before
            self._bell.send(b".")
        if self._thread.ident is not None:
            self._thread.join(min(_AT_ONCE, within))
            if self._thread.is_alive():
                self._connection.until = 0.0
                self._connection.abort()
                self._thread.join(max(0.0, within - _AT_ONCE))
        return not self._thread.is_alive()

    def close(self) -> None:
        """Close what the thread is woken by; it has ended, or was left behind."""
        self._bell.close()
        if not self._thread.is_alive():
            self._ear.close()

    @property
    def fault(self) -> tuple[str, float] | None:
        """What has been failing for the longest in between, and for how many seconds; None while nothing does."""
        failing = [(chore.failing_since, chore) for chore in self._chores if chore.failing_since is not None]
        if not failing:
            return None
        since, chore = min(failing, key=lambda one: one[0])
        return f"{chore.name} failed ({chore.error})", time.monotonic() - since

    def _run(self) -> None:
        try:
            while not self._is_over:
                self._watchdog.check()
                chore, due = self._next()
                wait = due - time.monotonic()
                if wait > 0:
                    self._connection.rest(self._ear, min(wait, PING_EVERY))
                else:
                    self._do(chore)
        finally:
            self._ear.close()

    def _next(self) -> tuple[Chore, float]:
        """What to do next, and when. Without a connection nothing but a renewal is worth a try."""
        renewal = self._renewal
        if not self._connection.is_open:
            return renewal, self._not_before
        if renewal.due <= time.monotonic() or not self._chores:
            return renewal, renewal.due
        chore = min(self._chores, key=lambda chore: chore.due)
        return (chore, chore.due) if chore.due < renewal.due else (renewal, renewal.due)

    def _do(self, chore: Chore) -> None:
        is_renewal = chore is self._renewal
        limit = time.monotonic() + self._deadline if is_renewal else self._renewal.due + self._deadline
        self._connection.until = min(limit, time.monotonic() + max(self._lease.left, 0.0)) if is_renewal else limit
        try:
            self.enter()
            wish = chore.do(self._connection) if chore.even_unfit or self.unfit is None else None
        except Exception as error:
            self._failed(chore, error)
        else:
            if wish is not UNFINISHED:  # else what failed here is not known to work anywhere
                if chore.failing_since is not None:
                    log.info("%s works again", chore.name)
                chore.failing_since, chore.logged_at = None, -inf
            wait = wish if isinstance(wish, timedelta) else chore.every * random.uniform(0.9, 1.0)
            chore.due = time.monotonic() + wait.total_seconds()
        self._connection.until = inf if not self._is_over else 0.0

    def _failed(self, chore: Chore, error: Exception) -> None:
        """The first failure of an outage is news; the others are not, unless it is long."""
        if self._is_over:
            return
        now = time.monotonic()
        if chore.failing_since is None:
            chore.failing_since = now
        chore.error = first_line(error)
        if now - chore.logged_at >= _LOG_EVERY:
            chore.logged_at = now
            _say(chore, error, now - chore.failing_since)
        if chore is self._renewal:
            chore.due = self._not_before = self._soon()
        else:
            chore.due = time.monotonic() + chore.every.total_seconds()

    def _soon(self) -> float:
        return time.monotonic() + self._pause * random.uniform(0.5, 1.0)

    def enter(self) -> None:
        """Show on each new connection that this worker lives; without that, its death is found out later."""
        if not self._connection.is_open:
            self._not_before = self._soon()  # one that breaks later is opened again at once
        session = self._connection.open()
        if session is self._entered_on or session.pooled:
            return
        try:
            [held] = self._connection.run(workers.enter(worker=self._worker))
        except Unreachable:
            raise
        except Exception:
            log.exception(
                "worker %s could not enter among those present; its lease is renewed all the same", self._worker
            )
            held = True
        if held:
            self._entered_on = session

    def _renew(self, connection: ReconnectingSyncConnection) -> None:
        sent = self._lease.now()
        seconds, culprit = self._watchdog.blocked()
        if answer := connection.run(workers.renew(worker=self._worker, blocked=seconds, blocked_by=culprit)):
            self._lease.renewed(sent, answer[0].now)
            self._compare(connection.schema, answer[0])
        else:
            self._is_over = True
            self._lost()

    def _compare(self, name: str, renewed: Renewed) -> None:
        """The schema may have been migrated: where this code cannot use it, nothing new is begun, until it can."""
        unfit = schema.unfit(name, version=renewed.version or 0, compatible=renewed.compatible or 0)
        if unfit is not None and self.unfit is None:
            log.critical("%s: until then this worker finishes what it runs, and claims nothing more", unfit)
        elif unfit is None and self.unfit is not None:
            log.warning("this worker can use schema %r again, and claims again", name)
        self.unfit = unfit


def _say(chore: Chore, error: Exception, lasts: float) -> None:
    long = f", for {lasts:.0f} s now" if lasts >= _LOG_EVERY else ""
    if isinstance(error, Unreachable):
        log.warning("%s: the database does not respond (%s)%s; trying again until it does", chore.name, error, long)
    else:
        log.error("%s failed%s; trying again until it works", chore.name, long, exc_info=error)
