"""Workflows as operators see them: list, show, fork, terminate."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple, TypeVar
from uuid import UUID

from rowlock.errors import InvalidOption, NotAWorkflow
from rowlock.model.filter import LIVE
from rowlock.model.ids import TOP
from rowlock.model.record import JobRecord, State
from rowlock.model.workflow.record import WorkflowPage, WorkflowRecord
from rowlock.model.workflow.timeline import Timeline, TimelineChild, TimelineSignal, TimelineStep
from rowlock.store.find import pages
from rowlock.store.find.windows import WINDOW, Enough, never
from rowlock.store.operations import cancel_unlocked
from rowlock.store.query import Conversation, Query, Row, interval, plain_array

T = TypeVar("T")

# So many keys of steps are named to somebody who has named another.
_KEYS_NAMED = 20
# Live workflows that one statement looks at: each is looked up by itself.
_LIVE_WINDOW = 500
# And those that the first statement of a page looks at, which mostly finds what it wants among the newest.
_FIRST = 250


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowFilter:
    """Which workflows: those to which everything that is given applies."""

    workflow: str | None = None
    version: int | None = None
    states: tuple[State, ...] | None = None
    queue: str | None = None
    key: str | None = None

    @property
    def is_live(self) -> bool:
        """Whether only those are asked for that have not ended."""
        return self.states is not None and LIVE.issuperset(self.states)


class WorkflowRow(NamedTuple):
    """A row of a look: how many workflows it looked at, the last id, and one that matches or none."""

    looked: int
    edge: str | None
    found: WorkflowRecord | None


class Forked(NamedTuple):
    """The workflow and the queue of a fork."""

    task: str
    version: int
    queue: str


def page(
    wanted: WorkflowFilter, *, limit: int, before: UUID | None, enough: Enough = never
) -> Conversation[WorkflowPage]:
    """A page of workflows; one more is looked for, to know whether there is a next page."""
    records: list[WorkflowRecord] = []
    start = TOP if before is None else str(before)
    looks, largest = (scan_live, _LIVE_WINDOW) if wanted.is_live else (scan, WINDOW)
    window, looked = _FIRST, 0
    while True:
        rows: list[WorkflowRow] = yield looks(wanted, before=start, limit=limit + 1 - len(records), window=window)
        records += [row.found for row in rows if row.found is not None]
        edge = rows[0].edge
        looked += rows[0].looked
        if len(records) > limit:
            return WorkflowPage(tuple(records[:limit]), records[limit - 1].id, looked)
        if edge is None or rows[0].looked < window:
            return WorkflowPage(tuple(records), None, looked)
        if enough():
            return WorkflowPage(tuple(records), UUID(edge), looked)
        start, window = edge, largest


def scan_live(wanted: WorkflowFilter, *, before: str, limit: int, window: int = _LIVE_WINDOW) -> Query[WorkflowRow]:
    """Look at live workflows, as far as a window goes."""
    return Query(
        "workflow_live",
        {
            "workflow": wanted.workflow,
            "version": None if wanted.version is None else str(wanted.version),
            "states": plain_array(wanted.states or ()),
            "queue": wanted.queue,
            "key": wanted.key,
            "before": before,
            "window": str(window),
            "limit": str(limit),
        },
        _workflow_row,
    )


def scan(wanted: WorkflowFilter, *, before: str, limit: int, window: int = WINDOW) -> Query[WorkflowRow]:
    """Look at live and ended workflows, as far as a window goes."""
    return Query(
        "workflow_list",
        {
            "workflow": wanted.workflow,
            "version": None if wanted.version is None else str(wanted.version),
            "states": None if wanted.states is None else plain_array(wanted.states),
            "queue": wanted.queue,
            "key": wanted.key,
            "before": before,
            "window": str(window),
            "limit": str(limit),
        },
        _workflow_row,
    )


def _workflow_row(row: Row) -> WorkflowRow:
    looked, edge, job_id, *_ = row
    return WorkflowRow(looked, edge, None if job_id is None else WorkflowRecord.read(row[2:]))


def show(job_id: UUID, verb: str) -> Conversation[Timeline | None]:
    """A workflow as it is now, as far as this role may read it, for `verb`; None if there is no such job."""
    jobs: list[JobRecord] = yield from pages.show(job_id)
    if not jobs:
        return None
    [job] = jobs
    check_workflow(job, verb)
    return Timeline.of(
        job,
        (yield from _readable(steps(job_id), steps_outline(job_id))),
        (yield from _readable(signals(job_id), signals_outline(job_id))),
        (yield children(job_id)),
    )


def check_workflow(job: JobRecord, verb: str) -> None:
    """NotAWorkflow for a job of a plain task, which `verb` is not for."""
    if job.version is None:
        raise NotAWorkflow(
            job.id,
            f"job {job.id} is of {job.task!r}, a plain task: {verb} is for workflows; look at it with app.jobs.get(…)",
        )


def _readable(whole: Query[T], part: Query[T]) -> Conversation[list[T]]:
    """All of it, else what this role may read."""
    try:
        return (yield whole)
    except Exception as error:
        if not pages.is_refusal(error):
            raise
    return (yield part)


def steps(job_id: UUID) -> Query[TimelineStep]:
    """What a workflow remembers."""
    return Query("step_list", {"id": str(job_id)}, TimelineStep.read)


def steps_outline(job_id: UUID) -> Query[TimelineStep]:
    """The same without what its steps were given and what they made of it."""
    return Query("step_outline", {"id": str(job_id)}, TimelineStep.read)


def signals(job_id: UUID) -> Query[TimelineSignal]:
    """The signals that nobody has taken."""
    return Query("signal_list", {"id": str(job_id)}, TimelineSignal.read)


def signals_outline(job_id: UUID) -> Query[TimelineSignal]:
    """Those to a live workflow, without what they say."""
    return Query("signal_outline", {"id": str(job_id)}, TimelineSignal.read)


def children(job_id: UUID) -> Query[TimelineChild]:
    """The children of a workflow that have not ended."""
    return Query("child_list", {"id": str(job_id)}, TimelineChild.read)


def fork(
    job_id: UUID, *, new_id: str, step: str, args: str | None, version: int | None, actor: str, why: str | None
) -> Query[Forked]:
    """Make a job that goes on from a step of a workflow; returns what it is of, and its queue."""
    return Query(
        "workflow_fork",
        {
            "id": str(job_id),
            "new_id": new_id,
            "step": step,
            "args": args,
            "version": None if version is None else str(version),
            "actor": actor,
            "why": why,
        },
        lambda row: Forked(*row[:3]),
    )


class Terminated(NamedTuple):
    """What became of it: `terminated`, how it had ended before, `unknown` or `no workflow`; children left to cancel."""

    answer: str
    children: list[str]


def terminate(job_id: UUID, *, actor: str, why: str | None, keep: timedelta) -> Query[Terminated]:
    """End a workflow without undo; returns what became of it, and its children."""
    return Query(
        "workflow_terminate",
        {"id": str(job_id), "actor": actor, "why": why, "keep": interval(keep)},
        lambda row: Terminated(*row),
    )


def terminating(job_id: UUID, *, actor: str, why: str | None, keep: timedelta) -> Conversation[Terminated]:
    """End a workflow without undo, and cancel its children, but for those that somebody has locked."""
    rows: list[Terminated] = yield terminate(job_id, actor=actor, why=why, keep=keep)
    [ended] = rows
    if ended.answer != "terminated" or not ended.children:
        return ended
    [changed] = yield cancel_unlocked(ended.children, actor=actor, why=why, keep=keep)
    return ended if changed < len(ended.children) else Terminated(ended.answer, [])


def check_step(job_id: UUID, steps: Iterable[TimelineStep], key: str) -> None:
    """InvalidOption if a workflow has no step of this key to fork from."""
    keys = [step.key for step in steps if step.kind not in {"failure", "undo", "start"}]
    if key in keys:
        return
    if not keys:
        raise InvalidOption(f"workflow {job_id} has no steps to fork from; enqueue it again")
    named = ", ".join(map(repr, keys[:_KEYS_NAMED])) + (
        f" and {len(keys) - _KEYS_NAMED} more" * (len(keys) > _KEYS_NAMED)
    )
    raise InvalidOption(f"from_step={key!r} is not a step of workflow {job_id}; it has {named}")
