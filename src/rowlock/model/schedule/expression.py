"""Cron expression: what its fields allow, or where it is wrong and why.

cronsim decides what an expression means. An expression that it refuses is tried again term by term, so that the message
can point at the place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from difflib import get_close_matches
from functools import lru_cache
from itertools import pairwise
from typing import Final, NoReturn

from cronsim import CronSim, CronSimError

from rowlock.errors import InvalidOption
from rowlock.model.names import shown

MAX_EXPRESSION: Final = 200
ALIASES: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}

_MONTHS: Final = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)
# All fourteen calendars that a year can have come once in these 28 years, so what has no day here never has one.
_CYCLE: Final = (date(2001, 1, 1), date(2029, 1, 1))


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    least: int
    most: int
    names: tuple[str, ...] = ()

    @property
    def allowed(self) -> str:
        named = f" or {self.names[0]} to {self.names[-1]}" if self.names else ""
        return f"{self.least} to {self.most}{named}"

    def number(self, text: str) -> int | None:
        """The number of one value of the field; None if it is not valid."""
        if text in self.names:
            return self.names.index(text) + self.least
        return int(text) if text.isdecimal() and self.least <= int(text) <= self.most else None


_FIELDS: Final = (
    _Field("second", 0, 59),
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of week", 0, 7, _DAYS),
)


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed expression: times of day in order, months, and a predicate for dates."""

    hours: tuple[int, ...]
    minutes: tuple[int, ...]
    seconds: tuple[int, ...]
    months: frozenset[int]
    match_day: Callable[[date], bool]
    is_fixed: bool
    """Runs at set times of the local day, not every so often: once a day then, whatever the clock does (Debian)."""

    def days(self, start: date, end: date) -> Iterator[date]:
        """The dates that match from `start` up to `end`, which is not among them, or from `start` down to it."""
        step = timedelta(days=1 if start <= end else -1)
        day = start
        while (day < end) if step.days > 0 else (day > end):
            if day.month not in self.months:
                day = _past_month(day, step)
                continue
            if self.match_day(day):
                yield day
            day += step


def _past_month(day: date, step: timedelta) -> date:
    first = day.replace(day=1)
    return first + step if step.days < 0 else (first + timedelta(days=32)).replace(day=1)


def check_expression(text: object) -> str:
    """A cron expression, one space between its fields; InvalidOption, with the place of the fault, if it is none."""
    if not isinstance(text, str):
        raise InvalidOption(f"cron {shown(text)} must be a str, not {type(text).__name__}")
    if len(text) > MAX_EXPRESSION:
        raise InvalidOption(f"cron {shown(text)} has {len(text):,} characters, and {MAX_EXPRESSION} are allowed")
    for character in text:
        if not (character.isascii() and character.isprintable()):
            raise InvalidOption(f"cron {shown(text)} contains {character!a}; use letters, digits, spaces and *,-/#@")
    tidy = " ".join(text.split())
    read_expression(tidy)
    return tidy


@lru_cache(maxsize=4096)
def read_expression(text: str) -> Expression:
    """A tidy expression, parsed; InvalidOption, with the place of the fault, if it is none."""
    plain = _without_alias(text)
    fields = plain.split()
    if len(fields) not in (5, 6):
        _refuse_count(text, fields)
    try:
        cron = CronSim(plain, _EPOCH)
    except CronSimError:
        _refuse(text, fields)
    minute, hour = fields[-5:-3]
    expression = Expression(
        hours=tuple(sorted(cron.hours)),
        minutes=tuple(sorted(cron.minutes)),
        seconds=tuple(sorted(cron.seconds)),
        months=frozenset(cron.months),
        match_day=cron.match_day,
        is_fixed=len(fields) == 5 and not minute.startswith("*") and not hour.startswith("*"),
    )
    if next(expression.days(*_CYCLE), None) is None:
        _refuse_days(text, fields)
    return expression


