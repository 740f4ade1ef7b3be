"""A worker's life: it parks, it is woken, it loses its lease or its connection, it stops; its jobs go on."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any

import psycopg
import pytest

from rowlock import Keep, RetryAfter, Rowlock, current_job
from rowlock.db import migrate
from rowlock.db.errors import Lost
from rowlock.db.worker_connection import ReconnectingConnection
from rowlock.errors import SchemaMissing
from rowlock.store.query import Query
from rowlock.worker import claim, queues, upkeep
from rowlock.worker.worker import Worker
from tests.depth import deep
from tests.waiting import auntil, until
from tests.worker.process import worker_process
from tests.worker.working import Db, ended, one, work_off, work_until, working

SOON = timedelta(seconds=1)
TERMINATE = """select count(pg_terminate_backend(pid)) from pg_stat_activity
    where application_name = %s and datname = current_database()"""
NO_GRACE, HOUR = timedelta(0), timedelta(hours=1)


def test_a_killed_workers_jobs_come_back_and_cost_no_attempt(app: Rowlock, db: Db, url: str) -> None:
    app.enqueue_many([app.call("hold"), app.call("hold in a thread")])
    with worker_process(url, lease=1) as victim:
        until(lambda: one(db, "select count(*) = 2 from rowlock.jobs where state = 'running'"))
        victim.kill()
    with worker_process(url, lease=1):
        until(lambda: len(ended(db)) == 2)

    assert {row[1:] for row in ended(db)} == {("succeeded", None, 0)}
    assert db.execute("select crashes, errors[1]->>'type' from rowlock.history").fetchall() == [(1, "WorkerLost")] * 2
    assert db.execute("select kind, details->>'crashes' from rowlock.events").fetchall() == [("rescued", "1")] * 2
    owner = one(db, "select details->>'owner' from rowlock.events limit 1")
    assert owner.endswith(f":{victim.pid}")


def test_a_job_that_kills_its_workers_fails_as_poison_after_three_crashes(app: Rowlock, db: Db, url: str) -> None:
    app.enqueue("kill")
    for _ in range(3):
        with worker_process(url, lease=1) as victim:
            victim.wait(timeout=30)
    with worker_process(url, lease=1):
        until(lambda: ended(db))

    assert db.execute("select state, reason, crashes, failures from rowlock.history").fetchall() == [
        ("failed", "poison", 3, 0)
    ]
    kinds = [row[0] for row in db.execute("select kind from rowlock.events order by at")]
    assert kinds == ["rescued", "rescued", "poisoned"]


def test_jobs_of_a_worker_whose_row_is_gone_are_rescued_too(app: Rowlock, db: Db) -> None:
    @app.task(name="quick")
    async def quick() -> None: ...

    quick.enqueue()
    db.execute(
        "update rowlock.jobs set state = 'running', token = gen_random_uuid(), worker = gen_random_uuid(), claims = 1"
    )

    work_until(app, lambda: ended(db), lease=SOON)

    assert ended(db) == [("quick", "succeeded", None, 0)]
    assert one(db, "select details->>'owner' from rowlock.events") == "unknown"


def test_a_stopping_worker_hands_back_what_it_cannot_finish(
    app: Rowlock, db: Db, caplog: pytest.LogCaptureFixture
) -> None:
    started = threading.Event()

    @app.task(name="hangs")
    async def hangs() -> None:
        started.set()
        await asyncio.Event().wait()

    app.enqueue_many(hangs.bind() for _ in range(5))
    with caplog.at_level(logging.INFO, logger="rowlock.worker"):
        work_until(app, started.is_set, slots=2, grace=NO_GRACE)

    assert (
        db.execute("select state, failures, crashes, token from rowlock.jobs").fetchall() == [("ready", 0, 0, None)] * 5
    )
    assert one(db, "select count(*) from rowlock.workers") == 0
    assert one(db, "select count(*) from rowlock.parked") == 0
    assert [line for line in caplog.messages if line.endswith(" is handed back, at no cost")]


def test_a_stopping_worker_lets_running_jobs_finish_within_the_grace_period(app: Rowlock, db: Db) -> None:
    started, finish = threading.Event(), threading.Event()

    @app.task(name="finishes")
    def finishes() -> None:
        started.set()
        finish.wait(20)

    finishes.enqueue()

    async def work() -> None:
        worker = app.worker(grace=timedelta(seconds=20))
        life = asyncio.create_task(worker.run())
        await auntil(started.is_set)
        worker.stop()
        await auntil(lambda: one(db, "select count(*) = 0 from rowlock.parked"))
        finish.set()
        await life

    asyncio.run(work())

    assert ended(db) == [("finishes", "succeeded", None, 0)]


def test_a_second_stop_hands_back_at_once(app: Rowlock, db: Db) -> None:
    started = threading.Event()

    @app.task(name="hangs")
    async def hangs() -> None:
        started.set()
        await asyncio.Event().wait()

    hangs.enqueue()

    async def work() -> None:
        worker = app.worker(grace=timedelta(hours=1))
        life = asyncio.create_task(worker.run())
        await auntil(started.is_set)
        worker.stop()
        worker.stop()
        await life

    asyncio.run(work())

    assert one(db, "select state from rowlock.jobs") == "ready"


def test_a_worker_that_lost_its_lease_starts_anew_and_its_stale_attempt_counts_for_nothing(
    app: Rowlock, db: Db
) -> None:
    runs: list[str] = []

    @app.task(name="slow")
    async def slow() -> None:
        runs.append(str(current_job().id))
        if len(runs) == 1:
            # Somebody takes the lease and the job away, as a rescue does.
            db.execute("update rowlock.workers set lease = rowlock.now() - interval '1 second', dead = true")
            db.execute("update rowlock.jobs set state = 'ready', token = null")
            await asyncio.Event().wait()

    slow.enqueue()
    work_until(app, lambda: ended(db), lease=SOON)

    assert len(runs) == 2
    assert db.execute("select state, claims from rowlock.history").fetchall() == [("succeeded", 2)]


def test_an_idle_worker_is_parked_and_a_new_job_notifies_it(app: Rowlock, db: Db, url: str) -> None:
    @app.task(name="quick")
    async def quick() -> None: ...

    with psycopg.connect(url, autocommit=True) as listener:
        listener.execute(f'listen "{one(db, "select rowlock.channel($$default$$)")}"'.encode())

        async def work() -> None:
            async with app, app.worker():
                await auntil(lambda: one(db, "select exists (select from rowlock.parked)"))
                await quick.aenqueue()
                await auntil(lambda: ended(db))

        asyncio.run(work())

        assert [notify.payload for notify in listener.notifies(timeout=5, stop_after=1)] == [""]


def test_without_a_parked_worker_an_enqueue_notifies_nobody(app: Rowlock, db: Db, url: str) -> None:
    with psycopg.connect(url, autocommit=True) as listener:
        listener.execute(f'listen "{one(db, "select rowlock.channel($$default$$)")}"'.encode())
        app.enqueue("quick")
        app.enqueue_many(app.call("quick") for _ in range(1_000))
        db.execute("select rowlock.enqueue('quick')")
        db.execute("notify done")
        listener.execute("listen done")
        db.execute("notify done")

        assert [notify.channel for notify in listener.notifies(timeout=5, stop_after=1)] == ["done"]


def test_a_delayed_job_runs_when_it_is_due_though_nobody_notifies(app: Rowlock, db: Db) -> None:
    @app.task(name="later")
    async def later() -> None: ...

    later.using(delay=timedelta(milliseconds=300)).enqueue()
    work_until(app, lambda: ended(db))

    assert one(db, "select started_at >= run_at from rowlock.history")


@deep
def test_a_delayed_job_is_not_found_by_chance(app: Rowlock, db: Db, monkeypatch: pytest.MonkeyPatch) -> None:
    """An idle worker knows when the next job is due, and does not wait for its next poll."""
    monkeypatch.setattr(claim, "_POLL", 3_600.0)
    monkeypatch.setattr(claim, "_TAKE_UP_EVERY", 3_600.0)

    @app.task(name="later")
    async def later() -> None: ...

    later.using(delay=timedelta(seconds=2)).enqueue()
    later.using(delay=timedelta(hours=1)).enqueue()
    later.using(delay=timedelta(milliseconds=100), queue="paused").enqueue()
    app.queues.pause("paused")
    work_until(app, lambda: ended(db), queues=["default", "paused"])

    assert one(db, "select started_at >= run_at from rowlock.history")
    assert one(db, "select count(*) from rowlock.jobs where state = 'ready'") == 2


def test_what_is_due_again_before_the_next_look_is_found_when_it_is_due(
    app: Rowlock, db: Db, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claim, "_POLL", 3_600.0)
    monkeypatch.setattr(claim, "_TAKE_UP_EVERY", 3_600.0)
    monkeypatch.setattr(queues, "_IDLE_PAUSE", (0.0, 0.0))  # it looks from the bottom before it sleeps
    monkeypatch.setattr(claim, "_CALM", 0.5)  # a job becomes due before the worker asks when the next one will be
    soon = timedelta(milliseconds=200)
    asleep = """select exists (select from rowlock.parked) and exists (
        select from pg_stat_activity
        where application_name = 'rowlock claim' and datname = current_database()
            and state = 'idle' and query like '%%last_value%%'  -- it has asked what is due next
    )"""

    @app.task(name="twice")
    async def twice() -> None:
        await auntil(lambda: one(db, asleep))
        if current_job().attempt == 1:
            raise RetryAfter(soon)

    async def work() -> None:
        async with app, app.worker():
            await auntil(lambda: one(db, asleep))
            await twice.using(delay=soon).aenqueue()
            await auntil(lambda: len(ended(db)) == 1)
            await auntil(lambda: one(db, asleep))
            db.execute("select rowlock.enqueue('twice', delay => '200 milliseconds')")
            await auntil(lambda: len(ended(db)) == 2)

    asyncio.run(work())

    assert db.execute("select state, failures from rowlock.history").fetchall() == [("succeeded", 1)] * 2


def test_a_settle_goes_on_while_someone_has_one_of_its_rows_locked(app: Rowlock, db: Db, url: str) -> None:
    started, go = threading.Semaphore(0), threading.Event()

    @app.task(name="waits")
    def waits(n: int) -> int:
        started.release()
        go.wait(20)
        return n

    jobs = app.enqueue_many(waits.bind(n) for n in range(5))
    held = str(jobs[0].id)

    async def work(holder: psycopg.Connection[tuple[object, ...]]) -> None:
        async with app, app.worker(slots=5):
            for _ in jobs:
                await asyncio.to_thread(started.acquire)
            holder.execute("select from rowlock.jobs where id = %s for update", [held])
            go.set()
            await auntil(lambda: len(ended(db)) == 4)
            assert one(db, "select id::text from rowlock.jobs") == held
            holder.rollback()
            await auntil(lambda: len(ended(db)) == 5)
            assert one(db, "select max(claims) from rowlock.history") == 1  # it was settled, not run again

    with psycopg.connect(url) as holder:
        asyncio.run(work(holder))


def test_a_missing_partition_is_made_when_a_settle_needs_it(app: Rowlock, db: Db) -> None:
    @app.task(name="quick")
    async def quick() -> None: ...

    async def work() -> None:
        async with app, app.worker():
            for (name,) in db.execute(
                "select inhrelid::regclass::text from pg_inherits where inhparent = 'rowlock.history'::regclass"
            ):
                db.execute(f"drop table {name}".encode())
            await quick.aenqueue()
            await auntil(lambda: ended(db))

    asyncio.run(work())

    assert ended(db) == [("quick", "succeeded", None, 0)]


def test_a_result_that_postgresql_refuses_fails_its_job_and_no_other(app: Rowlock, db: Db) -> None:
    """The check at the end of the handler should catch all of these; if one slips through, the batch is halved."""

    @app.task(name="quick")
    async def quick(n: int) -> int:
        return n

    db.execute("alter table rowlock.history add check (result::text <> '13')")
    app.enqueue_many(quick.bind(n) for n in range(40))
    work_off(app, db)

    assert one(db, "select count(*) from rowlock.history where state = 'succeeded'") == 39
    assert db.execute("select reason, args->>'n' from rowlock.history where state = 'failed'").fetchall() == [
        ("refused", "13")
    ]


def test_a_worker_survives_the_loss_of_each_of_its_connections(app: Rowlock, db: Db) -> None:
    @app.task(name="quick")
    async def quick() -> None: ...

    async def work() -> None:
        async with app, app.worker(lease=SOON):
            for session in ("rowlock claim", "rowlock settle", "rowlock renew"):
                await auntil(partial(one, db, TERMINATE, session))
                await quick.aenqueue()
            await auntil(lambda: len(ended(db)) == 3)

    asyncio.run(work())


def test_strict_queues_are_worked_off_in_order_and_weighted_ones_whole(app: Rowlock, db: Db) -> None:
    order: list[str] = []

    @app.task(name="note")
    async def note() -> None:
        order.append(current_job().queue)

    def fill() -> None:
        order.clear()
        for queue in ("a", "b"):
            app.enqueue_many(note.using(queue=queue).bind() for _ in range(200))

    fill()
    work_off(app, db, queues=["b", "a"], slots=1)
    assert order == ["b"] * 200 + ["a"] * 200

    fill()
    work_off(app, db, queues={"a": 3, "b": 1}, slots=1)
    assert sorted(order) == ["a"] * 200 + ["b"] * 200  # how often each leads is for test_lanes to see


def test_a_worker_waits_for_the_schema_and_then_works(database_url: str) -> None:
    app = Rowlock(database_url)
    ran = threading.Event()

    @app.task(name="quick")
    async def quick() -> None:
        ran.set()

    async def work() -> None:
        worker = app.worker()
        life = asyncio.create_task(worker.run())
        await app.amigrate()
        await quick.aenqueue()
        await auntil(ran.is_set)
        worker.stop()
        await life
        await app.aclose()

    asyncio.run(work())


def test_a_worker_that_never_finds_the_schema_says_what_to_do(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrate, "PATIENCE", 0.0)

    with pytest.raises(SchemaMissing, match="run: rowlock migrate"):
        asyncio.run(Rowlock(database_url).worker().run())


def test_sigterm_of_a_worker_process_is_left_to_its_program(app: Rowlock, db: Db, url: str) -> None:
    """Only the command line installs signal handlers; a program that has none dies, and its jobs are rescued."""
    app.enqueue("hold")
    with worker_process(url, lease=1) as process:
        until(lambda: one(db, "select state = 'running' from rowlock.jobs"))
        process.terminate()
        assert process.wait(timeout=30) == -signal.SIGTERM


def test_a_handler_that_swallows_its_cancellation_does_not_keep_the_worker(app: Rowlock, db: Db) -> None:
    started = threading.Event()
    over = asyncio.Event()

    @app.task(name="stubborn")
    async def stubborn() -> None:
        started.set()
        while not over.is_set():
            with suppress(asyncio.CancelledError):
                await over.wait()

    async def work() -> None:
        stubborn_job = app.call("stubborn")
        async with app:
            await stubborn_job.aenqueue()
            async with app.worker(grace=NO_GRACE):
                await auntil(started.is_set)
            assert one(db, "select state from rowlock.jobs") == "ready"
            over.set()

    asyncio.run(work())


def test_an_operators_retention_wins_over_the_tasks_own(app: Rowlock, db: Db) -> None:
    @app.task(name="kept", keep=Keep(succeeded=timedelta(days=3)))
    async def kept() -> None: ...

    db.execute("insert into rowlock.queues (name, keep_succeeded) values ('long', '300 days')")
    kept.enqueue()
    kept.using(queue="long").enqueue()
    work_off(app, db, queues=["default", "long"])

    days = "select queue, expires_on - (ended_at at time zone 'UTC')::date from rowlock.history order by queue"
    assert db.execute(days.encode()).fetchall() == [("default", 3), ("long", 300)]


# What goes wrong within


def test_an_incarnation_whose_loop_has_failed_is_followed_after_a_pause(
    app: Rowlock, db: Db, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[int] = []
    run = claim.Claimer.run

    async def fail(claimer: claim.Claimer) -> None:
        if len(pauses) < 3:
            raise RuntimeError("a fault of ours")
        await run(claimer)

    async def pause(_worker: Worker, restarts: int) -> None:
        pauses.append(restarts)

    @app.task(name="quick")
    async def quick() -> None: ...

    monkeypatch.setattr(claim.Claimer, "run", fail)
    monkeypatch.setattr(Worker, "_pause", pause)
    quick.enqueue()
    work_until(app, lambda: ended(db))

    assert pauses == [1, 2, 3]


def test_the_pause_after_a_fault_grows_and_ends_when_the_worker_is_stopped(
    app: Rowlock, caplog: pytest.LogCaptureFixture
) -> None:
    worker = app.worker()
    worker.stop()

    async def pause() -> None:
        for restarts in range(1, 10):
            await worker._pause(restarts)

    asyncio.run(pause())

    said: list[Any] = [entry.args for entry in caplog.records if "it restarts in" in entry.msg]
    longest = [0.5, 1, 2, 4, 8, 16, 30, 30, 30]
    assert [restarts for restarts, _ in said] == list(range(1, 10))
    assert all(most / 2 <= seconds <= most for (_, seconds), most in zip(said, longest, strict=True))


def test_a_look_from_the_bottom_that_takes_too_long_is_given_up_and_claims_go_on(
    app: Rowlock, db: Db, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    looks = looks_are_late(monkeypatch)

    @app.task(name="quick")
    async def quick() -> None: ...

    with working(app):
        until(lambda: looks)
        for count in (1, 2):
            quick.enqueue()
            until(lambda count=count: len(ended(db)) == count)  # type: ignore[misc]

    assert looks == ["lane_due"]  # and no other, for the next one would take as long
    assert caplog.text.count("a look at all that the queues hold is too slow") == 1


def test_jobs_from_before_a_worker_began_are_claimed_though_its_look_from_the_bottom_takes_too_long(
    app: Rowlock, db: Db, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks_are_late(monkeypatch)
    monkeypatch.setattr(upkeep, "look_below", lambda *_args, **_options: HOUR)  # it would be late, too

    @app.task(name="quick")
    async def quick() -> None: ...

    app.enqueue_many(quick.bind() for _ in range(30))
    db.execute("update rowlock.jobs set run_at = now() - interval '1 hour' + random() * interval '1 minute'")
    work_until(app, lambda: len(ended(db)) == 30, slots=5)


def looks_are_late(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Each look from the bottom takes too long; returns those that were taken."""
    looks: list[str] = []
    once = ReconnectingConnection.once

    async def late(link: ReconnectingConnection, query: Query[object]) -> list[object]:
        if query.name != "lane_due":
            return await once(link, query)
        looks.append(query.name)
        connection = await link.open()
        await connection.execute("set statement_timeout = 1")
        try:
            await connection.execute("select pg_sleep(60)")
        except psycopg.errors.QueryCanceled as error:
            raise Lost(error) from error
        finally:
            await connection.execute("set statement_timeout = 0")
        raise AssertionError("PostgreSQL has not ended it")

    monkeypatch.setattr(ReconnectingConnection, "once", late)
    return looks
