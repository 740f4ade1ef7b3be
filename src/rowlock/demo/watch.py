"""Watch: jobs, workers and rescues as the database has them, for both views."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, replace
from uuid import UUID

from rowlock.db.thread_connection import ReconnectingSyncConnection
from rowlock.demo.job_log import LIVE, Audit, JobLog
from rowlock.demo.workers import LEASE_SECONDS, SLOTS, WorkerProcess, WorkerProcesses
from rowlock.model.results import Event
from rowlock.store import events as events_store
from rowlock.store import jobs
from rowlock.store.jobs import JobStatus
from rowlock.store.stats import workers
from rowlock.store.stats.workers import WorkerRow

_EVENTS = 200
_RATES = 60
_ENDED = 24
# Retries per refresh that get a line of their own; a screen of nothing else would hide the rest.
_RETRIES_TOLD = 2
# How long a rescue stays the story.
_TOLD_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class WorkerState:
    """One worker: its process, and what the database says of it."""

    number: int
    pid: int
    alive: bool
    held: int
    slots: int
    lease: float | None  # seconds left; None when it is not on the books
    note: str


@dataclass(frozen=True, slots=True)
class DemoEvent:
    """One line of the demo's log."""

    at: float  # seconds since the demo began
    kind: str  # killed, rescued, retry, started, …: how it is drawn
    text: str


@dataclass(frozen=True, slots=True)
class DemoState:
    """The demo at one moment."""

    at: float
    story: str
    workers: tuple[WorkerState, ...]
    states: Counter[str]
    delayed: int
    enqueued: int
    retried: int
    killed: int
    rescued: int
    lost: int
    rates: tuple[int, ...]  # jobs ended in each of the last seconds
    happenings: tuple[DemoEvent, ...]


@dataclass(slots=True)
class Victim:
    """A worker that was killed: who it was to the database, what it held, and how many of those jobs were rescued."""

    number: int
    worker: str
    held: int
    at: float
    rescued: int = 0
    rescued_at: float | None = None


