"""Wait for the thing itself, within bounds."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_LIMIT = 30.0
# Whoever has waited for long looks less often, for a look is work that others on the same two cores wait for; but never
# so seldom that it is late by much of what it has waited.
_PAUSES = 0.005, 0.025
_SHARE = 0.05


def until(look: Callable[[], T], *, what: str = "it", limit: float = _LIMIT) -> T:
    """Look again and again until there is something to see; the last look is the answer."""
    begun = time.monotonic()
    pause = threading.Event()
    while not (seen := look()):
        pause.wait(_pause(begun, what=what, limit=limit))
    return seen


async def auntil(look: Callable[[], T], *, what: str = "it", limit: float = _LIMIT) -> T:
    """As `until`, while the event loop goes on."""
    begun = time.monotonic()
    while not (seen := look()):
        await asyncio.to_thread(threading.Event().wait, _pause(begun, what=what, limit=limit))
    return seen


def _pause(begun: float, *, what: str, limit: float) -> float:
    """How long to wait for the next look; AssertionError when there shall be none."""
    waited = time.monotonic() - begun
    assert waited < limit, f"{what} did not happen within {limit} s"
    shortest, longest = _PAUSES
    return min(max(shortest, waited * _SHARE), longest)
