"""ctx.transaction: what a function writes and the record of its step, committed together, once."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from rowlock import Rowlock
from rowlock.errors import JobFailed, StepFailed
from rowlock.testing import adrain, drain
from rowlock.workflow.context import Context
from tests.faults.proxy import Cut, Proxy
from tests.rows import Db
from tests.waiting import auntil
from tests.worker.working import one
from tests.workflow.playing import AT_MOST, AT_ONCE, MOMENT, ONCE, kept, play, steps

Connection = psycopg.Connection[Any]
AsyncConnection = psycopg.AsyncConnection[Any]


@pytest.fixture
def orders(db: Db) -> None:
    """A table of the user's own, whose key is looked at when a transaction ends."""
    db.execute("create table orders (name text primary key deferrable initially deferred)")


def there(db: Db) -> list[str]:
    return [name for (name,) in db.execute("select name from orders order by name")]


async def insert(connection: AsyncConnection, name: str) -> str:
    await connection.execute("insert into orders values (%s)", [name])
    return f"inserted {name}"


def insert_in_thread(connection: Connection, name: str) -> str:
    connection.execute("insert into orders values (%s)", [name])
    return f"inserted {name}"


@pytest.mark.usefixtures("orders")
def test_what_is_written_and_its_record_are_committed_together_and_once(app: Rowlock, db: Db) -> None:
    seen: list[Any] = []

    async def look(connection: AsyncConnection) -> None:
        await insert(connection, "c")
        seen.append(there(db))
        seen.append(one(db, "select count(*) from rowlock.steps"))

    @app.workflow(name="w")
    async def w(ctx: Context) -> list[str]:
        answers = [await ctx.transaction(insert, "a"), await ctx.transaction(insert_in_thread, name="b")]
        await ctx.transaction(look)
        await ctx.sleep(MOMENT)
        return answers

    job = w.enqueue()

    assert play(app, job) == ["inserted a", "inserted b"]
    assert seen == [["a", "b"], 2]
    assert there(db) == ["a", "b", "c"]
    assert steps(app, job)[0] == ("insert", "done")


@pytest.mark.usefixtures("orders")
def test_an_error_rolls_it_back_and_it_is_tried_again_by_its_policy(app: Rowlock, db: Db) -> None:
    calls: list[str] = []

    async def insert_and_fail(connection: AsyncConnection) -> None:
        calls.append("async")
        await insert(connection, f"a{len(calls)}")
        if len(calls) < 3:
            raise ConnectionError("down")

    def insert_and_refuse(connection: Connection) -> None:
        insert_in_thread(connection, "never")
        raise KeyError("no")

    @app.workflow(name="w")
    async def w(ctx: Context) -> str:
        await ctx.using(retry=AT_ONCE).transaction(insert_and_fail)
        with pytest.raises(StepFailed, match="KeyError: 'no'"):
            await ctx.using(retry=ONCE).transaction(insert_and_refuse)
        return "done"

    assert play(app, w.enqueue()) == "done"
    assert there(db) == ["a3"]


@pytest.mark.usefixtures("orders")
def test_what_fails_at_the_commit_has_failed(app: Rowlock, db: Db) -> None:
    db.execute("insert into orders values ('a')")

    @app.workflow(name="w", retry=AT_ONCE)
    async def w(ctx: Context) -> None:
        await ctx.transaction(insert, "a")

    job = w.enqueue()
    drain(app)

    with pytest.raises(JobFailed, match=r"step 'insert' failed \(3 attempts\).*UniqueViolation"):
        job.result(AT_MOST)
    assert there(db) == ["a"]


@pytest.mark.usefixtures("orders")
@pytest.mark.parametrize("function", [insert, insert_in_thread])
def test_a_commit_whose_answer_was_lost_has_not_failed(db: Db, url: str, function: Any) -> None:  # noqa: ANN401  of either kind
    with Proxy(url) as proxy, Rowlock(proxy.url) as app:
        lost = proxy.on("transaction_commit", Cut(after=True), who="rowlock handler")

        @app.workflow(name="w", retry=ONCE)
        async def w(ctx: Context) -> str:
            return await ctx.transaction(function, "a")

        job = w.enqueue()

        assert play(app, job) == "inserted a"
        assert lost.happened.is_set()
    assert there(db) == ["a"]


@pytest.mark.usefixtures("orders")
def test_it_may_be_on_a_connection_of_the_users_own(app: Rowlock, db: Db, url: str) -> None:
    with psycopg.connect(url) as mine:

        @app.workflow(name="w")
        async def w(ctx: Context) -> str:
            answer = await ctx.using(connection=mine).transaction(insert_in_thread, "a")
            await ctx.sleep(MOMENT)
            return answer

        assert play(app, w.enqueue()) == "inserted a"
    assert there(db) == ["a"]


def test_a_connection_that_leads_elsewhere_is_an_error_of_the_step(app: Rowlock, database_url: str) -> None:
    with Rowlock(database_url) as other:
        other.migrate()
    with psycopg.connect(database_url) as elsewhere:

        @app.workflow(name="w", retry=ONCE)
        async def w(ctx: Context) -> None:
            await ctx.using(connection=elsewhere, name="count").transaction(lambda _connection: None)

        job = w.enqueue()
        drain(app)

    with pytest.raises(JobFailed, match="the connection leads to another database"):
        job.result(AT_MOST)


@pytest.mark.usefixtures("orders")
def test_transactions_side_by_side_do_not_take_each_other_along(app: Rowlock, db: Db) -> None:
    """On one connection as in a test, and on connections of a worker's."""

    async def insert_and_fail(connection: AsyncConnection) -> None:
        await insert(connection, "never")
        raise KeyError("no")

    async def plain() -> str:
        return "plain"

    @app.workflow(name="w", retry=ONCE)
    async def w(ctx: Context, name: str) -> list[str]:
        answers = await asyncio.gather(
            ctx.transaction(insert_and_fail), ctx.step(plain), ctx.transaction(insert, name), return_exceptions=True
        )
        await ctx.sleep(MOMENT)
        return [str(answer) for answer in answers[1:]]

    async def story() -> tuple[list[str], list[str]]:
        async with app, await psycopg.AsyncConnection.connect(db.info.dsn) as connection:
            first = await w.using(connection=connection).aenqueue("a")
            await adrain(app, connection=connection)
            await connection.commit()
            second = await w.aenqueue("b")
            async with app.worker(grace=timedelta(seconds=5)):
                await auntil(lambda: one(db, "select count(*) from rowlock.history") == 2)
            return await first.aresult(AT_MOST), await second.aresult(AT_MOST)

    assert asyncio.run(story()) == (["plain", "inserted a"], ["plain", "inserted b"])
    assert there(db) == ["a", "b"]


@pytest.mark.usefixtures("orders")
def test_it_is_known_inside_what_the_outside_should_know_it_by(app: Rowlock) -> None:
    @app.workflow(name="w")
    async def w(ctx: Context) -> list[str]:
        async def note(_connection: AsyncConnection) -> str:
            return ctx.idempotency_key

        before = ctx.idempotency_key
        return [before, await ctx.transaction(note)]

    job = w.enqueue()
    before, inside = play(app, job)

    assert before == inside == kept(app, job, "note")
