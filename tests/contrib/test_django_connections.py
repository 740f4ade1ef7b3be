"""Django's connections in a worker: looked after in every thread that runs a function, shared by no two attempts."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta

import psycopg
import pytest
from asgiref.sync import SyncToAsync, sync_to_async
from django.db import connection, connections
from django.utils.connection import ConnectionProxy
from psycopg.rows import TupleRow

from rowlock import Context, Retry, Rowlock, current_job
from rowlock.contrib.django import DjangoRowlock
from tests.db.django_site import DEFAULT, visit
from tests.waiting import auntil, until
from tests.worker.working import one, work_off

Db = psycopg.Connection[TupleRow]

SOON = Retry(attempts=3, base=timedelta(milliseconds=10))


@pytest.fixture
def app(url: str) -> Iterator[DjangoRowlock]:
    visit(url)
    with DjangoRowlock() as app:
        yield app
    connection.close()


@pytest.fixture
def kept(app: DjangoRowlock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections are kept from one request to the next."""
    monkeypatch.setitem(connections.settings[DEFAULT], "CONN_MAX_AGE", None)


def backend() -> int:
    with connection.cursor() as cursor:
        cursor.execute("select pg_backend_pid()")
        return int(cursor.fetchone()[0])


def of_django(db: Db) -> int:
    """How many connections of Django's there are: ours have names of their own."""
    query = """select count(*) from pg_stat_activity
        where datname = current_database() and application_name = '' and pid <> pg_backend_pid()"""
    return int(one(db, query))


def test_steps_go_on_after_their_connection_broke(app: DjangoRowlock, kept: None, db: Db) -> None:
    tries: list[str] = []

    def step(name: str) -> int:
        tries.append(name)
        return backend()

    def hang_up() -> None:
        connection.close()

    def end_backend(pid: int) -> None:
        db.execute("select pg_terminate_backend(%s, 10000)", [pid])

    @app.workflow(version=1, name="w")
    async def w(ctx: Context) -> int:
        first = await ctx.using(name="first").step(step, "first")
        await ctx.using(name="restart").step(asyncio.to_thread, end_backend, first)
        second = await ctx.using(name="second", retry=SOON).step(step, "second")
        await ctx.step(hang_up)
        return second

    with app.within(None):
        w.enqueue()
    work_off(app, db, threads=1)

    assert one(db, "select state from rowlock.history") == "succeeded"
    assert tries == ["first", "second", "second"]


def test_a_workflow_leaves_no_connection_behind(app: DjangoRowlock, db: Db) -> None:
    async def awaited() -> int:
        return await sync_to_async(backend)()

    @app.workflow(version=1, name="w", fails_on=ValueError)
    async def w(ctx: Context) -> int:
        ctx.undo(backend)
        await ctx.step(backend)
        await ctx.step(awaited)
        await ctx.using(name="written").transaction(lambda _connection: backend())
        raise ValueError("let it be undone")

    async def work() -> int:
        async with app.worker(slots=2, threads=1):
            with app.within(None):
                job = await w.aenqueue()
            await auntil(lambda: one(db, "select count(*) from rowlock.history") == 1, what="the workflow's end")
            assert (await job.arecord()).state == "failed"
            return of_django(db)  # while the worker goes on

    assert asyncio.run(work()) == 0


def test_an_async_handler_that_ends_leaves_the_connections_of_others_alone(app: DjangoRowlock, db: Db) -> None:
    other_has_ended = asyncio.Event()

    @app.task(name="goes on")
    async def goes_on() -> bool:
        before = await sync_to_async(backend)()
        await other.aenqueue()
        await other_has_ended.wait()
        return await sync_to_async(backend)() == before

    @app.task(name="ends")
    async def other() -> None:
        await sync_to_async(backend)()

    async def work() -> bool:
        async with app.worker(slots=2):
            with app.within(None):
                job = await goes_on.aenqueue()
            await auntil(lambda: one(db, "select count(*) from rowlock.history") == 1, what="the end of the other")
            other_has_ended.set()
            return await job.aresult(timedelta(seconds=30))

    assert asyncio.run(work())
    until(lambda: of_django(db) == 0, what="the end of all of Django's connections")


