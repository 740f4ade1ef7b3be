"""Tracebacks for people: which lines are of their own code, and which of what it stands on."""

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
    """A line of a traceback: of a frame in their own `code`, in a `library`, or a word of Python's, `said`."""

    kind: Literal["code", "library", "said"]
    text: str


@dataclass(frozen=True, slots=True)
class CodePlace:
    """Where it happened: the last frame of their own code, and the line that stands there."""

    file: str
    line: int
    function: str
    source: str


def lines(traceback: str) -> tuple[TracebackLine, ...]:
    """Every line, and whose it is; the lines below a frame are the frame's."""
    told: list[TracebackLine] = []
    kind: Literal["code", "library", "said"] = "said"
    for text in traceback.rstrip("\n").split("\n"):
        frame = _FRAME.match(text)
        if frame is not None:
            kind = "library" if _LIBRARIES.search(frame["file"]) else "code"
        elif not text.startswith((" ", "|")):
            kind = "said"
        told.append(TracebackLine(kind, text))
    return tuple(told)


def place(traceback: str) -> CodePlace | None:
    """Where their own code was last, if it is in there at all."""
    texts = traceback.split("\n")
    for number in range(len(texts) - 1, -1, -1):
        frame = _FRAME.match(texts[number])
        if frame is not None and not _LIBRARIES.search(frame["file"]):
            source = texts[number + 1].strip() if number + 1 < len(texts) else ""
            is_frame = _FRAME.match(texts[number + 1]) if source else None
            return CodePlace(frame["file"], int(frame["line"]), frame["function"] or "", "" if is_frame else source)
    return None
