"""Figures of `app.stats()` as cells of a table."""

from __future__ import annotations

from datetime import timedelta

from rowlock.cli import words
from rowlock.model.stats.stats import Count, Rates

UNKNOWN = "?"


def counted(number: Count | None) -> str:
    """A count that may go on, or could not be made."""
    return UNKNOWN if number is None else f"{number.value:,}{'+' if number.more else ''}"


def rate(rates: Rates | None, name: str) -> str:
    """A rate in the unit that says it best: `12.5/s`, `0.4/min`; nothing where nothing happens."""
    if rates is None:
        return UNKNOWN
    value: float = getattr(rates, name)
    if value < 1:
        return f"{60 * value:.2g}/min" if value else ""
    return f"{value:,.0f}/s" if value >= 100 else f"{value:.3g}/s"


def lasting(length: timedelta | None) -> str:
    """A length of time, if there is one."""
    return "" if length is None else words.span(length)
