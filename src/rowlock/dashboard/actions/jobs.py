"""Actions on jobs: on one, on ticked ones, on all that match a filter."""

from __future__ import annotations

import difflib
from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Final, TypeVar
from uuid import UUID

from pydantic import Field, StringConstraints

from rowlock.app.job import show
from rowlock.app.tasks import Call
from rowlock.dashboard.action import Action, ActionResult
from rowlock.dashboard.bulk_runs import BulkRun, Track, check_expected, most_of
from rowlock.dashboard.context import RequestContext
from rowlock.dashboard.filter_params import JobFilterParams, read_arguments
from rowlock.dashboard.page import Params
from rowlock.dashboard.restore import restored
from rowlock.errors import InvalidOption, RowlockError, UnknownTask
from rowlock.model.filter import Filter
from rowlock.model.formatting import count
from rowlock.model.names import unversioned
from rowlock.model.record import JobRecord
from rowlock.model.results import Done
from rowlock.model.spec import Options
from rowlock.model.typed import read_object, read_time
from rowlock.model.verb import VERBS, BulkVerb, VerbName
from rowlock.store import schema

Why = Annotated[str, StringConstraints(max_length=500)]
Priority = Annotated[int, Field(ge=-4, le=4)]
A = TypeVar("A", bound=Params)


class BulkParams(JobFilterParams):
    """Which jobs, and why. Without any filter, `everything` must be true: it would be every job.

    `expected` is how many jobs the preview counted, needed unless `ids` names them: if it would now be over a tenth
    more, it is refused. With `at_least` it may be any number. `typed` is what a person typed to confirm it: the number
    expected, with `at_least` followed by a +.
    """

    everything: bool = False
    expected: Annotated[int, Field(ge=0)] | None = None
    at_least: bool = False
    typed: str | None = None
    why: Why | None = None


class BulkMoveParams(BulkParams):
    """And the queue to move them to."""

    to: str


class BulkReprioritiseParams(BulkParams):
    """And the priority to give them."""

    priority: Priority


class OneJobParams(Params):
    """A job, and why."""

    id: UUID
    why: Why | None = None


class MoveJobParams(OneJobParams):
    """And the queue to move it to."""

    to: str


class ReprioritiseJobParams(OneJobParams):
    """And the priority to give it."""

    priority: Priority


class EditJobParams(OneJobParams):
    """And its arguments, as a JSON object."""

    args: str


class EnqueueParams(Params):
    """A task and its arguments as a JSON object; the rest is the task's own unless said.

    `run_at` is an instant, or a length of time from now: 15min. `like` is the job that it was made after.
    """

    task: str
    args: str = "{}"
    queue: str | None = None
    priority: Priority | None = None
    run_at: str | None = None
    key: str | None = None
    like: UUID | None = None
    why: Why | None = None


class BulkRunParams(Params):
    """A bulk run by its id."""

    id: str


# Many jobs


async def run_bulk(verb: VerbName, context: RequestContext, params: BulkParams) -> ActionResult:
    """Start an operation on all jobs that match; after a second it goes on in the background."""
    if params.is_everything and not params.everything:
        raise InvalidOption("that would be every job; say which ones, or everything=true")
    exactly = f"{params.expected}{'+' if params.at_least else ''}"
    if params.typed is not None and params.typed.strip().replace(",", "") != exactly:
        raise InvalidOption(f"type {exactly} to confirm; nothing was changed")
    [now] = await context.reader.database.arun(schema.now())
    wanted = Filter.all() if params.is_everything else params.filter(now)
    VERBS[verb].check(wanted)  # before anything begins
    most = None
    if not params.ids:
        await check_expected(context.reader, verb, wanted, params.expected, at_least=params.at_least)
        most = most_of(params.expected or 0, at_least=params.at_least)
    run = await context.bulk_runs.start(
        verb,
        filter_text(params),
        by=context.actor,
        most=most,
        work=lambda track: _operate(context, verb, wanted, params, track=track),
    )
    return _result_of(run, params)


