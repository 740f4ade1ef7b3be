"""The cache: one load for all who ask at once, and again when it is too old."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from rowlock.dashboard.cache import TtlCache

_A_WHILE = timedelta(seconds=10)


class Loader:
    """A load that counts how often it runs, and can be held up."""

    def __init__(self) -> None:
        self.made = 0
        self.may_end = asyncio.Event()

    async def __call__(self) -> int:
        self.made += 1
        await self.may_end.wait()
        return self.made


def test_those_who_ask_at_once_share_a_load() -> None:
    async def play() -> None:
        cache, load = TtlCache(), Loader()
        asking = [asyncio.ensure_future(cache.get("x", max_age=_A_WHILE, load=load)) for _ in range(5)]
        await asyncio.sleep(0)

        load.may_end.set()

        assert await asyncio.gather(*asking) == [1] * 5
        assert load.made == 1

    asyncio.run(play())


def test_what_is_too_old_is_loaded_again() -> None:
    async def play() -> None:
        now = 0.0
        cache, load = TtlCache(clock=lambda: now), Loader()
        load.may_end.set()
        assert await cache.get("x", max_age=_A_WHILE, load=load) == 1
        now = 9.0
        assert await cache.get("x", max_age=_A_WHILE, load=load) == 1

        now = 10.5

        assert await cache.get("x", max_age=_A_WHILE, load=load) == 2

    asyncio.run(play())


def test_one_who_goes_away_takes_the_load_from_nobody() -> None:
    async def play() -> None:
        cache, load = TtlCache(), Loader()
        gone = asyncio.ensure_future(cache.get("x", max_age=_A_WHILE, load=load))
        stays = asyncio.ensure_future(cache.get("x", max_age=_A_WHILE, load=load))
        await asyncio.sleep(0)

        gone.cancel()
        load.may_end.set()

        assert await stays == 1
        assert gone.cancelled()

    asyncio.run(play())


def test_a_load_that_failed_is_made_again() -> None:
    async def play() -> None:
        cache, load = TtlCache(), Loader()
        load.may_end.set()

        async def fail() -> int:
            raise ConnectionError("no database")

        with pytest.raises(ConnectionError):
            await cache.get("x", max_age=_A_WHILE, load=fail)

        assert await cache.get("x", max_age=_A_WHILE, load=load) == 1

    asyncio.run(play())
