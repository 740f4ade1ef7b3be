"""What can be done with jobs: with one, with those that were ticked, and with all that match a filter."""

from __future__ import annotations

import difflib
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Final, TypeVar
from uuid import UUID

from pydantic import Field, StringConstraints
from pydantic_core import from_json

from rowlock.app.job import show
from rowlock.app.tasks import Call
from rowlock.dashboard.action import Action, Did
from rowlock.dashboard.bulk import ACTS, in_words, told
from rowlock.dashboard.confirm import check_expected, most_of
from rowlock.dashboard.desk import Desk
from rowlock.dashboard.orders import Order
from rowlock.dashboard.page import Asked
from rowlock.dashboard.restore import restored
from rowlock.dashboard.visitor import Role
from rowlock.dashboard.wanted import Wanted, read_past
from rowlock.errors import InvalidArguments, InvalidOption, RowlockError, UnknownTask
from rowlock.model.filter import Filter
from rowlock.model.names import unversioned
from rowlock.model.record import JobRecord
from rowlock.model.results import Done
from rowlock.model.spec import Options
from rowlock.model.verb import VERBS, Verb, VerbName
from rowlock.store import schema

Why = Annotated[str, StringConstraints(max_length=500)]
Priority = Annotated[int, Field(ge=-4, le=4)]
A = TypeVar("A", bound=Asked)


class Ordered(Wanted):
    """Which jobs, and why. With nothing said of them, `everything` must be: it would be every job.

    `expected` is how many jobs the preview counted, needed unless `ids` names them: if it would now be over a tenth
    more, it is refused. With `at_least` it may be any number. `typed` is what a person typed to confirm it.
    """

    everything: bool = False
    expected: Annotated[int, Field(ge=0)] | None = None
    at_least: bool = False
    typed: str | None = None
    why: Why | None = None


class Moved(Ordered):
    """And the queue to move them to."""

    to: str


class Reprioritised(Ordered):
    """And the priority to give them."""

    priority: Priority


class OneAsked(Asked):
    """A job, and why."""

    id: UUID
    why: Why | None = None


class OneMoved(OneAsked):
    """And the queue to move it to."""

    to: str


class OneReprioritised(OneAsked):
    """And the priority to give it."""

    priority: Priority


class Edited(OneAsked):
    """And its arguments, as a JSON object."""

    args: str


class Enqueued(Asked):
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


class OrderAsked(Asked):
    """An order that is underway."""

    id: str


# Many


async def order(verb: VerbName, desk: Desk, asked: Ordered) -> Did:
    """Do it to all that match; answered after a second at most, and then it goes on in the background."""
    if asked.is_everything and not asked.everything:
        raise InvalidOption("that would be every job; say which ones, or everything=true")
    if asked.typed is not None and asked.typed.strip().replace(",", "").removesuffix("+") != str(asked.expected):
        raise InvalidOption(f"type {asked.expected} to confirm; nothing was changed")
    [now] = await desk.look.database.arun(schema.now())
    wanted = asked.filter(now)
    VERBS[verb].states(wanted)  # refuses what it cannot change, before anything begins
    most = None
    if not asked.ids:
        await check_expected(desk, verb, wanted, asked.expected, at_least=asked.at_least)
        most = most_of(asked.expected or 0, at_least=asked.at_least)
    work = partial(ACTS[verb], desk.app.jobs, wanted, by=desk.who, why=asked.why, **_options(asked))
    given = await desk.orders.give(verb, in_words(asked), by=desk.who, most=most, work=lambda track: work(track=track))
    return _said(given, asked)


def _options(asked: Asked) -> dict[str, Any]:
    """What else the verb is told."""
    match asked:
        case Moved() | OneMoved():
            return {"queue": asked.to}
        case Reprioritised() | OneReprioritised():
            return {"priority": asked.priority}
        case _:
            return {}


def _said(given: Order, asked: Ordered) -> Did:
    passed_over = max(given.passed_over, len(asked.ids) - given.changed) if asked.ids else given.passed_over
    so_far = told(given.verb, given.changed, passed_over)
    match given.status:
        case "done":
            return Did(f"{so_far[0].upper()}{so_far[1:]}.", facts=given)
        case "underway":
            return Did(f"It takes a while and goes on: {so_far} so far. The page of jobs shows it.", "/jobs", given)
        case "stopped":
            return Did(f"It was stopped: {so_far}.", facts=given)
        case "failed":
            raise RowlockError(f"it has failed on the way: {so_far}; the log of the dashboard says why; do it again")


async def stop_order(desk: Desk, asked: OrderAsked) -> Did:
    """What it has changed so far stays so."""
    stopped = desk.orders.stop(asked.id)
    if stopped is None:
        raise InvalidOption("there is no such order here: it has ended long ago, or another process has it")
    return Did("It stops after the jobs that it is at; what it has changed stays so.", "/jobs", stopped)


# One


async def do_one(verb: VerbName, desk: Desk, asked: OneAsked) -> Did:
    """Do it to one job; refused if it cannot be."""
    record = await _record(desk, asked.id)
    wanted = Filter(ids=[asked.id])
    if verb == "retry":
        wanted = Filter(ids=[asked.id], state=sorted(VERBS["retry"].changes))
    done: Done = await ACTS[verb](desk.app.jobs, wanted, by=desk.who, why=asked.why, **_options(asked))
    if not done.changed:
        raise RowlockError(_refusal(VERBS[verb], record, asked))
    return Did(f"{_ONE[verb]}.", "/jobs" if verb == "delete" else f"/jobs/{asked.id}", done)


