"""Retries and forks of workflows that have spoken to the outside: by which keys they do so again."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from rowlock import Context, Filter, Retry, Rowlock
from tests.rows import Db
from tests.worker.working import ended, work_off

ONCE = Retry.none()


def test_a_fork_remembers_steps_that_were_given_the_key_of_another_job(app: Rowlock, db: Db) -> None:
    charged: list[str] = []
    shipped: list[str] = []

    @app.workflow(name="shop.checkout")
    async def checkout(ctx: Context) -> None:
        await ctx.using(name="charge").step(charged.append, ctx.idempotency_key)
        await ctx.using(name="ship").step(shipped.append, ctx.idempotency_key)

    job = checkout.enqueue()
    work_off(app, db)

    app.workflows.fork(job.id, from_step="ship")
    work_off(app, db)

    assert [state for _, state, _, _ in ended(db)] == ["succeeded", "succeeded"]
    assert len(charged) == 1
    assert len(set(shipped)) == 2


def test_a_retry_from_the_step_that_failed_calls_it_by_the_same_key(app: Rowlock, db: Db) -> None:
    charged: list[str] = []

    def charge(key: str) -> None:
        charged.append(key)
        if len(charged) == 1:
            raise ConnectionError("was it charged?")

    @app.workflow(name="shop.checkout", retry=ONCE)
    async def checkout(ctx: Context) -> None:
        await ctx.step(charge, ctx.idempotency_key)

    job = checkout.enqueue()
    work_off(app, db)

    app.jobs.retry(Filter(ids=[job.id]))
    work_off(app, db)

    assert job.record().state == "succeeded"
    assert len(charged) == 2
    assert len(set(charged)) == 1


def test_what_was_undone_and_is_retried_speaks_by_other_keys(app: Rowlock, db: Db) -> None:
    charged: list[str] = []
    refunded: list[str] = []

    def ship() -> None:
        if not refunded:
            raise ConnectionError("no van today")

    @app.workflow(name="shop.checkout", retry=ONCE)
    async def checkout(ctx: Context) -> None:
        key = ctx.idempotency_key
        ctx.using(name="refund").undo(refunded.append, key)
        await ctx.using(name="charge").step(charged.append, key)
        await ctx.step(ship)

    job = checkout.enqueue()
    work_off(app, db)

    app.jobs.retry(Filter(ids=[job.id]))
    work_off(app, db)

    assert job.record().state == "succeeded"
    assert refunded == charged[:1]
    assert len(set(charged)) == 2


def test_what_succeeded_and_is_run_once_more_speaks_by_other_keys(app: Rowlock, db: Db) -> None:
    charged: list[str] = []

    @app.workflow(name="shop.checkout")
    async def checkout(ctx: Context) -> None:
        await ctx.using(name="charge").step(charged.append, ctx.idempotency_key)

    job = checkout.enqueue()
    for _ in range(3):
        work_off(app, db)
        app.jobs.retry(Filter(ids=[job.id], state="succeeded"))
    work_off(app, db)

    assert job.record().state == "succeeded"
    assert len(charged) == len(set(charged)) == 4


def test_a_retry_makes_the_child_anew_that_failed_and_no_other(app: Rowlock, db: Db) -> None:
    counted: list[int] = []

    @app.task(name="count", retry=ONCE)
    def count(page: int) -> int:
        counted.append(page)
        if counted == [0, 1, 2]:
            raise ValueError(page)
        return page

    @app.workflow(name="count all")
    async def count_all(ctx: Context) -> int:
        return sum(await ctx.map([count.bind(page) for page in range(3)]))

    job = count_all.enqueue()
    work_off(app, db, slots=1)

    app.jobs.retry(Filter(ids=[job.id]))
    work_off(app, db, slots=1)

    assert job.record().result == 3
    assert counted == [0, 1, 2, 2]


def test_a_retry_runs_what_failed_in_a_task_group(app: Rowlock, db: Db) -> None:
    called: list[str] = []

    def call(name: str) -> None:
        called.append(name)
        if called.count("second") == 1 and name == "second":
            raise ConnectionError(name)

    @app.workflow(name="shop.checkout", retry=ONCE)
    async def checkout(ctx: Context) -> None:
        async with asyncio.TaskGroup() as group:
            for name in ("first", "second"):
                group.create_task(ctx.using(name=name).step(call, name))

    job = checkout.enqueue()
    work_off(app, db)

    app.jobs.retry(Filter(ids=[job.id]))
    work_off(app, db)

    assert job.record().state == "succeeded"
    assert called.count("first") <= 2
    assert called.count("second") == 2


def test_a_retry_waits_again_for_the_signal_that_did_not_come(app: Rowlock, db: Db) -> None:
    @app.workflow(name="shop.checkout")
    async def checkout(ctx: Context) -> str:
        return str(await ctx.signal("paid", timeout=timedelta(milliseconds=1)))

    job = checkout.enqueue()
    work_off(app, db)

    app.jobs.retry(Filter(ids=[job.id]))
    app.signal(job, "paid", "by card")
    work_off(app, db)

    assert job.record().result == "by card"
