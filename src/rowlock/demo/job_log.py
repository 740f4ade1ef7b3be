"""Job log: every enqueued job, outside the database, compared with what the database says."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from rowlock.store import jobs
from rowlock.store.jobs import JobStatus
from rowlock.store.query import Query

LIVE = ("waiting", "ready", "running")

RunQuery = Callable[[Query[JobStatus]], list[JobStatus]]

_CHUNK = 1_000


@dataclass(frozen=True, slots=True)
class Audit:
    """What became of every job: each must be in history once, or still in jobs."""

    enqueued: int
    states: Counter[str]
    retried: int
    lost: int
    ended_twice: int

    @property
    def left(self) -> int:
        """How many have not ended."""
        return sum(self.states[state] for state in LIVE)

    @property
    def is_whole(self) -> bool:
        """Nothing is lost and nothing has ended twice."""
        return not self.lost and not self.ended_twice


@dataclass(slots=True)
class JobLog:
    """Each job's id, from the moment its enqueue has returned."""

    enqueued: list[str] = field(default_factory=list)
    ended: Counter[str] = field(default_factory=Counter)
    live: Counter[str] = field(default_factory=Counter)
    retried: int = 0
    lost: int = 0
    _open: dict[str, int] = field(default_factory=dict)  # id → how often it was tried again

    @property
    def open(self) -> Sequence[str]:
        """The jobs that have not been seen to end."""
        return list(self._open)

    def add(self, ids: Iterable[str]) -> None:
        """Add jobs whose enqueue has returned."""
        for job in ids:
            self.enqueued.append(job)
            self._open[job] = 0

    def compare(self, rows: Iterable[JobStatus]) -> list[JobStatus]:
        """Take in what the database says of open jobs; returns those that were tried again or have ended."""
        seen = {row.id: row for row in rows}
        news = []
        for job, retries_before in list(self._open.items()):
            row = seen.get(job)
            if row is None:
                continue
            retries = _retries(row)
            self.retried += retries - retries_before
            self._open[job] = retries
            if row.state not in LIVE:
                self.ended[row.state] += 1
                del self._open[job]
            if row.state not in LIVE or retries > retries_before:
                news.append(row)
        self.live = Counter(row.state for row in seen.values() if row.state in LIVE)
        self.lost = sum(job not in seen for job in self._open)
        return news

    def audit(self, run: RunQuery) -> Audit:
        """Look for every job once more."""
        states: Counter[str] = Counter()
        retried = lost = ended_twice = 0
        for start in range(0, len(self.enqueued), _CHUNK):
            ids = self.enqueued[start : start + _CHUNK]
            rows = defaultdict(list)
            for row in run(jobs.statuses(ids)):
                rows[row.id].append(row)
            lost += sum(job not in rows for job in ids)
            ended_twice += sum(len(places) > 1 for places in rows.values())
            states.update(places[-1].state for places in rows.values())
            retried += sum(_retries(places[-1]) for places in rows.values())
        return Audit(len(self.enqueued), states, retried, lost, ended_twice)


def _retries(row: JobStatus) -> int:
    """How many of its failed attempts were followed by another one, or will be."""
    return row.failures - (row.state == "failed" and row.reason != "poison" and row.failures > 0)
