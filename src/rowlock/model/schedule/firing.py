"""Firing: the plan for a schedule's due slots, from its state and the time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal, NamedTuple, assert_never

from rowlock.model.schedule.rule import Overlap, Rule

LATE: Final = timedelta(minutes=1)
"""A slot that is later than this was missed: nobody fired it when its time came."""

MOST_TOLD: Final = 100
"""The most skipped slots that a plan lists: the newest."""

_TICK: Final = timedelta(microseconds=1)

Reason = Literal["missed", "overlap", "paused", "replaced"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DueSchedule:
    """A schedule as it was read: its rule and policies, its next and last slot, and how many of its jobs are live."""

    rule: Rule
    catch_up: int
    overlap: Overlap
    next_at: datetime
    last_at: datetime | None = None
    held: datetime | None = None
    live: int = 0
    paused_at: datetime | None = None
    paused_until: datetime | None = None

    def is_paused(self, now: datetime) -> bool:
        """Whether it makes no jobs now."""
        return self.paused_at is not None and (self.paused_until is None or now < self.paused_until)


@dataclass(frozen=True, slots=True)
class PassedSlot:
    """A slot that makes no job, and why."""

    slot: datetime
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class FiringPlan:
    """The slots to fire and to pass over, oldest first, and where the schedule stands then.

    `cancel` says that its live jobs are to make room: the slot that replaces them is held until they have ended.
    """

    fire: tuple[datetime, ...] = ()
    passed: tuple[PassedSlot, ...] = ()
    next_at: datetime
    last_at: datetime | None
    held: datetime | None
    cancel: bool = False

    def changes(self, due: DueSchedule) -> bool:
        """Whether there is anything to do or to write down."""
        stands = (self.next_at, self.last_at, self.held) != (due.next_at, due.last_at, due.held)
        return bool(self.fire or self.passed or self.cancel or stands)


def plan(due: DueSchedule, now: datetime) -> FiringPlan:
    """What to do now. Only slots from `next_at` on count, so a clock that goes back repeats none.

    InvalidOption if the rule has no slot any more, which a change of its time zone may do to it.
    """
    slots = _come(due, now)
    last_at = max(filter(None, (due.last_at, *slots[-1:])), default=None)
    next_at = due.rule.after(now, due.next_at) if due.next_at <= now else due.next_at
    if due.is_paused(now):
        return FiringPlan(passed=_passed_slots(slots, "paused"), next_at=next_at, last_at=last_at, held=due.held)
    resumed = due.paused_until if due.paused_at is not None else None
    paused = [slot for slot in slots if resumed is not None and slot < resumed]
    awake = slots[len(paused) :]
    wanted = _slots_to_catch_up(awake, due.catch_up, now)
    missed = awake[: len(awake) - len(wanted)]
    decided = _decide(due, wanted)
    return FiringPlan(
        fire=decided.fire,
        passed=(*_passed_slots(paused, "paused"), *_passed_slots(missed, "missed"), *decided.passed)[-MOST_TOLD:],
        next_at=next_at,
        last_at=last_at,
        held=decided.held,
        cancel=decided.cancel,
    )


def _come(due: DueSchedule, now: datetime) -> list[datetime]:
    """The slots that have come, the newest of them if they are many."""
    if now < due.next_at:
        return []
    return due.rule.latest(due.next_at - _TICK, now, max(due.catch_up, 1) + MOST_TOLD, due.next_at)


def _slots_to_catch_up(slots: Sequence[datetime], catch_up: int, now: datetime) -> Sequence[datetime]:
    """The slots that catch-up keeps: the newest `catch_up` ones, and the newest in any case if it is not late."""
    on_time = bool(slots) and now - slots[-1] <= LATE
    return slots[max(len(slots) - max(catch_up, int(on_time)), 0) :]


class _Decision(NamedTuple):
    fire: tuple[datetime, ...] = ()
    passed: tuple[PassedSlot, ...] = ()
    held: datetime | None = None
    cancel: bool = False


def _decide(due: DueSchedule, wanted: Sequence[datetime]) -> _Decision:
    """Apply the overlap policy to the slots to fire and to the one that was held."""
    slots = wanted if due.held is None else (due.held, *wanted)
    if not slots:
        return _Decision()
    match due.overlap:
        case "allow":
            return _Decision(fire=tuple(slots))
        case "skip":
            return _newest(slots, "overlap", is_free=not due.live)
        case "queue":
            return _queue(due, wanted)
        case "replace" if due.live:
            return _Decision(passed=_passed_slots(slots[:-1], "replaced"), held=slots[-1], cancel=True)
        case "replace":
            return _newest(slots, "replaced", is_free=True)
        case _:
            assert_never(due.overlap)


def _newest(slots: Sequence[datetime], reason: Reason, *, is_free: bool) -> _Decision:
    """Fire the newest, if the way is free, and none of the others."""
    if not is_free:
        return _Decision(passed=_passed_slots(slots, reason))
    return _Decision(fire=(slots[-1],), passed=_passed_slots(slots[:-1], reason))


def _queue(due: DueSchedule, wanted: Sequence[datetime]) -> _Decision:
    """One is held at most. It gives way to none that comes later, and when it is fired the next may be held."""
    if due.held is not None and due.live:
        return _Decision(passed=_passed_slots(wanted, "overlap"), held=due.held)
    older, newest = _passed_slots(wanted[:-1], "overlap"), wanted[-1] if wanted else None
    if due.held is not None:
        return _Decision(fire=(due.held,), passed=older, held=newest)
    return _Decision(passed=older, held=newest) if due.live else _Decision(fire=tuple(wanted[-1:]), passed=older)


def _passed_slots(slots: Sequence[datetime], reason: Reason) -> tuple[PassedSlot, ...]:
    return tuple(PassedSlot(slot, reason) for slot in slots[-MOST_TOLD:])
