"""Facts as people read them: text that no data can break or repaint, spans, ages, counts."""

from __future__ import annotations

import json

from rowlock.model.formatting import age, count, instant, line, lines, size, span

__all__ = ["age", "compact", "count", "instant", "line", "lines", "size", "span"]


def compact(value: object, most: int = 200) -> str:
    """A JSON value on one line, its end cut off where it is long."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= most else f"{text[: most - 1]}…"
