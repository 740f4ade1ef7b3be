"""Pauses: of queues and tasks, and the failures that trip a breaker."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Literal, NamedTuple

from rowlock.model.pause import Breaker, Pause
from rowlock.store.query import Query, Row, array, first, instant, interval, plain_array

Kind = Literal["queue", "task"]

# Jobs that one statement releases.
CHUNK = 2_000


def pause(
    *, kind: Kind, name: str, until: datetime | None, duration: timedelta | None, actor: str, why: str | None
) -> Query[Pause]:
    """Pause a queue or a task, until then or for so long."""
    return Query(
        "pause_set",
        {
            "kind": kind,
            "name": name,
            "until": None if until is None else instant(until),
            "duration": None if duration is None else interval(duration),
            "actor": actor,
            "why": why,
        },
        _pause,
    )


def resume(*, kind: Kind, name: str, actor: str, why: str | None) -> Query[str]:
    """End a pause; returns its name if there was one."""
    return Query("pause_end", {"kind": kind, "name": name, "actor": actor, "why": why}, first)


def listed() -> Query[Pause]:
    """The pauses that hold now."""
    return Query("pause_list", {}, _pause)


def expire(*, actor: str) -> Query[str | None]:
    """Remove pauses whose time is over; returns the tasks whose jobs wait for a pause that is no more, and a None."""
    return Query("pause_expire", {"actor": actor}, first)


def release(task: str, *, limit: int = CHUNK, without: Iterable[str] = ()) -> Query[int]:
    """Make ready a chunk of the jobs that wait for the end of a task's pause; returns how many."""
    return Query("job_release", {"task": task, "limit": str(limit), "without": plain_array(without)}, first)


def peek(task: str, *, without: Iterable[str] = ()) -> Query[str]:
    """The id of a job that would be released, if there is one."""
    return Query("released_peek", {"task": task, "without": plain_array(without)}, first)


def _pause(row: Row) -> Pause:
    kind, name, until, reason, actor, at = row
    return Pause(
        queue=name if kind == "queue" else None,
        task=name if kind == "task" else None,
        until=None if until is None else datetime.fromisoformat(until),
        why=reason,
        by=actor,
        at=datetime.fromisoformat(at),
    )


class TaskFailures(NamedTuple):
    """How often a task has failed just now, the type of the last error, and what its breaker makes of it."""

    task: str
    times: int
    error: str
    breaker: Breaker


def count_failures(failures: Sequence[TaskFailures]) -> Query[str]:
    """Count failures, each task's once; returns the tasks that are paused by it."""
    rows = sorted(failures, key=attrgetter("task"))
    return Query(
        "breaker_count",
        {
            "tasks": array(row.task for row in rows),
            # No more are kept, so no more need be sent.
            "counts": plain_array(str(min(row.times, row.breaker.failures)) for row in rows),
            "limits": plain_array(str(row.breaker.failures) for row in rows),
            "windows": array(interval(row.breaker.window) for row in rows),
            "pauses": array(interval(row.breaker.pause) for row in rows),
            "reasons": array(row.breaker.why(row.error) for row in rows),
        },
        first,
    )


def forget_failures(*, age: timedelta) -> Query[str]:
    """Forget the failures of tasks that have not failed for so long; returns these tasks."""
    return Query("breaker_remove", {"age": interval(age)}, first)
