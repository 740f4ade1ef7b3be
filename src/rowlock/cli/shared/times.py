"""Times as they are typed: `2h`, `1h30min`, `2026-03-01T08:00Z`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import click

from rowlock.errors import InvalidOption
from rowlock.model.formatting import is_span, read_span


def span(typed: str) -> timedelta:
    """A length of time: `90s`, `15min`, `2h`, `1h30min`, `3d`, `1w`."""
    try:
        return read_span(typed)
    except InvalidOption as fault:
        raise click.BadParameter(str(fault)) from None


def instant(typed: str) -> datetime:
    """An instant with its time zone: `2026-03-01T08:00Z`."""
    try:
        moment = datetime.fromisoformat(typed.strip())
    except ValueError:
        raise click.BadParameter(f"{typed!r} is no instant; write 2026-03-01T08:00Z") from None
    if moment.utcoffset() is None:
        raise click.BadParameter(f"{typed!r} has no time zone; write {moment:%Y-%m-%dT%H:%M}Z for UTC, or +02:00")
    return moment


def past(typed: str) -> datetime | timedelta:
    """An instant, or how long ago it was: `2h`."""
    try:
        return span(typed) if is_span(typed) else instant(typed)
    except click.BadParameter as fault:
        if "is no instant" not in str(fault):
            raise
        raise click.BadParameter(f"{typed!r} is no time; write how long ago, 2h or 3d, or 2026-03-01T08:00Z") from None


def resolve(moments: Sequence[datetime | timedelta | None], clock: Callable[[], datetime]) -> list[datetime | None]:
    """The instants that `past` has parsed; the clock is read only if a span is among them."""
    if not any(isinstance(moment, timedelta) for moment in moments):
        return [moment for moment in moments if not isinstance(moment, timedelta)]
    now = clock()
    try:
        return [now - moment if isinstance(moment, timedelta) else moment for moment in moments]
    except OverflowError:
        raise click.UsageError("that is longer ago than time itself; write 90s, 15min, 2h, 3d or 1w") from None
