"""Figures of `app.stats()` as cells of a table."""

from __future__ import annotations

from datetime import timedelta

from rowlock.cli import words
from rowlock.model.stats import Count, Rates

UNKNOWN = "?"


def counted(number: Count | None) -> str:
    """A count that may go on, or could not be made."""
    return UNKNOWN if number is None else f"{number.value:,}{'+' if number.more else ''}"


def per_second(rates: Rates | None, name: str) -> str:
    """A rate; nothing where nothing happens."""
    if rates is None:
        return UNKNOWN
    value: float = getattr(rates, name)
    return f"{value:.3g}" if value else ""


def lasting(length: timedelta | None) -> str:
    """A length of time, if there is one."""
    return "" if length is None else words.span(length)
