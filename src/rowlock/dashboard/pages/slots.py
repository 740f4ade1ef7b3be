"""Slots of a rule as pages show them: the instant, and what clocks show then where the rule is at home."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from rowlock.errors import InvalidOption
from rowlock.model.schedule.cron import find_zone
from rowlock.model.schedule.rule import Rule
from rowlock.model.schedule.rule_words import rule_in_words

FORESEEN: Final = 5


@dataclass(frozen=True, slots=True)
class Slot:
    """An instant, and the same in the time zone of its rule."""

    at: datetime
    local: datetime


@dataclass(frozen=True, slots=True)
class Foreseen:
    """A rule in words and its next slots; or why it has none."""

    words: str
    slots: tuple[Slot, ...] = ()
    fault: str | None = None


def foresee(rule: Rule, now: datetime, *, anchor: datetime | None = None) -> Foreseen:
    """What a rule says, and the slots that it has after now."""
    words, slots = rule_in_words(rule), list[datetime]()
    try:
        while len(slots) < FORESEEN:
            slots.append(rule.after(slots[-1] if slots else now, anchor or (slots[0] if slots else None)))
    except InvalidOption as error:
        return Foreseen(words, fault=str(error))
    return Foreseen(words, tuple(slot_of(slot, getattr(rule, "tz", None)) for slot in slots))


def slot_of(at: datetime, tz: str | None) -> Slot:
    """An instant, on the clocks of that zone too; where this machine does not know it, on UTC's."""
    try:
        return Slot(at, at.astimezone(find_zone(tz)))
    except InvalidOption:
        return Slot(at, at)
