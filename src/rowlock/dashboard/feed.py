"""A page as it changes: a stream of its main part, sent anew whenever it is another one."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Final

from starlette.responses import StreamingResponse

# A page that takes long to look at is looked at less often: it costs the database a tenth of its time at most.
_SHARE: Final = 10
_MOST_WATCHED: Final = 100

Look = Callable[[], Awaitable[str]]
Still = Callable[[], Awaitable[bool]]
Told = Callable[[Exception], tuple[int, str]]

log = logging.getLogger("rowlock.dashboard")


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

    def stream(self, look: Look, every: timedelta, *, still: Still, told: Told) -> StreamingResponse:
        """The answer to a browser that watches, while it is `still` somebody who may."""
        unbuffered = {"x-accel-buffering": "no"}  # a proxy would wait for the end
        return StreamingResponse(
            self._events(look, every, still, told), media_type="text/event-stream", headers=unbuffered
        )

    async def _events(self, look: Look, every: timedelta, still: Still, told: Told) -> AsyncIterator[str]:
        self._open += 1
        last = ""
        try:
            yield "retry: 3000\n\n"
            while not self._over.is_set() and await still():
                began = time.monotonic()
                event = await _seen(look, told)
                took = time.monotonic() - began
                yield ":\n\n" if event == last else event
                last = event
                await self._pause(max(every.total_seconds(), _SHARE * took))
        finally:
            self._open -= 1

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._over.wait()
        except TimeoutError:
            return


async def _seen(look: Look, told: Told) -> str:
    """What there is to see; what is in the way, if something is: a page that is watched outlives it."""
    try:
        return _event("page", await look())
    except Exception as error:
        status, says = told(error)
        if status == 500:
            log.exception("a page that is watched cannot be looked at: %s", says)
        return _event("trouble", says)


def _event(kind: str, text: str) -> str:
    lines = "".join(f"data: {line}\n" for line in text.splitlines())
    return f"event: {kind}\n{lines}\n"
