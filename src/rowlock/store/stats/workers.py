"""Workers: their rows for operators, and the jobs that they hold."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

from rowlock.model.record import read_moment, read_progress
from rowlock.model.stats.worker_view import Claiming, Fleet, HeldJob, WorkerView
from rowlock.store import schema
from rowlock.store.query import Conversation, Query, Row, interval, plain_array
from rowlock.store.stats import counts
from rowlock.store.stats.counts import TIMEOUT
from rowlock.store.stats.minutes import LAG

MOST_WORKERS: Final = 60
# What is looked at of all their jobs together, of each worker's at most, and at least.
_MOST_JOBS: Final = 1_000
_MOST_OF_EACH: Final = 256
_FEWEST: Final = 12
# Minutes of other workers are added to one's own after a while, and then nobody can tell them apart.
_SPAN: Final = timedelta(minutes=2)


class HeldJobRow(NamedTuple):
    """A job, and the id of the worker that holds it."""

    worker: str
    job: HeldJob


class ClaimedByWorker(NamedTuple):
    """How many jobs a worker has claimed."""

    worker: str
    jobs: int


def watch(named: str | None = None) -> Conversation[Fleet]:
    """The workers as they are now, those whose HOST:PID has this in it, and what they hold."""
    yield counts.begin_reading(TIMEOUT)
    [at] = yield schema.now()
    found: list[WorkerRow] = yield watched_workers(named, limit=MOST_WORKERS + 1)
    rows, ids = found[:MOST_WORKERS], [row.id for row in found[:MOST_WORKERS]]
    limit = max(_FEWEST, min(_MOST_OF_EACH, _MOST_JOBS // max(len(ids), 1)))
    held: list[HeldJobRow] = yield underway(ids, limit=limit)
    counted: list[ClaimedByWorker] = yield claimed(ids)
    jobs: dict[str, list[HeldJob]] = {}
    for one in held:
        jobs.setdefault(one.worker, []).append(one.job)
    rates = {one.worker: one.jobs / _SPAN.total_seconds() for one in counted}
    return Fleet(
        at=at,
        workers=tuple(row.view(jobs.get(row.id, ()), rates.get(row.id, 0.0)) for row in rows),
        more=len(found) > MOST_WORKERS,
    )


class WorkerRow(NamedTuple):
    """A registered worker. `lease` is the number of seconds that are left of its lease; below 0 it has run out.

    Its claims are those that found jobs, in the last minute in which there were any, and how many seconds they took.
    """

    id: str
    host: str
    pid: int
    slots: int
    held: int
    lease: float
    lasts: float
    blocked: float | None
    blocked_by: str | None
    queues: list[str]
    started_at: str
    version: str
    stopping: bool
    stuck: int
    restarts: int
    fault: str | None
    failing: str | None
    failing_since: str | None
    claims: int
    claimed: int
    claim_seconds: float
    claim_slowest: float

    def view(self, jobs: Iterable[HeldJob], claimed: float) -> WorkerView:
        """The same as those see it who watch."""
        return WorkerView(
            id=UUID(self.id),
            host=self.host,
            pid=self.pid,
            version=self.version,
            queues=tuple(self.queues),
            slots=self.slots,
            held=self.held,
            lease_left=timedelta(seconds=self.lease),
            lasts=timedelta(seconds=self.lasts),
            blocked=None if self.blocked is None else timedelta(seconds=self.blocked),
            blocked_by=self.blocked_by,
            started_at=datetime.fromisoformat(self.started_at),
            stopping=self.stopping,
            stuck=self.stuck,
            restarts=self.restarts,
            fault=self.fault,
            failing=self.failing,
            failing_since=None if self.failing_since is None else datetime.fromisoformat(self.failing_since),
            claiming=self._claiming(),
            claimed=claimed,
            jobs=tuple(jobs),
        )

    def _claiming(self) -> Claiming | None:
        if not self.claims:
            return None
        mean, slowest = timedelta(seconds=self.claim_seconds / self.claims), timedelta(seconds=self.claim_slowest)
        return Claiming(mean=mean, slowest=slowest, rows=self.claimed / self.claims)


def worker_rows() -> Query[WorkerRow]:
    """Every worker on the books, the oldest first."""
    return Query("worker_list", {"named": None, "watched": "false", "limit": None}, WorkerRow._make)


def watched_workers(named: str | None, *, limit: int) -> Query[WorkerRow]:
    """Those whose HOST:PID has this in it: first those whose lease has run out, then by HOST:PID."""
    return Query("worker_list", {"named": named, "watched": "true", "limit": str(limit)}, WorkerRow._make)


def underway(ids: Iterable[str], *, limit: int) -> Query[HeldJobRow]:
    """The jobs that these workers hold, no more than so many of each."""
    return Query("job_underway", {"workers": plain_array(ids), "limit": str(limit)}, _held)


def claimed(ids: Iterable[str]) -> Query[ClaimedByWorker]:
    """How many jobs each of these workers has claimed in the last full minutes."""
    return Query(
        "minute_claims",
        {"workers": plain_array(ids), "lag": interval(LAG), "span": interval(_SPAN)},
        ClaimedByWorker._make,
    )


def _held(row: Row) -> HeldJobRow:
    worker, job, task, queue, since, progress, cancelling, version, begun = row
    moment, share = read_moment(since), read_progress(progress)
    return HeldJobRow(worker, HeldJob(UUID(job), task, queue, moment, share, cancelling, version, begun))
