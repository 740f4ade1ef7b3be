"""The page /jobs/{id}: one job, what became of it, why, and what can be done."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from rowlock.app.job import show
from rowlock.dashboard import life, traceback
from rowlock.dashboard.desk import Desk
from rowlock.dashboard.names import known_names
from rowlock.dashboard.page import Asked, Page
from rowlock.errors import JobNotFound
from rowlock.model.explanation import Explanation
from rowlock.model.record import JobError, JobRecord
from rowlock.model.results import Event
from rowlock.model.verb import VERBS
from rowlock.store.query import Conversation
from rowlock.store.stats.workers import worker_rows


class JobAsked(Asked):
    """Which job."""

    id: UUID


@dataclass(frozen=True, slots=True)
class Holder:
    """A worker that has, or had, the job, while it is on the books."""

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
    workers: tuple[Holder, ...]
    is_known: bool
    can: tuple[str, ...]
    tasks: tuple[str, ...]
    queues: tuple[str, ...]

    @property
    def pieces(self) -> tuple[life.Piece, ...]:
        """Its life, piece by piece."""
        return life.pieces(self.job, self.at)

    @property
    def drawn(self) -> tuple[life.Drawn, ...]:
        """The same, and where each piece stands in the picture."""
        return life.drawn(self.pieces, self.at)

    @property
    def untold(self) -> int:
        """How many attempts there were of which nothing is known any more: snoozed, handed back, or long ago."""
        return max(0, self.job.claims - sum(piece.number is not None for piece in self.pieces))

    def name_of(self, worker: UUID | None) -> str | None:
        """A worker by its host and process, if it is on the books."""
        return next((f"{one.host}:{one.pid}" for one in self.workers if one.id == str(worker)), None)

    def lines(self, error: JobError) -> tuple[traceback.Line, ...]:
        """The traceback of an error."""
        return traceback.lines(error.traceback)

    def place(self, error: JobError) -> traceback.Place | None:
        """Where in the users' own code it was."""
        return traceback.place(error.traceback)

    @property
    def raw(self) -> dict[str, Any]:
        """The record as programs get it."""
        return self.job.to_dict()


async def look(desk: Desk, asked: JobAsked) -> JobShown:
    """Look at it, and at what bears on it."""
    explanation = await desk.look.aexplain(asked.id)
    try:
        job, workers = await desk.look.database.aconverse(lambda: _seen(asked.id), atomic=False)
    except JobNotFound:
        raise JobNotFound(asked.id, explanation.says) from None
    known = await known_names(desk.look)
    own = {str(worker) for worker in (job.worker, *(error.worker for error in job.errors))}
    return JobShown(
        at=explanation.at,
        job=job,
        explanation=explanation,
        events=await desk.look.jobs.aevents(asked.id),
        workers=tuple(worker for worker in workers if worker.id in own),
        is_known=desk.look.tasks.get(job.task, job.version) is not None,
        can=tuple(_verbs(job)),
        tasks=tuple(desk.look.tasks.names()) or known.tasks,
        queues=known.queues,
    )


def _seen(job_id: UUID) -> Conversation[tuple[JobRecord, list[Holder]]]:
    job = yield from show(job_id)
    workers = yield worker_rows()
    return job, [Holder(worker.id, worker.host, worker.pid) for worker in workers]


def _verbs(job: JobRecord) -> list[str]:
    """What can be done with it now. It may have changed when it is asked for; then that is refused."""
    can: list[str] = [
        name for name, verb in VERBS.items() if job.state in verb.changes and not (verb.spares and job.begun)
    ]
    if job.cancel_at is not None:
        can.remove("cancel")
    if job.state in ("ready", "waiting") and not job.begun and isinstance(job.args, dict):
        can.append("edit")
    return can


PAGE = Page("job", "/jobs/{id}", JobAsked, JobShown, look, says="One job: what became of it, why, and what was done.")
