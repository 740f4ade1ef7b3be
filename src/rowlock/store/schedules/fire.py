"""Firing of schedules: find what is due, and fire all of it in one statement."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from rowlock.store.query import Query, Row, array, first, instant, interval, plain_array


class DueScheduleRow(NamedTuple):
    """A schedule that has something to do, as it was seen; nobody has checked what it says."""

    name: str
    version: str  # the transaction that wrote it
    cron: str | None
    tz: str | None
    every: str | None  # seconds
    jitter: str  # seconds
    overlap: str
    catch_up: int
    next_at: str
    last_at: str | None
    held: str | None
    paused_at: str | None
    paused_until: str | None
    boots: bool  # it is to run because a worker has started
    live: list[str]  # ids of the jobs it made that have not ended

    @property
    def mark(self) -> str:
        """What to leave it out by: another version of it is another matter."""
        return _mark(self.name, self.version)


class DueRow(NamedTuple):
    """A line of what a look has found: the time, how far off the next slot is, and one schedule, if any is due."""

    now: datetime
    next_in: timedelta | None  # unless it is over a minute off
    holds: bool  # some schedule holds a slot back
    schedule: DueScheduleRow | None


class ScheduleSlot(NamedTuple):
    """A slot of a schedule that is fired, by a job of this id, or passed over for a reason."""

    at: datetime
    job: str | None
    reason: str | None = None
    jitter: timedelta = timedelta(0)


class PlannedFiring(NamedTuple):
    """What becomes of one version of a schedule."""

    name: str
    version: str
    next_at: datetime
    last_at: datetime | None
    held: datetime | None
    boots: bool
    slots: Sequence[ScheduleSlot]

    @property
    def mark(self) -> str:
        """What to leave that version out by."""
        return _mark(self.name, self.version)


def due(
    *, limit: int, left_out: Iterable[str] = (), boots: Iterable[str] = (), booted_before: datetime | None = None
) -> Query[DueRow]:
    """Look which schedules are due; there is always a line.

    With `booted_before` also those that run at boot, have not since then, and are in `boots` or no code's.
    """
    return Query(
        "schedule_due",
        {
            "limit": str(limit),
            "left_out": array(left_out),
            "boots": array(boots),
            "booted_before": None if booted_before is None else instant(booted_before),
        },
        _due_row,
    )


def fire(firings: Iterable[PlannedFiring]) -> Query[str]:
    """Fire schedules, all in one go; returns the names of those that were as they had been seen."""
    planned = sorted(firings, key=lambda firing: firing.name)
    return Query(
        "schedule_fire",
        {
            "names": array(firing.name for firing in planned),
            "versions": plain_array(firing.version for firing in planned),
            "next_ats": _instants(firing.next_at for firing in planned),
            "last_ats": _instants(firing.last_at for firing in planned),
            "helds": _instants(firing.held for firing in planned),
            "boots": plain_array(str(firing.boots).lower() for firing in planned),
            "slots": _of_each(planned, lambda slot: slot_text(slot.at)),
            "ids": _of_each(planned, lambda slot: slot.job),
            "reasons": _of_each(planned, lambda slot: slot.reason),
            "jitters": _of_each(planned, lambda slot: interval(slot.jitter)),
        },
        first,
    )


def make_room(jobs: Iterable[str], *, schedule: str, keep: timedelta) -> Query[int]:
    """Cancel jobs that the next one of their schedule replaces; returns how many."""
    return Query(
        "job_replace",
        {"ids": plain_array(jobs), "schedule": schedule, "actor": f"schedule {schedule}", "keep": interval(keep)},
        first,
    )


def remove(limit: int) -> Query[int]:
    """Remove slots that were written down long ago, so many at most; returns how many."""
    return Query("firing_remove", {"limit": str(limit)}, first)


def slot_text(slot: datetime) -> str:
    """A slot as the tags of its job have it."""
    return slot.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _mark(name: str, version: str) -> str:
    return f"{version} {name}"


def _due_row(row: Row) -> DueRow:
    now, next_in, holds, *schedule = row
    return DueRow(
        datetime.fromisoformat(now),
        None if next_in is None else timedelta(seconds=next_in),
        holds,
        None if schedule[0] is None else DueScheduleRow(*schedule),
    )


def _instants(moments: Iterable[datetime | None]) -> str:
    return array(None if moment is None else instant(moment) for moment in moments)


def _of_each(planned: Iterable[PlannedFiring], fact: Callable[[ScheduleSlot], str | None]) -> str:
    """A list for each schedule, within a list of all."""
    return array(array(fact(slot) for slot in firing.slots) for firing in planned)
