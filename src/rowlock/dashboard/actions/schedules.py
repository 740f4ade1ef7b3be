"""Actions on schedules: run, pause, resume, edit, reset, add and remove."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import Field

from rowlock.app.tasks import NO_JITTER, Call
from rowlock.dashboard.action import Action, ActionResult
from rowlock.dashboard.actions.queues import until
from rowlock.dashboard.context import RequestContext
from rowlock.dashboard.page import Params
from rowlock.dashboard.pages.schedules import typed_rule
from rowlock.dashboard.render import segment
from rowlock.dashboard.restore import restored
from rowlock.errors import InvalidArguments, UnknownTask
from rowlock.model.formatting import read_span
from rowlock.model.names import unversioned
from rowlock.model.payload.arguments import encode_untyped
from rowlock.model.schedule.rule import CatchUp, Overlap
from rowlock.model.typed import check_object, read_object


class NamedParams(Params):
    """A schedule by its name, and why."""

    name: str
    why: str | None = None


class PauseScheduleParams(NamedParams):
    """For how long, as it is typed: 15min, 1h; until somebody resumes it unless said."""

    duration: str | None = None


class ScheduleFields(NamedParams):
    """A schedule's fields. Arguments are a JSON object, or the text of one; spans are typed: 90s, 15min, 2h."""

    rule: str | None = None
    tz: str | None = None
    args: str | dict[str, Any] | None = None
    queue: str | None = None
    priority: int | None = None
    overlap: Overlap | None = None
    catch_up: str | int | None = None
    jitter: str | None = None
    at_boot: bool | None = None


class EditScheduleParams(ScheduleFields):
    """The fields to change. `seen` is a JSON object of the form's first values: fields that still have them stay."""

    expires: str | None = None
    seen: str | None = None


class AddScheduleParams(ScheduleFields):
    """A new one, of a task that this dashboard knows, if it knows any."""

    task: str
    rule: str = Field(min_length=1)


async def run_now(context: RequestContext, params: NamedParams) -> ActionResult:
    """Make a job of a schedule now, beside its slots."""
    job = await context.app.schedules.arun_now(params.name, by=context.actor, why=params.why)
    return ActionResult(f"Schedule {params.name} has made a job.", to=f"/jobs/{job.id}", facts={"job": str(job.id)})


async def pause(context: RequestContext, params: PauseScheduleParams) -> ActionResult:
    """Pause a schedule: its slots are passed over."""
    lasts = None if params.duration is None else read_span(params.duration)
    schedule = await context.app.schedules.apause(params.name, duration=lasts, by=context.actor, why=params.why)
    return ActionResult(
        f"Schedule {params.name} is paused {until(lasts)}: its slots are passed over.", facts=schedule.paused_at
    )


async def resume(context: RequestContext, params: NamedParams) -> ActionResult:
    """Resume a schedule with its next slot."""
    resumed = await context.app.schedules.aresume(params.name, by=context.actor, why=params.why)
    says = "goes on with its next slot" if resumed else "was not paused"
    return ActionResult(f"Schedule {params.name} {says}.", facts=resumed)


async def edit(context: RequestContext, params: EditScheduleParams) -> ActionResult:
    """Change the fields that are given and differ from what the form showed."""
    changes = _changes(params)
    if not changes:
        return ActionResult("Nothing was changed: the form says what it said before.")
    if "args" in changes:
        stored = (await context.app.schedules.aget(params.name)).args
        changes["args"] = restored(changes["args"], stored)
    schedule = await context.app.schedules.aedit(params.name, **changes, by=context.actor, why=params.why)
    kept = "; it outlasts deploys, until it is reset to code" if schedule.is_declared else ""
    said = f"Schedule {params.name} is changed ({', '.join(changes)}){kept}."
    return ActionResult(said, to=_place(params.name), facts={"changed": list(changes)})


async def reset(context: RequestContext, params: NamedParams) -> ActionResult:
    """Reset a schedule to its declaration in code."""
    await context.app.schedules.aedit(params.name, reset=True, by=context.actor, why=params.why)
    return ActionResult(f"Schedule {params.name} is again what code says.", to=_place(params.name))


