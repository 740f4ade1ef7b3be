"""A SQLAlchemy session or connection of the caller's: what is its own, beside what test_conformance.py asks of all."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.rows import TupleRow
from sqlalchemy import Column, Engine, Integer, MetaData, Table, create_engine, text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import Session, registry, sessionmaker

from rowlock import Rowlock, Task
from rowlock.db import borrowed
from rowlock.errors import WrongConnection
from tests.db.kinds import sqlalchemy_url

Db = psycopg.Connection[TupleRow]
T = Task[[str], None]


@pytest.fixture
def task(app: Rowlock) -> T:
    @app.task(name="t")
    def note(text: str) -> None:
        return None

    return note


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    engine = create_engine(sqlalchemy_url(url, "psycopg"))
    yield engine
    engine.dispose()


class Order:
    """A row of the caller's own."""

    def __init__(self, number: int) -> None:
        self.number = number


orders = Table("orders", MetaData(), Column("number", Integer, primary_key=True))
registry().map_imperatively(Order, orders)


def jobs(db: Db) -> list[UUID]:
    return [job for (job,) in db.execute("select id from rowlock.jobs order by id")]


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
def test_inside_of_run_sync_the_sync_face_is_served(app: Rowlock, task: T, url: str, db: Db, driver: str) -> None:
    def inside(session: Session) -> list[UUID]:
        task.using(connection=session).enqueue("rolled back")
        session.rollback()
        one = task.using(connection=session).enqueue("kept")
        many = app.enqueue_many([task.bind("a")] * 600, connection=session)
        return [one.id, *(job.id for job in many)]

    async def caller() -> list[UUID]:
        engine = create_async_engine(sqlalchemy_url(url, driver))
        async with AsyncSession(engine) as session:
            made = await session.run_sync(inside)
            assert jobs(db) == []
            await session.commit()
        await engine.dispose()
        return made

    assert asyncio.run(caller()) == jobs(db)


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
def test_outside_of_run_sync_the_sync_face_is_refused(task: T, url: str, driver: str) -> None:
    async def caller() -> None:
        engine = create_async_engine(sqlalchemy_url(url, driver))
        async with AsyncSession(engine) as session, session.begin():
            await session.connection()
            with pytest.raises(WrongConnection, match="async connection"):
                task.using(connection=session.sync_session).enqueue("a")
        await engine.dispose()

    asyncio.run(caller())


def test_what_waits_in_the_session_is_committed_with_the_job(task: T, engine: Engine, db: Db) -> None:
    orders.create(engine)
    with Session(engine) as session, session.begin():
        session.add(Order(1))
        job = task.using(connection=session).enqueue("a")

    assert jobs(db) == [job.id]
    assert db.execute("select number from orders").fetchall() == [(1,)]


def test_a_session_whose_flush_failed_is_refused_until_it_is_rolled_back(task: T, engine: Engine, db: Db) -> None:
    orders.create(engine)
    with Session(engine) as session:
        session.execute(text("insert into orders values (1)"))
        session.add(Order(1))
        with pytest.raises(IntegrityError):
            session.flush()

        with pytest.raises(WrongConnection, match="failed transaction; roll it back first"):
            task.using(connection=session).enqueue("a")

        session.rollback()
        task.using(connection=session).enqueue("a")
        session.commit()
    assert len(jobs(db)) == 1


def test_a_session_that_does_not_begin_by_itself_is_refused_until_it_is_begun(task: T, engine: Engine, db: Db) -> None:
    with Session(engine, autobegin=False) as session:
        with pytest.raises(WrongConnection, match=r"cannot be used now: Autobegin is disabled"):
            task.using(connection=session).enqueue("a")

        with session.begin():
            task.using(connection=session).enqueue("a")

    assert len(jobs(db)) == 1


def test_a_session_with_a_database_for_each_class_is_refused_and_its_connection_is_not(
    task: T, engine: Engine, db: Db
) -> None:
    with Session(binds={Order: engine}) as session:
        with pytest.raises(WrongConnection, match="cannot be used now"):
            task.using(connection=session).enqueue("a")

        task.using(connection=session.connection(bind_arguments={"mapper": Order})).enqueue("a")
        session.commit()

    assert len(jobs(db)) == 1


def test_a_two_phase_session_prepares_the_job_too(app: Rowlock, task: T, engine: Engine, db: Db) -> None:
    with Session(engine, twophase=True) as session:
        app.enqueue_many([task.bind("a")] * 600, connection=session)
        session.rollback()

    assert jobs(db) == []


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
def test_an_async_connection_that_was_not_started_is_refused(task: T, url: str, driver: str) -> None:
    async def caller() -> None:
        engine = create_async_engine(sqlalchemy_url(url, driver))
        with pytest.raises(WrongConnection, match="has not been started"):
            await task.using(connection=engine.connect()).aenqueue("a")

    asyncio.run(caller())


@pytest.mark.parametrize("make", [lambda engine: engine, sessionmaker])
def test_what_makes_connections_is_refused(task: T, engine: Engine, make: Any) -> None:  # noqa: ANN401
    with pytest.raises(WrongConnection, match=r"connection= is SQLAlchemy's .*; pass what it makes: `with .*begin\(\)"):
        task.using(connection=make(engine)).enqueue("a")


@pytest.mark.parametrize("make", [lambda engine: engine, async_sessionmaker])
def test_what_makes_async_connections_is_refused(task: T, url: str, make: Any) -> None:  # noqa: ANN401
    engine = create_async_engine(sqlalchemy_url(url, "asyncpg"))

    with pytest.raises(WrongConnection, match=r"SQLAlchemy's .*; pass what it makes: `async with .*begin\(\)"):
        asyncio.run(task.using(connection=make(engine)).aenqueue("a"))


def test_another_database_is_refused(task: T) -> None:
    with Session(create_engine("sqlite://")) as session:
        with pytest.raises(WrongConnection, match="speaks to sqlite; pass one to the PostgreSQL that has the jobs"):
            task.using(connection=session).enqueue("a")
        assert not session.in_transaction()


def test_another_driver_is_refused_before_it_connects(task: T, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = ModuleType("psycopg2")
    vars(driver).update(paramstyle="pyformat", __version__="2.9.10", extras=ModuleType("extras"))
    monkeypatch.setitem(sys.modules, "psycopg2", driver)
    engine = create_engine("postgresql+psycopg2://nowhere.invalid/", module=driver)
    instead = r"create_engine\('postgresql\+psycopg://"

    with (
        Session(engine) as session,
        pytest.raises(WrongConnection, match=f"through psycopg2; use psycopg 3 or asyncpg: {instead}"),
    ):
        task.using(connection=session).enqueue("a")


def test_a_session_without_a_transaction_has_no_physical_connection(engine: Engine) -> None:
    with Session(engine) as session:
        assert borrowed.physical(session) is None
        assert not session.in_transaction()
        session.begin()
        assert borrowed.physical(session) is None
        assert not borrowed.in_transaction(session)

        session.execute(text("select 1"))

        assert isinstance(borrowed.physical(session), psycopg.Connection)
        assert borrowed.in_transaction(session)
