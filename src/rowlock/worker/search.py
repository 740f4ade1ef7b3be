"""Search: a worker of all queues looks for queues that it does not know.

It looks on the connection that claims, so a look that fails or is late is not sent again: the worker goes on with the
queues that it knows, and looks again after a pause of many times what the look took.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from math import inf

from rowlock.db.worker_connection import ReconnectingConnection
from rowlock.store import queues as store
from rowlock.store import workers
from rowlock.worker.parking import Parking
from rowlock.worker.queues import Queues

# How often it looks for new queues, which lie between those that it knows; at most this share of its time.
_EVERY = 1.0
_SHARE = 0.02
# How often it looks whether those that it knows have jobs. That look walks all that is dead in them under a held
# snapshot, 0.2 s for a million jobs, and forgetting a queue saves little: so it may take a much smaller share.
_ANEW_EVERY = 60.0
_ANEW_SHARE = 0.0005
_ANEW_AT_LEAST_EVERY = 900.0
# What is dead in a forgotten queue is walked by each look for new ones: after so dear a look, no queue is forgotten.
_DEAR = 0.02


class QueueSearch:
    """The looks for new queues, and those for queues that have no jobs any more."""

    def __init__(self, *, link: ReconnectingConnection, queues: Queues, parking: Parking, worker: str) -> None:
        self._link = link
        self._queues = queues
        self._parking = parking
        self._worker = worker
        self._told = queues.names  # the queues on the worker's row
        self._next = 0.0 if queues.is_all else inf
        # The first look, too, leaves out the queues of our tasks: what is dead there must not hold up a start.
        self._next_anew = time.monotonic() + _ANEW_EVERY

    @property
    def is_due(self) -> bool:
        """Whether it is time for a look."""
        return time.monotonic() >= self._next

    async def look(self) -> bool:
        """Whether it has changed which queues we look into."""
        started = time.monotonic()
        found = await self._find(started)
        changed = found is not None and not self._queues.knows(found) and await self._learn(found)
        if self._told != self._queues.names:
            told = await self._link.try_once(workers.serve(worker=self._worker, queues=self._queues.names))
            self._told = self._told if told is None else self._queues.names
        ended = time.monotonic()
        self._next = ended + max(_EVERY, (ended - started) / _SHARE)
        return changed

    async def _find(self, started: float) -> Sequence[str] | None:
        anew, known = started >= self._next_anew, self._queues.names
        found = await self._link.try_once(store.used(() if anew else known))
        ended = time.monotonic()
        took = ended - started
        if anew:
            self._next_anew = ended + min(max(_ANEW_EVERY, took / _ANEW_SHARE), _ANEW_AT_LEAST_EVERY)
        if found is None:
            return None
        return found if anew and took < _DEAR else [*known, *found]

    async def _learn(self, found: Sequence[str]) -> bool:
        new = sorted({*found} - {*self._queues.names})
        channels = await self._link.try_once(store.channels(new)) if new else []
        if channels is None:
            return False
        if self._parking.is_parked:
            await self._parking.unpark(self._queues.names)  # from those before
        self._queues.learn(found)
        if channels:
            await self._link.listen_to(channels)
        return True