async def add(context: RequestContext, params: AddScheduleParams) -> ActionResult:
    """Add a schedule: jobs of a call by a rule."""
    schedule = await context.app.schedules.aadd(
        params.name,
        _call(context, params),
        typed_rule(params.rule),
        tz=params.tz,
        jitter=NO_JITTER if params.jitter is None else read_span(params.jitter),
        overlap=params.overlap or "skip",
        catch_up="last" if params.catch_up is None else _catch_up(params.catch_up),
        at_boot=bool(params.at_boot),
        by=context.actor,
        why=params.why,
    )
    return ActionResult(f"Schedule {schedule.name} is added.", to=_place(schedule.name))


async def remove(context: RequestContext, params: NamedParams) -> ActionResult:
    """Remove a schedule; the jobs it has made live on."""
    schedule = await context.app.schedules.aremove(params.name, by=context.actor, why=params.why)
    return ActionResult(f"Schedule {schedule.name} is removed; the jobs that it has made live on.", to="/schedules")


def _place(name: str) -> str:
    return f"/schedules/{segment(name)}"


# What the forms say


def _changes(params: EditScheduleParams) -> dict[str, Any]:
    """The changes, as `edit` takes them."""
    seen = {} if params.seen is None else _object(params.seen, "seen")
    said = {name: getattr(params, name) for name in _READ if getattr(params, name) is not None}
    return {name: _READ[name](text) for name, text in said.items() if not _is_same(name, text, seen)}


def _is_same(name: str, text: object, seen: Mapping[str, Any]) -> bool:
    if name not in seen:
        return False
    if name == "args":
        return _object(text, "args") == _object(seen["args"], "seen")
    return str(text).strip() == str(seen[name]).strip()


def _call(context: RequestContext, params: AddScheduleParams) -> Call[Any]:
    app, args = context.app, _object(params.args or {}, "args")
    known = app.tasks.get(*unversioned(params.task))
    if known is None and len(app.tasks):
        raise UnknownTask(f"the app has no task {params.task!r}; it knows {', '.join(app.tasks.names())}")
    if known is None:
        task, encoded = app.call(params.task).task, encode_untyped(args)
    else:
        task, encoded = known, known.arguments.encode_json(args)
    return Call(task, encoded, task.using(queue=params.queue, priority=params.priority).options)


def _object(said: object, what: str) -> dict[str, Any]:
    return read_object(said, what) if isinstance(said, str) else check_object(said, what)


def _catch_up(said: str | int) -> CatchUp:
    match str(said):
        case "none":
            return "none"
        case "last":
            return "last"
        case text if text.isdecimal():
            return int(text)
        case _:
            raise InvalidArguments(f"catch_up {said!r} must be none, last or a number")


def _boolean(said: bool) -> bool:  # noqa: FBT001  as the form says it
    return said


_READ: Final[Mapping[str, Any]] = {
    "rule": typed_rule,
    "tz": str.strip,
    "args": lambda said: _object(said, "args"),
    "queue": str,
    "priority": int,
    "overlap": str,
    "catch_up": _catch_up,
    "jitter": read_span,
    "expires": read_span,
    "at_boot": _boolean,
}
"""The fields that may be changed, and how each is read."""


ACTIONS: Final[tuple[Action[Any], ...]] = (
    Action("/schedules/run", "operator", NamedParams, run_now, says="Make a job of a schedule now, beside its slots."),
    Action("/schedules/pause", "operator", PauseScheduleParams, pause, says="Pass over the slots of a schedule."),
    Action("/schedules/resume", "operator", NamedParams, resume, says="Let a schedule go on with its next slot."),
    Action("/schedules/edit", "admin", EditScheduleParams, edit, says="Change a schedule."),
    Action("/schedules/reset", "admin", NamedParams, reset, says="Go back to what code says of a schedule."),
    Action("/schedules/add", "admin", AddScheduleParams, add, says="Add a schedule."),
    Action("/schedules/remove", "admin", NamedParams, remove, says="Remove a schedule that no code declares."),
)
