"""What every kind of borrowed connection must do: the job lives and dies with the caller's transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from urllib.parse import urlencode
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import TupleRow

from benchmarks.arena import Arena
from benchmarks.wire import Wire, tapped
from rowlock import Rowlock, Task
from rowlock.db import borrowed
from rowlock.db.embedded import disposable
from rowlock.db.embedded.server import EmbeddedPostgres
from rowlock.errors import KeyTaken, SchemaMissing, WrongConnection
from rowlock.model.key import Key
from rowlock.model.outcome import Succeeded
from rowlock.model.row import ClaimedJob
from rowlock.store import claim, settle, workers
from rowlock.store.claim import Lane
from rowlock.store.query import Conversation, Query
from tests.db.django_site import Django
from tests.db.kinds import Lender
from tests.db.lending import ASYNC, SYNC, every_kind, lender, tell
from tests.waiting import auntil

Db = psycopg.Connection[TupleRow]
T = Task[[str], None]

MANY = 600


@pytest.fixture(scope="module")
def shared_url(server: EmbeddedPostgres, template: str) -> str:
    """One database for all of these tests: there are many, and to make a database is most of what one of them costs."""
    url = disposable.create(server.url, template=template)
    with psycopg.connect(url) as connection:
        connection.execute("create table orders (number integer)")
    return url


@pytest.fixture
def url(shared_url: str) -> str:
    with psycopg.connect(shared_url) as connection:
        for table in ("rowlock.jobs", "rowlock.history", "rowlock.keys", "rowlock.workers", "orders"):
            connection.execute(f"delete from {table}".encode())
    return shared_url


@pytest.fixture
def task(app: Rowlock) -> T:
    return declared(app, "t")


def declared(app: Rowlock, name: str) -> T:
    def note(text: str) -> None:
        return None

    return app.task(name=name)(note)


def jobs(db: Db) -> list[UUID]:
    return [job for (job,) in db.execute("select id from rowlock.jobs order by id")]


def orders(db: Db) -> int:
    return len(db.execute("select from orders").fetchall())


# The job and the caller's transaction


@every_kind
def test_a_job_appears_with_the_commit(kind: str, app: Rowlock, task: T, url: str, db: Db) -> None:
    async def story() -> None:
        async with lender(kind, url) as caller:
            await caller.begin()
            await caller.execute("insert into orders values (1)")
            job, *_ = await caller.enqueue(app, task.bind("a"))
            assert jobs(db) == []

            await caller.commit()

            assert jobs(db) == [job.id]
            assert orders(db) == 1

    tell(kind, story())


@every_kind
def test_a_job_disappears_with_the_rollback(kind: str, app: Rowlock, task: T, url: str, db: Db) -> None:
    async def story() -> None:
        async with lender(kind, url) as caller:
            await caller.begin()
            await caller.execute("insert into orders values (1)")
            await caller.enqueue(app, task.using(key="k").bind("a"))

            await caller.rollback()

    tell(kind, story())

    assert jobs(db) == []
    assert orders(db) == 0
    assert task.using(key="k").enqueue("b").created


@every_kind
def test_jobs_that_are_the_first_word_of_a_transaction_end_with_it(
    kind: str, app: Rowlock, task: T, url: str, db: Db
) -> None:
    async def story() -> None:
        async with lender(kind, url) as caller:
            there: list[UUID] = []
            for count in (1, 2, MANY):
                calls = [task.bind("a")] * count
                await caller.begin()
                await caller.enqueue(app, *calls)
                await caller.rollback()
                assert jobs(db) == there

                await caller.begin()
                made = await caller.enqueue(app, *calls)
                assert jobs(db) == there
                await caller.commit()
                there += [job.id for job in made]
                assert jobs(db) == there

    tell(kind, story())


@every_kind
def test_a_job_disappears_with_the_savepoint_alone(kind: str, app: Rowlock, task: T, url: str, db: Db) -> None:
    async def story() -> list[UUID]:
        async with lender(kind, url) as caller:
            await caller.begin()
            before, *_ = await caller.enqueue(app, task.bind("before"))
            async with caller.undone():
                await caller.enqueue(app, task.bind("undone"))
                async with caller.undone():
                    await caller.enqueue(app, *[task.bind("undone twice")] * MANY)
            after, *_ = await caller.enqueue(app, task.bind("after"))
            await caller.execute("insert into orders values (1)")
            await caller.commit()
            return [before.id, after.id]

    kept = tell(kind, story())

    assert jobs(db) == kept
    assert orders(db) == 1


@every_kind
def test_outside_a_transaction_jobs_are_there_at_once(kind: str, app: Rowlock, task: T, url: str, db: Db) -> None:
    async def story() -> None:
        async with lender(kind, url, autocommit=True) as caller:
            there: list[UUID] = []
            for count in (1, 2, MANY):
                made = await caller.enqueue(app, *[task.bind("a")] * count)

                there += [job.id for job in made]
                assert jobs(db) == there

    tell(kind, story())


@every_kind
@pytest.mark.parametrize("autocommit", [False, True])
def test_of_calls_of_which_one_is_refused_none_is_made(
    kind: str, app: Rowlock, task: T, url: str, db: Db, *, autocommit: bool
) -> None:
    held = declared(app, "other").using(key="z").enqueue("held")

    async def story() -> None:
        async with lender(kind, url, autocommit=autocommit) as caller:
            await caller.begin()
            with pytest.raises(KeyTaken):
                await caller.enqueue(app, task.using(key="a").bind("first"), task.using(key="z").bind("second"))
            await caller.execute("insert into orders values (1)")
            if not autocommit:
                await caller.commit()

    tell(kind, story())

    assert jobs(db) == [held.id]
    assert orders(db) == 1


@every_kind
def test_a_key_is_found_held(kind: str, app: Rowlock, task: T, url: str, db: Db) -> None:
    keyed = task.using(key="k")

    async def story() -> None:
        async with lender(kind, url) as caller:
            await caller.begin()
            first, *_ = await caller.enqueue(app, keyed.bind("a"))
            again, *_ = await caller.enqueue(app, keyed.bind("b"))
            await caller.commit()

            assert (first.created, again.created) == (True, False)
            assert jobs(db) == [first.id] == [again.id]

    tell(kind, story())


@every_kind
def test_a_connection_from_a_pool_serves_one_caller_after_the_other(
    kind: str, app: Rowlock, task: T, url: str, db: Db
) -> None:
    async def story() -> None:
        async with lender(kind, url) as caller:
            if not caller.pooled:
                return
            before = await session_of(caller)
            await caller.begin()
            await caller.enqueue(app, task.bind("rolled back"))
            await caller.rollback()
            await caller.again()
            assert await session_of(caller) == before

            await caller.begin()
            job, *_ = await caller.enqueue(app, task.bind("kept"))
            await caller.commit()

            assert jobs(db) == [job.id]

    tell(kind, story())


async def session_of(caller: Lender) -> int:
    await caller.begin()
    rows = await caller.execute("select pg_backend_pid()")
    await caller.commit()
    return int(rows[0][0])


# Where to enqueue


@every_kind
def test_the_connection_named_wins_over_within_and_within_over_the_apps(
    kind: str, app: Rowlock, task: T, url: str, db: Db
) -> None:
    async def story() -> None:
        async with lender(kind, url) as caller, lender(kind, url) as other:
            mine = Rowlock(url, connection=lambda: other.connection)
            note = declared(mine, "t")
            await caller.begin()
            if not is_same(caller, other):
                await other.begin()

            await caller.enqueue_here(mine, note.bind("the app's"))
            with mine.within(caller.connection):
                kept, *_ = await caller.enqueue_here(mine, note.bind("within"))
                with mine.within(other.connection):
                    await caller.enqueue_here(mine, note.bind("the inner one"))
                    named, *_ = await caller.enqueue_here(mine, note.using(connection=caller.connection).bind("named"))
                also, *_ = await caller.enqueue_here(mine, note.bind("within again"))
            assert jobs(db) == []
            await caller.commit()

            if not is_same(caller, other):
                assert jobs(db) == [kept.id, named.id, also.id]
                await other.commit()
            assert len(jobs(db)) == 5
            mine.close()

    tell(kind, story())


def is_same(one: Lender, other: Lender) -> bool:
    """Django has one connection for each thread."""
    return isinstance(one, Django) and isinstance(other, Django)


@every_kind
def test_within_nothing_is_our_own_connection_again(kind: str, task: T, url: str, db: Db) -> None:
    async def story() -> None:
        async with lender(kind, url) as caller:
            mine = Rowlock(url, connection=lambda: caller.connection)
            note = declared(mine, "t")
            await caller.begin()

            with mine.within(caller.connection), mine.within(None):
                job, *_ = await caller.enqueue_here(mine, note.bind("a"))

            assert jobs(db) == [job.id]
            await caller.rollback()
            await mine.aclose() if caller.is_async else mine.close()

    tell(kind, story())


@every_kind
def test_an_app_may_answer_that_it_has_no_connection_now(kind: str, task: T, url: str, db: Db) -> None:
    async def story() -> None:
        async with lender(kind, url) as caller:
            lent: list[object] = []
            mine = Rowlock(url, connection=lambda: lent[0] if lent else None)
            note = declared(mine, "t")
            await caller.begin()

            ours, *_ = await caller.enqueue_here(mine, note.bind("a"))
            lent.append(caller.connection)
            await caller.enqueue_here(mine, note.bind("b"))

            assert jobs(db) == [ours.id]
            await caller.commit()
            assert len(jobs(db)) == 2
            await mine.aclose() if caller.is_async else mine.close()

    tell(kind, story())


# What else is said on it


@every_kind
def test_any_query_can_be_put_and_its_answer_reads_as_on_our_own(
    kind: str, app: Rowlock, task: T, url: str, db: Db
) -> None:
    moment = datetime(2024, 5, 17, 1, 2, 3, 450000, tzinfo=UTC)
    text = 'a "text" \\ with é and 1.0000000000000001'
    job = task.using(tags=["x"]).enqueue(text)
    db.execute("update rowlock.jobs set run_at = %s", [moment])
    worker = str(uuid4())

    async def story() -> ClaimedJob:
        async with lender(kind, url) as caller:
            await caller.begin()
            await caller.execute("set datestyle = 'German'")
            await caller.execute("set timezone = 'Asia/Kathmandu'")
            converse = partial(held, app, caller)
            await converse(workers.register(worker=worker, lease=timedelta(days=1), **FACTS))
            claimed: ClaimedJob
            (claimed,) = await converse(claim.claim(lanes=[Lane("default", 0)], limit=5, worker=worker))
            assert await converse(settle.settle_jobs([(claimed, Succeeded("1"), timedelta(days=1))])) == [claimed.token]
            await caller.commit()
            return claimed

    claimed = tell(kind, story())

    assert [UUID(claimed.id), str(UUID(claimed.token))] == [job.id, claimed.token]
    assert claimed.args == task.bind(text).args
    assert datetime.fromisoformat(claimed.run_at) == moment
    assert datetime.fromisoformat(claimed.run_at).utcoffset() == timedelta(0)
    assert (claimed.priority, claimed.expired, claimed.paused, claimed.tags) == (0, None, False, ["x"])
    assert jobs(db) == []


FACTS: dict[str, Any] = {
    "queues": ["default"], "tasks": ["t"], "schedules": [], "slots": 1, "host": "test", "pid": 1, "version": "0"
}  # fmt: skip


async def held(app: Rowlock, caller: Lender, query: Query[Any]) -> list[Any]:
    def begin() -> Conversation[list[Any]]:
        return (yield query)

    if caller.is_async:
        return await app.database.aconverse(begin, connection=caller.connection)
    return app.database.converse(begin, connection=caller.connection)


@every_kind
def test_it_is_known_whether_the_transaction_is_open(kind: str, app: Rowlock, task: T, url: str) -> None:
    async def story() -> None:
        async with lender(kind, url) as caller:
            await caller.begin()
            await caller.enqueue(app, task.bind("a"))
            driver = await where_it_lives(caller, borrowed.physical)
            assert await where_it_lives(caller, borrowed.in_transaction)
            assert borrowed.in_transaction(driver)

            await caller.commit()

            assert not await where_it_lives(caller, borrowed.in_transaction)
            assert not borrowed.in_transaction(driver)

    tell(kind, story())


async def where_it_lives(caller: Lender, function: Callable[[object], Any]) -> Any:  # noqa: ANN401
    if isinstance(caller, Django):
        return await caller.there(lambda: function(caller.here()))
    return function(caller.connection)


@every_kind
def test_in_an_open_transaction_a_job_is_one_statement(kind: str, app: Rowlock, task: T, url: str) -> None:
    arena = Arena(url)
    with arena.connection, tapped(arena) as wire:

        async def story() -> None:
            async with lender(kind, through(wire)) as caller:
                await caller.begin()
                await caller.enqueue(app, task.bind("the first word"))
                before = wire.statements

                await caller.enqueue(app, task.bind("a"))
                await caller.enqueue(app, task.bind("b"))

                assert wire.statements - before == 2
                await caller.rollback()

        tell(kind, story())


def through(wire: Wire) -> str:
    parts = conninfo_to_dict(wire.conninfo)
    place = urlencode({"host": parts["host"], "port": parts["port"]})
    return f"postgresql://{parts['user']}@/{parts['dbname']}?{place}"


# Django's thread cannot be cancelled, and a scoped session is another one in each task.
@pytest.mark.parametrize("kind", [kind for kind in ASYNC if not kind.startswith("django") and "scoped" not in kind])
@pytest.mark.parametrize("key", [None, "k"])
def test_a_cancelled_bulk_leaves_nothing_and_the_transaction_goes_on(
    kind: str, key: str | None, app: Rowlock, url: str, db: Db
) -> None:
    task = declared(app, "t")
    calls = [task.using(key=key and f"{key}{n}").bind("a") for n in range(MANY)]

    async def story() -> None:
        async with lender(kind, url) as caller:
            await caller.begin()
            await caller.execute("insert into orders values (1)")
            with db.transaction():
                db.execute("lock table rowlock.jobs")
                bulk = asyncio.create_task(caller.enqueue(app, *calls))
                await auntil(lambda: db.execute("select from pg_locks where not granted").fetchall())
                bulk.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await bulk
            await caller.execute("insert into orders values (2)")
            await caller.commit()

    tell(kind, story())

    assert jobs(db) == []
    assert orders(db) == 2


# Refused, and the caller's transaction goes on


@every_kind
def test_a_database_without_our_schema_is_refused_and_the_transaction_goes_on(
    kind: str, app: Rowlock, database_url: str
) -> None:
    note = declared(app, "t")

    async def story() -> None:
        async with lender(kind, database_url) as caller:
            await caller.begin()
            await caller.execute("create table orders (number integer)")

            for count in (1, 2, MANY):
                with pytest.raises(SchemaMissing, match="has no schema 'rowlock'; run: rowlock migrate"):
                    await caller.enqueue(app, *[note.bind("a")] * count)

            await caller.execute("insert into orders values (1)")
            await caller.commit()

    tell(kind, story())

    with psycopg.connect(database_url) as look:
        assert orders(look) == 1


@every_kind
def test_a_connection_in_a_failed_transaction_is_refused(kind: str, app: Rowlock, task: T, url: str, db: Db) -> None:
    async def story() -> None:
        async with lender(kind, url) as caller:
            await caller.begin()
            with pytest.raises(Exception, match="nothing"):
                await caller.execute("select from nothing")

            for count in (1, 2, MANY):
                with pytest.raises(WrongConnection, match="failed transaction; roll it back first"):
                    await caller.enqueue(app, *[task.bind("a")] * count)

            await caller.rollback()
            await caller.begin()
            await caller.enqueue(app, task.bind("a"))
            await caller.commit()

    tell(kind, story())

    assert len(jobs(db)) == 1


@every_kind
def test_a_closed_connection_is_refused(kind: str, app: Rowlock, task: T, url: str) -> None:
    async def story() -> None:
        async with lender(kind, url) as caller:
            if not caller.closes:
                return
            await caller.close()

            with pytest.raises(WrongConnection, match=r"is closed; pass an open one|went back to its pool"):
                await caller.enqueue(app, task.bind("a"))
            assert not borrowed.in_transaction(caller.connection)

    tell(kind, story())


@pytest.mark.parametrize("kind", [kind for kind in ASYNC if not kind.startswith("django")])
def test_an_async_connection_is_refused_by_the_sync_verb(kind: str, task: T, url: str, db: Db) -> None:
    async def story() -> None:
        async with lender(kind, url) as caller:
            with pytest.raises(WrongConnection, match=r"async connection; use `await .*aenqueue"):
                task.using(connection=caller.connection).enqueue("a")

    tell(kind, story())

    assert jobs(db) == []


@pytest.mark.parametrize("kind", [kind for kind in SYNC if not kind.startswith("django")])
def test_a_sync_connection_is_refused_by_the_async_verb(kind: str, task: T, url: str, db: Db) -> None:
    async def story() -> None:
        async with lender(kind, url) as caller:
            with pytest.raises(WrongConnection, match=r"sync connection; use `task.using\(connection=…\).enqueue"):
                await task.using(connection=caller.connection).aenqueue("a")

    tell(kind, story())

    assert jobs(db) == []


@every_kind
def test_a_key_means_on_every_connection_what_it_says(kind: str, app: Rowlock, task: T, url: str, db: Db) -> None:
    replaced = task.using(key=Key("k", taken="replace"), delay=timedelta(minutes=5))
    unique = task.using(key=Key("u", period=timedelta(hours=1), taken="raise"))

    async def story() -> None:
        async with lender(kind, url) as caller:
            await caller.begin()
            first, again, once = await caller.enqueue(
                app, replaced.bind("first"), replaced.bind("second"), unique.bind("once")
            )
            with pytest.raises(KeyTaken, match=str(once.id)):
                await caller.enqueue(app, replaced.bind("third"), unique.bind("twice"))
            await caller.commit()

            assert (first.created, again.created, again) == (True, False, first)

    tell(kind, story())

    said = db.execute("select args ->> 'text', key from rowlock.jobs order by key").fetchall()
    assert said == [("second", "k"), ("once", "u")]
