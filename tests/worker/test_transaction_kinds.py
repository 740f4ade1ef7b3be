"""A handler's transaction on its own connection: every kind commits and rolls back by its library's own means."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from django.db import connection as django_connection
from django.db import transaction
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, sessionmaker

from rowlock import Retry, Rowlock, current_job
from rowlock.db.embedded import disposable
from rowlock.db.embedded.server import EmbeddedPostgres
from rowlock.errors import SchemaMissing, WrongConnection
from rowlock.testing import Drained, adrain, drain
from tests.db.django_site import visit
from tests.db.kinds import Lender, sqlalchemy_url
from tests.db.lending import KINDS, SYNC, lender, tell, usual
from tests.worker.working import Db, one

ONCE = Retry(attempts=1)

# Django has no async transactions.
COMMITTING = [kind for kind in KINDS if not kind.startswith("django-async")]
# An async scoped session is another one in every task, so the handler's is not the caller's, nor the caller's to close.
SHARED = [kind for kind in COMMITTING if "async-scoped" not in kind]
# What asyncpg or Django has begun, it lets nobody else commit.
JOINING = [kind for kind in SHARED if kind.startswith(("psycopg", "sqlalchemy"))]
REFUSING = [kind for kind in SHARED if kind not in JOINING]

INSERT = "insert into orders values (1)"


@pytest.fixture(autouse=True)
def orders(db: Db) -> None:
    db.execute("create table orders (number integer primary key)")


def outside(db: Db) -> tuple[int, int]:
    """Orders and ended jobs, as others see them."""
    return one(db, "select count(*) from orders"), one(db, "select count(*) from rowlock.history")


async def handled(app: Rowlock, caller: Lender, body: Callable[[], Any]) -> Drained:
    """Run a job whose handler holds a transaction on the caller's connection, with this inside."""
    if caller.is_async:

        @app.task(name="place", retry=ONCE)
        async def place() -> None:
            async with current_job().transaction(caller.connection):
                await body()

        await place.aenqueue()
        return await adrain(app)

    @app.task(name="place", retry=ONCE)
    def place_here() -> None:
        with current_job().transaction(caller.connection):
            tell("psycopg", body())

    place_here.enqueue()
    return drain(app)


@pytest.mark.parametrize("kind", usual(COMMITTING))
def test_the_block_begins_and_commits(kind: str, app: Rowlock, url: str, db: Db) -> None:
    async def story() -> None:
        async with lender(kind, url) as caller:

            async def body() -> None:
                await caller.execute(INSERT)
                assert outside(db) == (0, 0)

            drained = await handled(app, caller, body)

            assert (drained.errors, drained.succeeded) == ((), 1)
            assert outside(db) == (1, 1)

    tell(kind, story())


@pytest.mark.parametrize("kind", usual(COMMITTING))
def test_an_error_rolls_back_and_the_connection_stays_usable(kind: str, app: Rowlock, url: str, db: Db) -> None:
    async def story() -> None:
        async with lender(kind, url) as caller:

            async def body() -> None:
                await caller.execute(INSERT)
                raise ValueError("no")

            drained = await handled(app, caller, body)

            assert [type(error) for error in drained.errors] == [ValueError]
            assert await caller.execute("select count(*) from orders") == [(0,)]
            assert (outside(db), drained.failed) == ((0, 1), 1)

    tell(kind, story())


@pytest.mark.parametrize("kind", usual(COMMITTING))
def test_a_lost_lease_rolls_back(kind: str, app: Rowlock, url: str, db: Db) -> None:
    async def story() -> None:
        async with lender(kind, url) as caller:

            async def body() -> None:
                await caller.execute(INSERT)
                db.execute("delete from rowlock.jobs")

            with pytest.raises(Exception, match="its outcome cannot be written"):
                await handled(app, caller, body)

            assert await caller.execute("select count(*) from orders") == [(0,)]
            assert outside(db) == (0, 0)

    tell(kind, story())


@pytest.mark.parametrize("kind", usual(JOINING))
def test_a_transaction_that_is_open_is_gone_on_with(kind: str, app: Rowlock, url: str, db: Db) -> None:
    async def story() -> None:
        async with lender(kind, url) as caller:
            await caller.begin()
            await caller.execute("insert into orders values (0)")

            async def body() -> None:
                await caller.execute(INSERT)

            drained = await handled(app, caller, body)

            assert (drained.errors, outside(db)) == ((), (2, 1))

    tell(kind, story())


@pytest.mark.parametrize("kind", usual(JOINING))
def test_an_error_rolls_back_the_transaction_that_was_open(kind: str, app: Rowlock, url: str, db: Db) -> None:
    async def story() -> None:
        async with lender(kind, url) as caller:
            await caller.begin()
            await caller.execute("insert into orders values (0)")

            async def body() -> None:
                await caller.execute(INSERT)
                await caller.execute(INSERT)

            drained = await handled(app, caller, body)

            assert (drained.failed, len(drained.errors)) == (1, 1)
            assert await caller.execute("select count(*) from orders") == [(0,)]

    tell(kind, story())


