"""What every kind of borrowed connection must do with signals: they live and die with the caller's transaction."""

from __future__ import annotations

from uuid import UUID, uuid4

import psycopg
import pytest

from rowlock import Rowlock
from rowlock.errors import JobNotFound, NotAWorkflow, SignalRefused, WrongConnection
from tests.db.kinds import Lender
from tests.db.lending import ASYNC, SYNC, every_kind, lender, tell
from tests.db.test_conformance import Db, orders, shared_url
from tests.rows import put
from tests.workflow.remembering import end, put_workflow, row_of

__all__ = ["shared_url"]  # a fixture


@pytest.fixture
def url(shared_url: str) -> str:
    with psycopg.connect(shared_url) as connection:
        for table in ("rowlock.jobs", "rowlock.history", "rowlock.keys", "rowlock.signals", "orders"):
            connection.execute(f"delete from {table}".encode())
    return shared_url


def names(db: Db) -> list[str]:
    return [name for (name,) in db.execute("select name from rowlock.signals order by job, number")]


async def send(app: Rowlock, caller: Lender, job: UUID | str, name: str, key: str | None = None) -> bool:
    """Send on the caller's connection, with the verb of its kind."""
    if caller.is_async:
        return await app.asignal(job, name, key=key, connection=caller.connection)
    return app.signal(job, name, key=key, connection=caller.connection)


@every_kind
def test_a_signal_appears_and_wakes_with_the_commit(kind: str, app: Rowlock, url: str, db: Db) -> None:
    job = put_workflow(db, "waiting")

    async def story() -> None:
        async with lender(kind, url) as caller:
            await caller.begin()
            await caller.execute("insert into orders values (1)")
            assert await send(app, caller, job, "paid")
            assert names(db) == []
            assert row_of(db, job, "state") == ("waiting",)

            await caller.commit()

    tell(kind, story())

    assert names(db) == ["paid"]
    assert row_of(db, job, "state", "wakes") == ("ready", 1)
    assert orders(db) == 1


@every_kind
def test_a_signal_disappears_with_the_rollback_and_with_its_savepoint(
    kind: str, app: Rowlock, url: str, db: Db
) -> None:
    job = put_workflow(db, "waiting")

    async def story() -> None:
        async with lender(kind, url) as caller:
            await caller.begin()
            await send(app, caller, job, "never", "k")
            await caller.rollback()
            assert names(db) == []
            assert row_of(db, job, "state", "wakes") == ("waiting", 0)

            await caller.begin()
            await send(app, caller, job, "kept")
            async with caller.undone():
                await send(app, caller, job, "undone", "k")
            assert await send(app, caller, job, "kept, too", "k")
            await caller.commit()

    tell(kind, story())

    assert names(db) == ["kept", "kept, too"]
    assert row_of(db, job, "wakes") == (2,)


@every_kind
def test_outside_a_transaction_a_signal_is_there_at_once(kind: str, app: Rowlock, url: str, db: Db) -> None:
    job = put_workflow(db, "waiting", key="checkout:1")

    async def story() -> None:
        async with lender(kind, url, autocommit=True) as caller:
            assert await send(app, caller, "checkout:1", "paid", "k")
            assert names(db) == ["paid"]
            assert not await send(app, caller, str(job), "paid", "k")

    tell(kind, story())

    assert names(db) == ["paid"]


@every_kind
def test_what_is_refused_leaves_the_transaction_as_it_was(kind: str, app: Rowlock, url: str, db: Db) -> None:
    ended, plain, live = put_workflow(db), put(db), put_workflow(db, "waiting")
    end(db, ended, "succeeded")

    async def story() -> None:
        async with lender(kind, url) as caller:
            await caller.begin()
            await caller.execute("insert into orders values (1)")
            with pytest.raises(SignalRefused, match=f"{ended} has ended"):
                await send(app, caller, ended, "late")
            with pytest.raises(NotAWorkflow, match=str(plain)):
                await send(app, caller, plain, "lost")
            with pytest.raises(JobNotFound):
                await send(app, caller, uuid4(), "lost")
            await send(app, caller, live, "paid")
            await caller.commit()

    tell(kind, story())

    assert names(db) == ["paid"]
    assert orders(db) == 1


@every_kind
def test_a_signal_joins_what_it_is_within_and_a_named_connection_comes_first(
    kind: str, app: Rowlock, url: str, db: Db
) -> None:
    job = put_workflow(db, "waiting")

    async def story() -> None:
        async with lender(kind, url) as caller:
            handle = (await app.jobs.aget(job)) if caller.is_async else app.jobs.get(job)
            await caller.begin()
            with app.within(caller.connection):
                if caller.is_async:
                    await app.asignal(job, "by the app")
                    await handle.asignal("by its handle")
                else:
                    app.signal(job, "by the app")
                    handle.signal("by its handle")
            assert names(db) == []
            await caller.commit()
            if caller.is_async:
                await app.aclose()

    tell(kind, story())

    assert names(db) == ["by the app", "by its handle"]


@pytest.mark.parametrize("kind", [kind for kind in ASYNC if not kind.startswith("django")])
def test_an_async_connection_is_refused_by_the_sync_verb(kind: str, app: Rowlock, url: str, db: Db) -> None:
    job = put_workflow(db)

    async def story() -> None:
        async with lender(kind, url) as caller:
            with pytest.raises(WrongConnection, match=r"async connection; use .*`await app.asignal"):
                app.signal(job, "paid", connection=caller.connection)

    tell(kind, story())

    assert names(db) == []


@pytest.mark.parametrize("kind", [kind for kind in SYNC if not kind.startswith("django")])
def test_a_sync_connection_is_refused_by_the_async_verb(kind: str, app: Rowlock, url: str, db: Db) -> None:
    job = put_workflow(db)

    async def story() -> None:
        async with lender(kind, url) as caller:
            with pytest.raises(WrongConnection, match=r"sync connection; use .*`app.signal"):
                await app.asignal(job, "paid", connection=caller.connection)

    tell(kind, story())

    assert names(db) == []
