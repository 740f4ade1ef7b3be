"""Traceback: its lines, users' own code apart from libraries."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

_FRAME: Final = re.compile(
    r'^\s*(?:\|\s*)*File "(?P<file>[^"\n]{1,500})", line (?P<line>\d{1,9})(?:, in (?P<function>.*))?$'
)
_LIBRARIES: Final = re.compile(
    r"[/\\](?:site|dist)-packages[/\\]|[/\\]lib[/\\]python\d|[/\\]Lib[/\\]|[/\\]rowlock[/\\](?:worker|workflow|db|model)[/\\]"
    r"|^<frozen "
)


@dataclass(frozen=True, slots=True)
class TracebackLine:
    """A line of a traceback: of a frame in the users' own `code` or in a `library`, or Python's message, `said`."""

    kind: Literal["code", "library", "said"]
    text: str


@dataclass(frozen=True, slots=True)
class CodePlace:
    """The last frame in the users' own code, and its source line."""

    file: str
    line: int
    function: str
    source: str


def lines(traceback: str) -> tuple[TracebackLine, ...]:
    """Every line with its kind; the lines below a frame belong to the frame."""
    found: list[TracebackLine] = []
    kind: Literal["code", "library", "said"] = "said"
    for text in traceback.rstrip("\n").split("\n"):
        frame = _FRAME.match(text)
        if frame is not None:
            kind = "library" if _LIBRARIES.search(frame["file"]) else "code"
        elif not text.startswith((" ", "|")):
            kind = "said"
        found.append(TracebackLine(kind, text))
    return tuple(found)


def place(traceback: str) -> CodePlace | None:
    """The last place in the users' own code, if there is any."""
    texts = traceback.split("\n")
    for number in range(len(texts) - 1, -1, -1):
        frame = _FRAME.match(texts[number])
        if frame is not None and not _LIBRARIES.search(frame["file"]):
            source = texts[number + 1].strip() if number + 1 < len(texts) else ""
            is_frame = _FRAME.match(texts[number + 1]) if source else None
            return CodePlace(frame["file"], int(frame["line"]), frame["function"] or "", "" if is_frame else source)
    return None
