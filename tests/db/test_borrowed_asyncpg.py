"""An asyncpg connection of the caller's: what is its own, beside what test_conformance.py asks of every kind."""

from __future__ import annotations

import asyncio
import json
from uuid import UUID

import asyncpg
import psycopg
import pytest
from psycopg.rows import TupleRow

from rowlock import Rowlock, Task
from rowlock.db import borrowed
from rowlock.errors import WrongConnection
from rowlock.store import claim as claim_store
from rowlock.store.claim import Lane
from rowlock.store.query import Conversation
from tests.engine import Engine

Db = psycopg.Connection[TupleRow]
T = Task[[str], None]


@pytest.fixture
def task(app: Rowlock) -> T:
    @app.task(name="t")
    def note(text: str) -> None:
        return None

    return note


def jobs(db: Db) -> list[UUID]:
    return [job for (job,) in db.execute("select id from rowlock.jobs order by id")]


def test_the_callers_codecs_do_not_matter_and_stay(app: Rowlock, task: T, url: str) -> None:
    job = task.enqueue("a")
    engine = Engine(url)

    def claim() -> Conversation[tuple[str, str]]:
        (claimed,) = yield claim_store.claim(lanes=[Lane("default", 0)], limit=1, worker=engine.worker)
        return claimed.id, claimed.args

    async def caller() -> None:
        mine = await asyncpg.connect(url)
        await mine.set_type_codec("json", encoder=json.dumps, decoder=json.loads, schema="pg_catalog")
        await mine.set_type_codec("uuid", encoder=str, decoder=str, schema="pg_catalog")
        assert await app.database.aconverse(claim, connection=mine) == (str(job.id), task.bind("a").args)

        await app.aenqueue_many([task.bind("b")] * 600, connection=mine)
        row = await mine.fetchrow("select id, args from rowlock.jobs where id = $1", str(job.id))

        assert tuple(row) == (str(job.id), json.loads(task.bind("a").args))
        await mine.close()

    asyncio.run(caller())
    engine.close()


def test_a_transaction_that_was_begun_by_hand_is_joined(app: Rowlock, task: T, url: str, db: Db) -> None:
    async def caller() -> None:
        mine = await asyncpg.connect(url)
        await mine.execute("begin")
        await app.aenqueue_many([task.bind("a")] * 600, connection=mine)
        assert jobs(db) == []
        await mine.execute("commit")
        await mine.close()

    asyncio.run(caller())

    assert len(jobs(db)) == 600


def test_a_caller_without_prepared_statements_is_served(app: Rowlock, task: T, url: str, db: Db) -> None:
    async def caller() -> None:
        mine = await asyncpg.connect(url, statement_cache_size=0)
        await task.using(connection=mine, key="k").aenqueue("a")
        await app.aenqueue_many([task.bind("a")] * 600, connection=mine)
        await mine.close()

    asyncio.run(caller())

    assert len(jobs(db)) == 601


def test_a_pool_is_refused(task: T, url: str) -> None:
    async def caller() -> None:
        async with asyncpg.create_pool(url, min_size=0) as pool:
            with pytest.raises(WrongConnection, match=r"pass `async with pool.acquire\(\) as connection:`"):
                await task.using(connection=pool).aenqueue("a")

    asyncio.run(caller())


def test_two_acquisitions_of_one_connection_are_one_physical_connection(url: str) -> None:
    async def caller() -> None:
        async with asyncpg.create_pool(url, min_size=1, max_size=1) as pool:
            async with pool.acquire() as first:
                before = borrowed.physical(first)
            async with pool.acquire() as second:
                assert borrowed.physical(second) is before
            assert borrowed.physical(first) is None

    asyncio.run(caller())
