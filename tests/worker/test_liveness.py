"""Liveness: leases kept, lost and let go of; claims that went astray; workers that die and are found out."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from rowlock import Rowlock, current_job
from rowlock.db.embedded.server import EmbeddedPostgres
from rowlock.errors import LeaseLost
from rowlock.worker import lease as lease_module
from tests.depth import deep
from tests.faults.proxy import Proxy
from tests.waiting import auntil, until
from tests.worker.process import worker_process
from tests.worker.working import Db, ended, one, work_until, working

LEASE = timedelta(seconds=3)
LONG_LEASE = timedelta(minutes=10)
COUNTERS = "select state, claims, failures, crashes from rowlock.history"


# The lease is kept


@deep
def test_a_handler_that_blocks_the_loop_for_three_leases_keeps_its_job_and_is_named(
    app: Rowlock, db: Db, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    @app.task(name="blocks")
    async def blocks() -> None:
        until(lambda: one(db, "select rowlock.now() > started_at + 3 * %s from rowlock.jobs", LEASE))

    with worker_process(url, lease=LEASE.total_seconds()):  # who would take it
        job = blocks.using(queue="theirs").enqueue()
        work_until(app, lambda: ended(db), lease=LEASE, queues=["theirs"])

    assert db.execute(COUNTERS.encode()).fetchall() == [("succeeded", 1, 0, 0)]
    warned = [record.getMessage() for record in caplog.records if "event loop" in record.getMessage()]
    assert len(warned) == 2
    assert f"by blocks {job.id}" in warned[0]
    assert warned[1].startswith("the event loop goes on; it was blocked for")


@deep
def test_threads_that_spin_in_python_for_three_leases_keep_their_jobs(app: Rowlock, db: Db, url: str) -> None:
    @app.task(name="spins")
    def spins() -> None:
        enough = time.monotonic() + 3 * LEASE.total_seconds()
        while time.monotonic() < enough:
            sum(range(1_000))

    with worker_process(url, lease=LEASE.total_seconds()):
        app.enqueue_many(spins.using(queue="theirs").bind() for _ in range(4))
        work_until(app, lambda: len(ended(db)) == 4, lease=LEASE, queues=["theirs"])

    assert db.execute(COUNTERS.encode()).fetchall() == [("succeeded", 1, 0, 0)] * 4


# The lease is let go of


def test_an_outage_longer_than_the_lease_adds_no_crash_and_costs_no_attempt(
    app: Rowlock, db: Db, server: EmbeddedPostgres
) -> None:
    told: list[BaseException] = []
    started = threading.Event()

    @app.task(name="hold")
    async def hold() -> None:
        if started.is_set():
            return
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            try:
                current_job().check()
            except LeaseLost as lost:
                told.append(lost)
            raise

    hold.enqueue()
    with working(app, lease=LEASE):
        until(started.is_set)
        with outage(server, db):
            until(lambda: told)
        until(lambda: ended(db))

    assert db.execute(COUNTERS.encode()).fetchall() == [("succeeded", 2, 0, 0)]


def test_a_machine_that_was_suspended_lets_go_of_its_jobs(
    app: Rowlock, db: Db, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CLOCK_BOOTTIME has gone on while everything else stood still, the database's word included."""
    asleep = [0.0]
    awake = lease_module.boottime
    monkeypatch.setattr(lease_module, "boottime", lambda: awake() + asleep[0])
    runs: list[bool] = []

    @app.task(name="sleeper")
    async def sleeper() -> None:
        runs.append(current_job().cancelled)
        if len(runs) == 1:
            asleep[0] += 3_600.0
            try:
                await asyncio.Event().wait()
            finally:
                runs.append(current_job().cancelled)

    sleeper.enqueue()
    work_until(app, lambda: ended(db))

    assert runs == [False, True, False]
    assert db.execute(COUNTERS.encode()).fetchall() == [("succeeded", 2, 0, 0)]


def test_a_worker_whose_lease_others_took_for_over_pardons_what_they_rescued(app: Rowlock, db: Db) -> None:
    runs: list[int] = []

    @app.task(name="taken")
    async def taken() -> None:
        runs.append(current_job().crashes)
        if len(runs) == 1:
            # As whoever looks for the dead says it: a lease that has only run out is renewed if its worker comes first.
            over = "update rowlock.workers set dead = true, lease = rowlock.now() - interval '1 s'"
            db.execute(f"{over} where queues = '{{taken}}'".encode())
            await asyncio.Event().wait()

    taken.using(queue="taken").enqueue()
    with working(app, queues=["nothing"], lease=LEASE):  # who rescues it
        work_until(app, lambda: ended(db), queues=["taken"], lease=LEASE)

    assert len(runs) == 2
    assert db.execute(COUNTERS.encode()).fetchall() == [("succeeded", 2, 0, 0)]


# What went astray


def test_a_claim_whose_answer_was_lost_is_handed_back_at_no_cost(app: Rowlock, db: Db) -> None:
    @app.task(name="quick")
    async def quick() -> None: ...

    async def work() -> None:
        async with app, app.worker(lease=timedelta(seconds=1)):
            job = await quick.using(delay=timedelta(hours=1)).aenqueue()
            # As a claim does that commits after its connection was given up.
            db.execute(
                """update rowlock.jobs set state = 'running', token = %s, claims = 1, run_at = rowlock.now(),
                    started_at = rowlock.now(), worker = (select id from rowlock.workers) where id = %s""",
                [uuid4(), job.id],
            )
            await auntil(lambda: ended(db))

    asyncio.run(work())

    assert db.execute(COUNTERS.encode()).fetchall() == [("succeeded", 2, 0, 0)]


