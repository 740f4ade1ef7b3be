"""A psycopg connection of the caller's: what is its own, beside what test_conformance.py asks of every kind."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow, dict_row

from rowlock import Rowlock, Task
from rowlock.errors import InvalidOption, SchemaMissing, WrongConnection

Db = psycopg.Connection[TupleRow]
T = Task[[str], None]


@pytest.fixture
def task(app: Rowlock) -> T:
    return declared(app, "t")


@pytest.fixture
def mine(url: str) -> Iterator[Db]:
    """The caller's own connection, with a table of its own."""
    with psycopg.connect(url) as connection:
        connection.execute("create table orders (number integer)")
        connection.commit()
        yield connection
        connection.rollback()


def declared(app: Rowlock, name: str) -> T:
    def note(text: str) -> None:
        return None

    return app.task(name=name)(note)


def jobs(db: Db) -> list[UUID]:
    return [job for (job,) in db.execute("select id from rowlock.jobs order by id")]


def orders(db: Db) -> int:
    return len(db.execute("select from orders").fetchall())


# The job and the caller's transaction


def test_on_an_autocommit_connection_a_job_is_there_at_once(task: T, mine: Db, db: Db) -> None:
    mine.autocommit = True

    job = task.using(connection=mine).enqueue("a")

    assert jobs(db) == [job.id]
    assert mine.info.transaction_status == TransactionStatus.IDLE


def test_in_a_transaction_block_of_an_autocommit_connection_it_waits_for_the_end(task: T, mine: Db, db: Db) -> None:
    mine.autocommit = True
    with mine.transaction():
        job = task.using(connection=mine).enqueue("a")
        assert jobs(db) == []

    assert jobs(db) == [job.id]


def test_calls_that_name_one_connection_go_there_together(app: Rowlock, task: T, mine: Db, db: Db) -> None:
    app.enqueue_many([task.using(connection=mine).bind("a"), task.bind("b")])
    assert jobs(db) == []

    mine.commit()

    assert len(jobs(db)) == 2


def test_calls_that_name_different_connections_are_refused(app: Rowlock, task: T, mine: Db, db: Db) -> None:
    with pytest.raises(InvalidOption, match="different connections"):
        app.enqueue_many([task.using(connection=mine).bind("a"), task.using(connection=db).bind("b")])


def test_inside_a_loop_a_sync_connection_serves_sync_enqueue(task: T, mine: Db, db: Db) -> None:
    async def caller() -> None:
        task.using(connection=mine).enqueue("a")
        mine.commit()

    asyncio.run(caller())

    assert len(jobs(db)) == 1


# The connection stays as it was


def test_the_callers_row_factory_is_untouched(task: T, url: str, db: Db) -> None:
    with psycopg.connect(url, row_factory=dict_row) as mine:
        first = task.using(connection=mine, key="k").enqueue("a")
        again = task.using(connection=mine, key="k").enqueue("a")

        assert again == first
        assert mine.row_factory is dict_row
        assert mine.execute("select 1 as one").fetchone() == {"one": 1}


def test_the_callers_types_are_untouched(app: Rowlock, task: T, mine: Db) -> None:
    app.enqueue_many([task.bind("a")] * 600, connection=mine)

    row = mine.execute("select id, args, created_at from rowlock.jobs limit 1").fetchone()

    assert row is not None
    assert [type(value).__name__ for value in row] == ["UUID", "dict", "datetime"]


def test_the_callers_session_settings_are_untouched(app: Rowlock, task: T, mine: Db) -> None:
    names = "'enable_seqscan', 'plan_cache_mode', 'search_path', 'timezone', 'synchronous_commit', 'lock_timeout'"
    look = f"select name, setting from pg_settings where name in ({names}) order by 1".encode()
    before = mine.execute(look).fetchall()

    task.using(connection=mine, key="k").enqueue("a")
    app.enqueue_many([task.bind("a")] * 600, connection=mine)

    assert mine.execute(look).fetchall() == before


