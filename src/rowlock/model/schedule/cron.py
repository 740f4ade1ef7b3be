"""Cron: an expression in a time zone, and its slots, forwards and backwards.

What an expression means is cronsim's, that is Debian's: one with set times (`30 1 * * *`) has each of them once in
every local day, moved to the end of the gap where the clock jumps over it; one with a `*` in minutes or hours, or with
seconds, follows the clock on the wall as it runs. The walk is ours. cronsim's loses slots where clocks change by half
an hour or off the hour (Australia/Lord_Howe, Pacific/Chatham: 14 of the 984 cases of tests/model/test_cron.py), and
backwards it finds others than forwards, or never comes to an end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from difflib import get_close_matches
from functools import lru_cache
from typing import Final, NamedTuple, Self
from zoneinfo import ZoneInfo, available_timezones

from rowlock.errors import InvalidOption
from rowlock.model.names import shown
from rowlock.model.schedule.expression import Expression, check_expression, read_expression

HORIZON: Final = timedelta(days=50 * 366)
MAX_ZONE: Final = 100

_DAY: Final = timedelta(days=1)
_SECOND: Final = timedelta(seconds=1)
_TICK: Final = timedelta(microseconds=1)
_NO_TIME: Final = timedelta(0)
# As far as instants go that an offset, and a day, do not lead out of.
_NEAR: Final = datetime(1, 1, 6, tzinfo=UTC)
_FAR: Final = datetime(9999, 12, 26, tzinfo=UTC)
_LAST: Final = date(9999, 12, 28)
# Files beside the zones: with leap seconds, or whatever this machine is set to.
_NO_ZONES: Final = frozenset({"posix", "right", "posixrules", "localtime", "Factory"})


@dataclass(frozen=True, slots=True)
class Cron:
    """A cron expression in a time zone; without one, UTC. Its slots do not depend on the anchor that intervals have."""

    expression: str
    tz: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "expression", check_expression(self.expression))
        find_zone(self.tz)

    def __str__(self) -> str:
        return self.expression if self.tz is None else f"{self.expression} {self.tz}"

    def after(self, moment: datetime, anchor: datetime | None = None) -> datetime:  # noqa: ARG002  as in Every
        """The first slot after a moment, in UTC; InvalidOption if there is none in fifty years."""
        zone = find_zone(self.tz)
        window = _Window.of(moment, _FAR, zone)
        start = window.first.date()
        for day in self._expression.days(start, min(start, _LAST - HORIZON) + HORIZON):
            for slot in _slots(self._expression, day, zone, window):
                return slot
        raise InvalidOption(f"cron {str(self)!r} has no slot in the fifty years after {moment:%Y-%m-%d}")

    def latest(
        self,
        after: datetime,
        upto: datetime,
        limit: int,
        anchor: datetime | None = None,  # noqa: ARG002  as in Every
    ) -> list[datetime]:
        """The newest slots after one moment and up to another, no more than so many, the oldest of them first."""
        if limit < 1 or after >= upto:
            return []
        zone = find_zone(self.tz)
        window = _Window.of(after, upto, zone)
        found: list[datetime] = []
        for day in self._expression.days(window.last.date(), window.first.date() - _DAY):
            for slot in _slots(self._expression, day, zone, window, newest_first=True):
                if found[-1:] != [slot]:  # a gap of the clock makes one slot of all the times in it
                    found.append(slot)
                if len(found) == limit:
                    return found[::-1]
        return found[::-1]

    @property
    def _expression(self) -> Expression:
        return read_expression(self.expression)


# Without time zones inside: a naive instant is UTC's here, a naive clock is what the zone's clocks show


class _Window(NamedTuple):
    """What lies after one instant and not after another, and the clocks that are shown then, if not only then."""

    low: datetime
    high: datetime
    first: datetime
    last: datetime

    @classmethod
    def of(cls, low: datetime, high: datetime, zone: tzinfo) -> Self:
        low, high = _instant(low), _instant(high)
        # By either offset near a change: a clock that is turned back shows less than before.
        return cls(low, high, low + min(_offsets(low, zone)), high + max(_offsets(high, zone)))


def _slots(
    expression: Expression, day: date, zone: tzinfo, window: _Window, *, newest_first: bool = False
) -> Iterator[datetime]:
    """The slots of a local day that lie in the window, in order, or in reverse."""
    find = _set_times if expression.is_fixed else _wall_times
    for slot in find(expression, datetime.combine(day, time()), zone, window, newest_first=newest_first):
        if window.low < slot <= window.high:
            yield slot.replace(tzinfo=UTC)


def _set_times(
    expression: Expression, midnight: datetime, zone: tzinfo, window: _Window, *, newest_first: bool
) -> Iterator[datetime]:
    """Each time of the day once: the first where the clock shows it twice, the end of the gap that leaves it out."""
    for clock in _clocks(expression, midnight, window.first, window.last, newest_first=newest_first):
        before, after = _readings(clock, zone)
        yield clock - before if before >= after else _change(clock - after, clock - before, zone)


def _wall_times(
    expression: Expression, midnight: datetime, zone: tzinfo, window: _Window, *, newest_first: bool
) -> Iterator[datetime]:
    """Every moment at which the clock shows a time that matches: none in a gap, two where it is turned back."""
    pieces = _pieces(midnight, zone)
    for start, end, offset in reversed(pieces) if newest_first else pieces:
        first, last = max(start, window.low + offset), min(end - _TICK, window.high + offset)
        for clock in _clocks(expression, midnight, first, last, newest_first=newest_first):
            yield clock - offset


def _clocks(
    expression: Expression, midnight: datetime, first: datetime, last: datetime, *, newest_first: bool
) -> Iterator[datetime]:
    """The times of the day that match, of those from `first` to `last`."""
    least, most = (first - midnight) // _SECOND, (last - midnight) // _SECOND
    turn: Callable[[tuple[int, ...]], Iterator[int]] = reversed if newest_first else iter
    for hour in turn(expression.hours):
        if not least - 3600 < hour * 3600 <= most:
            continue
        for minute in turn(expression.minutes):
            start = hour * 3600 + minute * 60
            if not least - 60 < start <= most:
                continue
            for second in turn(expression.seconds):
                if least <= start + second <= most:
                    yield midnight + timedelta(seconds=start + second)


def _pieces(midnight: datetime, zone: tzinfo) -> list[tuple[datetime, datetime, timedelta]]:
    """The stretches of a local day between which the clock is changed: from and to as it shows them, and its offset.

    Zones change at most once in two days (all of them, 1990 to 2040: not twice in five). What a clock shows of a day
    after it has shown the next comes out of order; none has done so since St. John's in 2011, from 00:01 to 23:01.
    """
    following = midnight + _DAY
    offsets = {*_readings(midnight, zone), *_readings(following, zone)}
    if len(offsets) == 1:
        return [(midnight, following, offsets.pop())]
    low, high = midnight - max(offsets), following - min(offsets)
    changed = _change(low, high, zone)
    stretches = ((low, changed, _offset(low, zone)), (changed, high, _offset(high, zone)))
    pieces = [(max(start + offset, midnight), min(end + offset, following), offset) for start, end, offset in stretches]
    return [(start, end, offset) for start, end, offset in pieces if start < end]


def _change(low: datetime, high: datetime, zone: tzinfo) -> datetime:
    """The instant after `low`, and not after `high`, from which on the zone has another offset than at `low`."""
    before = _offset(low, zone)
    while high - low > _SECOND:
        middle = low + (high - low) // _SECOND // 2 * _SECOND
        low, high = (middle, high) if _offset(middle, zone) == before else (low, middle)
    return high


def _offset(instant: datetime, zone: tzinfo) -> timedelta:
    return instant.replace(tzinfo=UTC).astimezone(zone).utcoffset() or _NO_TIME


def _offsets(instant: datetime, zone: tzinfo) -> tuple[timedelta, timedelta]:
    """What a clock of the zone may be read as at an instant: two offsets if it shows, or soon will, this time twice."""
    return _readings(instant + _offset(instant, zone), zone)


def _readings(clock: datetime, zone: tzinfo) -> tuple[timedelta, timedelta]:
    """The offsets by which a clock may show this: the same twice, but before and after a change if it is near one.

    The first is the smaller where the clock jumped over this time, and the greater where it shows it twice (PEP 495).
    """
    return zone.utcoffset(clock) or _NO_TIME, zone.utcoffset(clock.replace(fold=1)) or _NO_TIME


def _instant(moment: datetime) -> datetime:
    return min(max(moment, _NEAR), _FAR).astimezone(UTC).replace(tzinfo=None)


@lru_cache(maxsize=1024)
def find_zone(name: str | None) -> tzinfo:
    """The time zone of an IANA name, UTC for None; InvalidOption if this machine knows of none."""
    if name is None or name == "UTC":  # of this one there is no need to know anything
        return UTC
    if not isinstance(name, str):
        raise InvalidOption(f"tz={shown(name)} must be the name of a time zone, such as 'Europe/Paris'")
    with suppress(ValueError, OSError, KeyError):  # a path, no zone at all, an odd file
        if name.split("/")[0] not in _NO_ZONES and len(name) <= MAX_ZONE:
            return ZoneInfo(name)
    known = available_timezones() - _NO_ZONES
    if not known:
        raise InvalidOption(f"tz={shown(name)}: this machine has no time zone data; run: pip install tzdata")
    close = get_close_matches(name[:MAX_ZONE].lower(), {zone.lower() for zone in known}, n=1)
    meant = [zone for zone in known if close == [zone.lower()]]
    hint = f"did you mean {min(meant)!r}?" if meant else "use an IANA name, such as 'Europe/Paris'"
    raise InvalidOption(f"tz={shown(name)} is not a time zone that this machine knows; {hint}")
