"""Stats: queues, tasks, workers and the database at one moment.

A part that could not be learned, because it took too long or this role may not see it, is None, and `Stats.unknown` has
the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from rowlock.model.pause import Pause
from rowlock.model.plain import Plain
from rowlock.model.stats.histogram import Histogram
from rowlock.model.stats.worker_view import Vitals


@dataclass(frozen=True, slots=True)
class Count:
    """A number that was counted only so far: with `more` there are, or may be, more."""

    value: int
    more: bool = False

    def __str__(self) -> str:
        return f"{self.value}+" if self.more else str(self.value)


@dataclass(frozen=True, slots=True)
class Rates:
    """Rates of what workers did, per second over the last full minutes (`Stats.window`)."""

    claimed: float = 0.0
    completed: float = 0.0  # jobs that ended: succeeded, failed or cancelled
    retried: float = 0.0  # attempts that failed and will be made again
    failed: float = 0.0  # jobs that failed for good


@dataclass(frozen=True, slots=True)
class QueueStats:
    """The figures of one queue."""

    runnable: Count | None  # due now
    delayed: Count | None  # due later: enqueued so, snoozed, or between two attempts
    running: Count | None
    waiting: Mapping[str, Count] | None  # by what for: parents, limit, code, pause
    parked: Count | None  # workflows that wait for a signal, a child or a time
    oldest: timedelta | None  # for how long the oldest runnable job has been due; None too when there is none
    paused: bool | None
    rates: Rates | None
    waits: Durations | None  # how long jobs claimed in the last hour had been due; None too when none was claimed


@dataclass(frozen=True, slots=True)
class Durations:
    """Durations that were counted in a histogram; percentiles are right to within half an octave."""

    count: int
    mean: timedelta
    p50: timedelta
    p95: timedelta
    p99: timedelta
    max: timedelta

    @classmethod
    def of(cls, told: Histogram) -> Durations | None:
        """The durations in a histogram; None when nothing was counted."""
        count = told.count
        if not count:
            return None
        p50, p95, p99 = (timedelta(seconds=told.percentile(share)) for share in (0.50, 0.95, 0.99))
        mean, longest = timedelta(seconds=told.seconds / count), timedelta(seconds=told.longest)
        return cls(count=count, mean=mean, p50=p50, p95=p95, p99=p99, max=longest)


@dataclass(frozen=True, slots=True)
class TaskStats:
    """The figures of one task."""

    rates: Rates | None
    durations: Durations | None  # of attempts that returned or raised in the last hour; None too when there was none
    waits: Durations | None  # how long jobs claimed in the last hour had been due; None too when none was claimed
    failed: Count | None  # jobs in history that have failed
    paused: bool | None


@dataclass(frozen=True, slots=True)
class WorkerStats:
    """The figures of one registered worker."""

    id: str
    host: str
    pid: int
    queues: tuple[str, ...]
    slots: int
    held: int  # jobs it has claimed and not settled
    lease_left: timedelta  # below zero: it has run out, and its jobs are about to be rescued
    started_at: datetime
    version: str
    stuck: int = 0  # attempts that timed out and go on all the same
    restarts: int = 0  # in a row, because of a fault of its own: the last of those is `fault`
    fault: str | None = None  # without restarts: why it claims no more jobs
    failing: str | None = None  # a settle or claim that has been failing for half a minute or more
    failing_since: datetime | None = None
    lasts: timedelta = timedelta(seconds=30)  # how long its lease is from one renewal on
    blocked: timedelta | None = None  # for how long its event loop had stood still at its last renewal
    blocked_by: str | None = None  # by what: task and job, as far as it could tell

    @property
    def vitals(self) -> Vitals:
        """Whether it renews its lease, and whether its event loop turns."""
        return Vitals(self.lease_left, self.lasts, self.blocked, self.blocked_by)


@dataclass(frozen=True, slots=True)
class Recent:
    """Counts of one kind of event over the last hour and the last day."""

    hour: Count
    day: Count


@dataclass(frozen=True, slots=True)
class ClaimTimes:
    """Claims that found jobs, of all live workers, each over the last minute in which it made one."""

    mean: timedelta
    max: timedelta
    rows: float  # jobs per claim


@dataclass(frozen=True, slots=True)
class Suspects:
    """Jobs that two workers died of, and that wait: each worker runs one of them at a time."""

    waiting: Count
    oldest: timedelta | None  # how long the first of them has been due; None when none waits


@dataclass(frozen=True, slots=True)
class FleetStats:
    """The workers, and how many of their jobs were rescued."""

    workers: tuple[WorkerStats, ...] | None
    rescued: Recent | None
    poisoned: Recent | None
    claims: ClaimTimes | None  # None too when no live worker has claimed anything yet
    suspects: Suspects | None


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of tables on disk, in bytes, with their long values; `jobs_indexes` are by name."""

    jobs: int
    jobs_indexes: Mapping[str, int]
    history: int  # with its indexes, over all partitions
    events: int
    history_rows: int  # about


