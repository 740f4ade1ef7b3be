"""A full queue of notifications: one session that takes none costs nobody a job."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import timedelta

import psycopg
import pytest

from rowlock import Retry, Rowlock, current_job
from rowlock.db.errors import Blame, ErrorKind, blame, error_kind
from rowlock.workflow.context import Context
from tests.depth import deep
from tests.faults.servers import Cluster, Servers
from tests.waiting import until
from tests.worker.working import Db, one, working

NOTIFY = "select count(pg_notify('somebody', repeat('x', 7000) || n)) from generate_series(1, {}) as n"
LIMIT = 60.0


@pytest.fixture
def small(servers: Servers, url: str) -> Cluster:
    with psycopg.connect(url) as probe:
        if probe.info.server_version < 170000:
            pytest.skip("the queue has 8 GB before PostgreSQL 17")
    return servers.start({"max_notify_queue_pages": "64"})


@contextmanager
def full(server: Cluster, db: Db) -> Iterator[psycopg.errors.ProgramLimitExceeded]:
    """Nobody can notify, because one listens in a transaction; this is what who tries it is told."""
    with psycopg.connect(server.url) as listener:
        listener.execute("listen somebody")
        listener.commit()
        listener.execute("select 1")
        with suppress(psycopg.errors.ProgramLimitExceeded):
            while True:
                db.execute(NOTIFY.format(10).encode())
        yield refused(db)


def refused(db: Db) -> psycopg.errors.ProgramLimitExceeded:
    try:
        while True:
            db.execute(NOTIFY.format(1).encode())
    except psycopg.errors.ProgramLimitExceeded as error:
        return error


def app_of(server: Cluster) -> Rowlock:
    app = Rowlock(server.url)

    async def give() -> int:
        return 7

    @app.task(name="quick")
    async def quick() -> str:
        return "done"

    @app.task(name="twice", retry=Retry(base=timedelta(0)))
    async def twice() -> None:
        if current_job().attempt == 1:
            raise RuntimeError("not yet")

    @app.workflow(name="flow")
    async def flow(ctx: Context) -> int:
        return await ctx.step(give)

    return app


def test_jobs_are_enqueued_run_retried_and_waited_for_while_nobody_can_be_notified(
    small: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    with small.connect() as db, app_of(small) as app, caplog.at_level(logging.WARNING):
        with full(small, db) as error, working(app):
            until(lambda: one(db, "select count(*) > 0 from rowlock.parked"), limit=LIMIT)
            jobs = [app.enqueue(name) for name in ("quick", "twice", "flow")]
            results = [job.result(timeout=timedelta(seconds=LIMIT)) for job in jobs]
            until(lambda: "so nobody is notified" in caplog.text, limit=LIMIT)

        ends = db.execute("select state, reason, failures from rowlock.history order by id").fetchall()

    assert results == ["done", None, 7]
    assert ends == [("succeeded", None, 0), ("succeeded", None, 1), ("succeeded", None, 0)]
    assert (error_kind(error), blame(error)) == (ErrorKind.AGAIN, Blame.SURROUNDINGS)


@deep
def test_a_settle_that_cannot_notify_is_tried_again_and_costs_no_job(
    small: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    results: list[object] = []
    with small.connect() as db, app_of(small) as app, caplog.at_level(logging.WARNING):
        # It has just become full, after the statement has looked.
        db.execute("create or replace function rowlock.notifies() returns boolean language sql return true")
        jobs = [app.enqueue("quick") for _ in range(3)]
        waiting = threading.Thread(target=lambda: results.append(jobs[0].result(timeout=timedelta(seconds=LIMIT))))
        waiting.start()
        until(lambda: one(db, "select count(*) = 1 from rowlock.waiters"), limit=LIMIT)
        with ExitStack() as stack:
            with full(small, db):
                stack.enter_context(working(app))
                until(lambda: "too many notifications" in caplog.text, limit=LIMIT)
            waiting.join(LIMIT)
            until(lambda: one(db, "select count(*) = 3 from rowlock.history"), limit=LIMIT)

        ends = db.execute("select distinct state, reason from rowlock.history").fetchall()

    assert results == ["done"]
    assert ends == [("succeeded", None)]
