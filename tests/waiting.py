"""Wait for the thing itself, within bounds."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_LIMIT = 30.0
_PAUSE = 0.005


def until(look: Callable[[], T], *, what: str = "it", limit: float = _LIMIT) -> T:
    """Look again and again until there is something to see; the last look is the answer."""
    deadline = time.monotonic() + limit
    pause = threading.Event()
    while not (seen := look()):
        assert time.monotonic() < deadline, f"{what} did not happen within {limit} s"
        pause.wait(_PAUSE)
    return seen


async def auntil(look: Callable[[], T], *, what: str = "it", limit: float = _LIMIT) -> T:
    """As `until`, while the event loop goes on."""
    deadline = time.monotonic() + limit
    while not (seen := look()):
        assert time.monotonic() < deadline, f"{what} did not happen within {limit} s"
        await asyncio.to_thread(threading.Event().wait, _PAUSE)
    return seen
