"""Schedules: any worker fires what is due, all of it in one statement.

Nobody is the leader. A look says what is due and how soon the next slot comes; what to do is planned here, and done by
a statement that does nothing to a schedule which has changed since the look. The lock under which it is said only saves
the others the work: that each slot has one job does not hang on it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import cast

from rowlock.db.errors import Refused
from rowlock.db.safe_logger import SafeLogger
from rowlock.db.thread_connection import ReconnectingSyncConnection
from rowlock.errors import InvalidOption
from rowlock.model.ids import new_id
from rowlock.model.schedule.firing import DueSchedule, FiringPlan, PassedSlot, plan
from rowlock.model.schedule.rule import Every, Overlap, read_rule
from rowlock.model.schedule.schedule import ScheduleSpec
from rowlock.store.schedules import declare, fire
from rowlock.store.schedules.fire import DueScheduleRow, PlannedFiring, ScheduleSlot
from rowlock.worker.halve import Halver, LeftOut

log = SafeLogger("rowlock.upkeep")

# Schedules that come up after a look are found so late at most; an idle worker looks as often.
LOOK_EVERY = timedelta(seconds=5)
# While a slot is held back: its job may end at any moment, and nobody tells us.
_LOOK_WHILE_HELD = timedelta(seconds=1)
# When another worker is firing, or has fired what we wanted to.
_SHORTLY = timedelta(seconds=0.2)
_AT_ONCE = timedelta(seconds=0.02)
# Workers that wait for the same slot wake up one after the other: the first fires, the others find it done.
_APART = 0.05
# What one statement fires at most. It shares its thread with the lease.
_SCHEDULES = 1_000
# Workers that start within so long of each other make one run at boot.
_TOGETHER = timedelta(minutes=1)
_SLOTS = 5_000


@dataclass(frozen=True, slots=True)
class Planned:
    """What was decided about a schedule, and the jobs that have to make room for it."""

    firing: PlannedFiring
    replaces: Sequence[str] = ()


class Boot:
    """What a worker declares when it starts, and what has to run because of it: once, whatever incarnations follow."""

    def __init__(self, specs: Iterable[ScheduleSpec] = ()) -> None:
        self._specs = tuple(specs)
        self.names = sorted(spec.name for spec in self._specs)
        self._before: datetime | None = None
        self._is_over = False

    def begin(self, connection: ReconnectingSyncConnection, now: float) -> None:
        """Declare the schedules; `now` is the database's time. A later incarnation only enters those that are gone.

        Two versions of the code may be at work at once: one that reconnects must not undo what the newer one has said.
        """
        moment = datetime.fromtimestamp(now, UTC)
        answer = connection.converse(declare.declare(self._specs, now=moment, anew=self._before is None))
        for name in answer.written:
            log.info("schedule %s is written down as the code declares it", name)
        for name, why in answer.left.items():
            log.error("schedule %s stays as it is: with its edits, what the code declares is %s", name, why)
        # Others that start at the same time make the runs at boot for us, or we for them.
        self._before = self._before or moment - _TOGETHER

    @property
    def booted_before(self) -> datetime | None:
        """What has not run since then is to run; None when everything has."""
        return None if self._is_over else self._before

    def end(self) -> None:
        """Everything has run."""
        self._is_over = True


class Firer:
    """Fires schedules; remembers those that it cannot fire."""

    def __init__(self, *, boot: Boot, keep: timedelta, longest: timedelta) -> None:
        """`keep` is how long history keeps jobs that were replaced, `longest` how long it keeps any."""
        self._boot = boot
        self._keep = keep
        self._senseless: set[str] = set()
        self._left_out = LeftOut("schedule", "fired")
        self._halver = Halver[Planned](
            write=self._sweep,
            left_out=self._left_out,
            marked=lambda one: (one.firing.mark, one.firing.name),
            longest=longest,
        )

    def fire_due(self, connection: ReconnectingSyncConnection) -> timedelta:
        """Fire what is due; returns how soon to look again."""
        began = time.monotonic()
        boot = self._boot
        left_out = [*self._senseless, *self._left_out.marks()]
        lines = connection.run(
            fire.due(limit=_SCHEDULES, left_out=left_out, boots=boot.names, booted_before=boot.booted_before)
        )
        now, next_in, holds, _ = lines[0]
        found = [line.schedule for line in lines if line.schedule is not None]
        if not any(schedule.boots for schedule in found):
            boot.end()
        planned = [one for schedule in found if (one := self._planned(schedule, now)) is not None]
        batch = _no_more_than(_SLOTS, planned)
        if batch and (again := self._fire(connection, batch)) is not None:
            return again * random.uniform(0.5, 1.0)
        if len(batch) < len(planned) or len(found) >= _SCHEDULES:
            return _AT_ONCE
        waits = [LOOK_EVERY, *(one.firing.next_at - now for one in batch)]
        if next_in is not None:
            waits.append(next_in)
        if holds or any(one.firing.held for one in batch):
            waits.append(_LOOK_WHILE_HELD)
        soon = min(waits) - timedelta(seconds=time.monotonic() - began)
        return max(soon, _AT_ONCE) + timedelta(seconds=random.uniform(0, _APART))

    def _planned(self, schedule: DueScheduleRow, now: datetime) -> Planned | None:
        """What to do about a schedule; one that was written by hand, or for other zone data, may make no sense here."""
        try:
            return decide(schedule, now)
        except (InvalidOption, ValueError, OverflowError) as error:
            log.error("schedule %s cannot be fired by this worker: %s", schedule.name, error)  # noqa: TRY400  it says all
            self._senseless.add(schedule.mark)
            return None

    def _fire(self, connection: ReconnectingSyncConnection, batch: Sequence[Planned]) -> timedelta | None:
        """How soon to look again, if that was not all: others are at it, or a job that was replaced has ended."""
        try:
            return self._sweep(connection, batch)
        except Refused as error:
            self._halver.take_apart(connection, batch, error)
            return _SHORTLY

    def _sweep(self, connection: ReconnectingSyncConnection, batch: Sequence[Planned]) -> timedelta | None:
        with connection.sweep("schedules") as free:
            return self._fire_batch(connection, batch) if free else _SHORTLY

    def _fire_batch(self, connection: ReconnectingSyncConnection, batch: Sequence[Planned]) -> timedelta | None:
        done = set(connection.run(fire.fire(one.firing for one in batch)))
        replaced = sum(self._make_room(connection, one) for one in batch if one.replaces and one.firing.name in done)
        if len(done) < len(batch):
            return _SHORTLY
        return _AT_ONCE if replaced else None

    def _make_room(self, connection: ReconnectingSyncConnection, one: Planned) -> int:
        """Cancel the jobs before it; returns how many. One that somebody has locked is cancelled the next time."""
        name = one.firing.name
        [replaced] = connection.run(fire.make_room(one.replaces, schedule=name, keep=self._keep))
        if replaced:
            log.info("schedule %s: its next job replaces %s", name, ", ".join(one.replaces))
        return replaced


def decide(schedule: DueScheduleRow, now: datetime) -> Planned | None:
    """What to do about a schedule that was seen, if anything; an error says that what it says makes no sense."""
    due = _due(schedule)
    planned, booting = plan(due, now), None
    if schedule.boots:
        planned, booting = _boot(due, planned, now)
    elif not planned.changes(due):
        return None
    jitter = float(schedule.jitter)
    fired = [
        ScheduleSlot(slot, new_id(), "boot" if slot == booting else None, timedelta(seconds=random.uniform(0, jitter)))
        for slot in planned.fire
    ]
    return Planned(
        PlannedFiring(
            name=schedule.name,
            version=schedule.version,
            next_at=planned.next_at,
            last_at=planned.last_at,
            held=planned.held,
            boots=schedule.boots,
            slots=[*fired, *(ScheduleSlot(passed.slot, None, passed.reason) for passed in planned.passed)],
        ),
        schedule.live if planned.cancel else (),
    )


def _due(schedule: DueScheduleRow) -> DueSchedule:
    every = None if schedule.every is None else timedelta(seconds=float(schedule.every))
    return DueSchedule(
        rule=read_rule(schedule.cron, schedule.tz, every),
        catch_up=schedule.catch_up,
        overlap=cast(Overlap, schedule.overlap),
        next_at=datetime.fromisoformat(schedule.next_at),
        last_at=_moment(schedule.last_at),
        held=_moment(schedule.held),
        live=len(schedule.live),
        paused_at=_moment(schedule.paused_at),
        paused_until=_moment(schedule.paused_until),
    )


def _boot(due: DueSchedule, planned: FiringPlan, now: datetime) -> tuple[FiringPlan, datetime | None]:
    """The same plan with a run at boot in it, as if now were a slot, and whether it is fired at once.

    A slot that is fired or held in the same moment serves for it, unless jobs may overlap.
    """
    if due.overlap != "allow" and (planned.fire or planned.held):
        return replace(planned, passed=(*planned.passed, PassedSlot(now, "overlap"))), None
    only_now = plan(replace(due, rule=_SELDOM, next_at=now, held=None), now)
    both = replace(
        planned,
        fire=(*planned.fire, *only_now.fire),
        passed=(*planned.passed, *only_now.passed),
        held=only_now.held or planned.held,
        cancel=only_now.cancel,
    )
    return both, now if only_now.fire else None


# A rule of which no second slot comes into sight.
_SELDOM = Every(timedelta(days=3650))


def _no_more_than(slots: int, planned: Iterable[Planned]) -> list[Planned]:
    """The first of these, with so many slots together; one at least."""
    batch: list[Planned] = []
    for one in planned:
        slots -= len(one.firing.slots)
        if batch and slots < 0:
            break
        batch.append(one)
    return batch


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
