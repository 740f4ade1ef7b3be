"""Cache: values that cost much and change slowly, loaded once for all visitors."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from datetime import timedelta
from typing import Any, TypeVar

T = TypeVar("T")


class TtlCache:
    """The latest values by key. Who asks while a value is being loaded waits for that one."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._entries: dict[Hashable, tuple[float, asyncio.Task[Any]]] = {}

    async def get(self, key: Hashable, *, max_age: timedelta, load: Callable[[], Awaitable[T]]) -> T:
        """The value, if it is not older than `max_age`; else load it."""
        began, made = self._entries.get(key, (0.0, None))
        if made is None or self._is_old(began, made, max_age):
            made = asyncio.ensure_future(_loaded(load))
            self._entries[key] = (self._clock(), made)
        # Shielded: a visitor who stops waiting, because the browser went away, must not cancel it for the others.
        value: T = await asyncio.shield(made)
        return value

    def _is_old(self, began: float, made: asyncio.Task[Any], max_age: timedelta) -> bool:
        if not made.done():
            return made.get_loop() is not asyncio.get_running_loop()
        failed = made.cancelled() or made.exception() is not None
        return failed or self._clock() - began > max_age.total_seconds()


async def _loaded(load: Callable[[], Awaitable[T]]) -> T:
    return await load()
