"""Feed: a page as a stream, sent again whenever it has changed."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Final

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

# A page that takes long to look at is looked at less often: it costs the database a tenth of its time at most.
_SHARE: Final = 10
_MOST_WATCHED: Final = 100
_MOST_OF_ONE: Final = 20  # one visitor's tabs: nobody keeps all others from watching

# Whoever watches hears something as often: else a stream that has died would look like a page on which nothing changes.
_SILENCE: Final = 10.0

# Only a page is the same as before: a browser takes that for a sign that all is well, and trouble is not.
_PAGE: Final = "event: page\n"
_SAME: Final = "event: same\ndata:\n\n"
_ALIVE: Final = "event: alive\ndata:\n\n"

Render = Callable[[], Awaitable[str]]
Still = Callable[[], Awaitable[bool]]
Describe = Callable[[Exception], tuple[int, str]]

log = logging.getLogger("rowlock.dashboard")


class Feed:
    """The streams that are open, by the name of who watches."""

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()
        self._over = asyncio.Event()

    def refusal(self, who: str) -> str | None:
        """Why somebody may not watch one more page; None if they may."""
        if self._open[who] >= _MOST_OF_ONE:
            return f"you watch {_MOST_OF_ONE} pages already; close some tabs, or reload this one to see it now"
        if self._open.total() >= _MOST_WATCHED:
            return f"{_MOST_WATCHED} pages are being watched; reload this one to see it now"
        return None

    def end(self) -> None:
        """End every stream: the server stops."""
        self._over.set()

    def stream(
        self, who: str, render: Render, every: timedelta, *, still: Still, describe: Describe
    ) -> StreamingResponse:
        """The response to a browser that watches, while it is `still` somebody who may.

        It counts from now on, and not from its first event: many that come at once would all find room.
        """
        self._open[who] += 1
        unbuffered = {"x-accel-buffering": "no"}  # a proxy would wait for the end
        events = self._events(render, every, still, describe)
        return _Stream(events, unbuffered, ended=lambda: self._leave(who))

    def _leave(self, who: str) -> None:
        self._open[who] -= 1
        if not self._open[who]:
            del self._open[who]

    async def _events(self, render: Render, every: timedelta, still: Still, describe: Describe) -> AsyncIterator[str]:
        last = ""
        yield "retry: 3000\n\n"
        while not self._over.is_set() and await still():
            began = time.monotonic()
            seeing = asyncio.ensure_future(_message(render, describe))
            try:
                # To break off a statement takes the server's answer, which is what does not come: the look goes on.
                while not (await asyncio.wait([seeing], timeout=_SILENCE))[0]:
                    last = _trouble(503, f"nothing has come from it for {time.monotonic() - began:.0f} seconds")
                    yield last
                    if self._over.is_set() or not await still():
                        return
                event = seeing.result()
            finally:
                seeing.cancel()
            yield _SAME if event == last and event.startswith(_PAGE) else event
            last = event
            async for sign in self._pause(max(every.total_seconds(), _SHARE * (time.monotonic() - began))):
                yield sign

    async def _pause(self, seconds: float) -> AsyncIterator[str]:
        """Wait so long, or until the end; a sign of life whenever there was silence."""
        until = time.monotonic() + seconds
        while not self._over.is_set() and (left := until - time.monotonic()) > 0:
            try:
                async with asyncio.timeout(min(left, _SILENCE)):
                    await self._over.wait()
            except TimeoutError:
                if left > _SILENCE:
                    yield _ALIVE


class _Stream(StreamingResponse):
    """A stream that says when it is over, also if nobody ever began to read it."""

    def __init__(self, events: AsyncIterator[str], headers: dict[str, str], *, ended: Callable[[], None]) -> None:
        super().__init__(events, media_type="text/event-stream", headers=headers)
        self._ended = ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._ended()


async def _message(render: Render, describe: Describe) -> str:
    """What there is to see; what is in the way, if something is: a page that is watched outlives it."""
    try:
        return _event("page", await render())
    except Exception as error:
        status, says = describe(error)
        if status == 500:
            log.exception("a page that is watched cannot be looked at: %s", says)
        return _trouble(status, says)


def _trouble(status: int, says: str) -> str:
    """The status comes first: by it the page chooses its headline."""
    return _event("trouble", f"{status} {says}")


def _event(kind: str, text: str) -> str:
    lines = "".join(f"data: {line}\n" for line in text.splitlines())
    return f"event: {kind}\n{lines}\n"
