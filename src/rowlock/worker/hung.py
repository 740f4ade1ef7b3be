"""Hung: where a handler was when its time was over."""

from __future__ import annotations

import sys
from types import FrameType, TracebackType


def stack_below(thread: int, file: str) -> TracebackType | None:
    """What a thread is doing now, as a traceback: its frames below the one of this file, which called the handler."""
    frame: FrameType | None = sys._current_frames().get(thread)  # noqa: SLF001  as traceback's own documentation does
    stack: TracebackType | None = None
    while frame is not None and frame.f_code.co_filename != file:
        stack = TracebackType(stack, frame, frame.f_lasti, frame.f_lineno)
        frame = frame.f_back
    return None if frame is None else stack  # else the thread has gone on to something else
