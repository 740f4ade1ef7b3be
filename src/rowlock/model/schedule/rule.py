"""Rule: a cron expression or an interval, with policies for overlapping and late slots."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

from rowlock.errors import InvalidOption
from rowlock.model.names import shown
from rowlock.model.schedule.cron import Cron

Overlap = Literal["allow", "skip", "queue", "replace"]
CatchUp = Literal["none", "last"] | int

LONGEST: Final = timedelta(days=3650)
MOST_CAUGHT_UP: Final = 1000

_SHORTEST: Final = timedelta(seconds=1)
# A new rule is tried from here on; the year matters little, as zones change in every year alike.
_TRIED_FROM: Final = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Every:
    """An interval: its slots are an anchor, and every so long before and after it."""

    interval: timedelta

    def __post_init__(self) -> None:
        interval: object = self.interval
        if not isinstance(interval, timedelta):
            raise InvalidOption(f"every {shown(interval)} must be a timedelta; write timedelta(minutes=…)")
        if not _SHORTEST <= interval <= LONGEST or interval.microseconds:
            raise InvalidOption(f"every {interval} must be whole seconds, from 1 second to {LONGEST.days:,} days")

    def __str__(self) -> str:
        return f"every {self.interval}"

    def after(self, moment: datetime, anchor: datetime | None = None) -> datetime:
        """The first slot after a moment, in UTC; without an anchor, an interval after that moment's second."""
        start = moment.replace(microsecond=0) if anchor is None else anchor
        return (start + ((moment - start) // self.interval + 1) * self.interval).astimezone(UTC)

    def latest(self, after: datetime, upto: datetime, limit: int, anchor: datetime) -> list[datetime]:
        """The newest slots after one moment and up to another, no more than so many, the oldest of them first."""
        last = (upto - anchor) // self.interval
        first = max((after - anchor) // self.interval, last - limit) + 1
        return [(anchor + count * self.interval).astimezone(UTC) for count in range(first, last + 1)]


Rule = Cron | Every


def check_rule(rule: str | timedelta, tz: str | None = None) -> Rule:
    """A cron expression, in a time zone or UTC, or an interval; InvalidOption with the place of the fault."""
    if isinstance(rule, timedelta):
        if tz is not None:
            raise InvalidOption(f"tz={shown(tz)} is for cron expressions; an interval is the same in every zone")
        return Every(rule)
    if not isinstance(rule, str):
        raise InvalidOption(f"rule {shown(rule)} must be a cron expression, or a timedelta, not {_kind(rule)}")
    cron = Cron(rule, tz)
    cron.after(_TRIED_FROM)
    return cron


def _kind(value: object) -> str:
    return type(value).__name__


def read_rule(cron: str | None, tz: str | None, every: timedelta | None) -> Rule:
    """The rule of a schedule as it is stored: one of cron and every."""
    if every is not None and cron is None:
        return check_rule(every, tz)
    if cron is not None and every is None:
        return Cron(cron, tz)
    raise InvalidOption("a rule is either a cron expression or an interval; give one of cron and every")


def check_catch_up(catch_up: CatchUp) -> int:
    """How many slots that were missed to make up for: 0 for "none", 1 for "last", or the number itself."""
    if catch_up in ("none", "last"):
        return int(catch_up == "last")
    if type(catch_up) is int and 0 <= catch_up <= MOST_CAUGHT_UP:
        return catch_up
    raise InvalidOption(f"catch_up={shown(catch_up)} must be 'none', 'last' or a number up to {MOST_CAUGHT_UP:,}")