@pytest.mark.parametrize(
    "setting",
    ["datestyle = 'German'", "datestyle = 'SQL, MDY'", "timezone = 'Asia/Kathmandu'", "intervalstyle = 'iso_8601'"],
)
def test_the_callers_settings_do_not_matter(app: Rowlock, task: T, mine: Db, db: Db, setting: str) -> None:
    mine.execute(f"set {setting}")

    app.enqueue_many([task.bind("a")] * 600, connection=mine)
    task.using(connection=mine, key="k").enqueue("a")
    mine.commit()

    assert len(jobs(db)) == 601


@pytest.mark.parametrize("kind", [psycopg.ClientCursor, psycopg.RawCursor])
def test_the_callers_kind_of_cursor_does_not_matter(app: Rowlock, task: T, url: str, db: Db, kind: Any) -> None:  # noqa: ANN401
    with psycopg.connect(url, cursor_factory=kind) as mine:
        task.using(connection=mine, key="k").enqueue("a")
        app.enqueue_many([task.bind("a")] * 600, connection=mine)

    assert len(jobs(db)) == 601


def test_a_caller_without_prepared_statements_is_served(task: T, url: str, db: Db) -> None:
    with psycopg.connect(url, prepare_threshold=None) as mine:
        task.using(connection=mine).enqueue("a")
        mine.commit()

        assert mine.execute("select from pg_prepared_statements").fetchall() == []
    assert len(jobs(db)) == 1


def test_a_caller_in_a_stricter_isolation_is_served(task: T, url: str, db: Db) -> None:
    with psycopg.connect(url) as mine:
        mine.isolation_level = psycopg.IsolationLevel.SERIALIZABLE

        first = task.using(connection=mine, key="k").enqueue("a")
        again = task.using(connection=mine, key="k").enqueue("a")

    assert again == first
    assert jobs(db) == [first.id]


# Refused, and the caller's transaction goes on


@pytest.mark.parametrize("thing", ["postgresql:///", 5, object(), psycopg])
def test_what_is_no_connection_is_refused_by_its_name(task: T, thing: object) -> None:
    kind = f"{type(thing).__module__}.{type(thing).__qualname__}"

    with pytest.raises(WrongConnection, match=rf"connection= is a {kind}; pass a psycopg 3"):
        task.using(connection=thing).enqueue("a")
    with pytest.raises(WrongConnection, match=rf"connection= is a {kind}; pass a psycopg 3"):
        asyncio.run(task.using(connection=thing).aenqueue("a"))


@pytest.mark.parametrize("autocommit", [False, True])
def test_a_connection_in_pipeline_mode_is_refused_before_anything_is_sent(
    app: Rowlock, task: T, url: str, db: Db, *, autocommit: bool
) -> None:
    with psycopg.connect(url, autocommit=autocommit) as mine, mine.pipeline():
        for verb in (
            task.using(connection=mine, key="k").enqueue,
            lambda text: app.enqueue_many([task.bind(text)] * 2, connection=mine),
            lambda text: app.signal("k", text, connection=mine),
        ):
            with pytest.raises(WrongConnection, match="pipeline mode, where replies come later; leave its"):
                verb("a")
        assert mine.execute("select 1").fetchone() == (1,)

    assert jobs(db) == []


def test_an_async_connection_in_pipeline_mode_is_refused_too(app: Rowlock, task: T, url: str, db: Db) -> None:
    async def enqueue() -> UUID:
        async with await psycopg.AsyncConnection.connect(url) as mine:
            async with mine.pipeline():
                with pytest.raises(WrongConnection, match="pipeline mode"):
                    await task.using(connection=mine, key="k").aenqueue("a")
                with pytest.raises(WrongConnection, match="pipeline mode"):
                    await app.asignal("k", "go", connection=mine)
            return (await task.using(connection=mine, key="k").aenqueue("b")).id

    job = asyncio.run(enqueue())

    assert jobs(db) == [job]


def test_a_database_that_gets_our_schema_later_is_used_then(app: Rowlock, database_url: str) -> None:
    task = declared(app, "t")
    with psycopg.connect(database_url, autocommit=True) as mine:
        with pytest.raises(SchemaMissing):
            task.using(connection=mine).enqueue("a")

        Rowlock(database_url).migrate()

        task.using(connection=mine).enqueue("a")
        assert len(jobs(mine)) == 1
