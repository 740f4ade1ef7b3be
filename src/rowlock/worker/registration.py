"""Registration: a worker's row in the database, from its first entry to its latest condition."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from importlib.metadata import version

from rowlock.db.errors import Unreachable, is_transient
from rowlock.db.partitions import make_partitions
from rowlock.db.safe_logger import SafeLogger
from rowlock.db.thread_connection import ReconnectingSyncConnection
from rowlock.db.within import Within
from rowlock.model.spec import Handler, Keep
from rowlock.store import queues, upkeep, workers
from rowlock.worker.around import Around
from rowlock.worker.attempt import HandlerDatabase
from rowlock.worker.counts import Counts
from rowlock.worker.lease import Lease
from rowlock.worker.queues import Queues
from rowlock.worker.schedule import Boot
from rowlock.worker.settings import Timing
from rowlock.worker.settle import Retention

log = SafeLogger("rowlock.worker")

# How far back a worker that was cut off looks for its jobs among those rescued.
_PARDON_WITHIN = timedelta(days=1)
# Between two tries, where the server responds and does not let us in.
_PAUSE = 0.5
# What has been failing for so many seconds is written down: shorter outages pass by themselves.
_FAILING_FOR = 30.0
# One failure may be found to have begun a little sooner or later, by clocks that are read one after the other.
_SAME = timedelta(seconds=1)

Faults = tuple[int, str | None]


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """The configuration that all incarnations of a worker share."""

    handlers: Mapping[str, Handler]
    schema: str
    database: HandlerDatabase
    within: Within
    keep: Keep
    queues: Queues
    slots: int
    threads: int
    timing: Timing
    deadline: timedelta  # the app's: for the connections that handlers use
    arounds: Sequence[Around] = ()
    boot: Boot = field(default_factory=Boot)
    place: Callable[[], str] = lambda: "its database"  # the database, as people know it


class Registration:
    """Registers one incarnation, in a thread that may wait."""

    def __init__(
        self,
        config: WorkerConfig,
        connection: ReconnectingSyncConnection,
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
        self._config = config
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
            log.warning("the database does not respond (%s); trying again", outage)
            return False
        except Exception as error:
            if not self.predecessors and not is_transient(error):
                raise  # it could not even start
            log.exception("worker %s could not register; trying again", self._name)
            time.sleep(_PAUSE)
            return False
        return True

    def _register(self, enter: Callable[[], None]) -> None:
        config = self._config
        make_partitions(self._connection.open(), config.schema, longest=self._retention.longest)
        self._retention.learn(self._connection.run(queues.settings()))
        sent = self._lease.now()
        [(now, unwatched)] = self._connection.run(
            workers.register(
                worker=self._worker,
                host=socket.gethostname(),
                pid=os.getpid(),
                queues=config.queues.names,
                slots=config.slots,
                tasks=sorted(config.handlers),
                schedules=config.boot.names,
                version=version("rowlock"),
                lease=config.timing.lease,
                restarts=self._faults[0],
                fault=self._faults[1],
            )
        )
        self._lease.renewed(sent, now)
        self._lease.began(unwatched)
        enter()
        self._counts.begin(now)
        config.boot.begin(self._connection, now)
        while self.predecessors:
            self._make_good(self.predecessors[0])
            del self.predecessors[0]

    def _make_good(self, predecessor: str) -> None:
        """The incarnation before was cut off, and let go of its jobs: they come back at no cost, rescued or not."""
        self._connection.run(workers.leave(worker=predecessor))  # first: it can claim no more
        returned = self._connection.run(workers.hand_back(worker=predecessor))
        pardoned = self._connection.run(upkeep.pardon(worker=predecessor, since=_PARDON_WITHIN))
        if returned or pardoned:
            log.info("handed back %d jobs of %s; %d had been rescued", len(returned), predecessor, len(pardoned))


class StatusWriter:
    """Keeps the condition on a worker's row up to date; while nothing changes, nothing is written."""

    def __init__(self, worker: str, faults: tuple[int, str | None]) -> None:
        """`faults` are how often in a row it restarted after an internal error, and the last of those."""
        self._worker = worker
        self._faults = faults
        self._written: tuple[object, ...] = (0, False, *faults, None, None)
        self._since: datetime | None = None

    def write(
        self,
        connection: ReconnectingSyncConnection,
        *,
        stuck: int,
        stopping: bool,
        unfit: str | None,
        failing: Iterable[tuple[str, float] | None],
    ) -> None:
        """Write what has changed. A worker that cannot use the schema claims as little as one that stops.

        `failing` is what goes wrong on each of its connections and with its chores, and for how many seconds.
        """
        restarts, fault = self._faults if unfit is None else (0, unfit)
        fails, since = self._longest(failing)
        state = (stuck, stopping or unfit is not None, restarts, fault, fails, since)
        if state != self._written:
            query = workers.tell(
                worker=self._worker,
                stuck=stuck,
                stopping=state[1],
                restarts=restarts,
                fault=fault,
                failing=fails,
                since=since,
            )
            connection.run(query)
            self._written = state

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
