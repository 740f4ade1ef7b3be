"""Register: how an incarnation enters its name and its lease, and makes good what those before it have left."""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from importlib.metadata import version

from rowlock.db.partitions import make_partitions
from rowlock.db.steady import Steady, Unreachable
from rowlock.db.trouble import passes
from rowlock.store import jobs, queues, workers
from rowlock.worker.count import Counts
from rowlock.worker.lease import Lease
from rowlock.worker.retention import Retention
from rowlock.worker.setup import Setup

log = logging.getLogger("rowlock.worker")

# How far back a worker that was cut off looks for its jobs among those rescued.
_PARDON_WITHIN = timedelta(days=1)
# Between two tries, where the server answers and does not let us in.
_PAUSE = 0.5
Faults = tuple[int, str | None]


class Registration:
    """Registers one incarnation, in a thread that may wait."""

    def __init__(
        self,
        setup: Setup,
        connection: Steady,
        *,
        worker: str,
        name: str,
        lease: Lease,
        retention: Retention,
        counts: Counts,
        predecessors: Sequence[str],
        faults: Faults,
    ) -> None:
        """`predecessors` are the ids of incarnations that let go of their jobs without handing them back.

        `faults` are how many in a row have ended by a fault of ours before this one, and the last of those.
        """
        self.predecessors = list(predecessors)  # those that are still to be made good
        self._setup = setup
        self._connection = connection
        self._worker = worker
        self._name = name
        self._lease = lease
        self._retention = retention
        self._counts = counts
        self._faults = faults

    def try_to(self, enter: Callable[[], None]) -> bool:
        """Register, then `enter` among those present; False while it has to be tried again."""
        try:
            self._register(enter)
        except Unreachable as outage:
            log.warning("the database does not answer (%s); trying again", outage)
            return False
        except Exception as error:
            if not self.predecessors and not passes(error):
                raise  # it could not even start
            log.exception("worker %s could not register; trying again", self._name)
            time.sleep(_PAUSE)
            return False
        return True

    def _register(self, enter: Callable[[], None]) -> None:
        setup = self._setup
        make_partitions(self._connection.open(), setup.schema, longest=self._retention.longest)
        self._retention.learn(self._connection.run(queues.settings()))
        sent = self._lease.now()
        [now] = self._connection.run(
            workers.register(
                worker=self._worker,
                host=socket.gethostname(),
                pid=os.getpid(),
                queues=setup.queues.names,
                slots=setup.slots,
                tasks=sorted(setup.handlers),
                schedules=setup.boot.names,
                version=version("rowlock"),
                lease=setup.timing.lease,
                restarts=self._faults[0],
                fault=self._faults[1],
            )
        )
        self._lease.renewed(sent, now)
        enter()
        self._counts.begin(now)
        setup.boot.begin(self._connection, now)
        while self.predecessors:
            self._make_good(self.predecessors[0])
            del self.predecessors[0]

    def _make_good(self, predecessor: str) -> None:
        """The incarnation before was cut off, and let go of its jobs: they come back at no cost, rescued or not."""
        self._connection.run(workers.leave(worker=predecessor))  # first: it can claim no more
        returned = self._connection.run(workers.hand_back(worker=predecessor))
        pardoned = self._connection.run(jobs.pardon(worker=predecessor, since=_PARDON_WITHIN))
        if returned or pardoned:
            log.info("handed back %d jobs of %s; %d had been rescued", len(returned), predecessor, len(pardoned))
