"""Facts as people read them: text that no data can break or repaint, spans, ages, counts."""

from __future__ import annotations

import json
from datetime import timedelta

from rowlock.model.formatting import age, count, instant, line, lines, size, span
from rowlock.model.stats.stats import Count, Rates

__all__ = ["age", "compact", "count", "instant", "line", "lines", "size", "span"]


def compact(value: object, most: int = 200) -> str:
    """A JSON value on one line, its end cut off where it is long."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= most else f"{text[: most - 1]}…"


UNKNOWN = "?"


def known_count(number: Count | None) -> str:
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


def known_span(length: timedelta | None) -> str:
    """A length of time, if there is one."""
    return "" if length is None else span(length)
