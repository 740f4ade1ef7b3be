"""Parking: how a worker that finds nothing asks to be notified of new jobs.

Notifications are hints. What is wrong with parkings alone, a lock or a broken index, must not stop claims: parking is
tried once, and a worker that cannot park looks once a second instead.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from math import inf

from rowlock.db.worker_connection import ReconnectingConnection
from rowlock.store import workers

# An enqueue finds the last 400 parkings. A worker that is so many behind, or is never so idle that it learns how many
# there have been since, sees if another is found in its place, else it parks anew; once in so many seconds.
_BEHIND = 200
_RENEW_EVERY = 10.0
# Where it cannot park, this is the share of a worker's time that it tries to, on the connection that claims.
_SHARE = 0.02
_RETRY_AFTER = 1.0


class Parking:
    """Whether this worker is parked."""

    def __init__(self, *, link: ReconnectingConnection, worker: str) -> None:
        self._link = link
        self._worker = worker
        self.is_parked = False
        self._number = 0  # of our last parking
        self._renew_at = inf
        self._retry_at = 0.0

    @property
    def is_possible(self) -> bool:
        """Whether it is worth trying: not where no notification comes in, nor soon after it has failed."""
        return self._link.hears and time.monotonic() >= self._retry_at

    async def park(self, queues: Iterable[str]) -> None:
        """Ask to be notified of new jobs; when parked, see that we still are."""
        started = time.monotonic()
        query = workers.park(worker=self._worker, queues=queues, before=self._number, renews=self.is_parked)
        numbers = await self._link.try_once(query)
        self.is_parked = numbers is not None
        if numbers is None:
            self._failed(started)
        else:
            [self._number] = numbers
            self._renew_at = time.monotonic() + _RENEW_EVERY

    def is_old(self, *, latest: float = inf) -> bool:
        """Whether it is time to see if we still are; `latest` is the number of the latest parking, if it is known."""
        return self.is_parked and latest - self._number >= _BEHIND and time.monotonic() >= self._renew_at

    async def unpark(self, queues: Iterable[str]) -> None:
        """Ask not to be notified any more. If that fails, we are notified in vain until we park anew."""
        self.is_parked = False
        started = time.monotonic()
        query = workers.unpark(worker=self._worker, queues=queues, number=self._number)
        if await self._link.try_once(query) is None:
            self._failed(started)

    def _failed(self, started: float) -> None:
        ended = time.monotonic()
        self._retry_at = ended + max(_RETRY_AFTER, (ended - started) / _SHARE)
