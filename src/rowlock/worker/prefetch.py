"""How many jobs to hold beyond the free slots, so that slots do not idle while the next claim is under way."""

from __future__ import annotations

from math import inf, isinf

# In flight at once: 27k jobs a second with 100, 37k with 1,000; more only makes a crash cost more.
_MOST = 1_000
_WEIGHT = 0.5


class Prefetch:
    """Grows only while handlers take less than a claim's round trip: a long handler's next job may as well stay where
    another worker can have it.
    """

    def __init__(self, slots: int) -> None:
        self.size = 0
        self._slots = slots
        self._run_time = inf
        self._batch_time = 0.0
        self._batch_count = 0

    def ran(self, took: float) -> None:
        """One attempt took so many seconds."""
        self._batch_time += took
        self._batch_count += 1

    def forget(self) -> None:
        """What was held waited for too long: begin anew, when attempts have ended that show how long they take."""
        self.size, self._run_time = 0, inf
        self._batch_time, self._batch_count = 0.0, 0

    def learn(self, *, round_trip: float, full: bool) -> None:
        """A claim took so long, and found all it asked for or not."""
        if self._batch_count:
            mean = self._batch_time / self._batch_count
            if isinf(self._run_time) or mean > self._run_time:
                self._run_time = mean  # slower is believed at once, faster little by little
            else:
                self._run_time += _WEIGHT * (mean - self._run_time)
            self._batch_time, self._batch_count = 0.0, 0
        if self._run_time >= round_trip:
            self.size = 0
        elif not full:
            self.size //= 2  # what is not there need not be held
        else:
            wanted = int(self._slots * round_trip / self._run_time)
            self.size = min(wanted, max(self.size * 2, self._slots), _MOST)