@pytest.mark.parametrize("kind", usual(REFUSING))
def test_a_transaction_that_only_its_own_block_can_commit_is_refused(kind: str, app: Rowlock, url: str, db: Db) -> None:
    async def story() -> None:
        async with lender(kind, url) as caller:
            await caller.begin()
            await caller.execute("insert into orders values (0)")

            async def body() -> None:
                await caller.execute(INSERT)

            drained = await handled(app, caller, body)
            await caller.commit()

            assert [type(error) for error in drained.errors] == [WrongConnection]
            assert "leave that block first" in str(drained.errors[0])
            assert one(db, "select array_agg(number) from orders") == [0]

    tell(kind, story())


@pytest.mark.parametrize("kind", usual(SHARED))
def test_a_block_inside_of_a_savepoint_is_refused(kind: str, app: Rowlock, url: str, db: Db) -> None:
    async def story() -> None:
        async with lender(kind, url) as caller:
            await caller.begin()
            await caller.execute("insert into orders values (0)")
            async with caller.undone():

                async def body() -> None:
                    await caller.execute(INSERT)

                drained = await handled(app, caller, body)
            await caller.commit()

            assert [type(error) for error in drained.errors] == [WrongConnection]
            assert one(db, "select array_agg(number) from orders") == [0]

    tell(kind, story())


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.startswith("django-async")])
def test_django_is_for_sync_handlers(kind: str, app: Rowlock, url: str) -> None:
    async def story() -> None:
        async with lender(kind, url) as caller:

            async def body() -> None:
                raise AssertionError("not reached")

            drained = await handled(app, caller, body)

            assert "in a sync handler" in str(drained.errors[0])

    tell(kind, story())


@pytest.mark.parametrize("kind", usual([kind for kind in SHARED if "django" not in kind]))
def test_the_other_colour_is_refused(kind: str, app: Rowlock, url: str) -> None:
    async def story() -> str:
        async with lender(kind, url) as caller:

            @app.task(name="sync", retry=ONCE)
            def sync() -> None:
                with current_job().transaction(caller.connection):
                    raise AssertionError("not reached")

            @app.task(name="async", retry=ONCE)
            async def asynchronous() -> None:
                async with current_job().transaction(caller.connection):
                    raise AssertionError("not reached")

            await (sync if caller.is_async else asynchronous).aenqueue()
            return str((await adrain(app)).errors[0])

    said = asyncio.run(story())

    assert ("`async with` got a sync" if kind in SYNC else "`with` got an async") in said


@pytest.mark.parametrize("kind", ["psycopg", "psycopg-async"])
def test_an_autocommit_connection_of_psycopg_has_a_transaction_for_the_block(
    kind: str, app: Rowlock, url: str, db: Db
) -> None:
    async def story() -> None:
        async with lender(kind, url, autocommit=True) as caller:

            async def body() -> None:
                await caller.execute(INSERT)
                assert outside(db) == (0, 0)

            drained = await handled(app, caller, body)

            assert (drained.errors, outside(db)) == ((), (1, 1))

    tell(kind, story())


@pytest.mark.parametrize("kind", usual([kind for kind in SHARED if kind.startswith("sqlalchemy")]))
def test_autocommit_of_sqlalchemy_is_refused(kind: str, app: Rowlock, url: str, db: Db) -> None:
    async def story() -> None:
        async with lender(kind, url, autocommit=True) as caller:

            async def body() -> None:
                await caller.execute(INSERT)

            drained = await handled(app, caller, body)

            assert "AUTOCOMMIT" in str(drained.errors[0])
            assert outside(db) == (0, 1)

    tell(kind, story())


@pytest.mark.parametrize("kind", usual(SHARED))
def test_a_database_without_our_schema_is_refused(kind: str, app: Rowlock, server: EmbeddedPostgres) -> None:
    async def story() -> None:
        async with lender(kind, disposable.create(server.url)) as caller:

            async def body() -> None:
                raise AssertionError("not reached")

            drained = await handled(app, caller, body)

            assert [type(error) for error in drained.errors] == [SchemaMissing]

    tell(kind, story())


def test_another_database_with_our_schema_is_an_error_and_not_handed_back_for_ever(
    app: Rowlock, server: EmbeddedPostgres, template: str
) -> None:
    elsewhere = disposable.create(server.url, template=template)

    @app.task(name="place", retry=ONCE)
    def place() -> None:
        with psycopg.connect(elsewhere) as mine, current_job().transaction(mine):
            mine.execute("create table orders (number integer)")

    place.enqueue()
    drained = drain(app)

    assert drained.failed == 1
    with psycopg.connect(elsewhere) as mine:
        assert mine.execute("select to_regclass('orders')").fetchone() == (None,)


# SQLAlchemy's own ways


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"
    number: Mapped[int] = mapped_column(primary_key=True)


def test_what_a_session_has_not_flushed_yet_is_committed(app: Rowlock, url: str, db: Db) -> None:
    engine = create_engine(sqlalchemy_url(url, "psycopg"))

    @app.task(name="place", retry=ONCE)
    def place() -> None:
        with Session(engine) as session, current_job().transaction(session):
            session.add(Order(number=1))

    place.enqueue()
    drain(app, raising=True)
    engine.dispose()

    assert outside(db) == (1, 1)


