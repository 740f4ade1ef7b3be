"""Every kind of connection can be drained inside its open transaction, which nobody else notices."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from rowlock import Rowlock, RowlockError, Task
from rowlock.errors import WrongConnection
from rowlock.testing import (
    Drained,
    aassert_enqueued,
    aassert_not_enqueued,
    adrain,
    assert_enqueued,
    assert_not_enqueued,
    drain,
    travel,
)
from tests.db.kinds import Lender, sqlalchemy_url
from tests.db.lending import every_kind, lender, tell
from tests.worker.working import Db, one

DAY = timedelta(days=1)
JOBS = "select (select count(*) from rowlock.jobs), (select count(*) from rowlock.history)"


@pytest.fixture
def leaf(app: Rowlock) -> Task[..., Any]:
    @app.task(name="leaf")
    def leaf(name: str) -> str:
        return name

    return leaf


@pytest.fixture
def parents(app: Rowlock, leaf: Task[..., Any]) -> list[Task[..., None]]:
    """One of each colour, both of which enqueue."""

    @app.task(name="sync")
    def sync() -> None:
        leaf.enqueue("of sync")

    @app.task(name="async")
    async def asynchronous() -> None:
        await leaf.aenqueue("of async")

    return [sync, asynchronous]


async def drained(caller: Lender, app: Rowlock, **options: Any) -> Drained:  # noqa: ANN401  drain's own
    if caller.is_async:
        return await adrain(app, connection=caller.connection, **options)
    return drain(app, connection=caller.connection, **options)


def outside(db: Db) -> tuple[Any, ...] | None:
    return db.execute(JOBS).fetchone()


@every_kind
def test_jobs_run_inside_the_transaction_with_what_their_handlers_enqueue(
    kind: str, app: Rowlock, parents: list[Task[..., None]], url: str, db: Db
) -> None:
    async def story() -> list[Any]:
        async with lender(kind, url) as caller:
            await caller.begin()
            await caller.enqueue(app, *(task.bind() for task in parents))

            report = await drained(caller, app)

            inside = await caller.execute(JOBS), await caller.execute("select count(*) from rowlock.workers")
            assert outside(db) == (0, 0)
            await caller.rollback()
            return [report, *inside]

    report, inside, workers = tell(kind, story())

    assert [attempt.task for attempt in report] == ["sync", "async", "leaf", "leaf"]
    assert report.errors == ()
    assert inside == [(0, 4)]
    assert workers == [(0,)]
    assert outside(db) == (0, 0)


@every_kind
def test_a_commit_keeps_what_was_done(kind: str, app: Rowlock, leaf: Task[..., Any], url: str, db: Db) -> None:
    async def story() -> None:
        async with lender(kind, url) as caller:
            await caller.begin()
            await caller.enqueue(app, leaf.bind("a"))
            await drained(caller, app)
            await caller.commit()

    tell(kind, story())

    assert outside(db) == (0, 1)
    assert one(db, "select result from rowlock.history") == "a"


@every_kind
def test_the_clock_moves_inside_the_transaction_alone(
    kind: str, app: Rowlock, leaf: Task[..., Any], url: str, db: Db
) -> None:
    before = one(db, "select pg_get_functiondef('rowlock.now()'::regprocedure)")

    async def story() -> None:
        async with lender(kind, url) as caller:
            await caller.begin()
            await caller.enqueue(app, leaf.using(delay=5 * DAY).bind("a"))
            trip = travel(app, 5 * DAY, connection=caller.connection)
            assert len(await drained(caller, app)) == 0

            await (trip.__aenter__() if caller.is_async else at_once(trip.__enter__))
            assert (await drained(caller, app)).succeeded == 1
            assert one(db, "select rowlock.now() = statement_timestamp()")
            await (trip.__aexit__(None, None, None) if caller.is_async else at_once(trip.__exit__, None, None, None))

            await caller.commit()

    tell(kind, story())

    assert one(db, "select pg_get_functiondef('rowlock.now()'::regprocedure)") == before


async def at_once(function: Callable[..., object], *args: object) -> object:
    return function(*args)


@every_kind
def test_assertions_look_inside_the_transaction(
    kind: str, app: Rowlock, leaf: Task[..., Any], url: str, db: Db
) -> None:
    async def story() -> None:
        async with lender(kind, url) as caller:
            await caller.begin()
            await caller.enqueue(app, leaf.using(tags=["x"]).bind("a"))

            if caller.is_async:
                [record] = await aassert_enqueued(leaf.bind("a"), tags=["x"], connection=caller.connection)
                await aassert_not_enqueued(leaf.bind("b"), connection=caller.connection)
            else:
                [record] = assert_enqueued(leaf.bind("a"), tags=["x"], connection=caller.connection)
                assert_not_enqueued(leaf.bind("b"), connection=caller.connection)
            assert (record.state, record.tags, record.args) == ("ready", ("x",), {"name": "a"})
            await caller.rollback()

    tell(kind, story())


@every_kind
def test_errors_of_handlers_leave_the_transaction_as_it_is(kind: str, app: Rowlock, url: str) -> None:
    @app.task(name="fails")
    def fails() -> None:
        raise LookupError("as ever")

    async def story() -> None:
        async with lender(kind, url) as caller:
            await caller.begin()
            await caller.enqueue(app, fails.bind())
            with pytest.raises(LookupError):
                await drained(caller, app, raising=True)
            assert await caller.execute("select failures, state from rowlock.jobs") == [(1, "ready")]
            await caller.rollback()

    tell(kind, story())


# One transaction around a test, as fixtures do it


def test_a_sqlalchemy_session_whose_commits_are_savepoints(app: Rowlock, url: str, db: Db) -> None:
    """SQLAlchemy's own recipe: the test's code commits, and the outer transaction is rolled back."""
    db.execute("create table users (id integer, greeted boolean)")
    session_of_the_test: Session

    @app.task(name="greet")
    def greet(user: int) -> None:
        session_of_the_test.execute(text("update users set greeted = true where id = :id"), {"id": user})
        session_of_the_test.commit()

    engine = create_engine(sqlalchemy_url(url, "psycopg"))
    with engine.connect() as connection:
        transaction = connection.begin()
        session_of_the_test = Session(connection, join_transaction_mode="create_savepoint")
        session_of_the_test.execute(text("insert into users values (42, false)"))
        greet.using(connection=session_of_the_test).enqueue(42)
        session_of_the_test.commit()

        report = drain(app, connection=session_of_the_test)

        assert report.succeeded == 1
        assert session_of_the_test.execute(text("select greeted from users")).scalar_one() is True
        session_of_the_test.close()
        transaction.rollback()
    engine.dispose()

    assert outside(db) == (0, 0)
    assert one(db, "select count(*) from users") == 0


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
def test_an_async_session_whose_commits_are_savepoints(driver: str, app: Rowlock, url: str, db: Db) -> None:
    db.execute("create table users (id integer, greeted boolean)")

    async def story() -> None:
        @app.task(name="greet")
        async def greet(user: int) -> None:
            await session.execute(text("update users set greeted = true where id = :id"), {"id": user})
            await session.commit()

        engine = create_async_engine(sqlalchemy_url(url, driver))
        async with engine.connect() as connection:
            transaction = await connection.begin()
            session = AsyncSession(connection, join_transaction_mode="create_savepoint")
            await session.execute(text("insert into users values (42, false)"))
            await greet.using(connection=session).aenqueue(42)
            await session.commit()

            report = await adrain(app, connection=session)

            assert report.succeeded == 1
            assert (await session.execute(text("select greeted from users"))).scalar_one() is True
            await session.close()
            await transaction.rollback()
        await engine.dispose()

    asyncio.run(story())

    assert outside(db) == (0, 0)


# What goes wrong


def test_a_handler_that_breaks_the_transaction_is_named_as_the_cause(app: Rowlock, url: str) -> None:
    with psycopg.connect(url) as connection:

        @app.task(name="breaks")
        def breaks() -> None:
            connection.execute("select 1 / 0")

        breaks.using(connection=connection).enqueue()

        with pytest.raises(WrongConnection, match="failed transaction") as caught:
            drain(app, connection=connection)

    assert isinstance(caught.value.__cause__, psycopg.errors.DivisionByZero)


def test_a_handler_that_ends_the_transaction_is_told_so(app: Rowlock, url: str) -> None:
    with psycopg.connect(url) as connection:

        @app.task(name="rolls back")
        def rolls_back() -> None:
            connection.rollback()

        rolls_back.using(connection=connection).enqueue()

        with pytest.raises(RowlockError, match="whether the handler rolled back or committed"):
            drain(app, connection=connection)


@pytest.mark.parametrize(("kind", "verb"), [("psycopg", adrain), ("psycopg-async", drain)])
def test_the_wrong_colour_of_connection_is_refused_with_a_word_on_the_right_one(
    kind: str, verb: Callable[..., Any], app: Rowlock, url: str
) -> None:
    async def story() -> None:
        async with lender(kind, url) as caller:
            refused: Awaitable[Drained] | Drained = (
                verb(app, connection=caller.connection)
                if verb is adrain
                else asyncio.to_thread(verb, app, connection=caller.connection)
            )
            assert isinstance(refused, Awaitable)
            with pytest.raises(WrongConnection) as caught:
                await refused
            assert re.search("drain takes sync connections", "\n".join(caught.value.__notes__))

    asyncio.run(story())
