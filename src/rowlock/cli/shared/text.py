"""Text for people: lines that no data can break, spans, ages, counts, rates."""

from __future__ import annotations

import json
from datetime import timedelta

from rowlock.model.formatting import age, count, instant, line, lines, size, span
from rowlock.model.stats.stats import Count, Rates

__all__ = ["age", "compact", "count", "instant", "line", "lines", "size", "span"]

UNKNOWN = "?"


def compact(value: object, most: int = 200) -> str:
    """A JSON value on one line, its end cut off where it is long."""
    whole = json.dumps(value, ensure_ascii=False)
    return whole if len(whole) <= most else f"{whole[: most - 1]}…"


def known_count(number: Count | None) -> str:
    """A count, with `+` if there are more; `?` if it could not be made."""
    return UNKNOWN if number is None else f"{number.value:,}{'+' if number.more else ''}"


def rate(rates: Rates | None, name: str) -> str:
    """A rate in the unit that fits: `12.5/s`, `0.4/min`; nothing where nothing happens."""
    if rates is None:
        return UNKNOWN
    value: float = getattr(rates, name)
    if value < 1:
        return f"{60 * value:.2g}/min" if value else ""
    return f"{value:,.0f}/s" if value >= 100 else f"{value:.3g}/s"


def known_span(length: timedelta | None) -> str:
    """A length of time, if there is one."""
    return "" if length is None else span(length)