def test_an_attempt_whose_job_was_taken_away_is_told_and_ends(app: Rowlock, db: Db) -> None:
    told: list[bool] = []

    @app.task(name="robbed")
    async def robbed() -> None:
        if not told:
            db.execute("update rowlock.jobs set state = 'ready', token = null, run_at = rowlock.now() + interval '1 h'")
            try:
                await asyncio.Event().wait()
            finally:
                told.append(current_job().cancelled)

    robbed.enqueue()
    work_until(app, lambda: told, lease=timedelta(seconds=1))

    assert told == [True]
    assert db.execute("select state, crashes from rowlock.jobs").fetchall() == [("ready", 0)]


# Who is dead


def test_a_killed_worker_is_found_out_long_before_its_lease_is_over(app: Rowlock, db: Db, url: str) -> None:
    app.enqueue("hold")

    with worker_process(url, lease=LONG_LEASE.total_seconds()) as victim:
        until(lambda: one(db, "select count(*) = 1 from rowlock.jobs where state = 'running'"))
        until(lambda: one(db, "select count(*) = 1 from rowlock.present"))
        lease = one(db, "select lease from rowlock.workers")
        victim.kill()
        victim.wait()
    with worker_process(url, lease=LONG_LEASE.total_seconds()):
        until(lambda: ended(db))

    assert one(db, "select at < %s from rowlock.events where kind = 'rescued'", lease)
    assert one(db, "select details ->> 'owner' from rowlock.events").endswith(f":{victim.pid}")


def test_a_worker_that_loses_its_renewing_connection_shows_again_that_it_lives(app: Rowlock, db: Db) -> None:
    session = (
        "select pid from pg_stat_activity where application_name = 'rowlock renew' and datname = current_database()"
    )
    held = "select exists (select from pg_locks where locktype = 'advisory' and granted and pid = %s)"

    with working(app):  # whose next renewal is ten seconds away
        first = until(lambda: next((pid for (pid,) in db.execute(session.encode())), None))
        until(lambda: one(db, held, first))
        db.execute("select pg_terminate_backend(%s)", [first])
        second = until(lambda: next((pid for (pid,) in db.execute(session.encode()) if pid != first), None))

        until(lambda: one(db, held, second))

    assert one(db, "select count(*) from rowlock.present") == 0


def test_a_worker_reconnects_by_name_while_handlers_fill_the_executor_of_its_loop(url: str, db: Db) -> None:
    over, begun = threading.Event(), list[int]()
    with Proxy(url) as proxy, Rowlock(make_conninfo(proxy.url, host="localhost")) as app:

        @app.task(name="sits")
        async def sits() -> None:
            if not begun:
                asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
            begun.append(1)
            await asyncio.to_thread(over.wait, 120)

        @app.task(name="quick")
        async def quick() -> None:
            async with current_job().transaction():
                await app.aenqueue("sits")

        app.enqueue_many(sits.bind() for _ in range(3))
        with working(app):
            until(lambda: len(begun) == 3)
            proxy.reset()
            quick.enqueue()
            try:
                first = until(lambda: ended(db))
            finally:
                over.set()

    assert [row[:2] for row in first] == [("quick", "succeeded")]


# What cannot be rescued


def test_a_job_that_postgresql_refuses_to_rescue_is_left_and_the_others_are_not(
    app: Rowlock, db: Db, caplog: pytest.LogCaptureFixture
) -> None:
    @app.task(name="quick")
    async def quick(n: int) -> int:
        return n

    jobs = app.enqueue_many(quick.bind(n) for n in range(5))
    db.execute("update rowlock.jobs set state = 'running', token = gen_random_uuid(), worker = gen_random_uuid()")
    db.execute(f"alter table rowlock.events add check (job <> '{jobs[2].id}')".encode())

    work_until(app, lambda: len(ended(db)) == 4, lease=timedelta(seconds=1))

    assert one(db, "select id from rowlock.jobs where state = 'running'") == jobs[2].id
    left = [record for record in caplog.records if "cannot be rescued" in record.getMessage()]
    assert len(left) == 1


def test_a_partition_that_a_rescue_needs_is_made_first(app: Rowlock, db: Db) -> None:
    app.enqueue("quick")

    async def work() -> None:
        async with app, app.worker(lease=timedelta(seconds=1)):
            parts = "select inhrelid::regclass::text from pg_inherits where inhparent = 'rowlock.history'::regclass"
            for (name,) in db.execute(parts.encode()).fetchall():
                db.execute(f"drop table {name}".encode())
            db.execute(
                """update rowlock.jobs set state = 'running', token = gen_random_uuid(), worker = gen_random_uuid(),
                    waits_for = null, begun = true, crashes = 2"""
            )
            await auntil(lambda: ended(db))

    asyncio.run(work())

    assert ended(db) == [("quick", "failed", "poison", 0)]


@contextmanager
def outage(server: EmbeddedPostgres, db: Db) -> Iterator[None]:
    """Nobody but the test itself gets into its database, or stays in it."""
    name = db.info.dbname
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f'alter database "{name}" allow_connections false'.encode())
        connection.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where datname = %s and pid <> %s",
            [name, db.info.backend_pid],
        )
        try:
            yield
        finally:
            connection.execute(f'alter database "{name}" allow_connections true'.encode())