def test_a_lifespan_has_a_thread_for_the_orm_as_it_begins_and_one_as_it_ends_and_none_between(url: str, db: Db) -> None:
    used: list[str] = []

    @sync_to_async
    def use() -> None:
        backend()
        used.append(threading.current_thread().name)

    @asynccontextmanager
    async def lifespan(_app: Rowlock) -> AsyncIterator[None]:
        await use()
        yield
        await use()

    visit(url)
    app = DjangoRowlock(lifespan=lifespan)

    @app.task(name="t")
    async def t() -> None:
        await use()

    async def work() -> int:
        async with app.worker(slots=2):
            until_then = of_django(db)
            with app.within(None):
                jobs = [await t.aenqueue(), await t.aenqueue()]
            for job in jobs:
                await job.aresult(timedelta(seconds=30))
            return until_then

    with app:
        left = asyncio.run(work())

    assert left == 0
    assert len(set(used)) == len(used) == 4
    until(lambda: of_django(db) == 0, what="the end of all of Django's connections")


def test_an_async_handler_that_uses_no_orm_starts_no_thread(app: DjangoRowlock, db: Db) -> None:
    @app.task(name="t")
    async def t() -> int:
        return len(SyncToAsync.context_to_thread_executor)

    with app.within(None):
        t.enqueue()
    work_off(app, db)

    assert one(db, "select result from rowlock.history") == 0


# Transactions


def insert() -> None:
    with connection.cursor() as cursor:
        cursor.execute("insert into orders values (1)")


def test_a_handlers_transaction_is_on_the_connection_of_the_orm(app: DjangoRowlock, db: Db) -> None:
    db.execute("create table orders (number integer)")

    @app.task(name="t", retry=SOON)
    def t() -> None:
        with current_job().transaction():
            insert()
            if current_job().attempt < 3:
                raise ConnectionError("too late: it is inserted")  # it is not

    with app.within(None):
        t.enqueue()
    work_off(app, db)

    assert one(db, "select state from rowlock.history") == "succeeded"
    assert one(db, "select count(*) from orders") == 1


def test_a_steps_transaction_is_on_the_connection_of_the_orm(app: DjangoRowlock, db: Db) -> None:
    db.execute("create table orders (number integer)")
    tries: list[object] = []

    def step(lent: object) -> None:
        insert()
        tries.append(lent)
        if len(tries) < 3:
            raise ConnectionError("too late: it is inserted")  # it is not

    @app.workflow(version=1, name="w")
    async def w(ctx: Context) -> None:
        await ctx.using(retry=SOON).transaction(step)

    with app.within(None):
        w.enqueue()
    work_off(app, db)

    assert one(db, "select state from rowlock.history") == "succeeded"
    assert one(db, "select count(*) from orders") == 1
    assert {type(lent) for lent in tries} == {ConnectionProxy}


def test_an_async_handler_is_told_where_its_transaction_can_be(app: DjangoRowlock, db: Db) -> None:
    db.execute("create table orders (number integer)")

    @app.task(name="refused", retry=Retry(attempts=1))
    async def refused() -> None:
        async with current_job().transaction():
            pass

    @app.task(name="apart")
    async def apart() -> None:
        with app.within(None):
            async with current_job().transaction() as ours:
                await ours.execute("insert into orders values (1)")

    with app.within(None):
        app.enqueue_many([refused.bind(), apart.bind()])
    work_off(app, db)

    query = "select task, coalesce(errors[1] ->> 'message', state) from rowlock.history"
    said: dict[str, str] = dict(db.execute(query).fetchall())
    assert "in a sync handler, or, for a psycopg connection, `with app.within(None):` around it" in said["refused"]
    assert said["apart"] == "succeeded"
    assert one(db, "select count(*) from orders") == 1
