"""The page /workflows: workflows, their state and their waits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from rowlock.dashboard.context import SCAN_TIMEOUT, RequestContext
from rowlock.dashboard.page import DashboardPage, Params
from rowlock.model.filter import Filter
from rowlock.model.ids import made_at
from rowlock.model.record import State
from rowlock.model.workflow.record import WorkflowRecord
from rowlock.store import explain, schema
from rowlock.store.find.pages import is_refusal
from rowlock.store.workflows import timeline
from rowlock.store.workflows.timeline import Advance

_LIMIT: Final = 50


class WorkflowsParams(Params):
    """Which workflows: those that match all fields. `before` is the `next` of the page before."""

    workflow: str | None = None
    version: int | None = None
    state: tuple[State, ...] = ()
    queue: str | None = None
    key: str | None = None
    before: UUID | None = None


@dataclass(frozen=True, slots=True)
class WorkflowsShown:
    """Workflows, newest first. `advances` says of the live ones how far they have come.

    `looked` is how many were looked at; `back_to`, where that ended because it took too long, is the time to which.
    `known` are the names of those that this process has code for.
    """

    records: tuple[WorkflowRecord, ...]
    advances: Mapping[UUID, Advance]
    next: UUID | None
    looked: int
    back_to: datetime | None
    known: tuple[str, ...]
    at: datetime


async def load(context: RequestContext, params: WorkflowsParams) -> WorkflowsShown:
    """Load a page of workflows."""
    found = await context.reader.workflows.alist(
        Filter(task=params.workflow, state=params.state or None, queue=params.queue, key=params.key),
        version=params.version,
        limit=_LIMIT,
        before=await _start(context, params),
        time_limit=SCAN_TIMEOUT,
    )
    live = [record.id for record in found.records if record.ended_at is None]
    database = context.reader.database
    advances = await database.arun(timeline.advances(live)) if live else []
    [at] = await database.arun(schema.now())
    stopped = found.next is not None and len(found.records) < _LIMIT
    return WorkflowsShown(
        records=found.records,
        advances=dict(advances),
        next=found.next,
        looked=found.looked,
        back_to=made_at(found.next) if stopped and found.next is not None else None,
        known=tuple(sorted({task.name for task in context.reader.tasks if task.spec.version is not None})),
        at=at,
    )


async def _start(context: RequestContext, params: WorkflowsParams) -> UUID | None:
    """Where to begin. A key names one workflow as long as its record is kept: nothing newer than that has it."""
    if params.before is not None or params.key is None:
        return params.before
    key = params.key
    try:
        held = await context.reader.database.arun(explain.holder(key))
    except Exception as error:
        if not is_refusal(error):
            raise
        return None  # a role that may not look into the keys goes the long way
    return UUID(int=held[0].job.int + 1) if held else None


PAGE = DashboardPage(
    "workflows",
    "/workflows",
    WorkflowsParams,
    WorkflowsShown,
    load,
    says="Workflows, live and ended, newest first: where each of them stands and what it waits for.",
    nav="workflows",
    key="f",
)