class Watch:
    """All that was read so far, and what the processes did."""

    def __init__(self, *, database: ReconnectingSyncConnection, job_log: JobLog, processes: WorkerProcesses) -> None:
        self.victims: list[Victim] = []
        self.rescued = 0
        self.workers: dict[int, WorkerRow] = {}  # by the number of their process
        self.places: list[JobStatus] = []  # of the jobs that had not ended at the last refresh
        self.ended: deque[JobStatus] = deque(maxlen=_ENDED)  # the latest
        self._database = database
        self._job_log = job_log
        self._processes = processes
        self._began = time.monotonic()
        self._numbers: dict[int, int] = {}  # pid → number, of every process there was
        self._notes: dict[int, str] = {}
        self._happenings: deque[DemoEvent] = deque(maxlen=_EVENTS)
        self._events_seen: set[UUID] = set()
        self._ended_in: Counter[int] = Counter()
        self._delayed = 0
        for member in processes:
            self.started(member)

    @property
    def at(self) -> float:
        """Seconds since the demo began."""
        return time.monotonic() - self._began

    def refresh(self) -> None:
        """Read the database again."""
        self.places = self._database.run(jobs.statuses(self._job_log.open))
        news = self._job_log.compare(self.places)
        self._delayed = sum(place.state == "ready" and place.due_in > 0 for place in self.places)
        self.ended.extend(place for place in news if place.state not in LIVE)
        self._tell_news(news)
        self._see_workers(self._database.run(workers.worker_rows()))
        self._tell_rescues(self._database.run(events_store.latest(limit=_EVENTS)))

    def audit(self) -> Audit:
        """Look for every job that was ever enqueued."""
        return self._job_log.audit(self._database.run)

    def held_by(self, worker: str) -> int:
        """How many jobs the database says a worker holds."""
        return sum(row.held for row in self._database.run(workers.worker_rows()) if row.id == worker)

    # What the demo itself does, told as it happens

    def started(self, member: WorkerProcess) -> None:
        """A worker process was started."""
        self._numbers[member.process.pid] = member.number
        self.tell("started", f"{member.name} starts, pid {member.process.pid}", member.number, "starting")

    def killed(self, member: WorkerProcess, worker: str, held: int) -> None:
        """A worker process was killed while it held jobs."""
        self.victims.append(Victim(member.number, worker, held, self.at))
        self.tell(
            "killed", f"{member.name} killed (SIGKILL) — its {_jobs(held)} come back", member.number, "killed (SIGKILL)"
        )

    def fell(self, member: WorkerProcess) -> None:
        """A worker process ended by itself."""
        code, log = member.process.returncode, self._processes.log_of(member.number)
        self.tell("failed", f"{member.name} ended with exit code {code}; see {log}", member.number, f"exit code {code}")

    def tell(self, kind: str, text: str, number: int | None = None, note: str = "") -> None:
        """Add a line; `note` is what the worker's own row then says."""
        self._happenings.append(DemoEvent(self.at, kind, text))
        if number is not None:
            self._notes[number] = note

    # What the database says

    def _tell_news(self, news: Iterable[JobStatus]) -> None:
        retried = []
        for place in news:
            if place.state in LIVE:
                retried.append(place)
                continue
            self._ended_in[int(self.at)] += 1
            if place.state == "failed":
                reason = "poison" if place.reason == "poison" else f"{place.failures} attempts"
                self.tell("failed", f"{place.task} {_short(place.id)} failed for good ({reason})")
        for place in retried[:_RETRIES_TOLD]:
            when = f"again in {place.due_in:.1f} s" if place.due_in else "again now"
            attempt = f"attempt {place.failures} of {place.attempts}"
            self.tell("retry", f"{place.task} {_short(place.id)} failed, {attempt}; {when}")

    def _see_workers(self, rows: Iterable[WorkerRow]) -> None:
        # Oldest first, so that of several incarnations of one process the last one stays.
        now = {self._numbers[row.pid]: row for row in rows if row.pid in self._numbers}
        for number, row in now.items():
            known = self.workers.get(number)
            if known is None or known.id != row.id:
                self._notes[number] = "works"
        self.workers = now

    def _tell_rescues(self, events: Iterable[Event]) -> None:
        new = [event for event in events if event.id not in self._events_seen]
        self._events_seen.update(event.id for event in new)
        rescues = Counter((event.actor, event.worker) for event in new if event.kind in {"rescued", "poisoned"})
        for (actor, worker), count in rescues.items():
            self.rescued += count
            rescuer = self._numbers.get(int(actor.rpartition(":")[2]), 0)
            victim = next((victim for victim in self.victims if victim.worker == worker), None)
            if victim is None:
                self.tell("rescued", f"worker {rescuer} rescued {_jobs(count)} of a worker that lost its lease")
                continue
            victim.rescued += count
            victim.rescued_at = self.at
            after = f"{self.at - victim.at:.1f} s after the kill"
            self.tell(
                "rescued",
                f"worker {rescuer} rescued {_jobs(count)} of worker {victim.number}, {after}",
                rescuer,
                f"rescued {_jobs(count)}",
            )

    # The state to show

    def state(self, story: str = "") -> DemoState:
        """This moment."""
        at = self.at
        seconds = range(int(at) - _RATES, int(at))
        return DemoState(
            at=at,
            story=story or self._story(),
            workers=tuple(self._worker_state(member) for member in self._processes),
            states=self._job_log.live + self._job_log.ended,
            delayed=self._delayed,
            enqueued=len(self._job_log.enqueued),
            retried=self._job_log.retried,
            killed=len(self.victims),
            rescued=self.rescued,
            lost=self._job_log.lost,
            rates=tuple(self._ended_in[second] for second in seconds),
            happenings=tuple(self._happenings),
        )

    def _worker_state(self, member: WorkerProcess) -> WorkerState:
        row = self.workers.get(member.number)
        worker = WorkerState(
            number=member.number,
            pid=member.process.pid,
            alive=member.is_alive,
            held=row.held if row else 0,
            slots=row.slots if row else SLOTS,
            lease=row.lease if row else None,
            note=self._notes.get(member.number, ""),
        )
        if member.start_at is not None:
            return replace(
                worker, note=f"{worker.note}; starts in {max(0.0, member.start_at - time.monotonic()):.0f} s"
            )
        return worker

    def _story(self) -> str:
        victim = self.victims[-1] if self.victims else None
        if victim is not None and victim.rescued < victim.held and victim.rescued_at is None:
            row = self.workers.get(victim.number)
            left = f"ends in {row.lease:.1f} s" if row and row.id == victim.worker and row.lease > 0 else "has run out"
            others = any(member.is_alive for member in self._processes)
            then = "another worker takes them back" if others else "the next worker that starts takes them back"
            return (
                f"Worker {victim.number} was killed with SIGKILL while it held {_jobs(victim.held)}. It could tell "
                f"nobody, but its lease {left}; then {then}."
            )
        if victim is not None and victim.rescued_at is not None and self.at - victim.rescued_at < _TOLD_SECONDS:
            back = f"{victim.rescued} of the {victim.held}" if victim.rescued < victim.held else "The"
            return (
                f"{back} jobs that worker {victim.number} held are back in the queue, and run again where there is "
                "room. A crash costs a job no attempt."
            )
        if not self.workers:
            return "Three worker processes are starting. Between them there is nothing but PostgreSQL."
        return (
            "Workers claim jobs, run them and settle them, in batches; one that fails is tried again a little later. "
            f"Each worker renews a lease of {LEASE_SECONDS} s every second."
        )


def _jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count} jobs"


def _short(job: str) -> str:
    return f"…{job[-4:]}"
