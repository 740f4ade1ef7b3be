"""Facts for explain: one job, and the workers that could run it, at one moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from rowlock.model.pause import Pause
from rowlock.model.record import JobRecord
from rowlock.model.results import Event
from rowlock.model.stats.stats import Count
from rowlock.model.stats.worker_view import Vitals
from rowlock.model.workflow.step import StepKind, StepState


@dataclass(frozen=True, slots=True)
class Candidate:
    """A worker on the books, as one job sees it. `held` is counted up to one more than its slots."""

    id: UUID
    host: str
    pid: int
    slots: int
    held: int
    lease_left: timedelta
    lasts: timedelta
    blocked: timedelta | None
    blocked_by: str | None
    listens: bool  # on the job's queue
    knows: bool  # the job's task
    queues: tuple[str, ...]
    version: str
    stopping: bool
    stuck: int

    @property
    def name(self) -> str:
        """Host and process, as logs and pages name it."""
        return f"{self.host}:{self.pid}"

    @property
    def is_alive(self) -> bool:
        """Whether its lease is fresh."""
        return self.lease_left > timedelta(0)

    @property
    def vitals(self) -> Vitals:
        """Whether it renews its lease, and whether its event loop turns."""
        return Vitals(self.lease_left, self.lasts, self.blocked, self.blocked_by)

    @property
    def free(self) -> int:
        """How many of its slots are free."""
        return max(self.slots - self.held, 0)


@dataclass(frozen=True, slots=True)
class KeyHolder:
    """The job that holds a key, and until when at least, if the key has a period."""

    job: UUID
    until: datetime | None


class TableLock(NamedTuple):
    """A session whose lock keeps all others from reading a table, or writing to it, and for how long at most."""

    pid: int
    name: str
    table: str
    mode: str
    held: timedelta


class JobLock(NamedTuple):
    """Whether a running job has begun, as far as is known; and the session that has its row locked, if one has.

    `others` is how many more sessions share that lock.
    """

    begun: bool | None
    pid: int | None
    application: str | None
    user: str | None
    seconds: float | None
    others: int | None

    @property
    def name(self) -> str:
        """The session, for people."""
        who = ", ".join(word for word in (self.application, self.user) if word)
        return f"pid {self.pid} ({who})" if who else f"pid {self.pid}"


class StepError(NamedTuple):
    """The last error of a step."""

    type: str
    message: str


@dataclass(frozen=True, slots=True)
class OpenStep:
    """A step of a workflow that is open: a signal, a moment or a child that it waits for, or a next try."""

    name: str
    key: str
    kind: StepKind
    state: StepState
    attempts: int  # tries that have failed
    until: datetime | None
    child: UUID | None
    started_at: datetime
    error: StepError | None = None


@dataclass(frozen=True, slots=True)
class Queueing:
    """How many suspects come before one, and the workers on its queue that are at one now."""

    before: Count
    busy: frozenset[UUID]


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """A job, None if there is none, and all that bears on it.

    A part that could not be learned is None, and `unknown` has the reason. Parts that cannot matter for such a job are
    not queried.
    """

    at: datetime
    job: UUID
    record: JobRecord | None
    events: Sequence[Event] | None = ()  # of this job, newest first
    pauses: Sequence[Pause] | None = ()
    workers: Sequence[Candidate] | None = ()
    tasks: Sequence[str] | None = ()  # that those who listen on its queue know, if none of them knows its own
    ahead: Count | None = None  # due jobs of its queue that come before it
    queueing: Queueing | None = None  # of a suspect
    holder: KeyHolder | None = None
    open_steps: Sequence[OpenStep] | None = ()  # of a workflow: what it waits for, the first of it
    children: tuple[int, int] | None = None  # that it has begun, and that have not ended
    has_failed: bool | None = None  # and is being undone
    signals: Sequence[str] | None = ()  # that were sent to it, and that nobody has taken
    keeps: Sequence[timedelta] | None = ()  # for how long operators let queues keep ended jobs
    hold: JobLock | None = None  # whether it has begun, and who has its row locked
    unclaimable: TableLock | None = None  # the lock that keeps all workers from claiming
    locked: TableLock | None = None  # then nothing else is known
    unknown: Mapping[str, str]

    @property
    def is_odd(self) -> bool:
        """Whether the job runs and its worker is not on the books."""
        record = self.record
        if record is None or record.state != "running" or self.workers is None:
            return False
        return record.worker not in {one.id for one in self.workers}

    @property
    def alive(self) -> list[Candidate]:
        """The workers that live."""
        return [one for one in self.workers or () if one.is_alive]

    @property
    def listeners(self) -> list[Candidate]:
        """The live workers on the job's queue."""
        return [one for one in self.alive if one.listens]

    def pause_of(self, *, queue: str | None = None, task: str | None = None) -> Pause | None:
        """The pause of a queue, or of a task, that holds."""
        return next((one for one in self.pauses or () if (one.queue, one.task) == (queue, task)), None)

    @property
    def died(self) -> list[str]:
        """The workers that died while they ran it, the first one first, as far as events are kept."""
        rescues = [one for one in reversed(self.events or ()) if one.kind in {"rescued", "poisoned"}]
        return [one.owner or str(one.worker) for one in rescues if one.details["crashed"]]

    def event(self, kind: str) -> Event | None:
        """The last event of this kind."""
        return next((one for one in self.events or () if one.kind == kind), None)
