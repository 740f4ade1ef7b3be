"""The pages /jobs and /jobs/preview: jobs that match; those that an operation would change."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Final
from uuid import UUID

from pydantic import Field, model_validator

from rowlock.app.checks import enough_after
from rowlock.dashboard.bulk_runs import BulkRun, preview
from rowlock.dashboard.context import SCAN_TIMEOUT, RequestContext
from rowlock.dashboard.filter_params import JobFilterParams
from rowlock.dashboard.page import DashboardPage, Redirect
from rowlock.dashboard.render import address
from rowlock.dashboard.search import MOST_TYPED, known_names, near, read_id, read_terms, suggestions
from rowlock.model.failure_groups import Failures
from rowlock.model.filter import Filter
from rowlock.model.ids import made_at
from rowlock.model.record import JobRecord
from rowlock.model.results import Cursor, Preview, start_of
from rowlock.model.results import Page as Found
from rowlock.model.verb import VERBS, VerbName
from rowlock.store import schema
from rowlock.store.find import pages, windows
from rowlock.store.query import Conversation

_MOST_COUNTED: Final = 1_000
_MOST_GROUPS: Final = 12


class JobsParams(JobFilterParams):
    """Which jobs, how many, and before which one. `q` is the text of a search, which becomes the other fields."""

    q: Annotated[str, Field(max_length=MOST_TYPED)] | None = None
    before: Annotated[str, Field(max_length=100)] | None = None
    limit: Annotated[int, Field(ge=1, le=200)] = 50


@dataclass(frozen=True, slots=True)
class FailuresShown:
    """Failed jobs of one task whose errors are of this type and say the like. `message` is for who may see errors."""

    task: str
    type: str | None
    message: str
    count: int
    first: datetime
    last: datetime
    example: UUID


@dataclass(frozen=True, slots=True)
class JobsShown:
    """Jobs that match, without arguments and results, each with its last error.

    `next` is the `before` of the next page, None after the last.
    `verbs` are what can be done with such jobs. With `cut_short` it has looked at `looked` jobs, back to `back_to`, and
    has not come to an end: there may be more. Where a name is unknown, those `near` it may have been meant.
    Where only failed jobs are asked for, `failures` are the groups of the `counted` that failed last.
    """

    at: datetime
    jobs: tuple[JobRecord, ...]
    next: UUID | Cursor | None
    looked: int
    cut_short: bool
    back_to: datetime | None
    verbs: tuple[VerbName, ...]
    orders: tuple[BulkRun, ...]
    suggestions: tuple[str, ...]
    tasks: tuple[str, ...]
    queues: tuple[str, ...]
    near_tasks: tuple[str, ...]
    near_queues: tuple[str, ...]
    by_end: bool
    failures: tuple[FailuresShown, ...]
    counted: int
    counted_back_to: datetime | None


async def load(context: RequestContext, params: JobsParams) -> JobsShown:
    """Load a page of jobs, as far as SCAN_TIMEOUT goes."""
    known = await known_names(context)
    if params.q is not None:
        job_id = read_id(params.q)
        raise Redirect(
            f"/jobs/{job_id}" if job_id is not None else address("/jobs", params.given() | read_terms(params.q, known))
        )
    [at] = await context.reader.database.arun(schema.now())
    wanted = params.filter(at)
    found, failures = await asyncio.gather(
        context.reader.database.aconverse(partial(_load_jobs, params, wanted), atomic=False),
        _failures(context, params, wanted),
    )
    cut_short = found.next is not None and len(found.records) < params.limit
    return JobsShown(
        at=at,
        jobs=found.records,
        next=found.next,
        looked=found.looked,
        cut_short=cut_short,
        back_to=_back_to(found.next) if cut_short else None,
        verbs=tuple(verb.name for verb in VERBS.values() if not params.state or verb.changes & {*params.state}),
        orders=context.bulk_runs.shown(),
        suggestions=suggestions(known),
        tasks=tuple(context.reader.tasks.names()) or known.tasks,
        queues=known.queues,
        near_tasks=near(params.task, known.tasks),
        near_queues=near(params.queue, known.queues),
        by_end=wanted.is_by_end,
        failures=tuple(
            FailuresShown(one.task, one.error, one.pattern, one.count, one.first, one.last, one.example)
            for one in failures.groups[:_MOST_GROUPS]
        ),
        counted=failures.looked,
        counted_back_to=failures.back_to,
    )


async def _failures(context: RequestContext, params: JobsParams, wanted: Filter) -> Failures:
    """The groups of failed jobs, above the first page of a list of nothing else."""
    if params.state != ("failed",) or params.before is not None or params.ids:
        return Failures((), 0)
    return await context.reader.jobs.afailures(wanted, most=_MOST_COUNTED, time_limit=SCAN_TIMEOUT)


def _load_jobs(params: JobsParams, wanted: Filter) -> Conversation[Found]:
    return pages.page(
        wanted,
        limit=params.limit,
        before=start_of(wanted, params.before),
        looks=windows.BRIEF,
        enough=enough_after(SCAN_TIMEOUT),
    )


def _back_to(end: UUID | Cursor | None) -> datetime | None:
    if isinstance(end, Cursor):
        return end.at
    return None if end is None else made_at(end)


PAGE = DashboardPage(
    "jobs",
    "/jobs",
    JobsParams,
    JobsShown,
    load,
    says="Jobs that match, live and ended, newest first.",
    nav="jobs",
    key="j",
)


class PreviewParams(JobFilterParams):
    """Which jobs, and what would be done with them. Those that are ticked, if any are, are all that are meant."""

    verb: VerbName
    tick: tuple[UUID, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _only_ticked(cls, said: Any) -> Any:  # noqa: ANN401  as pydantic calls it
        return said | {"ids": said["tick"]} if isinstance(said, dict) and said.get("tick") else said


@dataclass(frozen=True, slots=True)
class PreviewShown:
    """What the verb would change, of the jobs that there were `at` this moment, and the queues one may move them to."""

    at: datetime
    preview: Preview
    queues: tuple[str, ...]


async def load_preview(context: RequestContext, params: PreviewParams) -> PreviewShown:
    """Count the jobs that the verb would change, for a second at most."""
    [at] = await context.reader.database.arun(schema.now())
    shown = await preview(context.reader, params.verb, params.filter(at))
    return PreviewShown(at=at, preview=shown, queues=(await known_names(context)).queues)


PREVIEW = DashboardPage(
    "preview",
    "/jobs/preview",
    PreviewParams,
    PreviewShown,
    load_preview,
    says="What a verb would change: how many jobs, of which tasks and states, and a few of them.",
    nav="jobs",
)
