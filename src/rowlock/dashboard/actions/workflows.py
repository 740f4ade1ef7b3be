"""Actions on workflows: send signals, cancel, terminate, retry and fork."""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import sha256
from typing import Any, Final
from uuid import UUID

from pydantic import Field

from rowlock.dashboard.action import Action, ActionResult
from rowlock.dashboard.context import RequestContext
from rowlock.dashboard.page import Params
from rowlock.errors import InvalidArguments, WorkflowError
from rowlock.model.filter import Filter
from rowlock.model.formatting import count
from rowlock.model.names import shown, versioned
from rowlock.model.typed import read_object
from rowlock.model.workflow.form import SignalForm
from rowlock.model.workflow.timeline import TimelineStep
from rowlock.store.workflows import timeline


class WorkflowActionParams(Params):
    """A workflow, and the reason for the action."""

    id: UUID
    why: str | None = Field(default=None, max_length=500)


class SignalParams(WorkflowActionParams):
    """A signal: its name and its payload, a JSON value or the text of one.

    `step` is the key of the wait that it is for, by the form of which `answers` are read, each field under its name;
    submitted twice, it is sent once. `key` says the same of any other signal.
    """

    name: str
    payload: Any = None
    text: str | None = None
    step: str | None = None
    answers: dict[str, list[str]] = Field(default_factory=dict)
    key: str | None = None


class ForkParams(WorkflowActionParams):
    """From which step to go on; `args` are other arguments by name, a JSON object or its text; `version` other code."""

    step: str
    args: dict[str, Any] | str | None = None
    version: int | None = None


async def send_signal(context: RequestContext, params: SignalParams) -> ActionResult:
    """Send a signal, if it fits one of the waits for it."""
    waits = await context.reader.database.arun(timeline.signal_waits(params.id))
    payload, key = _payload(params, waits), params.key
    if params.step is not None:
        key = _once(next(wait for wait in waits if wait.key == params.step))
    with context.app.within(None):  # on a connection of ours: when this returns, it is committed
        sent = await context.app.asignal(params.id, params.name, payload, key=key, by=context.actor, why=params.why)
    said = (
        f"Signal {shown(params.name)} is sent."
        if sent
        else f"Signal {shown(params.name)} was sent before; nothing was sent again."
    )
    return ActionResult(said, to=f"/workflows/{params.id}", facts={"sent": sent, "payload": payload})


def _payload(params: SignalParams, waits: list[TimelineStep]) -> Any:  # noqa: ANN401  any JSON
    """The signal's payload; InvalidArguments if it fits none of the waits for it."""
    forms = [SignalForm.of(wait.form) for wait in waits if wait.name == params.name and params.step in (None, wait.key)]
    if params.step is not None and not forms:
        raise WorkflowError(
            f"step {shown(params.step)} does not wait for {shown(params.name)} any more: "
            "it was answered, or its time is over"
        )
    if params.step is not None and params.text is None:
        return forms[0].read(params.answers)
    payload = params.payload if params.text is None else _json(params.text, "what it says")
    refusals = []
    for form in forms:
        try:
            form.check(payload)
        except InvalidArguments as error:
            refusals.append(error)
    if forms and len(refusals) == len(forms):
        raise refusals[0]
    return payload


def _once(wait: TimelineStep) -> str:
    """A key by which a wait is answered once, however often somebody clicks; after a restart it is another wait."""
    return f"form {sha256(f'{wait.key} {wait.started_at.isoformat()}'.encode()).hexdigest()[:16]}"


async def cancel(context: RequestContext, params: WorkflowActionParams) -> ActionResult:
    """Cancel a workflow; what it has done is undone first."""
    job = await context.app.jobs.aget(params.id)
    with context.app.within(None):
        cancelled = await job.acancel(by=context.actor, why=params.why)
    record = await job.arecord()
    if not cancelled:
        says = f"Too late: it has ended as {record.state}."
    elif record.ended:
        says = "It is cancelled."
    else:
        says = "It is being cancelled: a worker undoes first what it has done."
    return ActionResult(says, to=f"/workflows/{params.id}", facts={"cancelled": cancelled, "state": record.state})


async def terminate(context: RequestContext, params: WorkflowActionParams) -> ActionResult:
    """End a workflow at once, without undo."""
    terminated = await context.app.workflows.aterminate(params.id, by=context.actor, why=params.why)
    state = (await (await context.app.jobs.aget(params.id)).arecord()).state
    says = "It is cancelled; nothing was undone." if terminated else f"Too late: it has ended as {state}."
    return ActionResult(says, to=f"/workflows/{params.id}", facts={"terminated": terminated, "state": state})


async def retry(context: RequestContext, params: WorkflowActionParams) -> ActionResult:
    """Retry a workflow from the step that failed, or from the beginning if something was undone."""
    before = await (await context.app.jobs.aget(params.id)).arecord()
    kept = _kept(await context.app.workflows.ashow(params.id))  # afterwards a worker may have done more
    done = await context.app.jobs.aretry(
        Filter(ids=[params.id], state=("failed", "cancelled")), by=context.actor, why=params.why
    )
    to = f"/workflows/{params.id}"
    if not done.changed:
        why_not = (
            f"It has not ended; it is {before.state}."
            if not before.ended
            else f"It has {before.state}, and there is nothing to retry."
            if before.state == "succeeded"
            else f"It was not retried: another job has its key {shown(before.key)} now."
        )
        return ActionResult(why_not, to=to, facts={"retried": False})
    says = f"It goes on after {count(len(kept), 'step')}." if kept else "It starts from the beginning."
    return ActionResult(says, to=to, facts={"retried": True, "steps": kept})


def _kept(steps: Iterable[TimelineStep]) -> list[str]:
    """The steps that a retried workflow keeps: all that are done, or none if some were undone."""
    done = [step for step in steps if step.state == "done"]
    if any(step.kind == "undo" for step in done):
        return []
    return [step.key for step in done if step.kind not in ("start", "failure")]


async def fork(context: RequestContext, params: ForkParams) -> ActionResult:
    """Fork a workflow: go on from a step in a new job."""
    args = read_object(params.args, "args") if isinstance(params.args, str) else params.args
    job = await context.app.workflows.afork(
        params.id, from_step=params.step, args=args, version=params.version, by=context.actor, why=params.why
    )
    record = await context.reader.workflows.ashow(job.id)
    says = f"{versioned(job.task, record.job.version)} goes on from {shown(params.step)} in a new job."
    return ActionResult(says, to=f"/workflows/{job.id}", facts={"id": job.id})


def _json(text: str, what: str) -> Any:  # noqa: ANN401  any JSON
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidArguments(f'{what} is no JSON: {error}; a text is written "so"') from None


ACTIONS: Final[tuple[Action[Any], ...]] = (
    Action("/workflows/{id}/signal", "operator", SignalParams, send_signal, says="Send a workflow a signal."),
    Action(
        "/workflows/{id}/cancel", "operator", WorkflowActionParams, cancel, says="Cancel a workflow, undoing it first."
    ),
    Action(
        "/workflows/{id}/terminate", "operator", WorkflowActionParams, terminate, says="End a workflow without undo."
    ),
    Action(
        "/workflows/{id}/retry", "operator", WorkflowActionParams, retry, says="Go on from the step that has failed."
    ),
    Action("/workflows/{id}/fork", "admin", ForkParams, fork, says="Go on from a step in a new job."),
)
