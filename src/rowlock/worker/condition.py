"""Condition: what a worker says of itself on its row, for those who look at the workers."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from rowlock.db.steady import Steady
from rowlock.store import workers

# What has been failing for so many seconds is said: shorter outages pass by themselves.
_FAILING_FOR = 30.0
# One failure may be found to have begun a little sooner or later, by clocks that are read one after the other.
_SAME = timedelta(seconds=1)


class Condition:
    """What was said last; nothing is said while nothing changes."""

    def __init__(self, worker: str, faults: tuple[int, str | None]) -> None:
        """`faults` are how often in a row it began anew because of a fault of its own, and the last of those."""
        self._worker = worker
        self._faults = faults
        self._told: tuple[object, ...] = (0, False, *faults, None, None)
        self._since: datetime | None = None

    def tell(
        self,
        connection: Steady,
        *,
        stuck: int,
        stopping: bool,
        unfit: str | None,
        failing: Iterable[tuple[str, float] | None],
    ) -> None:
        """Say what has changed. One that cannot use the schema claims as little as one that stops.

        `failing` is what goes wrong on each of its connections and with its chores, and for how many seconds.
        """
        restarts, fault = self._faults if unfit is None else (0, unfit)
        fails, since = self._longest(failing)
        state = (stuck, stopping or unfit is not None, restarts, fault, fails, since)
        if state != self._told:
            said = workers.tell(
                worker=self._worker,
                stuck=stuck,
                stopping=state[1],
                restarts=restarts,
                fault=fault,
                failing=fails,
                since=since,
            )
            connection.run(said)
            self._told = state

    def _longest(self, failing: Iterable[tuple[str, float] | None]) -> tuple[str | None, datetime | None]:
        """What has been failing for the longest, if it is long, and since when."""
        what, seconds = max((one for one in failing if one is not None), key=lambda one: one[1], default=("", 0.0))
        if seconds < _FAILING_FOR:
            self._since = None
            return None, None
        since = datetime.now(UTC) - timedelta(seconds=seconds)
        if self._since is None or abs(since - self._since) > _SAME:
            self._since = since
        return what, self._since