async def _operate(
    context: RequestContext, verb: VerbName, wanted: Filter, params: BulkParams | OneJobParams, **track: Track
) -> Done:
    """Carry out an operation, by the method of its name; with `track`, it is told how far it has come."""
    operation: Callable[..., Awaitable[Done]] = getattr(context.app.jobs, f"a{verb}")
    return await operation(wanted, by=context.actor, why=params.why, **_options(params), **track)


def _options(params: Params) -> dict[str, Any]:
    """Further arguments of the operation."""
    match params:
        case BulkMoveParams() | MoveJobParams():
            return {"queue": params.to}
        case BulkReprioritiseParams() | ReprioritiseJobParams():
            return {"priority": params.priority}
        case _:
            return {}


def _result_of(run: BulkRun, params: BulkParams) -> ActionResult:
    passed_over = max(run.passed_over, len(params.ids) - run.changed) if params.ids else run.passed_over
    so_far = outcome_text(run.verb, run.changed, passed_over)
    match run.status:
        case "done":
            return ActionResult(f"{so_far[0].upper()}{so_far[1:]}.", facts=run)
        case "underway":
            return ActionResult(
                f"It takes a while and goes on: {so_far} so far. The page of jobs shows it.", "/jobs", run
            )
        case "stopped":
            return ActionResult(f"It was stopped: {so_far}.", facts=run)
        case "failed":
            raise RowlockError(f"it has failed on the way: {so_far}; the log of the dashboard says why; do it again")


def filter_text(params: JobFilterParams) -> str:
    """A filter in words, without the values of arguments, which not everybody may see."""
    terms = [f"{term.name} {term.value}" for term in params.terms() if term.name != "argument"]
    names = [name for typed in params.arg for name in read_arguments(typed)]
    terms += [f"argument {name}" for name in names]
    if params.state:
        terms.insert(0, " or ".join(params.state))
    return ", ".join(terms) or "every job"


def outcome_text(verb: VerbName, changed: int, passed_over: int) -> str:
    """The result as a sentence without its full stop: 3 jobs will run again; 1 was passed over."""
    one, several = VERBS[verb].outcome
    done = f"{count(changed, 'job')} {one if changed == 1 else several}" if changed else "no job was changed"
    if not passed_over:
        return done
    return f"{done}; {passed_over:,} {'was' if passed_over == 1 else 'were'} passed over"


async def stop_run(context: RequestContext, params: BulkRunParams) -> ActionResult:
    """Stop a bulk run; what it has changed so far stays changed."""
    stopped = context.bulk_runs.stop(params.id)
    if stopped is None:
        raise InvalidOption("there is no such order here: it has ended long ago, or another process has it")
    return ActionResult("It stops after the jobs that it is at; what it has changed stays so.", "/jobs", stopped)


# One job


async def run_one(verb: VerbName, context: RequestContext, params: OneJobParams) -> ActionResult:
    """Do an operation on one job; refused if the job cannot be changed that way."""
    record = await _record(context, params.id)
    wanted = Filter(ids=[params.id])
    if verb == "retry":
        wanted = Filter(ids=[params.id], state=sorted(VERBS["retry"].changes))
    done = await _operate(context, verb, wanted, params)
    if not done.changed:
        raise RowlockError(_refusal(VERBS[verb], record, params))
    return ActionResult(f"{VERBS[verb].outcome_of_one}.", "/jobs" if verb == "delete" else f"/jobs/{params.id}", done)


def _refusal(verb: BulkVerb, record: JobRecord, params: OneJobParams) -> str:
    match params:
        case MoveJobParams() if params.to == record.queue:
            return f"the job is on queue {params.to} already"
        case ReprioritiseJobParams() if params.priority == record.priority:
            return f"the job has priority {params.priority} already"
    if record.state not in verb.changes:
        return f"{verb.words} is not for a job that is {record.state}; nothing was changed"
    if verb.name == "retry" and record.key is not None:
        return f"its key {record.key!r} belongs to another job now; nothing was changed"
    if record.begun:
        return "it is a workflow that has begun, or the child of one; cancel it first, nothing was changed"
    return "the job has changed meanwhile, or somebody is at it; look at it again"


