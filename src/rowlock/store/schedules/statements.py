"""Statements about schedules: list, add, edit, pause, run and remove them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from pydantic_core import to_json

from rowlock.model.record import known_moment, read_json, read_moment
from rowlock.model.results import Firing
from rowlock.model.schedule.schedule import Schedule, ScheduleSpec
from rowlock.store.find.pages import is_refusal
from rowlock.store.query import Conversation, Query, Row, array, first, instant, interval


class ScheduleRow(NamedTuple):
    """A schedule, its arguments as stored, the live workers that declare it if one was named, and the time."""

    schedule: Schedule
    args: str | None
    workers: list[str]
    now: datetime


class MadeJob(NamedTuple):
    """The task, the queue and, of a workflow, the version of a job that was made of a schedule."""

    task: str
    queue: str
    version: int | None


class ScheduleFiring(NamedTuple):
    """What became of a slot of the schedule of that name."""

    schedule: str
    firing: Firing


def readable(name: str | None = None) -> Conversation[list[ScheduleRow]]:
    """The schedules, or the one of that name, as far as this role may read them."""
    try:
        return (yield listed(name))
    except Exception as error:
        if not is_refusal(error):
            raise
    return (yield outlined(name))


def listed(name: str | None) -> Query[ScheduleRow]:
    """The schedules by name, or the one of that name."""
    return Query("schedule_list", {"name": name}, _looked)


def outlined(name: str | None) -> Query[ScheduleRow]:
    """The same without their arguments: for lists, and for a role that may not read those."""
    return Query("schedule_outline", {"name": name}, _looked)


def lock(name: str) -> Query[str]:
    """Lock a schedule; no row means that there is none."""
    return Query("schedule_lock", {"name": name}, first)


def add(spec: ScheduleSpec, *, next_at: datetime, actor: str, why: str | None) -> Query[str]:
    """Add a schedule; no row means that its name is taken."""
    return Query(
        "schedule_add",
        {
            "name": spec.name,
            "cron": spec.cron,
            "tz": spec.tz,
            "every": _interval(spec.every),
            "task": spec.task,
            "args": spec.args,
            "queue": spec.queue,
            "priority": str(spec.priority),
            "attempts": str(spec.attempts),
            "version": None if spec.version is None else str(spec.version),
            "expires": _interval(spec.expires),
            "tags": array(spec.tags) if spec.tags else None,
            "jitter": interval(spec.jitter),
            "overlap": spec.overlap,
            "catch_up": str(spec.catch_up),
            "at_boot": str(spec.at_boot),
            "next_at": instant(next_at),
            "actor": actor,
            "why": why,
        },
        first,
    )


def edit(
    spec: ScheduleSpec,
    *,
    edits: Mapping[str, Any] | None,
    next_at: datetime,
    changes: Mapping[str, Any],
    actor: str,
    why: str | None,
) -> Query[str]:
    """Change a schedule that is locked; `edits` is what of it an operator says differently from code."""
    return Query(
        "schedule_edit",
        {
            "name": spec.name,
            "cron": spec.cron,
            "tz": spec.tz,
            "every": _interval(spec.every),
            "args": spec.args,
            "queue": spec.queue,
            "priority": str(spec.priority),
            "expires": _interval(spec.expires),
            "jitter": interval(spec.jitter),
            "overlap": spec.overlap,
            "catch_up": str(spec.catch_up),
            "at_boot": str(spec.at_boot),
            "edits": None if edits is None else _json(edits),
            "next_at": instant(next_at),
            "changes": _json(changes),
            "actor": actor,
            "why": why,
        },
        first,
    )


def pause(name: str, *, until: datetime | None, duration: timedelta | None, actor: str, why: str | None) -> Query[str]:
    """Pause a schedule, until then or for so long; no row means that there is none."""
    return Query(
        "schedule_pause",
        {
            "name": name,
            "until": None if until is None else instant(until),
            "duration": _interval(duration),
            "actor": actor,
            "why": why,
        },
        first,
    )


def resume(name: str, *, next_at: datetime, actor: str, why: str | None) -> Query[str]:
    """Let a schedule go on that is locked."""
    return Query("schedule_resume", {"name": name, "next_at": instant(next_at), "actor": actor, "why": why}, first)


def remove(name: str, *, actor: str, why: str | None) -> Query[str]:
    """Remove a schedule."""
    return Query("schedule_remove", {"name": name, "actor": actor, "why": why}, first)


def run(name: str, *, job_id: str, actor: str, why: str | None) -> Query[MadeJob]:
    """Make a job of a schedule that is locked."""
    return Query(
        "schedule_run", {"name": name, "id": job_id, "actor": actor, "why": why}, lambda row: MadeJob(*row[:3])
    )


def firings(name: str, *, limit: int) -> Query[Firing]:
    """What became of the latest slots of a schedule, newest first."""
    return Query("firing_list", {"schedule": name, "limit": str(limit)}, _firing)


def recent(names: Iterable[str], *, limit: int) -> Query[ScheduleFiring]:
    """What became of the latest slots of each of these schedules, newest first."""
    return Query(
        "firing_recent",
        {"schedules": array(names), "limit": str(limit)},
        lambda row: ScheduleFiring(row[0], _firing(row[1:])),
    )


def _interval(span: timedelta | None) -> str | None:
    return None if span is None else interval(span)


def _json(value: Mapping[str, Any]) -> str:
    return to_json(value).decode()


def _looked(row: Row) -> ScheduleRow:
    *facts, workers, now = row
    read = dict(zip(_COLUMNS, facts, strict=True))
    args = read["args"]
    read |= {name: read_json(read[name]) for name in ("args", "declared", "edits")}
    read |= {name: read_moment(read[name]) for name in _MOMENTS}
    read |= {name: _span(read[name]) for name in ("every", "expires", "jitter")}
    read |= {"tags": tuple(read["tags"] or ()), "jobs": tuple(UUID(job) for job in read["jobs"])}
    return ScheduleRow(Schedule(**read), args, workers, known_moment(now))


def _span(seconds: float | None) -> timedelta | None:
    """A span that was read in seconds; the longest there is for what SQL made longer."""
    if seconds is None:
        return None
    try:
        return timedelta(microseconds=round(seconds * 1_000_000))
    except OverflowError:
        return timedelta.max


def _firing(row: Row) -> Firing:
    slot, job, reason, at, state = row
    return Firing(known_moment(slot), None if job is None else UUID(job), reason, known_moment(at), state)


_COLUMNS: Final = tuple(field.name for field in fields(Schedule))
"""The columns of schedule_list and schedule_outline, in this order, before the workers and the time."""
_MOMENTS: Final = ("paused_at", "paused_until", "next_at", "last_at", "held", "booted_at", "created_at")
