"""Workflows in users' tests: drained until they wait, and brought on by travel and signals."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import asyncpg
import psycopg
import pytest
import sqlalchemy

from rowlock import Retry, Rowlock, RowlockError, Workflow
from rowlock.errors import StepFailed
from rowlock.model.outcome import Parked
from rowlock.testing import adrain, assert_enqueued, drain, travel
from rowlock.workflow.context import Context
from tests.worker.working import Db, one

HOUR = timedelta(hours=1)
AT_MOST = timedelta(seconds=10)


@pytest.fixture
def order(app: Rowlock) -> Workflow[[int], list[Any]]:
    """A workflow with something of everything."""

    @app.task(name="double")
    def double(number: int) -> int:
        return number * 2

    async def on_loop(number: int) -> int:
        return number + 1

    def in_thread(number: int) -> int:
        return number + 2

    @app.workflow(name="order")
    async def order(ctx: Context, number: int) -> list[Any]:
        steps = await asyncio.gather(ctx.step(on_loop, number), ctx.step(in_thread, number))
        children = await ctx.map([double.bind(step) for step in steps])
        ctx.state["children"] = children
        await ctx.sleep(HOUR)
        return [*steps, *children, await ctx.signal("paid")]

    return order


def test_a_workflow_that_sleeps_is_enqueued_as_parked(app: Rowlock, order: Any) -> None:  # noqa: ANN401  a workflow
    order.enqueue(1)
    drain(app)

    [record] = assert_enqueued(order)

    assert record.state == "parked"


def test_a_workflow_is_drained_until_it_waits_with_its_children(app: Rowlock, order: Any) -> None:  # noqa: ANN401  a workflow
    job = order.enqueue(1)
    asleep = drain(app)
    with travel(app, HOUR):
        waiting = drain(app)
        app.signal(job, "paid", "cash")
        drained = drain(app)

    assert [(one.task, one.ended) for one in asleep] == [
        ("order", "parked"),
        ("double", "succeeded"),
        ("double", "succeeded"),
        ("order", "parked"),
    ]
    assert (asleep.parked, waiting.parked, drained.parked, drained.succeeded) == (2, 1, 0, 1)
    assert isinstance(asleep.attempts[0].outcome, Parked)
    assert job.result(AT_MOST) == [2, 3, 4, 6, "cash"]


def test_in_async_tests_too(app: Rowlock, order: Any) -> None:  # noqa: ANN401  a workflow
    async def story() -> Any:  # noqa: ANN401  its result
        async with app:
            job = await order.aenqueue(1)
            await adrain(app)
            async with travel(app, HOUR):
                await adrain(app)
                await app.asignal(job, "paid", "cash")
                await adrain(app)
            return await job.aresult(AT_MOST)

    assert asyncio.run(story()) == [2, 3, 4, 6, "cash"]


# On the test's own connection


def test_all_of_it_happens_on_the_tests_connection_and_goes_with_it(app: Rowlock, order: Any, db: Db, url: str) -> None:  # noqa: ANN401  a workflow
    def insert(connection: psycopg.Connection[Any], name: str) -> str:
        connection.execute("insert into orders values (%s)", [name])
        if name == "never":
            raise KeyError(name)
        return name

    @app.workflow(name="writes", retry=Retry.none())
    async def writes(ctx: Context) -> list[str]:
        answer = await ctx.transaction(insert, "a")
        try:
            await ctx.transaction(insert, "never")
        except StepFailed as error:
            return [answer, error.error_type]
        return []

    with psycopg.connect(url) as connection:
        connection.execute("create table orders (name text)")
        job = order.using(connection=connection).enqueue(1)
        writes.using(connection=connection).enqueue()
        drain(app, connection=connection)
        with travel(app, HOUR, connection=connection):
            app.signal(job.id, "paid", "cash", connection=connection)
            drain(app, connection=connection)
        results = dict[str, str](
            connection.execute("select task, result::text from rowlock.history where version = 1").fetchall()
        )
        orders = connection.execute("select name from orders").fetchall()
        connection.rollback()

    assert results == {"order": '[2,3,4,6,"cash"]', "writes": '["a","KeyError"]'}
    assert orders == [("a",)]
    assert one(db, "select count(*) from rowlock.history") == one(db, "select count(*) from rowlock.steps") == 0


KINDS: dict[str, Callable[[str], Any]] = {
    "psycopg": psycopg.AsyncConnection.connect,
    "asyncpg": asyncpg.connect,
}


@pytest.mark.parametrize("kind", KINDS)
def test_async_connections_of_every_kind_do(app: Rowlock, order: Any, db: Db, url: str, kind: str) -> None:  # noqa: ANN401  a workflow
    async def story() -> Any:  # noqa: ANN401  its result
        connection = await KINDS[kind](url)
        await connection.execute("begin")
        async with app:
            job = await order.using(connection=connection).aenqueue(1)
            await adrain(app, connection=connection)
            await app.asignal(job.id, "paid", "cash", connection=connection)
            async with travel(app, HOUR, connection=connection):
                await adrain(app, connection=connection)
            await connection.execute("commit")
            await connection.close()
            return await job.aresult(AT_MOST)

    assert asyncio.run(story()) == [2, 3, 4, 6, "cash"]


def test_a_session_of_sqlalchemys_does(app: Rowlock, order: Any, url: str) -> None:  # noqa: ANN401  a workflow
    engine = sqlalchemy.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.connect() as connection:
        job = order.using(connection=connection).enqueue(1)
        drain(app, connection=connection)
        app.signal(job.id, "paid", "cash", connection=connection)
        with travel(app, HOUR, connection=connection):
            drain(app, connection=connection)
        connection.commit()
    engine.dispose()

    assert job.result(AT_MOST) == [2, 3, 4, 6, "cash"]


# What is reported


def test_what_a_workflow_raises_is_reported_or_raised(app: Rowlock) -> None:
    def fails() -> None:
        raise KeyError("no")

    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        await ctx.using(retry=Retry.none()).step(fails)

    w.enqueue()
    drained = drain(app)
    w.enqueue()

    assert drained.failed == 1
    assert isinstance(drained.errors[0], StepFailed)
    assert drained.errors[0].error_type == "KeyError"
    with pytest.raises(StepFailed):
        drain(app, raising=True)


def test_a_restart_is_reported_and_one_without_end_is_noticed(app: Rowlock) -> None:
    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        ctx.restart()

    w.enqueue()

    with pytest.raises(RowlockError, match=r"5 attempts were run and w is still due; most often ran w \(5\)"):
        drain(app, limit=5)


def test_a_workflow_that_somebody_else_has_locked_is_said(app: Rowlock, url: str) -> None:
    with psycopg.connect(url) as other:

        def lock() -> None:
            other.execute("select from rowlock.jobs for update")

        @app.workflow(name="w")
        async def w(ctx: Context) -> None:
            await ctx.step(lock)

        w.enqueue()

        with pytest.raises(RowlockError, match="its row has changed or is locked"):
            drain(app)
