"""The page /jobs/{id}: one job, what became of it, why, and what can be done."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from rowlock.app.job import show
from rowlock.dashboard.context import RequestContext
from rowlock.dashboard.drawings import job_life, traceback
from rowlock.dashboard.page import DashboardPage, Params
from rowlock.dashboard.search import known_names
from rowlock.errors import JobNotFound
from rowlock.model.explanation import Explanation
from rowlock.model.record import JobError, JobRecord
from rowlock.model.results import Event
from rowlock.model.verb import VERBS
from rowlock.store.query import Conversation
from rowlock.store.stats.workers import worker_rows


class JobParams(Params):
    """Which job."""

    id: UUID


@dataclass(frozen=True, slots=True)
class JobWorker:
    """A registered worker that has, or had, the job."""

    id: str
    host: str
    pid: int


@dataclass(frozen=True, slots=True)
class JobShown:
    """A job, why it does not run or what became of it, and what was done to it, newest first.

    `workers` are those of its attempts that are on the books still. `is_known` says that this process has its task's
    code: then new arguments are checked against it. `can` are the verbs that can change it now.
    """

    at: datetime
    job: JobRecord
    explanation: Explanation
    events: tuple[Event, ...]
    workers: tuple[JobWorker, ...]
    is_known: bool
    can: tuple[str, ...]
    tasks: tuple[str, ...]
    queues: tuple[str, ...]

    @property
    def pieces(self) -> tuple[job_life.Period, ...]:
        """The periods of its life."""
        return job_life.periods(self.job, self.at)

    @property
    def drawn(self) -> tuple[job_life.PlacedPeriod, ...]:
        """The same with their places in the drawing."""
        return job_life.placed_periods(self.pieces, self.at)

    @property
    def untold(self) -> int:
        """The number of attempts without a record: snoozed, handed back, or long ago."""
        return max(0, self.job.claims - sum(piece.number is not None for piece in self.pieces))

    def name_of(self, worker: UUID | None) -> str | None:
        """A worker by its host and process, if it is registered."""
        return next((f"{one.host}:{one.pid}" for one in self.workers if one.id == str(worker)), None)

    def owner_of(self, worker: UUID | None) -> str | None:
        """A worker that is gone by its host and process, if the job was taken back from it."""
        return next((event.owner for event in self.events if event.owner and event.worker == str(worker)), None)

    def lines(self, error: JobError) -> tuple[traceback.TracebackLine, ...]:
        """The traceback of an error."""
        return traceback.lines(error.traceback)

    def place(self, error: JobError) -> traceback.CodePlace | None:
        """The place of an error in the users' own code."""
        return traceback.place(error.traceback)

    @property
    def raw(self) -> dict[str, Any]:
        """The record as JSON."""
        return self.job.to_dict()


async def load(context: RequestContext, params: JobParams) -> JobShown:
    """Load the job, its explanation and its events."""
    explanation = await context.reader.jobs.aexplain(params.id)
    try:
        job, workers = await context.reader.database.aconverse(lambda: _load_job(params.id), atomic=False)
    except JobNotFound:
        raise JobNotFound(params.id, explanation.says) from None
    known = await known_names(context)
    own = {str(worker) for worker in (job.worker, *(error.worker for error in job.errors))}
    return JobShown(
        at=explanation.at,
        job=job,
        explanation=explanation,
        events=await context.reader.jobs.aevents(params.id),
        workers=tuple(worker for worker in workers if worker.id in own),
        is_known=context.reader.tasks.get(job.task, job.version) is not None,
        can=tuple(_verbs(job)),
        tasks=tuple(context.reader.tasks.names()) or known.tasks,
        queues=known.queues,
    )


def _load_job(job_id: UUID) -> Conversation[tuple[JobRecord, list[JobWorker]]]:
    job = yield from show(job_id)
    workers = yield worker_rows()
    return job, [JobWorker(worker.id, worker.host, worker.pid) for worker in workers]


def _verbs(job: JobRecord) -> list[str]:
    """The verbs that can change it now. It may change until one is sent; then that is refused."""
    can: list[str] = [
        name for name, verb in VERBS.items() if job.state in verb.changes and not (verb.spares and job.begun)
    ]
    if job.cancel_at is not None:
        can.remove("cancel")
    if job.state in ("ready", "waiting") and not job.begun and isinstance(job.args, dict):
        can.append("edit")
    return can


PAGE = DashboardPage(
    "job",
    "/jobs/{id}",
    JobParams,
    JobShown,
    load,
    says="One job: what became of it, why, and what was done.",
    nav="jobs",
)