_ONE: Final = {
    "retry": "The job will run again",
    "cancel": "The job is cancelled; if it runs, it is told to stop",
    "run_next": "The job runs next",
    "move": "The job was moved",
    "reprioritise": "The job has another priority now",
    "delete": "The job is deleted",
}


def _refusal(verb: Verb, record: JobRecord, asked: OneAsked) -> str:
    match asked:
        case OneMoved() if asked.to == record.queue:
            return f"the job is on queue {asked.to} already"
        case OneReprioritised() if asked.priority == record.priority:
            return f"the job has priority {asked.priority} already"
    if record.state not in verb.changes:
        return f"{verb.name.replace('_', ' ')} is not for a job that is {record.state}; nothing was changed"
    if verb.name == "retry" and record.key is not None:
        return f"its key {record.key!r} belongs to another job now; nothing was changed"
    if record.begun:
        return "it is a workflow that has begun, or the child of one; cancel it first, nothing was changed"
    return "the job has changed meanwhile, or somebody is at it; look at it again"


async def edit(desk: Desk, asked: Edited) -> Did:
    """Its next attempt gets these; what was given before is gone."""
    record = await _record(desk, asked.id)
    args = restored(_object(asked.args), record.args)
    names = await desk.app.jobs.aedit(asked.id, args=args, by=desk.who, why=asked.why)
    says = f"Changed: {', '.join(names)}." if names else "These are the arguments that it has; nothing was changed."
    return Did(says, f"/jobs/{asked.id}", names)


async def enqueue(desk: Desk, asked: Enqueued) -> Did:
    """Make a job."""
    args = _object(asked.args)
    if asked.like is not None:
        args = restored(args, (await _record(desk, asked.like)).args)
    call = _call(desk, asked, args)
    made = await desk.app.jobs.aenqueue(call, like=asked.like, by=desk.who, why=asked.why)
    says = "It is enqueued." if made.created else "A job that lives has this key already; this is that one."
    return Did(says, f"/jobs/{made.id}", {"id": made.id, "created": made.created})


def _call(desk: Desk, asked: Enqueued, args: dict[str, Any]) -> Call[Any]:
    """The call; where this process knows tasks, of one of them, and with arguments such as its handler is given."""
    app = desk.app
    when = None if asked.run_at is None else read_past(asked.run_at)
    options = Options(
        queue=asked.queue,
        priority=asked.priority,
        run_at=when if isinstance(when, datetime) else None,
        delay=None if isinstance(when, datetime) else when,
        key=asked.key,
    )
    task = app.tasks.get(*unversioned(asked.task))
    if task is not None:
        return Call(task, task.arguments.encode_json(args), task.spec.allowed(options))
    if len(app.tasks):
        close = difflib.get_close_matches(asked.task, app.tasks.names(), n=1)
        raise UnknownTask(f"there is no task {asked.task!r} here" + (f"; did you mean {close[0]}?" if close else ""))
    unknown = app.call(asked.task, kwargs=args)
    return Call(unknown.task, unknown.args, options)


async def _record(desk: Desk, job_id: UUID) -> JobRecord:
    return await desk.app.database.aconverse(lambda: show(job_id), atomic=False)


def _object(typed: str) -> dict[str, Any]:
    """A JSON object, with every digit of its numbers."""
    try:
        found = from_json(typed, allow_inf_nan=False)
    except ValueError as error:
        raise InvalidArguments(f"the arguments are no JSON: {error}") from None
    if not isinstance(found, dict):
        raise InvalidArguments('the arguments must be a JSON object by name, such as {"order_id": 17}')
    return found


# What there is

_SAYS: Final[dict[VerbName, str]] = {
    "retry": "run ended jobs again",
    "cancel": "cancel jobs that have not ended",
    "run_next": "put ready jobs before all others of their queues",
    "move": "put jobs that have not started on another queue",
    "reprioritise": "give jobs that have not started another priority",
    "delete": "remove jobs that do not run, and leave only the events",
}
_ADMINS: Final[Role] = "admin"
_OPERATORS: Final[Role] = "operator"
_ROLES: Final[dict[VerbName, Role]] = {verb: _ADMINS if verb == "delete" else _OPERATORS for verb in _SAYS}
_MANY: Final[dict[VerbName, type[Ordered]]] = {"move": Moved, "reprioritise": Reprioritised}
_SINGLE: Final[dict[VerbName, type[OneAsked]]] = {"move": OneMoved, "reprioritise": OneReprioritised}


def _many(verb: VerbName) -> Action[Any]:
    says = f"Of all jobs that match: {_SAYS[verb]}."
    return Action(f"/jobs/{verb}", _ROLES[verb], _MANY.get(verb, Ordered), partial(order, verb), says)


def _single(verb: VerbName) -> Action[Any]:
    says = f"As of many, of one job: {_SAYS[verb]}."
    return Action(f"/jobs/{{id}}/{verb}", _ROLES[verb], _SINGLE.get(verb, OneAsked), partial(do_one, verb), says)


ACTIONS: Final[tuple[Action[Any], ...]] = (
    *map(_many, _SAYS),
    *map(_single, _SAYS),
    Action("/jobs/enqueue", "admin", Enqueued, enqueue, "Enqueue a job by hand."),
    Action("/jobs/{id}/edit", "admin", Edited, edit, "Give a job that has not started other arguments."),
    Action("/orders/{id}/stop", "operator", OrderAsked, stop_order, "Stop an order that is underway."),
)
