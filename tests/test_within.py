"""Which connection an enqueue uses where it names none: the one it is within, else the app's, else ours."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextvars import copy_context
from typing import Any, cast
from uuid import UUID

import psycopg
import pytest
from psycopg.rows import TupleRow

from rowlock import Rowlock, RowlockError, Task
from rowlock.errors import InvalidOption

Db = psycopg.Connection[TupleRow]
T = Task[[str], None]


@pytest.fixture
def task(app: Rowlock) -> T:
    return declared(app)


@pytest.fixture
def mine(url: str) -> Iterator[Db]:
    with psycopg.connect(url) as connection:
        yield connection
        connection.rollback()


def declared(app: Rowlock) -> T:
    @app.task(name="t")
    def note(text: str) -> None:
        return None

    return note


def jobs(db: Db) -> list[UUID]:
    return [job for (job,) in db.execute("select id from rowlock.jobs order by id")]


def test_an_error_inside_ends_it_too(app: Rowlock, task: T, mine: Db, db: Db) -> None:
    with pytest.raises(ZeroDivisionError), app.within(mine):
        raise ZeroDivisionError

    job = task.enqueue("a")

    assert jobs(db) == [job.id]


def test_it_is_for_one_app_alone(app: Rowlock, task: T, mine: Db, url: str, db: Db) -> None:
    with Rowlock(url) as other, app.within(mine):
        job = declared(other).enqueue("a")
        task.enqueue("b")

        assert jobs(db) == [job.id]


def test_it_is_for_the_code_inside_and_not_for_what_runs_beside_it(app: Rowlock, task: T, url: str, db: Db) -> None:
    async def caller() -> None:
        ready, done = asyncio.Event(), asyncio.Event()

        async def inside() -> None:
            async with await psycopg.AsyncConnection.connect(url) as mine:
                with app.within(mine):
                    ready.set()
                    await done.wait()
                    await task.aenqueue("rolled back")
                await mine.rollback()

        async with asyncio.TaskGroup() as group:
            group.create_task(inside())
            await ready.wait()
            job = await task.aenqueue("beside")
            assert jobs(db) == [job.id]
            done.set()
        await app.aclose()

    asyncio.run(caller())

    assert len(jobs(db)) == 1


def test_it_may_end_in_another_context_than_it_began_in(app: Rowlock, task: T, mine: Db) -> None:
    lent = app.within(mine)
    copy_context().run(lent.__enter__)

    ended: Any = lent.__exit__(None, None, None)

    assert not ended


def test_inside_a_loop_a_lent_sync_connection_serves_the_sync_verb(app: Rowlock, task: T, mine: Db, db: Db) -> None:
    async def caller() -> None:
        with app.within(mine):
            task.enqueue("a")
            with app.within(None), pytest.raises(RowlockError, match="aenqueue"):
                task.enqueue("b")
        mine.commit()

    asyncio.run(caller())

    assert len(jobs(db)) == 1


@pytest.mark.parametrize("key", [None, "k"])
def test_the_app_is_asked_once_for_each_enqueue(url: str, db: Db, key: str | None) -> None:
    asked: list[None] = []
    app = Rowlock(url, connection=lambda: asked.append(None))
    task = declared(app).using(key=key)

    async def caller() -> None:
        await task.aenqueue("a")
        await app.aenqueue_many([task.bind("b")])
        await app.aclose()

    asyncio.run(caller())
    task.enqueue("c")
    app.enqueue_many([task.bind("d"), task.bind("e")])
    app.close()

    assert len(asked) == 4


def test_the_app_is_not_asked_where_a_connection_is_named(url: str, mine: Db) -> None:
    asked: list[None] = []
    with Rowlock(url, connection=lambda: asked.append(None)) as app:
        declared(app).using(connection=mine).enqueue("a")

    assert asked == []


def test_a_connection_in_place_of_a_function_is_refused(url: str, mine: Db) -> None:
    with pytest.raises(InvalidOption, match=r"takes a function that returns a connection"):
        Rowlock(url, connection=cast("Any", mine))
