"""The page /jobs: jobs that match, live and ended, newest first."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Annotated, Final
from uuid import UUID

from pydantic import Field

from rowlock.app.checks import enough_after
from rowlock.dashboard.desk import LONGEST_SCAN, Desk
from rowlock.dashboard.names import known_names
from rowlock.dashboard.orders import Order
from rowlock.dashboard.page import Elsewhere, Page
from rowlock.dashboard.render import address
from rowlock.dashboard.search import MOST_TYPED, near, read_id, read_terms, suggestions
from rowlock.dashboard.wanted import Wanted
from rowlock.model.failure_groups import Failures
from rowlock.model.filter import Filter
from rowlock.model.ids import made_at
from rowlock.model.record import JobRecord
from rowlock.model.results import Cursor, start_of
from rowlock.model.results import Page as Found
from rowlock.model.verb import VERBS, VerbName
from rowlock.store import schema
from rowlock.store.find import pages, windows
from rowlock.store.query import Conversation

_MOST_COUNTED: Final = 1_000
_MOST_GROUPS: Final = 12


class JobsAsked(Wanted):
    """Which jobs, how many of them, and before which one. `q` is what was typed to search: it becomes the rest."""

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
    orders: tuple[Order, ...]
    suggestions: tuple[str, ...]
    tasks: tuple[str, ...]
    queues: tuple[str, ...]
    near_tasks: tuple[str, ...]
    near_queues: tuple[str, ...]
    by_end: bool
    failures: tuple[FailuresShown, ...]
    counted: int
    counted_back_to: datetime | None


async def look(desk: Desk, asked: JobsAsked) -> JobsShown:
    """Look for jobs, for a moment."""
    known = await known_names(desk.look)
    if asked.q is not None:
        job_id = read_id(asked.q)
        raise Elsewhere(
            f"/jobs/{job_id}" if job_id is not None else address("/jobs", asked.said() | read_terms(asked.q, known))
        )
    [at] = await desk.look.database.arun(schema.now())
    wanted = asked.filter(at)
    found, failures = await asyncio.gather(
        desk.look.database.aconverse(partial(_found, asked, wanted), atomic=False), _failures(desk, asked, wanted)
    )
    cut_short = found.next is not None and len(found.records) < asked.limit
    return JobsShown(
        at=at,
        jobs=found.records,
        next=found.next,
        looked=found.looked,
        cut_short=cut_short,
        back_to=_back_to(found.next) if cut_short else None,
        verbs=tuple(verb.name for verb in VERBS.values() if not asked.state or verb.changes & {*asked.state}),
        orders=desk.orders.shown(),
        suggestions=suggestions(known),
        tasks=tuple(desk.look.tasks.names()) or known.tasks,
        queues=known.queues,
        near_tasks=near(asked.task, known.tasks),
        near_queues=near(asked.queue, known.queues),
        by_end=wanted.is_by_end,
        failures=tuple(
            FailuresShown(one.task, one.error, one.pattern, one.count, one.first, one.last, one.example)
            for one in failures.groups[:_MOST_GROUPS]
        ),
        counted=failures.looked,
        counted_back_to=failures.back_to,
    )


async def _failures(desk: Desk, asked: JobsAsked, wanted: Filter) -> Failures:
    """The groups of failed jobs, above the first page of a list of nothing else."""
    if asked.state != ("failed",) or asked.before is not None or asked.ids:
        return Failures((), 0)
    return await desk.look.jobs.afailures(wanted, most=_MOST_COUNTED, within=LONGEST_SCAN)


def _found(asked: JobsAsked, wanted: Filter) -> Conversation[Found]:
    return pages.page(
        wanted,
        limit=asked.limit,
        before=start_of(wanted, asked.before),
        looks=windows.BRIEF,
        enough=enough_after(LONGEST_SCAN),
    )


def _back_to(end: UUID | Cursor | None) -> datetime | None:
    if isinstance(end, Cursor):
        return end.at
    return None if end is None else made_at(end)


PAGE = Page("jobs", "/jobs", JobsAsked, JobsShown, look, says="Jobs that match, live and ended, newest first.")
