"""Changes of schedules: each locks the row, changes it, and writes an event."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from difflib import get_close_matches

from rowlock.errors import InvalidOption, ScheduleError, ScheduleNotFound
from rowlock.model.results import Firing
from rowlock.model.schedule.edit import ScheduleEdit, edits_of
from rowlock.model.schedule.schedule import Schedule, ScheduleSpec
from rowlock.store.query import Conversation
from rowlock.store.schedules import statements
from rowlock.store.schedules.statements import MadeJob, ScheduleRow
from rowlock.store.schema import make_partitions, now


def show(name: str) -> Conversation[ScheduleRow]:
    """The schedule of that name, as far as this role may read it; ScheduleNotFound if there is none."""
    found = yield from statements.readable(name)
    if not found:
        raise (yield from _not_found(name))
    return found[0]


def next_slots(name: str, count: int) -> Conversation[tuple[datetime, ...]]:
    """The next slots of a schedule."""
    schedule, *_, moment = yield from show(name)
    rule, slots = schedule.rule, list[datetime]()
    while len(slots) < count:
        slots.append(rule.after(slots[-1] if slots else moment, anchor=schedule.next_at))
    return tuple(slots)


def firings(name: str, limit: int) -> Conversation[tuple[Firing, ...]]:
    """What became of the latest slots of a schedule, also of one that was removed since."""
    found: list[Firing] = yield statements.firings(name, limit=limit)
    if not found:
        yield from show(name)
    return tuple(found)


def add(spec: ScheduleSpec, *, actor: str, why: str | None, resend: bool = False) -> Conversation[Schedule]:
    """Add a schedule; ScheduleError if its name is taken."""
    yield from make_partitions()
    while True:
        moment: datetime = (yield now())[0]
        added = yield statements.add(spec, next_at=spec.rule.after(moment), actor=actor, why=why)
        found: list[ScheduleRow] = yield statements.listed(spec.name)
        if found:  # else whoever had the name has been removed meanwhile
            break
    there = found[0]
    if not added and not (resend and _is_ours(there, spec)):
        whose = "code declares it" if there.schedule.is_declared else "an operator added it"
        raise ScheduleError(
            spec.name,
            f"there is a schedule {spec.name!r} already: {whose}, for task {there.schedule.task}; "
            "edit that one, or choose another name",
        )
    return there.schedule


def _is_ours(there: ScheduleRow, spec: ScheduleSpec) -> bool:
    """Whether it is what an earlier try, whose reply was lost, has added."""
    facts = {**there.schedule.to_dict(), "args": there.args}
    return not there.schedule.is_declared and all(facts[name] == said for name, said in spec.to_declared().items())


def edit(
    name: str, change: ScheduleEdit, *, encode: Callable[[str, int | None], str], actor: str, why: str | None
) -> Conversation[Schedule]:
    """Change a schedule; `encode` makes JSON of the new arguments, for the task of that name, or that version of it."""
    schedule, args, _, moment = yield from _locked(name)
    if change.reset and not schedule.is_declared:
        raise ScheduleError(name, f"schedule {name!r} was added by an operator: code says nothing to go back to")
    new = (args or "{}") if change.args is None else encode(schedule.task, schedule.version)
    edited = change.over(schedule, args=new, now=moment)
    if edited.changes or (edited.edits or {}) != edits_of(schedule.edits):
        who = {"by": actor, "at": moment.isoformat()} | ({} if why is None else {"why": why})
        yield statements.edit(
            edited.spec,
            edits=None if edited.edits is None else {**edited.edits, **who},
            next_at=edited.next_at,
            changes=edited.changes,
            actor=actor,
            why=why,
        )
    return (yield from show(name)).schedule


def pause(
    name: str, *, until: datetime | None, duration: timedelta | None, actor: str, why: str | None
) -> Conversation[Schedule]:
    """Pause a schedule."""
    yield from _locked(name)
    yield statements.pause(name, until=until, duration=duration, actor=actor, why=why)
    schedule = (yield from show(name)).schedule
    if not schedule.is_paused:
        raise InvalidOption(f"until={until} is past already; give an instant that is to come, or duration=")
    return schedule


def resume(name: str, *, actor: str, why: str | None) -> Conversation[bool]:
    """Let a schedule go on; returns whether it was paused."""
    schedule, *_, moment = yield from _locked(name)
    if schedule.is_paused:
        yield statements.resume(name, next_at=_from_now_on(schedule, moment), actor=actor, why=why)
    return schedule.is_paused


def _from_now_on(schedule: Schedule, moment: datetime) -> datetime:
    """Its next slot that no pause has covered."""
    try:
        return max(schedule.next_at, schedule.rule.after(moment, anchor=schedule.next_at))
    except InvalidOption:  # a rule that this machine cannot read; whoever fires it will say so
        return schedule.next_at


def run_now(name: str, *, job_id: str, actor: str, why: str | None) -> Conversation[MadeJob]:
    """Make a job of a schedule, beside its slots."""
    yield from _locked(name)
    made: list[MadeJob] = yield statements.run(name, job_id=job_id, actor=actor, why=why)
    return made[0]


def remove(name: str, *, actor: str, why: str | None) -> Conversation[Schedule]:
    """Remove a schedule, unless live workers would bring it back."""
    schedule, _, workers, _ = yield from _locked(name)
    if workers and schedule.is_declared:
        others = f" and {len(workers) - 1} more" if len(workers) > 1 else ""
        raise ScheduleError(
            name,
            f"schedule {name!r} is declared by the code of live workers ({workers[0]}{others}), which would bring it "
            "back when they start; pause it, or take it out of the code first",
        )
    yield statements.remove(name, actor=actor, why=why)
    return schedule


def _locked(name: str) -> Conversation[ScheduleRow]:
    """A schedule that nobody else fires or changes until the end of this transaction."""
    yield from make_partitions()
    if not (yield statements.lock(name)):
        raise (yield from _not_found(name))
    return (yield from show(name))


def _not_found(name: str) -> Conversation[ScheduleNotFound]:
    names = [looked.schedule.name for looked in (yield from statements.readable())]
    close = get_close_matches(name, names, n=1)
    instead = f"did you mean {close[0]!r}?" if close else "`rowlock schedules list` shows those there are"
    return ScheduleNotFound(name, f"there is no schedule {name!r}; {instead}")
