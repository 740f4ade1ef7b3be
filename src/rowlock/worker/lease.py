"""A worker's own view of its lease: until when it may trust it, by a clock that goes on while the machine sleeps."""

from __future__ import annotations

import logging
import time
from datetime import timedelta

log = logging.getLogger("rowlock.worker")


def boottime() -> float:
    """Seconds since this machine was started, those in which it was suspended included, where the system can tell."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # macOS counts them in neither
    return time.clock_gettime(clock)


class Lease:
    """Runs out `margin` before the database would say so: the time in which to let go of what one runs.

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
        """A renewal that was sent at this moment was answered, at that time of the database's."""
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

    @property
    def is_unsettled(self) -> bool:
        """Whether the database's clock was put forward lately: the living have had no time yet to renew by it."""
        return self.now() < self._settles

    @staticmethod
    def now() -> float:
        """The moment, by the clock that counts."""
        return boottime()

    @property
    def left(self) -> float:
        """Seconds for which to trust it; none, or fewer, when it is time to let go."""
        return self._until - self.now()
