"""Verbs: what a body becomes, blocking and async."""

from __future__ import annotations

import asyncio
import inspect
from functools import partial

import psycopg
import pytest

from rowlock import Rowlock
from rowlock.app.verbs import Exchange, Verb, athread, averb, verb
from rowlock.errors import RowlockError
from rowlock.store.query import alone
from rowlock.store.schema import now


class Clock:
    """Something with verbs, of each kind."""

    def __init__(self, app: Rowlock, connection: object | None = None) -> None:
        self._app = app
        self._connection = connection

    @verb("app.clock")
    def between(self, *, times: int = 2) -> Verb[bool]:
        """Whether time goes on."""
        seen = []
        for _ in range(times):
            seen += yield from Exchange(self._app.database, partial(alone, now()), connection=self._connection)
        return seen == sorted(seen)

    abetween = averb(between)

    def stop(self, *, after: int) -> str:
        """Stop the clock."""
        return f"stopped after {after}"

    astop = athread(stop)


def test_one_body_is_a_blocking_verb_and_an_async_one(app: Rowlock) -> None:
    clock = Clock(app)

    assert clock.between(times=3)
    assert asyncio.run(clock.abetween(times=3))
    assert asyncio.run(clock.astop(after=1)) == clock.stop(after=1)


def test_a_verb_and_its_twin_look_as_they_were_written() -> None:
    for twin in (Clock.between, Clock.abetween):
        assert str(inspect.signature(twin)) == "(self, *, times: 'int' = 2) -> 'bool'"
        assert twin.__doc__ == "Whether time goes on."

    assert [one.__qualname__ for one in (Clock.between, Clock.abetween, Clock.astop)] == [
        "Clock.between",
        "Clock.abetween",
        "Clock.astop",
    ]


def test_a_verb_that_would_block_the_event_loop_names_its_twin(app: Rowlock) -> None:
    async def story() -> None:
        Clock(app).between()

    with pytest.raises(
        RowlockError, match=r"app\.clock\.between would block .*; use `await app\.clock\.abetween\(…\)`"
    ):
        asyncio.run(story())


def test_a_verb_on_the_callers_connection_does_not_ask_for_a_loop(app: Rowlock, url: str) -> None:
    async def story() -> bool:
        with psycopg.connect(url) as connection:
            return Clock(app, connection).between()

    assert asyncio.run(story())
