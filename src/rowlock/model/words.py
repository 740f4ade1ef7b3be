"""Lengths of time, instants and counts as people read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

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
