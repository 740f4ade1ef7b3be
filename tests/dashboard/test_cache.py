"""What was seen lately is seen once, by all who ask."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from rowlock.dashboard.cache import TtlCache

_A_WHILE = timedelta(seconds=10)


class Looks:
    """A look that counts how often it is made, and can be held up."""

    def __init__(self) -> None:
        self.made = 0
        self.may_end = asyncio.Event()

    async def __call__(self) -> int:
        self.made += 1
        await self.may_end.wait()
        return self.made


def test_those_who_ask_at_once_share_a_look() -> None:
    async def play() -> None:
        lately, look = TtlCache(), Looks()
        asking = [asyncio.ensure_future(lately.get("x", max_age=_A_WHILE, load=look)) for _ in range(5)]
        await asyncio.sleep(0)

        look.may_end.set()

        assert await asyncio.gather(*asking) == [1] * 5
        assert look.made == 1

    asyncio.run(play())


def test_what_is_too_old_is_looked_at_anew() -> None:
    async def play() -> None:
        now = 0.0
        lately, look = TtlCache(clock=lambda: now), Looks()
        look.may_end.set()
        assert await lately.get("x", max_age=_A_WHILE, load=look) == 1
        now = 9.0
        assert await lately.get("x", max_age=_A_WHILE, load=look) == 1

        now = 10.5

        assert await lately.get("x", max_age=_A_WHILE, load=look) == 2

    asyncio.run(play())


def test_one_who_goes_away_takes_the_look_from_nobody() -> None:
    async def play() -> None:
        lately, look = TtlCache(), Looks()
        gone = asyncio.ensure_future(lately.get("x", max_age=_A_WHILE, load=look))
        stays = asyncio.ensure_future(lately.get("x", max_age=_A_WHILE, load=look))
        await asyncio.sleep(0)

        gone.cancel()
        look.may_end.set()

        assert await stays == 1
        assert gone.cancelled()

    asyncio.run(play())


def test_a_look_that_failed_is_made_again() -> None:
    async def play() -> None:
        lately, look = TtlCache(), Looks()
        look.may_end.set()

        async def fail() -> int:
            raise ConnectionError("no database")

        with pytest.raises(ConnectionError):
            await lately.get("x", max_age=_A_WHILE, load=fail)

        assert await lately.get("x", max_age=_A_WHILE, load=look) == 1

    asyncio.run(play())
