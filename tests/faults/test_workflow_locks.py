"""Rows of workflows that somebody else has locked just then: nobody takes that for a lost lease and does it twice."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.rows import TupleRow

from rowlock import Context, Rowlock, current_job
from tests.faults.proxy import Proxy, Refuse
from tests.waiting import until
from tests.worker.working import one, work_until

Db = psycopg.Connection[TupleRow]


@contextmanager
def somebody_has(url: str, job: str) -> Iterator[None]:
    """Somebody has locked a job's row, as one who sends it a signal: until another waits for it."""
    with psycopg.connect(url) as holder, psycopg.connect(url, autocommit=True) as watch:
        holder.execute("select from rowlock.jobs where id = %s for update", [job])

        def let_go() -> None:
            query = "select from pg_stat_activity where %s = any(pg_blocking_pids(pid))"
            until(lambda: watch.execute(query, [holder.info.backend_pid]).fetchone() is not None, what="one who waits")
            holder.rollback()

        letting_go = threading.Thread(target=let_go)
        letting_go.start()
        try:
            yield
        finally:
            letting_go.join()


def test_a_transaction_of_a_workflow_waits_for_one_who_has_its_row(app: Rowlock, db: Db, url: str) -> None:
    # given a workflow that is being sent something while its transaction commits
    calls: list[str] = []

    def enter(_connection: Any) -> None:  # noqa: ANN401  the worker's connection
        calls.append("entered")
        held.append(somebody_has(url, str(job.id)))
        held[0].__enter__()

    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        await ctx.transaction(enter)

    held: list[Any] = []
    job = w.enqueue()

    # when it is run
    work_until(app, lambda: one(db, "select count(*) from rowlock.history"))
    held[0].__exit__(None, None, None)

    # then the transaction was done once, in the one attempt there was
    assert calls == ["entered"]
    assert db.execute("select state, claims from rowlock.history").fetchall() == [("succeeded", 1)]


def test_the_transaction_of_a_child_waits_for_one_who_has_its_parents_row(app: Rowlock, db: Db, url: str) -> None:
    # given a child that ends its job in its own transaction, while another child of the same parent is about to end
    calls: list[str] = []
    held: list[Any] = []

    @app.task(name="child")
    async def child() -> None:
        async with current_job().transaction():
            calls.append("entered")
            held.append(somebody_has(url, str(job.id)))
            await asyncio.to_thread(held[0].__enter__)

    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        await ctx.run(child.bind())

    job = w.enqueue()

    # when it is run
    work_until(app, lambda: one(db, "select count(*) from rowlock.history") == 2)
    held[0].__exit__(None, None, None)

    # then it was done once, and its parent was told
    assert calls == ["entered"]
    ended = db.execute("select task, state, claims from rowlock.history order by id").fetchall()
    assert ended == [("w", "succeeded", 2), ("child", "succeeded", 1)]


def test_a_child_that_was_written_down_and_could_not_be_enqueued_is_neither(db: Db, url: str) -> None:
    """M19: both or neither, so that to say it again is enough."""
    with Proxy(url) as proxy, Rowlock(proxy.url) as app:
        # given a server that refuses the second of the two once, between a workflow and its child
        refused = proxy.on("job_enqueue", Refuse("40P01"), who="rowlock settle")

        @app.task(name="child")
        async def child() -> int:
            return 1

        @app.workflow(name="w")
        async def w(ctx: Context) -> int:
            return await ctx.run(child.bind())

        with Rowlock(url) as other:
            [job] = other.enqueue_many([w.bind()])

        # when it is run
        work_until(app, lambda: one(db, "select count(*) from rowlock.history") == 2)

    # then there was one child
    assert refused.happened.is_set()
    query = "select state, parent from rowlock.history where task = 'child'"
    assert db.execute(query).fetchall() == [("succeeded", job.id)]
