"""Condition: what a worker says of itself on its row, for those who look at the workers."""

from __future__ import annotations

from rowlock.db.steady import Steady
from rowlock.store import workers


class Condition:
    """What was said last; nothing is said while nothing changes."""

    def __init__(self, worker: str, faults: tuple[int, str | None]) -> None:
        """`faults` are how often in a row it began anew because of a fault of its own, and the last of those."""
        self._worker = worker
        self._faults = faults
        self._told = (0, False, *faults)

    def tell(self, connection: Steady, *, stuck: int, stopping: bool, unfit: str | None) -> None:
        """Say what has changed. One that cannot use the schema claims as little as one that stops."""
        restarts, fault = self._faults if unfit is None else (0, unfit)
        state = (stuck, stopping or unfit is not None, restarts, fault)
        if state != self._told:
            said = workers.tell(worker=self._worker, stuck=stuck, stopping=state[1], restarts=restarts, fault=fault)
            connection.run(said)
            self._told = state
