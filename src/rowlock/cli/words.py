"""Facts as people read them: text that no data can break or repaint, spans, ages, counts."""

from __future__ import annotations

import json
import re

from rowlock.model.words import age, count, instant, size, span

__all__ = ["age", "compact", "count", "instant", "line", "lines", "size", "span"]

# Controls, the marks that turn, hide or break text, and halves of characters that no terminal can be sent. A job's data
# may hold any of them.
_UNSAFE = "\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff\ufff9-\ufffb"
_IN_A_LINE = re.compile(f"[{_UNSAFE}]")
_IN_LINES = re.compile(f"(?![\n\t])[{_UNSAFE}]")


def line(text: object) -> str:
    """Any text on one line, whatever is in it."""
    return _IN_A_LINE.sub(_escaped, str(text))


def lines(text: object) -> str:
    """A text of several lines, such as a traceback; only its line breaks and tabs stay what they are."""
    return _IN_LINES.sub(_escaped, str(text))


def compact(value: object, most: int = 200) -> str:
    """A JSON value on one line, its end cut off where it is long."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()
