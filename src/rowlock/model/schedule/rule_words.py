"""Rules in words: `every weekday at 03:00, Europe/Paris`.

Where words would be long, or would not be the whole truth, the expression stands for itself: `*/7 * * * *` is not
"every 7 minutes", because the last step of an hour is one of 4.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from cronsim import CronSim

from rowlock.model.schedule.expression import ALIASES
from rowlock.model.schedule.rule import Every, Rule

# Up to so many times of a day are listed; in a longer list nobody recognises the pattern.
_MOST_TIMES: Final = 6
_MOST_NAMED: Final = 5
_RUN: Final = 3
_EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
_SHORTEST: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_DAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_NTH: Final = {1: "first", 2: "second", 3: "third", 4: "fourth", 5: "fifth", CronSim.LAST: "last"}
_UNITS: Final = (
    ("day", timedelta(days=1)),
    ("hour", timedelta(hours=1)),
    ("minute", timedelta(minutes=1)),
    ("second", timedelta(seconds=1)),
)


def rule_in_words(rule: Rule) -> str:
    """A rule in words, if they can express all of it; else its expression."""
    if isinstance(rule, Every):
        return _interval(rule.interval)
    return f"{_expression(rule.expression) or rule.expression}, {rule.tz or 'UTC'}"


def _interval(interval: timedelta) -> str:
    unit, length = next((unit, length) for unit, length in _UNITS if not interval % length)
    return _each(interval // length, unit)


def _each(count: int, unit: str) -> str:
    return f"every {unit}" if count == 1 else f"every {count:,} {unit}s"


def _expression(text: str) -> str | None:
    cron = CronSim(ALIASES.get(text.lower(), text), _EPOCH)
    days = _days(cron)
    if days is None:
        return None
    listed = _listed(cron)
    if listed is not None:
        return f"{days or 'every day'} at {listed}"
    repeated = _by_seconds(cron) if len(cron.seconds) > 1 else _by_minutes(cron)
    return repeated if repeated is None or not days else f"{repeated}, {days}"


# Times of the day


def _listed(cron: CronSim) -> str | None:
    """Each time by itself, if they are few."""
    if len(cron.hours) * len(cron.minutes) * len(cron.seconds) > _MOST_TIMES:
        return None
    times = [(hour, minute, second) for hour in cron.hours for minute in cron.minutes for second in cron.seconds]
    whole = cron.seconds == {0}
    return _joined([f"{h:02}:{m:02}" if whole else f"{h:02}:{m:02}:{s:02}" for h, m, s in sorted(times)])


def _by_seconds(cron: CronSim) -> str | None:
    step = _step(cron.seconds, 60)
    return _each(step, "second") if step and len(cron.minutes) == 60 and len(cron.hours) == 24 else None


def _by_minutes(cron: CronSim) -> str | None:
    hours, minutes = sorted(cron.hours), sorted(cron.minutes)
    if cron.seconds != {0}:
        return None
    if len(hours) == 24:
        return _all_day(minutes)
    step = _step(minutes, 60)
    if step and _is_run(hours):
        return f"{_each(step, 'minute')} from {hours[0]:02}:00 to {hours[-1]:02}:{minutes[-1]:02}"
    if len(minutes) > 1:
        return None
    if _is_run(hours):
        return f"every hour from {hours[0]:02}:{minutes[0]:02} to {hours[-1]:02}:{minutes[0]:02}"
    apart = _step([hour - hours[0] for hour in hours], 24)
    return f"{_each(apart, 'hour')} from {hours[0]:02}:{minutes[0]:02}" if apart else None


def _all_day(minutes: Sequence[int]) -> str | None:
    step = _step(minutes, 60)
    if step:
        return _each(step, "minute")
    if minutes == [0]:
        return "every hour, on the hour"
    if len(minutes) <= _MOST_NAMED:
        return f"every hour at {_joined([f':{minute:02}' for minute in minutes])}"
    if _is_run(minutes):
        return f"every minute from :{minutes[0]:02} to :{minutes[-1]:02} of every hour"
    return None


# Days


def _days(cron: CronSim) -> str | None:
    """On which days; "" is on all of them, and None that words would not do."""
    every_date, every_weekday = len(cron.days) == 31, {_plain(day) for day in cron.weekdays} >= set(range(7))
    months = "" if len(cron.months) == 12 else f"in {_months(cron.months)}"
    if (every_date and every_weekday) or (not cron.day_and and (every_date or every_weekday)):
        return f"every day {months}" if months else ""
    dates = None if every_date else _dates(cron)
    weekdays = None if every_weekday else _weekdays(cron.weekdays)
    if not every_date and not every_weekday:
        if cron.day_and or dates is None or weekdays is None or months:
            return None
        return f"{dates} and {weekdays}"
    if every_date:
        return f"{weekdays} {months}".rstrip() if weekdays else None
    return dates


def _dates(cron: CronSim) -> str | None:
    """On which days of which months."""
    dates, months = sorted(day for day in cron.days if day > 0), sorted(cron.months)
    if len(dates) == len(cron.days) == 1 and len(months) == 1:
        date, month = dates[0], months[0]
        return f"every {'leap ' if (date, month) == (29, 2) else ''}year on {date} {_MONTHS[month - 1]}"
    named = [_nth(date) for date in dates]
    if len(dates) >= _RUN and _is_run(dates):
        named = [f"{named[0]} to {named[-1]}"]
    named += [word for day, word in _LAST.items() if day in cron.days]
    if len(named) > _MOST_NAMED:
        return None
    short = bool(dates) and dates[-1] > min(_SHORTEST[month - 1] for month in months)
    of = "the month" if len(months) == 12 else _months(months)
    return f"on the {_joined(named)} of {of}" + (" (where there is one)" if short else "")


_LAST: Final = {CronSim.LAST: "last day", CronSim.LAST_WEEKDAY: "last weekday"}


def _weekdays(weekdays: Iterable[int | tuple[int, int]]) -> str | None:
    plain = {_plain(day) for day in weekdays if isinstance(day, int)}
    nth = sorted((day for day in weekdays if isinstance(day, tuple)), key=lambda day: (day[1] < 0, day[1], day[0]))
    if plain and nth:
        return None
    if nth:
        return f"on the {_joined([f'{_NTH[place]} {_DAYS[day % 7]}' for day, place in nth])} of the month"
    if plain == {1, 2, 3, 4, 5}:
        return "every weekday"
    if plain == {0, 6}:
        return "every Saturday and Sunday"
    ordered = sorted(day or 7 for day in plain)
    if len(ordered) >= _RUN and _is_run(ordered):
        return f"{_DAYS[ordered[0]]} to {_DAYS[ordered[-1] % 7]}"
    return f"every {_joined([_DAYS[day % 7] for day in ordered])}"


def _plain(day: int | tuple[int, int]) -> int | None:
    return day % 7 if isinstance(day, int) else None


def _months(months: Collection[int]) -> str:
    ordered = sorted(months)
    if len(ordered) >= _RUN and _is_run(ordered):
        return f"{_MONTHS[ordered[0] - 1]} to {_MONTHS[ordered[-1] - 1]}"
    return _joined([_MONTHS[month - 1] for month in ordered])


# Shared by all of them


def _step(numbers: Iterable[int], whole: int) -> int | None:
    """How far these are apart, if they go round from 0 on in even steps."""
    ordered = sorted(numbers)
    step = whole // len(ordered)
    return step if step < whole and ordered == list(range(0, whole, step)) and not whole % step else None


def _is_run(ordered: Sequence[int]) -> bool:
    return len(ordered) > 1 and ordered[-1] - ordered[0] == len(ordered) - 1


def _joined(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _nth(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
