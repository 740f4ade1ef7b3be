"""The page /workflows/{id}: a workflow's timeline, waits and signals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final
from uuid import UUID

from pydantic import Field

from rowlock.app.job import not_found
from rowlock.dashboard.context import RequestContext
from rowlock.dashboard.drawings.gantt import BarPart, TimeAxis, bar_parts, work_of
from rowlock.dashboard.drawings.timeline_rows import (
    NO_STEP,
    BranchRow,
    StepRow,
    TimelineRow,
    fold,
    rows_of,
    with_all_values,
)
from rowlock.dashboard.page import DashboardPage, Params, Redirect
from rowlock.errors import NotAWorkflow
from rowlock.model.explanation import Explanation
from rowlock.model.names import unversioned
from rowlock.model.record import JobRecord
from rowlock.model.results import Event
from rowlock.model.workflow.form import SignalForm
from rowlock.model.workflow.timeline import Timeline, TimelineStep
from rowlock.store import explain
from rowlock.store.query import Conversation
from rowlock.store.workflows import timeline as store
from rowlock.store.workflows.timeline import Reading, Received

_MOST_EVENTS: Final = 20


class WorkflowParams(Params):
    """Which workflow; of a long one, `skip` so many lines of its timeline."""

    id: UUID
    skip: int | None = Field(default=None, ge=0, le=1_000_000)


@dataclass(frozen=True, slots=True)
class SignalShown:
    """A signal that was sent, and the key of the step that has taken it, if one has."""

    received: Received
    step: str | None


@dataclass(frozen=True, slots=True)
class WorkflowShown:
    """A workflow at one moment.

    `lines` are its steps and branches, of a long one those that are shown; `steps` counts all by their state. `asks`
    are the signals that it waits for, with their forms; `undos` what was undone, or is about to be. `versions` are
    those that live workers have code for.
    """

    job: JobRecord
    explanation: Explanation
    lines: tuple[TimelineRow, ...]
    steps: Mapping[str, int]
    children: Mapping[str, int]
    restarts: int
    asks: tuple[TimelineStep, ...]
    signals: tuple[SignalShown, ...]
    undos: tuple[TimelineStep, ...]
    has_failed: bool
    events: tuple[Event, ...]
    versions: tuple[int, ...]
    at: datetime

    @property
    def until(self) -> datetime:
        """The end of its time so far."""
        return self.job.ended_at or self.at

    @property
    def scale(self) -> TimeAxis:
        """The axis on which the lines are drawn."""
        shown = [line.step for line in self.lines if isinstance(line, StepRow)]
        begin = min((step.started_at for step in shown), default=self.job.started_at or self.job.created_at)
        work = work_of(shown, self.until)
        if self.running_since is not None:
            work.append((self.running_since, self.until))
        ends = [step.ended_at or self.until for step in shown]
        has_all = not any(line.kind == "fold" for line in self.lines)
        return TimeAxis(begin, self.until if has_all else max(ends, default=self.until), work)

    @property
    def running_since(self) -> datetime | None:
        """Since when a step runs that is not recorded yet."""
        if self.job.state != "running" or self.job.started_at is None:
            return None
        ends = [line.step.ended_at for line in self.lines if isinstance(line, StepRow) and line.step.ended_at]
        return max([self.job.started_at, *(end for end in ends if end <= self.at)])

    def bar(self, line: StepRow | BranchRow, scale: TimeAxis) -> tuple[BarPart, ...]:
        """The bar of a row."""
        if isinstance(line, BranchRow):
            return (scale.piece("branch", line.started_at, line.ended_at or self.until),)
        return bar_parts(line.step, scale, self.until)

    def form(self, step: TimelineStep) -> SignalForm:
        """The form for a signal that it waits for."""
        return SignalForm.of(step.form)

    def has_come(self, step: TimelineStep) -> bool:
        """Whether the signal that it waits for has come, and is not taken yet."""
        untaken = (one.received.signal.name for one in self.signals if one.received.taken_at is None)
        return not self.job.ended and step.name in untaken

    @property
    def forkable(self) -> tuple[str, ...]:
        """The steps from which it can be forked."""
        return tuple(line.step.key for line in self.lines if isinstance(line, StepRow) and line.can_fork)


async def load(context: RequestContext, params: WorkflowParams) -> WorkflowShown:
    """Load the workflow; a job of a plain task is redirected to its own page."""
    database = context.reader.database
    try:
        read = await database.aconverse(lambda: store.read(params.id, "its page"), atomic=False)
    except NotAWorkflow:
        raise Redirect(f"/jobs/{params.id}") from None
    if read is None:
        raise not_found(params.id)
    tree = Timeline.of(read.job, read.steps, (), ()).steps
    lines = fold(list(rows_of(tree)), params.skip)
    undos = [step for step in read.steps if step.kind == "undo"]
    wanted = {step.key: step for step in (*(line.step for line in lines if isinstance(line, StepRow)), *undos)}
    known = await database.aconverse(partial(_filled, params.id, tuple(wanted.values())), atomic=False)
    versions = await database.arun(explain.tasks(read.job.queue))
    explanation = await context.reader.jobs.aexplain(params.id)
    return WorkflowShown(
        job=read.job,
        explanation=explanation,
        lines=with_all_values(lines, known),
        steps=Counter(step.state for step in read.steps if step.kind not in NO_STEP),
        children=Counter(step.state for step in read.steps if step.kind == "child"),
        restarts=sum(step.attempts for step in read.steps if step.kind == "start"),
        asks=tuple(read.asks),
        signals=tuple(_signals(read)),
        undos=tuple(store.with_values(step, known.get(step.key)) for step in undos),
        has_failed=any(step.kind == "failure" for step in read.steps),
        events=await context.reader.jobs.aevents(params.id, limit=_MOST_EVENTS),
        versions=_versions(read.job, versions),
        at=explanation.at,
    )


def _filled(
    job_id: UUID,
    steps: tuple[TimelineStep, ...],
) -> Conversation[Mapping[str, store.Values]]:
    return store.filled(job_id, steps)


def _signals(read: Reading) -> list[SignalShown]:
    """Each signal with its taker: the statement that takes a signal writes its step, and so both have one time."""
    takers: dict[tuple[str, datetime], list[str]] = {}
    for step in read.steps:
        if step.kind == "signal" and step.state == "done" and step.ended_at is not None:
            takers.setdefault((step.name, step.ended_at), []).append(step.key)
    shown = []
    for one in read.received:
        left = takers.get((one.signal.name, one.taken_at)) if one.taken_at is not None else None
        shown.append(SignalShown(one, left.pop(0) if left else None))
    return shown


def _versions(job: JobRecord, tasks: list[str]) -> tuple[int, ...]:
    known = [unversioned(name) for name in tasks]
    return tuple(sorted({version for name, version in known if name == job.task and version is not None}))


PAGE = DashboardPage(
    "workflow",
    "/workflows/{id}",
    WorkflowParams,
    WorkflowShown,
    load,
    says="What a workflow has done, step by step, what it waits for, and what was sent to it.",
    nav="workflows",
)
