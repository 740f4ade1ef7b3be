"""Times as options take them: `2h`, `1h30min`, `2026-03-01T08:00Z`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

import click

from rowlock.errors import InvalidOption
from rowlock.model.formatting import read_span
from rowlock.model.typed import before, read_instant, read_time

T = TypeVar("T")


def span(typed: str) -> timedelta:
    """A length of time: `90s`, `15min`, `2h`, `1h30min`, `3d`, `1w`."""
    return _parameter(read_span, typed)


def instant(typed: str) -> datetime:
    """An instant with its time zone: `2026-03-01T08:00Z`."""
    return _parameter(read_instant, typed)


def past(typed: str) -> datetime | timedelta:
    """An instant, or how long ago it was: `2h`."""
    return _parameter(read_time, typed)


def _parameter(read: Callable[[str], T], typed: str) -> T:
    try:
        return read(typed)
    except InvalidOption as fault:
        raise click.BadParameter(str(fault)) from None


def resolve(moments: Sequence[datetime | timedelta | None], clock: Callable[[], datetime]) -> list[datetime | None]:
    """The times that `past` has parsed; the clock is read only if a span is among them."""
    if not any(isinstance(moment, timedelta) for moment in moments):
        return [moment for moment in moments if not isinstance(moment, timedelta)]
    now = clock()
    try:
        return [None if moment is None else before(moment, now) for moment in moments]
    except InvalidOption as fault:
        raise click.UsageError(str(fault)) from None