@dataclass(frozen=True, slots=True)
class Vacuum:
    """The state of vacuum on the table of jobs."""

    live: int
    dead: int  # rows that are gone but not yet removed
    last_vacuum: datetime | None
    last_autovacuum: datetime | None


@dataclass(frozen=True, slots=True)
class LockWait:
    """A session that works on our tables and waits for a lock."""

    pid: int
    application: str
    table: str | None  # None: it waits for a row, or for another transaction
    mode: str
    waited: timedelta
    blocked_by: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Something that keeps vacuum from removing dead rows. What this role may not see of it is None."""

    kind: str  # session, prepared transaction, replication slot
    name: str  # the session's application_name, the transaction's gid, the slot's name
    pid: int | None
    user: str | None
    state: str | None
    transactions: int  # how many have begun since
    held_for: timedelta | None
    query_started: datetime | None


@dataclass(frozen=True, slots=True)
class ClaimCost:
    """The cost of a claim now, if it began at the bottom of its lanes; measured, and nothing was claimed."""

    buffers: int  # pages of 8 kB
    rows: int
    took: timedelta


@dataclass(frozen=True, slots=True)
class Cleanup:
    """The backlog of retention: partitions of history that have expired and are not dropped yet."""

    partitions: int
    lag: timedelta  # since the oldest of them could have been dropped


@dataclass(frozen=True, slots=True)
class Connections:
    """Connections to the server, and its limit."""

    used: int
    limit: int


@dataclass(frozen=True, slots=True)
class DatabaseStats:
    """The figures of the database."""

    sizes: Sizes | None
    vacuum: Vacuum | None
    lock_waits: tuple[LockWait, ...] | None
    snapshots: tuple[Snapshot, ...] | None  # the oldest first, and a few
    claim: ClaimCost | None  # None too when there is no queue to look into
    cleanup: Cleanup | None
    connections: Connections | None


@dataclass(frozen=True, slots=True)
class Glance:
    """Queues and tasks at a glance: as in `Stats`, but counted less far."""

    at: datetime
    window: timedelta  # what rates are over
    queues: Mapping[str, QueueStats]
    tasks: Mapping[str, TaskStats]
    pauses: tuple[Pause, ...] | None
    workers: tuple[WorkerStats, ...] | None
    unknown: Mapping[str, str]  # the parts that could not be learned, and why


@dataclass(frozen=True, slots=True)
class Stats(Plain):
    """The result of `app.stats()`: everything at a glance."""

    at: datetime
    window: timedelta  # what rates are over
    queues: Mapping[str, QueueStats]
    tasks: Mapping[str, TaskStats]
    fleet: FleetStats
    database: DatabaseStats
    unknown: Mapping[str, str]  # the parts that could not be learned, and why
