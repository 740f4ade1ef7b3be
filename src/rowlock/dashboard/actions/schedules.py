"""What can be done about schedules: run, pause, edit, reset, add and remove them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from pydantic import Field

from rowlock.app.tasks import NO_JITTER, Call
from rowlock.dashboard.action import Action, Did
from rowlock.dashboard.actions.queues import until
from rowlock.dashboard.desk import Desk
from rowlock.dashboard.page import Asked
from rowlock.dashboard.pages.schedules_preview import typed_rule
from rowlock.dashboard.render import segment
from rowlock.dashboard.restore import restored
from rowlock.errors import InvalidArguments, UnknownTask
from rowlock.model.formatting import read_span
from rowlock.model.names import unversioned
from rowlock.model.payload.arguments import encode_untyped
from rowlock.model.schedule.rule import CatchUp, Overlap


class NamedAsked(Asked):
    """A schedule by its name, and why."""

    name: str
    why: str | None = None


class PauseAsked(NamedAsked):
    """For how long, as it is typed: 15min, 1h; until somebody resumes it unless said."""

    duration: str | None = None


class SaidAsked(NamedAsked):
    """What a schedule may be told. Arguments are a JSON object, or the text of one; spans are typed: 90s, 15min, 2h."""

    rule: str | None = None
    tz: str | None = None
    args: str | dict[str, Any] | None = None
    queue: str | None = None
    priority: int | None = None
    overlap: Overlap | None = None
    catch_up: str | int | None = None
    jitter: str | None = None
    at_boot: bool | None = None


class EditAsked(SaidAsked):
    """What to change. `seen` is a JSON object of what the form showed at first: what is still so is not changed."""

    expires: str | None = None
    seen: str | None = None


class AddAsked(SaidAsked):
    """A new one, of a task that this dashboard knows, if it knows any."""

    task: str
    rule: str = Field(min_length=1)


async def run_now(desk: Desk, asked: NamedAsked) -> Did:
    """Make a job of it, beside its slots."""
    job = await desk.app.schedules.arun_now(asked.name, by=desk.who, why=asked.why)
    return Did(f"Schedule {asked.name} has made a job.", to=f"/jobs/{job.id}", facts={"job": str(job.id)})


async def pause(desk: Desk, asked: PauseAsked) -> Did:
    """Pass over its slots."""
    lasts = None if asked.duration is None else read_span(asked.duration)
    schedule = await desk.app.schedules.apause(asked.name, duration=lasts, by=desk.who, why=asked.why)
    return Did(f"Schedule {asked.name} is paused {until(lasts)}: its slots are passed over.", facts=schedule.paused_at)


async def resume(desk: Desk, asked: NamedAsked) -> Did:
    """Go on with its next slot."""
    resumed = await desk.app.schedules.aresume(asked.name, by=desk.who, why=asked.why)
    says = "goes on with its next slot" if resumed else "was not paused"
    return Did(f"Schedule {asked.name} {says}.", facts=resumed)


async def edit(desk: Desk, asked: EditAsked) -> Did:
    """Change what was said and differs from what was seen."""
    changes = _changes(asked)
    if not changes:
        return Did("Nothing was changed: the form says what it said before.")
    if "args" in changes:
        stored = (await desk.app.schedules.aget(asked.name)).args
        changes["args"] = restored(changes["args"], stored)
    schedule = await desk.app.schedules.aedit(asked.name, **changes, by=desk.who, why=asked.why)
    kept = "; it outlasts deploys, until it is reset to code" if schedule.is_declared else ""
    said = f"Schedule {asked.name} is changed ({', '.join(changes)}){kept}."
    return Did(said, to=_place(asked.name), facts={"changed": list(changes)})


async def reset(desk: Desk, asked: NamedAsked) -> Did:
    """Go back to what code says."""
    await desk.app.schedules.aedit(asked.name, reset=True, by=desk.who, why=asked.why)
    return Did(f"Schedule {asked.name} is again what code says.", to=_place(asked.name))


async def add(desk: Desk, asked: AddAsked) -> Did:
    """Make jobs of a call by a rule."""
    schedule = await desk.app.schedules.aadd(
        asked.name,
        _call(desk, asked),
        typed_rule(asked.rule),
        tz=asked.tz,
        jitter=NO_JITTER if asked.jitter is None else read_span(asked.jitter),
        overlap=asked.overlap or "skip",
        catch_up="last" if asked.catch_up is None else _catch_up(asked.catch_up),
        at_boot=bool(asked.at_boot),
        by=desk.who,
        why=asked.why,
    )
    return Did(f"Schedule {schedule.name} is added.", to=_place(schedule.name))


async def remove(desk: Desk, asked: NamedAsked) -> Did:
    """Remove it; the jobs it has made live on."""
    schedule = await desk.app.schedules.aremove(asked.name, by=desk.who, why=asked.why)
    return Did(f"Schedule {schedule.name} is removed; the jobs that it has made live on.", to="/schedules")


def _place(name: str) -> str:
    return f"/schedules/{segment(name)}"


# What the forms say


def _changes(asked: EditAsked) -> dict[str, Any]:
    """What to change, as `edit` takes it."""
    seen = {} if asked.seen is None else _object(asked.seen, "seen")
    said = {name: getattr(asked, name) for name in _READ if getattr(asked, name) is not None}
    return {name: _READ[name](text) for name, text in said.items() if not _is_same(name, text, seen)}


def _is_same(name: str, text: object, seen: Mapping[str, Any]) -> bool:
    if name not in seen:
        return False
    if name == "args":
        return _object(text, "args") == _object(seen["args"], "seen")
    return str(text).strip() == str(seen[name]).strip()


def _call(desk: Desk, asked: AddAsked) -> Call[Any]:
    app, args = desk.app, _object(asked.args or {}, "args")
    known = app.tasks.get(*unversioned(asked.task))
    if known is None and len(app.tasks):
        raise UnknownTask(f"the app has no task {asked.task!r}; it knows {', '.join(app.tasks.names())}")
    if known is None:
        task, encoded = app.call(asked.task).task, encode_untyped(args)
    else:
        task, encoded = known, known.arguments.encode_json(args)
    return Call(task, encoded, task.using(queue=asked.queue, priority=asked.priority).options)


def _object(said: object, what: str) -> dict[str, Any]:
    try:
        parsed = json.loads(said) if isinstance(said, str) else said
    except (ValueError, RecursionError) as error:
        raise InvalidArguments(f"{what} is no JSON: {error}") from None
    if not isinstance(parsed, dict):
        raise InvalidArguments(f'{what} must be a JSON object of arguments by name, such as {{"user_id": 42}}')
    return parsed


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
"""What may be changed, and how it is read."""


ACTIONS: Final[tuple[Action[Any], ...]] = (
    Action("/schedules/run", "operator", NamedAsked, run_now, says="Make a job of a schedule now, beside its slots."),
    Action("/schedules/pause", "operator", PauseAsked, pause, says="Pass over the slots of a schedule."),
    Action("/schedules/resume", "operator", NamedAsked, resume, says="Let a schedule go on with its next slot."),
    Action("/schedules/edit", "admin", EditAsked, edit, says="Change a schedule."),
    Action("/schedules/reset", "admin", NamedAsked, reset, says="Go back to what code says of a schedule."),
    Action("/schedules/add", "admin", AddAsked, add, says="Add a schedule."),
    Action("/schedules/remove", "admin", NamedAsked, remove, says="Remove a schedule that no code declares."),
)