async def edit(context: RequestContext, params: EditJobParams) -> ActionResult:
    """Replace a job's arguments; its next attempt gets these."""
    record = await _record(context, params.id)
    args = restored(read_object(params.args, "args"), record.args)
    names = await context.app.jobs.aedit(params.id, args=args, by=context.actor, why=params.why)
    says = f"Changed: {', '.join(names)}." if names else "These are the arguments that it has; nothing was changed."
    return ActionResult(says, f"/jobs/{params.id}", names)


async def enqueue(context: RequestContext, params: EnqueueParams) -> ActionResult:
    """Enqueue a job by hand."""
    args = read_object(params.args, "args")
    if params.like is not None:
        args = restored(args, (await _record(context, params.like)).args)
    call = _call(context, params, args)
    made = await context.app.jobs.aenqueue(call, like=params.like, by=context.actor, why=params.why)
    says = "It is enqueued." if made.created else "A job that lives has this key already; this is that one."
    return ActionResult(says, f"/jobs/{made.id}", {"id": made.id, "created": made.created})


def _call(context: RequestContext, params: EnqueueParams, args: dict[str, Any]) -> Call[Any]:
    """The call to enqueue. Where this process has tasks it must be one of them, with arguments that fit its handler."""
    app = context.app
    when = None if params.run_at is None else read_time(params.run_at)
    options = Options(
        queue=params.queue,
        priority=params.priority,
        run_at=when if isinstance(when, datetime) else None,
        delay=None if isinstance(when, datetime) else when,
        key=params.key,
    )
    task = app.tasks.get(*unversioned(params.task))
    if task is not None:
        return Call(task, task.arguments.encode_json(args), task.spec.allowed(options))
    if len(app.tasks):
        close = difflib.get_close_matches(params.task, app.tasks.names(), n=1)
        raise UnknownTask(f"there is no task {params.task!r} here" + (f"; did you mean {close[0]}?" if close else ""))
    unknown = app.call(params.task, **args)
    return Call(unknown.task, unknown.args, options)


async def _record(context: RequestContext, job_id: UUID) -> JobRecord:
    return await context.app.database.aconverse(lambda: show(job_id), atomic=False)


# The list of actions

_MANY: Final[dict[VerbName, type[BulkParams]]] = {"move": BulkMoveParams, "reprioritise": BulkReprioritiseParams}
_SINGLE: Final[dict[VerbName, type[OneJobParams]]] = {"move": MoveJobParams, "reprioritise": ReprioritiseJobParams}


def _many(verb: BulkVerb) -> Action[Any]:
    params, says = _MANY.get(verb.name, BulkParams), f"Of all jobs that match: {verb.says}."
    return Action(f"/jobs/{verb.name}", verb.role, params, partial(run_bulk, verb.name), says)


def _single(verb: BulkVerb) -> Action[Any]:
    params, says = _SINGLE.get(verb.name, OneJobParams), f"As of many, of one job: {verb.says}."
    return Action(f"/jobs/{{id}}/{verb.name}", verb.role, params, partial(run_one, verb.name), says)


ACTIONS: Final[tuple[Action[Any], ...]] = (
    *map(_many, VERBS.values()),
    *map(_single, VERBS.values()),
    Action("/jobs/enqueue", "admin", EnqueueParams, enqueue, "Enqueue a job by hand."),
    Action("/jobs/{id}/edit", "admin", EditJobParams, edit, "Give a job that has not started other arguments."),
    Action("/orders/{id}/stop", "operator", BulkRunParams, stop_run, "Stop an order that is underway."),
)