def test_a_flush_that_fails_at_the_end_rolls_back(app: Rowlock, url: str, db: Db) -> None:
    db.execute(INSERT.encode())
    engine = create_engine(sqlalchemy_url(url, "psycopg"))

    @app.task(name="place", retry=ONCE)
    def place() -> None:
        with Session(engine) as session, current_job().transaction(session):
            session.add(Order(number=1))

    place.enqueue()
    drained = drain(app)
    engine.dispose()

    assert (drained.failed, outside(db)) == (1, (1, 1))


@pytest.mark.parametrize("fails", [False, True])
def test_a_session_in_a_begin_block_is_committed_by_ours(app: Rowlock, url: str, db: Db, *, fails: bool) -> None:
    engine = create_engine(sqlalchemy_url(url, "psycopg"))
    make = sessionmaker(engine)

    @app.task(name="place", retry=ONCE)
    def place() -> None:
        with make.begin() as session, current_job().transaction(session):
            session.execute(text(INSERT))
            if fails:
                raise ValueError("no")

    place.enqueue()
    drained = drain(app)
    engine.dispose()

    assert drained.failed == int(fails)
    assert outside(db) == (int(not fails), 1)


def test_an_async_session_in_a_begin_block_is_committed_by_ours(app: Rowlock, url: str, db: Db) -> None:
    @app.task(name="place", retry=ONCE)
    async def place() -> None:
        engine = create_async_engine(sqlalchemy_url(url, "asyncpg"))
        async with AsyncSession(engine) as session, session.begin(), current_job().transaction(session):
            await session.execute(text(INSERT))
        await engine.dispose()

    place.enqueue()
    drain(app, raising=True)

    assert outside(db) == (1, 1)


@pytest.mark.parametrize("mode", ["rollback_only", "create_savepoint", "conditional_savepoint"])
def test_a_session_that_has_joined_its_connections_transaction_is_refused(
    mode: Any,  # noqa: ANN401  SQLAlchemy's literal
    app: Rowlock,
    url: str,
    db: Db,
) -> None:
    engine = create_engine(sqlalchemy_url(url, "psycopg"))

    @app.task(name="place", retry=ONCE)
    def place() -> None:
        with (
            engine.begin() as connection,
            Session(connection, join_transaction_mode=mode) as session,
            current_job().transaction(session),
        ):
            session.execute(text(INSERT))

    place.enqueue()
    drained = drain(app)
    engine.dispose()

    assert [type(error) for error in drained.errors] == [WrongConnection]
    assert outside(db) == (0, 1)


# Django's own ways


def test_a_hook_that_fails_after_the_commit_changes_nothing(app: Rowlock, url: str, db: Db) -> None:
    visit(url)

    def fail() -> None:
        raise ValueError("the mail server is down")

    @app.task(name="place", retry=ONCE)
    def place() -> None:
        with current_job().transaction(django_connection):
            django_connection.cursor().execute(INSERT)
            transaction.on_commit(fail)

    place.enqueue()
    drained = drain(app)
    django_connection.close()

    assert [type(error) for error in drained.errors] == [ValueError]
    assert (drained.succeeded, outside(db)) == (1, (1, 1))


def test_in_djangos_own_test_transaction_a_drained_block_is_part_of_it(app: Rowlock, url: str, db: Db) -> None:
    visit(url)

    @app.task(name="place", retry=ONCE)
    def place() -> None:
        with current_job().transaction(django_connection):
            django_connection.cursor().execute(INSERT)

    with transaction.atomic():
        place.using(connection=django_connection).enqueue()
        drained = drain(app, connection=django_connection)
        transaction.set_rollback(True)
    django_connection.close()

    assert (drained.errors, drained.succeeded) == ((), 1)
    assert outside(db) == (0, 0)


# Drained connections


@pytest.mark.parametrize("kind", usual(SHARED))
def test_on_the_drained_connection_itself_the_block_is_part_of_its_transaction(
    kind: str, app: Rowlock, url: str, db: Db
) -> None:
    async def story() -> None:
        async with lender(kind, url) as caller:
            if caller.is_async:

                @app.task(name="place", retry=ONCE)
                async def place() -> None:
                    async with current_job().transaction(caller.connection):
                        await caller.execute(INSERT)

                await caller.begin()
                await caller.enqueue(app, place.bind())
                drained = await adrain(app, connection=caller.connection)
            else:

                @app.task(name="place", retry=ONCE)
                def place_here() -> None:
                    with current_job().transaction(caller.connection):
                        tell("psycopg", caller.execute(INSERT))

                await caller.begin()
                await caller.enqueue(app, place_here.bind())
                drained = drain(app, connection=caller.connection)
            seen = await caller.execute("select count(*) from orders")
            await caller.rollback()

            assert (drained.errors, seen, outside(db)) == ((), [(1,)], (0, 0))

    tell(kind, story())