def _without_alias(text: str) -> str:
    if not text.startswith("@"):
        return text
    if text.lower() == "@reboot":
        raise InvalidOption("cron '@reboot' names no time; give at_boot=True to a schedule that has one")
    if text.lower() not in ALIASES:
        close = get_close_matches(text.lower(), ALIASES, n=1)
        meant = f"did you mean {close[0]}?" if close else f"use {', '.join(ALIASES)} or five fields"
        raise _wrong(text, (0, len(text)), f"{shown(text)} is not an alias; {meant}")
    return ALIASES[text.lower()]


# Where it is wrong, and why


def _refuse_count(text: str, fields: list[str]) -> NoReturn:
    names = " ".join(field.name.replace(" ", "-") for field in _FIELDS[1:])
    count = "1 field" if len(fields) == 1 else f"{len(fields)} fields"
    where = (0, 0) if not fields else (len(text) + 1, len(text) + 2)
    if len(fields) > 6:
        where = (_spans(fields)[6][0], len(text))
    raise _wrong(text, where, f"{count}, and there must be 5 ({names}), or 6 with the second first")


def _refuse(text: str, fields: list[str]) -> NoReturn:
    kinds = _FIELDS[-len(fields) :]
    for place, (kind, field, (start, _)) in enumerate(zip(kinds, fields, _spans(fields), strict=True)):
        at = start
        for term in field.split(","):
            others = ["*"] * len(fields)
            others[place] = term or ","
            if not _is_read(" ".join(others)):
                why = _why(kind, term.upper())
                raise _wrong(text, (at, at + len(term)), f"{kind.name} (field {place + 1}) {shown(term)} {why}")
            at += len(term) + 1
    _refuse_days(text, fields)


def _refuse_days(text: str, fields: list[str]) -> NoReturn:
    """Each field is right, and there is no such day."""
    day, month, weekday = fields[-3:]
    beside = [f"month {shown(month)}"] * (month != "*") + [f"day of week {shown(weekday)}"] * (weekday != "*")
    why = f"day of month (field {len(fields) - 2}) {shown(day)} never comes in {' and '.join(beside)}"
    raise _wrong(text, _spans(fields)[-3], why)


def _is_read(text: str) -> bool:
    try:
        CronSim(text, _EPOCH)
    except CronSimError:
        return False
    return True


def _why(field: _Field, term: str) -> str:
    if not term:
        return "is empty; remove a comma or put a value there"
    if term == "?":
        return "is not known here; write *"
    value, slash, step = term.partition("/")
    if slash and (not step.isdecimal() or not int(step)):
        return f"has the step {shown(step)}; use a number from 1 on"
    if "#" in value and field is _FIELDS[-1]:
        return (
            _why_value(field, value.partition("#")[0]) or "must end with #1 to #5, the first to the fifth of the month"
        )
    first, dash, last = value.partition("-")
    if dash and (start := field.number(first)) is not None and (end := field.number(last)) is not None and end < start:
        top = 6 if field is _FIELDS[-1] else field.most
        return f"runs backwards; write {first}-{top},{field.least}-{last}"
    return _why_value(field, first) or _why_value(field, last if dash else first) or "is not understood"


def _why_value(field: _Field, value: str) -> str | None:
    if field.number(value) is not None or value == "*":
        return None
    if value.isdecimal():
        return f"is out of {field.allowed}"
    if not value:
        return f"lacks a value; use {field.allowed}"
    close = get_close_matches(value, field.names, n=1, cutoff=0.5)
    return f"has {shown(value)}; {f'did you mean {close[0]}?' if close else f'use {field.allowed}'}"


def _spans(fields: list[str]) -> list[tuple[int, int]]:
    """Where each field begins and ends in the tidy expression."""
    starts = [0]
    for field in fields:
        starts.append(starts[-1] + len(field) + 1)
    return [(start, following - 1) for start, following in pairwise(starts)]


def _wrong(text: str, where: tuple[int, int], why: str) -> InvalidOption:
    start, end = where
    return InvalidOption(f"cron {text!r}: {why}\n    {text}\n    {' ' * start}{'^' * max(end - start, 1)}")
