"""Formatting: durations, instants, counts and sizes as people read and type them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from rowlock.errors import InvalidOption

# Unit, its seconds, and from how many of them on the next unit says it better.
_UNITS = (("s", 1, 90), ("min", 60, 90), ("h", 3_600, 36))


def span(length: timedelta) -> str:
    """A length of time in the one unit that fits: `3 min`, `2 h`, `45 d`."""
    seconds = abs(length.total_seconds())
    if seconds < 1:
        return f"{seconds * 1000:.3g} ms"
    if seconds < 10:
        return f"{seconds:.1f} s"
    for unit, of_seconds, most in _UNITS:
        if seconds < of_seconds * most:
            return f"{seconds / of_seconds:.0f} {unit}"
    return f"{seconds / 86_400:,.0f} d"


def age(moment: datetime | None, now: datetime) -> str:
    """How far an instant lies from now: `3 min ago`, `in 2 h`."""
    if moment is None:
        return ""
    passed = now - moment
    if abs(passed) < timedelta(seconds=1):
        return "now"
    return f"{span(passed)} ago" if passed > timedelta(0) else f"in {span(passed)}"


def instant(moment: datetime | None) -> str:
    """An instant as ISO 8601 in UTC, to the second: the same for everybody who reads it."""
    return "" if moment is None else f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def count(number: int, noun: str, plural: str | None = None) -> str:
    """`1 job`, `1,234 jobs`, `2 crashes`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {plural or f'{noun}s'}"


def size(number: float) -> str:
    """Bytes in the unit that fits: `48 kB`, `1.2 GB`, in thousands as PostgreSQL's friends count them."""
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if number >= 10 or unit == "B" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} TB"


# Durations as they are typed: `90s`, `15min`, `1h30min`, `3d`

_UNITS_TYPED: Final = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "min": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
_PART: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)\s*(ms|min|[smhdw])\s*")
_SPAN: Final = re.compile(rf"(?:{_PART.pattern})+")


def is_span(typed: str) -> bool:
    """Whether this is a length of time, and nothing else."""
    return _SPAN.fullmatch(typed.strip().lower()) is not None


def read_span(typed: str) -> timedelta:
    """The length of time that was typed; InvalidOption if it is none."""
    if not is_span(typed):
        raise InvalidOption(f"{typed!r} is not a length of time; write 90s, 15min, 2h, 3d or 1w")
    try:
        parts = _PART.findall(typed.strip().lower())
        return sum((float(number) * _UNITS_TYPED[unit] for number, unit in parts), timedelta(0))
    except OverflowError:
        raise InvalidOption(f"{typed!r} is longer than time itself; write 90s, 15min, 2h, 3d or 1w") from None


def typed_span(length: timedelta) -> str:
    """A length of whole seconds as it is typed: `1h30min`."""
    seconds, parts = int(length.total_seconds()), list[str]()
    for unit, of_seconds in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        number, seconds = divmod(seconds, of_seconds)
        if number:
            parts.append(f"{number}{unit}")
    return "".join(parts) or "0s"


# Text that no data can break or repaint: a job may hold anything, and it is printed and logged

# Controls, the marks that turn, hide or break text, and halves of characters that no terminal can be sent.
_UNSAFE = "\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff\ufff9-\ufffb"
_IN_A_LINE = re.compile(f"[{_UNSAFE}]")
_IN_LINES = re.compile(f"(?![\n\t])[{_UNSAFE}]")


def line(text: object) -> str:
    """Any text on one line, whatever is in it."""
    return _IN_A_LINE.sub(_escaped, str(text))


def lines(text: object) -> str:
    """A text of several lines, such as a traceback; only its line breaks and tabs stay what they are."""
    return _IN_LINES.sub(_escaped, str(text))


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()
