"""A page as it changes: a stream of its main part, sent anew whenever it is another one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Final

from starlette.responses import StreamingResponse

# A page that takes long to look at is looked at less often: it costs the database a tenth of its time at most.
_SHARE: Final = 10
_MOST_WATCHED: Final = 100


class Feed:
    """The streams that are open."""

    def __init__(self) -> None:
        self._open = 0
        self._over = asyncio.Event()

    @property
    def is_full(self) -> bool:
        """Whether as many watch as we let."""
        return self._open >= _MOST_WATCHED

    def end(self) -> None:
        """End every stream: the server stops."""
        self._over.set()

    def stream(self, look: Callable[[], Awaitable[str]], every: timedelta) -> StreamingResponse:
        """The answer to a browser that watches."""
        return StreamingResponse(self._events(look, every), media_type="text/event-stream")

    async def _events(self, look: Callable[[], Awaitable[str]], every: timedelta) -> AsyncIterator[str]:
        self._open += 1
        last = ""
        try:
            yield "retry: 3000\n\n"
            while not self._over.is_set():
                began = time.monotonic()
                seen = await look()
                took = time.monotonic() - began
                yield ":\n\n" if seen == last else _event("page", seen)
                last = seen
                await self._pause(max(every.total_seconds(), _SHARE * took))
        finally:
            self._open -= 1

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._over.wait()
        except TimeoutError:
            return


def _event(kind: str, text: str) -> str:
    lines = "".join(f"data: {line}\n" for line in text.splitlines())
    return f"event: {kind}\n{lines}\n"
