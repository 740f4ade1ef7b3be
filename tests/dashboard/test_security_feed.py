"""A page that is watched: for as long as somebody may, through trouble, and never for too many."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import cast

import pytest
from starlette.types import Message

from rowlock.dashboard import feed
from rowlock.dashboard.feed import Feed

AT_ONCE = timedelta(0)


def told(error: Exception) -> tuple[int, str]:
    return 503, f"in words: {error}"


def watched(
    look: Callable[[], Awaitable[str]],
    still: Callable[[], Awaitable[bool]],
    *,
    most: int = 20,
    feed: Feed | None = None,
) -> list[str]:
    """What is sent, until it ends or so much was."""

    async def watch() -> list[str]:
        stream = (feed or Feed()).stream("ann", look, AT_ONCE, still=still, told=told)
        seen: list[str] = []
        async for event in cast("AsyncIterator[str]", stream.body_iterator):
            seen.append(event)
            if len(seen) == most:
                break
        return seen

    return asyncio.run(watch())


async def page() -> str:
    return "<h1>x</h1>"


async def always() -> bool:
    return True


def test_it_ends_when_who_watches_may_no_longer() -> None:
    answers = iter([True, True, False])

    async def still() -> bool:
        return next(answers)

    assert watched(page, still) == ["retry: 3000\n\n", "event: page\ndata: <h1>x</h1>\n\n", "event: same\ndata:\n\n"]


def test_nothing_is_sent_to_who_may_not_any_more() -> None:
    async def still() -> bool:
        return False

    assert watched(page, still) == ["retry: 3000\n\n"]


def test_trouble_is_said_and_the_page_comes_back() -> None:
    looks = iter(["<h1>x</h1>", None, None, "<h1>x</h1>"])

    async def look() -> str:
        seen = next(looks)
        if seen is None:
            raise ConnectionError("away")
        return seen

    whole = "event: page\ndata: <h1>x</h1>\n\n"
    trouble = "event: trouble\ndata: in words: away\n\n"
    assert watched(look, always, most=5) == ["retry: 3000\n\n", whole, trouble, "event: same\ndata:\n\n", whole]


def test_an_end_ends_it_at_once() -> None:
    open_feed = Feed()

    async def look() -> str:
        open_feed.end()
        return "x"

    assert watched(look, always, feed=open_feed) == ["retry: 3000\n\n", "event: page\ndata: x\n\n"]


def test_neither_one_visitor_nor_all_of_them_watch_more_than_so_many_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "_MOST_OF_ONE", 2)
    monkeypatch.setattr(feed, "_MOST_WATCHED", 3)

    async def watching() -> list[bool]:
        open_feed = Feed()
        streams = [open_feed.stream("vic", page, AT_ONCE, still=always, told=told) for _ in range(2)]
        may = [open_feed.refusal(name) is None for name in ("vic", "ann")]
        streams.append(open_feed.stream("ann", page, AT_ONCE, still=always, told=told))
        may += [open_feed.refusal(name) is None for name in ("vic", "ann")]
        open_feed.end()
        for stream in streams:
            await stream({"type": "http", "asgi": {"spec_version": "2.4"}}, gone, dropped)
        return [*may, *(open_feed.refusal(name) is None for name in ("vic", "ann"))]

    async def gone() -> Message:
        return {"type": "http.disconnect"}

    async def dropped(_message: Message) -> None: ...

    assert asyncio.run(watching()) == [False, True, False, False, True, True]
