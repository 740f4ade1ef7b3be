"""Connections that a worker lends to its handlers: few, plain, clean, and never waited for without end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from rowlock import RowlockError
from rowlock.db.borrowed.joining import TransactionEnd, nothing
from rowlock.db.handler_connections import HandlerConnections
from tests.waiting import until
from tests.worker.working import Db, one

COUNT = """select count(*) from pg_stat_activity
    where application_name = 'rowlock handler' and datname = current_database()"""
TERMINATE = """select count(pg_terminate_backend(pid)) from pg_stat_activity
    where application_name = 'rowlock handler' and datname = current_database()"""


@asynccontextmanager
async def lending(url: str, **options: Any) -> AsyncIterator[HandlerConnections]:  # noqa: ANN401  its own
    connections = HandlerConnections(url, "rowlock", **options)
    try:
        yield connections
    finally:
        await connections.close()


def last() -> TransactionEnd:
    return TransactionEnd(nothing, lambda: None)


async def say(lent: HandlerConnections, colour: str, act: Callable[[Any], Any]) -> Any:  # noqa: ANN401  what it answers
    """Do something with a connection, in a block of one colour or the other; async ones are asked to await it."""
    if colour == "sync":

        def block() -> Any:  # noqa: ANN401
            with lent.transaction(None, last()) as connection:
                return act(connection)

        return await asyncio.to_thread(block)
    async with lent.atransaction(None, last()) as connection:
        answer = act(connection)
        return await answer if isinstance(answer, Coroutine) else answer


both = pytest.mark.parametrize("colour", ["sync", "async"])


@both
def test_a_connection_is_used_again(colour: str, url: str, db: Db) -> None:
    async def story() -> list[int]:
        async with lending(url) as lent:
            pids = [await say(lent, colour, lambda connection: connection.info.backend_pid) for _ in range(3)]
            assert one(db, COUNT) == 1
            return pids

    assert len(set(asyncio.run(story()))) == 1
    until(lambda: one(db, COUNT) == 0)


@both
def test_what_one_handler_sets_the_next_does_not_see(colour: str, url: str) -> None:
    def spoil(connection: Any) -> Any:  # noqa: ANN401
        connection.row_factory = dict_row
        return connection.execute("set search_path = pg_temp; create temp table mine (x int); listen a; set jit = off")

    def look(connection: Any) -> Any:  # noqa: ANN401
        return connection.execute(
            "select current_setting('search_path'), to_regclass('pg_temp.mine'), current_setting('jit'),"
            " array(select pg_listening_channels())"
        )

    async def story() -> Any:  # noqa: ANN401
        async with lending(url) as lent:
            before = await say(lent, colour, look)
            await say(lent, colour, spoil)
            after = await say(lent, colour, look)
            return [row if colour == "sync" else await row for row in (before.fetchone(), after.fetchone())]

    before, after = asyncio.run(story())

    assert type(after) is tuple
    assert after == before


@both
def test_a_connection_that_broke_while_it_was_idle_is_replaced(colour: str, url: str, db: Db) -> None:
    async def story() -> None:
        async with lending(url) as lent:
            first = await say(lent, colour, lambda connection: connection.info.backend_pid)
            assert one(db, TERMINATE) == 1
            await asyncio.to_thread(until, lambda: one(db, COUNT) == 0)

            second = await say(lent, colour, lambda connection: connection.info.backend_pid)

            assert first != second

    asyncio.run(story())


@both
def test_whoever_waits_too_long_for_a_connection_is_told_what_to_do(colour: str, url: str) -> None:
    async def story() -> None:
        async with lending(url, most=1, deadline=0.2) as lent:
            release = threading.Event()
            taken = threading.Event()

            def hold(_connection: object) -> None:
                taken.set()
                release.wait()

            async def ahold(_connection: object) -> None:
                taken.set()
                await asyncio.to_thread(release.wait)

            holder = asyncio.create_task(say(lent, colour, hold if colour == "sync" else ahold))
            await asyncio.to_thread(taken.wait)

            with pytest.raises(RowlockError, match="lends 1 at a time; keep the blocks short"):
                await say(lent, colour, lambda _connection: None)

            release.set()
            await holder
            await say(lent, colour, lambda _connection: None)

    asyncio.run(story())


@both
def test_a_handler_that_is_left_behind_is_cut_off(colour: str, url: str, db: Db) -> None:
    async def story() -> None:
        async with lending(url) as lent:
            stuck = asyncio.create_task(
                say(lent, colour, lambda connection: connection.execute("select pg_sleep(3600)"))
            )
            await asyncio.to_thread(until, lambda: one(db, f"{COUNT} and wait_event = 'PgSleep'") == 1)

        with pytest.raises(psycopg.OperationalError):
            await stuck

    asyncio.run(story())


def test_a_handlers_own_statements_may_take_longer_than_the_deadline(url: str) -> None:
    async def story() -> None:
        async with lending(url, deadline=0.2) as lent, lent.atransaction(None, last()) as connection:
            await connection.execute("select pg_sleep(0.5)")  # type: ignore[attr-defined]  # of psycopg

    asyncio.run(story())


def test_the_end_of_a_transaction_may_not(url: str, db: Db) -> None:
    db.execute("create table lines (x int primary key deferrable initially deferred)")
    db.execute("create function slow() returns trigger language plpgsql as $$begin perform pg_sleep(3600); end$$")
    db.execute("""create constraint trigger slow after insert on lines deferrable initially deferred
        for each row execute function slow()""")

    async def story() -> None:
        async with lending(url, deadline=0.5) as lent:
            with pytest.raises(psycopg.OperationalError, match="in time"):
                async with lent.atransaction(None, last()) as connection:
                    await connection.execute("insert into lines values (1)")  # type: ignore[attr-defined]  # of psycopg

    asyncio.run(story())

    assert one(db, TERMINATE) == 1  # the server goes on with the commit: it has not noticed yet that we are gone
    assert one(db, "select count(*) from lines") == 0
