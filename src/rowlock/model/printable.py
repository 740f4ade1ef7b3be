"""Text that no data can break or repaint: a job may hold anything, and it is printed and logged."""

from __future__ import annotations

import re

# Controls, the marks that turn, hide or break text, and halves of characters that no terminal can be sent.
_UNSAFE = "\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff\ufff9-\ufffb"
_IN_A_LINE = re.compile(f"[{_UNSAFE}]")
_IN_LINES = re.compile(f"(?![\n\t])[{_UNSAFE}]")


def line(text: object) -> str:
    """Any text on one line, whatever is in it."""
    return _IN_A_LINE.sub(_escaped, str(text))


def lines(text: object) -> str:
    """A text of several lines, such as a traceback; only its line breaks and tabs stay what they are."""
    return _IN_LINES.sub(_escaped, str(text))


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()
