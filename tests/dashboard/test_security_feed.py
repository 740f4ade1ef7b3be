"""A page that is watched: for as long as somebody may, through trouble, and never for too many."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import cast

import pytest
from starlette.types import Message

from rowlock.dashboard.http import feed
from rowlock.dashboard.http.feed import Feed

AT_ONCE = timedelta(0)


def told(error: Exception) -> tuple[int, str]:
    return 503, f"in words: {error}"


def watched(
    look: Callable[[], Awaitable[str]],
    still: Callable[[], Awaitable[bool]],
    *,
    most: int = 20,
    feed: Feed | None = None,
    every: timedelta = AT_ONCE,
) -> list[str]:
    """What is sent, until it ends or so much was."""

    async def watch() -> list[str]:
        stream = (feed or Feed()).stream("ann", look, every, still=still, describe=told)
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


def test_trouble_is_said_as_long_as_it_lasts_and_the_page_comes_back() -> None:
    looks = iter(["<h1>x</h1>", None, None, "<h1>x</h1>"])

    async def look() -> str:
        seen = next(looks)
        if seen is None:
            raise ConnectionError("away")
        return seen

    whole = "event: page\ndata: <h1>x</h1>\n\n"
    trouble = "event: trouble\ndata: 503 in words: away\n\n"
    assert watched(look, always, most=5) == ["retry: 3000\n\n", whole, trouble, trouble, whole]


def test_who_watches_hears_that_nothing_comes_from_a_database_that_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "_SILENCE", 0.01)
    answered = iter([True, True, True, False])

    async def still() -> bool:
        return next(answered)

    async def look() -> str:
        await asyncio.Event().wait()
        return "never"

    said = watched(look, still)

    trouble = "event: trouble\ndata: 503 nothing has come from it for 0 seconds\n\n"
    assert said == ["retry: 3000\n\n", trouble, trouble, trouble]


def test_a_page_that_took_long_is_shown_when_it_comes_after_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "_SILENCE", 0.01)
    looks, waited = asyncio.Event(), iter([False])

    async def still() -> bool:
        if next(waited, True):  # the second time it is asked while the first look goes on
            looks.set()
        return True

    async def look() -> str:
        await looks.wait()
        return "x"

    said = watched(look, still)

    assert said[1].startswith("event: trouble\n")
    assert "event: page\ndata: x\n\n" in said


def test_who_watches_a_page_that_is_looked_at_seldom_hears_a_sign_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "_SILENCE", 0.01)

    said = watched(page, always, most=4, every=timedelta(hours=1))

    assert said[2:] == ["event: alive\ndata:\n\n"] * 2


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
        streams = [open_feed.stream("vic", page, AT_ONCE, still=always, describe=told) for _ in range(2)]
        may = [open_feed.refusal(name) is None for name in ("vic", "ann")]
        streams.append(open_feed.stream("ann", page, AT_ONCE, still=always, describe=told))
        may += [open_feed.refusal(name) is None for name in ("vic", "ann")]
        open_feed.end()
        for stream in streams:
            await stream({"type": "http", "asgi": {"spec_version": "2.4"}}, gone, dropped)
        return [*may, *(open_feed.refusal(name) is None for name in ("vic", "ann"))]

    async def gone() -> Message:
        return {"type": "http.disconnect"}

    async def dropped(_message: Message) -> None: ...

    assert asyncio.run(watching()) == [False, True, False, False, True, True]
