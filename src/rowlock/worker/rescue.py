"""Rescue: takes back the jobs of workers that died; any worker does it.

A worker is dead when its lease has run out. One that was killed is found sooner: its session is gone, and with it the
lock that shows that it lives.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta

from rowlock.db.errors import Refused
from rowlock.db.safe_logger import SafeLogger
from rowlock.db.thread_connection import ReconnectingSyncConnection
from rowlock.model.row import Orphan, Rescued
from rowlock.model.spec import Keep
from rowlock.store import upkeep, workers
from rowlock.worker.halve import Halver, LeftOut
from rowlock.worker.lease import Lease
from rowlock.workflow.attempt import MOST_CRASHES
from rowlock.workflow.logs import log_fields

log = SafeLogger("rowlock.upkeep")

# What one sweep takes back at most. It shares its thread with the lease; and when a clock jumps, all leases run out.
_BATCH = 500
_BATCHES = 4

# Somebody looks so often, or a little less. Two looks find a worker that was killed, and five seconds are promised.
_SEARCH_EVERY = timedelta(seconds=1.5)
# Chores come round a little sooner than they say, at random: within this share of that, another has just looked.
_JUST = 0.8


class Rescuer:
    """Looks for dead workers and rescues their jobs; remembers which jobs cannot be rescued."""

    def __init__(
        self, *, worker: str, actor: str, keep: Keep, longest: timedelta, patience: timedelta, lease: Lease
    ) -> None:
        """For so long as `patience` others may come back, as this worker has."""
        self.search_every = min(_SEARCH_EVERY, lease.lasts / 3)
        self._worker = worker
        self._lease = lease
        self._actor = actor
        self._keep = keep
        self._starts = time.monotonic() + patience.total_seconds()
        self._is_unfinished = False
        self._left_out = LeftOut("job", "rescued")
        self._halver = Halver[Orphan](
            write=self._take_half,
            left_out=self._left_out,
            marked=lambda orphan: (orphan.token, orphan.id),
            longest=longest,
        )

    def run(self, connection: ReconnectingSyncConnection) -> None:
        """One cheap look, which finds nothing most of the time; and nothing at all where another has just looked."""
        if time.monotonic() < self._starts or self._lease.is_unsettled:
            return
        [found] = connection.run(workers.find_dead(worker=self._worker, pause=self.search_every * _JUST))
        for name in found.cut:
            log.warning("worker %s has lost its connection and has not come back: it is taken for dead", name)
        if found.dead or found.cut or self._is_unfinished:
            self._is_unfinished = True  # nobody else is told of them a second time
            self.sweep(connection, lost=False)

    def sweep(self, connection: ReconnectingSyncConnection, *, lost: bool) -> None:
        """Take jobs back from dead workers, then remove those workers; `lost` also from workers that nobody knows."""
        for _ in range(0 if self._lease.is_unsettled else _BATCHES):
            if self._sweep_batch(connection, lost=lost) < _BATCH:
                return

    def _sweep_batch(self, connection: ReconnectingSyncConnection, *, lost: bool) -> int:
        """One sweeper at a time: the lock is an earlier statement of its transaction, so it sees what others did."""
        orphans: Sequence[Orphan] = ()
        try:
            with connection.sweep("rescue", worker=self._worker) as free:
                if not free:
                    return 0
                left = self._left_out.marks()
                orphans = connection.run(upkeep.orphans(limit=_BATCH, lost=lost, without=left, worker=self._worker))
                rescued = self._take(connection, orphans)
                if len(orphans) < _BATCH:
                    [self._is_unfinished] = connection.run(workers.bury())
        except Refused as error:
            if not orphans:
                raise
            self._halver.take_apart(connection, orphans, error)
        else:
            _report(rescued)
        return len(orphans)

    def _take(self, connection: ReconnectingSyncConnection, orphans: Sequence[Orphan]) -> list[Rescued]:
        if not orphans:
            return []
        return connection.run(
            upkeep.rescue(orphans, crashes=MOST_CRASHES, keep=self._keep, actor=self._actor, worker=self._worker)
        )

    def _take_half(self, connection: ReconnectingSyncConnection, orphans: Sequence[Orphan]) -> None:
        with connection.sweep("rescue", worker=self._worker) as free:
            rescued = self._take(connection, orphans) if free else []
        _report(rescued)


_LINES = {
    "ready": "%s %s is rescued; its worker %s (%s) is dead, %s",
    "waiting": "%s %s is rescued and set aside as a suspect; its worker %s (%s) is dead, %s",
    "cancelled": "%s %s is cancelled, as somebody asked; its worker %s (%s) is dead, %s",
}


def _report(rescued: Sequence[Rescued]) -> None:
    for job in rescued:
        fields = log_fields(job)
        if job.becomes == "failed":
            fields |= {"outcome": "failed", "reason": "poison"}
            says = "%s %s failed for good: %d workers died while they ran it, the last was %s (%s)"
            log.error(says, job.task, job.id, job.crashes, job.owner, job.worker, extra=fields)
        else:
            counted = f"crash {job.crashes}" if job.has_crashed else "no crash of its own"
            log.warning(_LINES[job.becomes], job.task, job.id, job.owner, job.worker, counted, extra=fields)
