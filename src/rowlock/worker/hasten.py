"""Hasten: bring forward the jobs that are late because the database's clock was set back, which is rare."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta

from rowlock.db.steady import Steady
from rowlock.store import expiry
from rowlock.worker.lanes import Queues
from rowlock.worker.lease import Lease
from rowlock.worker.renew import Chore

log = logging.getLogger("rowlock.upkeep")

# Statements that one look sends: it shares its thread with the lease.
_BATCHES = 20
# Clocks are set by less than that all the time.
_LEAST = timedelta(seconds=1)


class Hastener:
    """What a worker does for its own queues: at its start, and whenever a renewal tells that the clock was set back."""

    def __init__(self, lease: Lease, ours: Queues, *, set_back: Callable[[], object]) -> None:
        """`set_back` is called when the clock was, and jobs that are late for it have been brought forward."""
        self._lease = lease
        self._ours = ours
        self._tell_set_back = set_back
        self._has_compared = False

    def chore(self) -> Chore:
        """What to do every so often."""
        return Chore("bringing jobs forward", timedelta(seconds=1), self.look)

    def look(self, connection: Steady) -> None:
        """Bring forward what is late."""
        if not self._has_compared:
            self._compare(connection)
        if by := self._lease.set_back:
            self._hasten(connection, by)
            self._tell_set_back()

    def _compare(self, connection: Steady) -> None:
        """The clock may have been set back while no worker was there to see it: then the jobs know."""
        [seconds] = connection.run(expiry.compare(queues=self._ours.names))
        self._has_compared = True
        if seconds is not None and (ahead := timedelta(seconds=seconds)) >= _LEAST:
            log.warning("the database's clock was set back by %s or more before this worker started", ahead)
            self._lease.set_back = max(self._lease.set_back, ahead)

    def _hasten(self, connection: Steady, by: timedelta) -> None:
        late = 0
        for _ in range(_BATCHES):
            chunk = len(connection.run(expiry.hasten(by=by, queues=self._ours.names)))
            late += chunk
            if chunk < expiry.HASTENED_AT_ONCE:
                self._lease.set_back -= by
                break
        if late:
            log.warning("brought %d jobs forward by %s, for the database's clock was set back by that", late, by)
