"""Lengths of time as they are typed: `90s`, `15min`, `1h30min`, `3d`."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

from rowlock.errors import InvalidOption

_UNITS: Final = {
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
        raise InvalidOption(f"{typed!r} is no length of time; write 90s, 15min, 2h, 3d or 1w")
    try:
        parts = _PART.findall(typed.strip().lower())
        return sum((float(number) * _UNITS[unit] for number, unit in parts), timedelta(0))
    except OverflowError:
        raise InvalidOption(f"{typed!r} is longer than time itself; write 90s, 15min, 2h, 3d or 1w") from None


def typed_span(length: timedelta) -> str:
    """A length of whole seconds as it is typed: `1h30min`."""
    seconds, parts = int(length.total_seconds()), list[str]()
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"
