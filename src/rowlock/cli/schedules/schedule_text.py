"""Text about schedules: their rules, slots and states."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from rowlock.cli.shared import text
from rowlock.errors import InvalidOption
from rowlock.model.formatting import typed_span
from rowlock.model.schedule import rule_words
from rowlock.model.schedule.cron import find_zone
from rowlock.model.schedule.rule import Every
from rowlock.model.schedule.schedule import Schedule

_SOON = timedelta(days=6)

OVERLAP = {
    "allow": "allow (a slot makes its job, whatever became of the last one)",
    "skip": "skip (a slot is passed over while the last job lives)",
    "queue": "queue (one slot waits for the end of the last job)",
    "replace": "replace (a slot cancels the last job, and takes its place)",
}


def rule(schedule: Schedule) -> str:
    """The rule as it is written."""
    return f"every {typed_span(schedule.every)}" if schedule.every is not None else schedule.cron or ""


def zone(schedule: Schedule) -> str:
    """The time zone of its rule; an interval has none."""
    return "" if schedule.every is not None else schedule.tz or "UTC"


def rule_in_words(schedule: Schedule) -> str:
    """What the rule means, or why this machine cannot read it."""
    try:
        understood = schedule.rule
    except InvalidOption as error:
        return f"this machine cannot read it: {str(error).splitlines()[0]}"
    meaning = rule_words.rule_in_words(understood)
    return f"{meaning}, counted from its first slot" if isinstance(understood, Every) else meaning


def catch_up(number: int) -> str:
    """What happens to slots that were missed."""
    if number == 0:
        return "none (slots that were missed are passed over)"
    if number == 1:
        return "last (of slots that were missed, the newest is made up for)"
    return f"{number} (of slots that were missed, the newest {number} are made up for)"


def clock(slot: datetime, schedule: Schedule, now: datetime) -> str:
    """A slot on the clocks of its zone: `Mon 09:00`; with the date unless it is a matter of days."""
    try:
        local = slot.astimezone(find_zone(schedule.tz))
    except InvalidOption:
        local = slot.astimezone(UTC)
    time = f"{local:%H:%M:%S}" if local.second else f"{local:%H:%M}"
    return f"{local:%a} {time}" if abs(slot - now) < _SOON else f"{local:%a %Y-%m-%d} {time}"


def when(slot: datetime | None, schedule: Schedule, now: datetime) -> str:
    """A slot in full: its instant, how far off it is, and what the clocks of its zone show then."""
    if slot is None:
        return ""
    return f"{text.instant(slot)} ({text.age(slot, now)}, {clock(slot, schedule, now)})"


def state(schedule: Schedule, now: datetime) -> str:
    """Its state: active or paused, orphan, edited, or with a slot that waits."""
    parts = [f"paused {pause_end(schedule, now)}" if schedule.is_paused else "active"]
    if schedule.is_orphan:
        parts.append("orphan")
    if schedule.is_edited:
        parts.append("edited")
    if schedule.held is not None:
        parts.append("a slot waits for the last job")
    return ", ".join(parts)


def pause_end(schedule: Schedule, now: datetime) -> str:
    """When its pause ends."""
    if schedule.paused_until is None:
        return "until it is resumed"
    return f"until {text.instant(schedule.paused_until)} ({text.age(schedule.paused_until, now)})"
