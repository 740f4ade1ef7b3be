"""A worker's own view of its lease: until when it may trust it, by a clock that goes on while the machine sleeps."""

from __future__ import annotations

import time
from datetime import timedelta


def boottime() -> float:
    """Seconds since this machine was started, those in which it was suspended included, where the system can tell."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # macOS counts them in neither
    return time.clock_gettime(clock)


class Lease:
    """Runs out `margin` before the database would say so: the time in which to let go of what one runs.

    It is counted from before the renewal was sent. The database counts from when it came, which is later.
    """

    def __init__(self, *, lasts: timedelta, margin: timedelta) -> None:
        self._trusted = (lasts - margin).total_seconds()
        self._until = 0.0

    def renewed(self, sent: float) -> None:
        """A renewal that was sent at this moment was answered."""
        self._until = sent + self._trusted

    @staticmethod
    def now() -> float:
        """The moment, by the clock that counts."""
        return boottime()

    @property
    def left(self) -> float:
        """Seconds for which to trust it; none, or fewer, when it is time to let go."""
        return self._until - self.now()
