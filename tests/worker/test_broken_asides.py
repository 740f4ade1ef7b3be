"""Statements beside claims and settles: what PostgreSQL refuses of them stops neither the others nor the connection."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from rowlock import Rowlock
from rowlock.workflow.context import Context
from tests.waiting import auntil, until
from tests.worker.breaking import breaks
from tests.worker.working import Db, ended, one, work_until, working

HOUR, MOMENT = timedelta(hours=1), timedelta(seconds=0.1)


def messages(caplog: pytest.LogCaptureFixture, what: str) -> list[str]:
    return [record.getMessage() for record in caplog.records if what in record.getMessage()]


def test_a_job_that_cannot_be_marked_as_begun_runs_and_others_are_settled(
    app: Rowlock, db: Db, caplog: pytest.LogCaptureFixture
) -> None:
    """A suspect that waited for code is marked before it begins."""

    @app.task(name="quick")
    async def quick(n: int) -> None: ...

    app.enqueue_many(quick.bind(n) for n in range(3))
    db.execute("update rowlock.jobs set state = 'waiting', waits_for = 'code', reason = 'unknown task quick'")
    db.execute("update rowlock.jobs set crashes = 2 where args->>'n' = '1'")
    marks = "old.state = 'running' and new.state = 'running' and new.begun and new.args->>'n' = '1'"
    breaks(db, "jobs", marks, event="update")
    work_until(app, lambda: len(ended(db)) == 3)

    assert {row[1] for row in ended(db)} == {"succeeded"}
    assert len(messages(caplog, "cannot be marked as begun")) == 1


def test_a_child_that_cannot_be_cancelled_keeps_neither_its_workflow_nor_the_others(app: Rowlock, db: Db) -> None:
    @app.task(name="child")
    async def child(n: int) -> None: ...

    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        children = [ctx.run(child.using(delay=HOUR).bind(n)) for n in range(3)]
        await ctx.any(*children, ctx.sleep(MOMENT))

    breaks(db, "jobs", "new.cancel_at is not null and new.args->>'n' = '1'", event="update")
    w.enqueue()
    work_until(app, lambda: len(ended(db)) == 3)

    assert sorted(row[:2] for row in ended(db)) == [("child", "cancelled"), ("child", "cancelled"), ("w", "succeeded")]
    assert one(db, "select args->>'n' from rowlock.jobs") == "1"


def test_a_claim_that_cannot_be_given_back_keeps_no_other_from_it(app: Rowlock, db: Db) -> None:
    @app.task(name="quick")
    async def quick(n: int) -> None: ...

    async def work() -> None:
        async with app, app.worker(lease=timedelta(seconds=1)):
            await app.aenqueue_many(quick.using(delay=HOUR).bind(n) for n in range(2))
            # As a claim does that commits after its connection was given up.
            db.execute(
                """update rowlock.jobs set state = 'running', token = gen_random_uuid(), claims = 1,
                    run_at = rowlock.now(), started_at = rowlock.now(), worker = (select id from rowlock.workers)"""
            )
            await auntil(lambda: ended(db))

    breaks(db, "jobs", "new.state = 'ready' and new.args->>'n' = '0'", event="update")
    asyncio.run(work())

    assert one(db, "select args->>'n' from rowlock.history") == "1"


def test_a_claim_that_cannot_be_given_back_keeps_no_worker_that_reconnects_from_others(
    app: Rowlock, db: Db, caplog: pytest.LogCaptureFixture
) -> None:
    @app.task(name="quick")
    async def quick(n: int) -> None: ...

    breaks(db, "jobs", "new.state = 'ready' and new.args->>'n' = '0'", event="update")
    with working(app):
        until(lambda: one(db, "select count(*) from rowlock.parkings"))
        quick.using(delay=HOUR).enqueue(0)
        db.execute(
            """update rowlock.jobs set state = 'running', token = gen_random_uuid(), claims = 1,
                started_at = rowlock.now(), worker = (select id from rowlock.workers)"""
        )
        db.execute(
            """select pg_terminate_backend(pid) from pg_stat_activity
                where application_name = 'rowlock claim' and datname = current_database()"""
        )
        quick.enqueue(1)
        until(lambda: ended(db))
        db.execute("drop trigger broken on rowlock.jobs")  # else it cannot stop in good order

    assert len(messages(caplog, "cannot be given back")) == 1


def test_jobs_are_claimed_though_nobody_can_say_when_the_next_is_due(
    app: Rowlock, db: Db, caplog: pytest.LogCaptureFixture
) -> None:
    @app.task(name="quick")
    async def quick() -> None: ...

    db.execute(
        """create or replace function rowlock.now() returns timestamptz language plpgsql stable as $$ begin
        if current_query() like '%soonest.run_at%' and current_query() not like 'create%' then
            raise exception 'invalid page' using errcode = 'XX001';
        end if;
        return now(); end $$"""
    )
    with working(app):
        until(lambda: messages(caplog, "refuses to say when the next job is due"))
        quick.enqueue()
        until(lambda: ended(db))


def test_jobs_are_claimed_though_nobody_can_park(app: Rowlock, db: Db, caplog: pytest.LogCaptureFixture) -> None:
    @app.task(name="quick")
    async def quick() -> None: ...

    breaks(db, "parkings", "true", "55P03")  # as when somebody has locked the table
    with working(app):
        until(lambda: messages(caplog, "worker_park failed"))
        quick.enqueue()
        until(lambda: ended(db))
        db.execute("drop trigger broken on rowlock.parkings")
        until(lambda: one(db, "select count(*) from rowlock.parked"))


def test_jobs_of_new_queues_are_claimed_though_nobody_can_write_down_who_serves_them(
    app: Rowlock, db: Db, caplog: pytest.LogCaptureFixture
) -> None:
    @app.task(name="quick")
    async def quick() -> None: ...

    breaks(db, "workers", "new.queues <> old.queues", "55P03", event="update")
    quick.using(queue="new").enqueue()
    with working(app, queues="*"):
        until(lambda: ended(db))
        assert messages(caplog, "worker_serve failed")
        db.execute("drop trigger broken on rowlock.workers")
        until(lambda: one(db, "select queues = array['default', 'new'] from rowlock.workers"))
