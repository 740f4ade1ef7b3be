"""What every kind of borrowed connection must do with a cancellation: it belongs to the caller's transaction."""

from __future__ import annotations

from uuid import UUID

import psycopg
import pytest

from rowlock import Rowlock
from tests.db.kinds import Lender
from tests.db.lending import every_kind, lender, tell
from tests.db.test_conformance import Db, shared_url
from tests.rows import put
from tests.workflow.remembering import put_workflow, row_of

__all__ = ["shared_url"]  # a fixture


@pytest.fixture
def url(shared_url: str) -> str:
    with psycopg.connect(shared_url) as connection:
        for table in ("rowlock.jobs", "rowlock.history", "rowlock.keys", "rowlock.signals", "rowlock.events"):
            connection.execute(f"delete from {table}".encode())
    return shared_url


def is_marked(db: Db, job: UUID) -> bool:
    """Whether a live job is to be cancelled."""
    return row_of(db, job, "cancel_at") != (None,)


async def cancel(app: Rowlock, caller: Lender, job: UUID) -> bool:
    """Cancel on the caller's connection, with the verb of its kind."""
    if caller.is_async:
        return await (await app.jobs.aget(job)).acancel(connection=caller.connection)
    return app.jobs.get(job).cancel(connection=caller.connection)


@every_kind
def test_a_cancellation_appears_with_the_commit(kind: str, app: Rowlock, url: str, db: Db) -> None:
    ready, running, ended = put(db, "ready"), put(db, "running"), put(db, "succeeded")

    async def story() -> None:
        async with lender(kind, url) as caller:
            await caller.begin()
            answers = [await cancel(app, caller, job) for job in (ready, running, ended, ready)]
            assert answers == [True, True, False, True]
            assert row_of(db, ready, "state") == ("ready",)
            assert not is_marked(db, running)

            await caller.commit()

    tell(kind, story())

    assert row_of(db, ready, "state", "reason") == ("cancelled", "asked")
    assert row_of(db, running, "state") == ("running",)
    assert is_marked(db, running)
    assert row_of(db, ended, "state") == ("succeeded",)


@every_kind
def test_a_cancellation_disappears_with_the_rollback(kind: str, app: Rowlock, url: str, db: Db) -> None:
    ready, running = put(db, "ready"), put(db, "running")

    async def story() -> None:
        async with lender(kind, url) as caller:
            await caller.begin()
            for job in (ready, running):
                assert await cancel(app, caller, job)
            await caller.rollback()

    tell(kind, story())

    assert row_of(db, ready, "state") == ("ready",)
    assert not is_marked(db, running)
    assert db.execute("select count(*) from rowlock.events").fetchone() == (0,)


@every_kind
def test_who_has_sent_a_signal_may_cancel_before_the_commit(kind: str, app: Rowlock, url: str, db: Db) -> None:
    workflow = put_workflow(db, "waiting")

    async def story() -> None:
        async with lender(kind, url) as caller:
            await caller.begin()
            with app.within(caller.connection):
                if caller.is_async:
                    await app.asignal(workflow, "go")
                    assert await (await app.jobs.aget(workflow)).acancel()
                else:
                    app.signal(workflow, "go")
                    assert app.jobs.get(workflow).cancel()
            await caller.commit()

    tell(kind, story())

    assert is_marked(db, workflow)
