"""Stats: the figures agree with the world, cost what they count, and what cannot be learned is said."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from datetime import UTC, date, datetime, timedelta
from math import sqrt
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from rowlock import Cancel, Retry, RetryAfter, Rowlock, RowlockError
from rowlock.db.session import Connection, connect
from rowlock.db.thread_connection import ReconnectingSyncConnection
from rowlock.errors import SchemaMissing
from rowlock.model.outcome import Succeeded
from rowlock.model.row import ClaimedJob
from rowlock.model.stats.stats import Cleanup, Count, Rates
from rowlock.store.query import Query, statement
from rowlock.store.stats import counts, minutes
from rowlock.store.stats import workers as store_stats
from rowlock.testing import travel
from rowlock.types import Stats
from rowlock.worker.counts import Counts
from tests.depth import deep
from tests.waiting import auntil, until
from tests.worker.process import worker_process
from tests.worker.working import Db, ended, one, work_off, work_until

LATER = timedelta(minutes=2)  # when the minute in which something happened is over, and counted
LONG_AGO = datetime(2024, 1, 1, tzinfo=UTC)
NONE, ONE = Count(0), Count(1)


# A small world


def test_an_empty_database_has_nothing_to_say(app: Rowlock) -> None:
    stats = app.stats()

    assert (stats.queues, stats.tasks, stats.unknown) == ({}, {}, {})
    assert stats.fleet.workers == ()
    assert stats.fleet.claims is None
    assert stats.database.claim is None
    assert stats.database.cleanup == Cleanup(0, timedelta(0))


def test_queues_say_what_lies_in_them(app: Rowlock, db: Db) -> None:
    @app.task(name="send", queue="mail")
    async def send() -> None: ...

    app.enqueue_many([send.bind(), send.using(priority=4).bind(), send.using(priority=-4).bind()])
    send.using(delay=timedelta(hours=1)).enqueue()
    send.using(queue="slow", delay=timedelta(hours=1)).enqueue()
    db.execute("update rowlock.jobs set run_at = run_at - interval '1 minute' where priority = -4")
    app.enqueue("unknown here")
    work_until(app, lambda: one(db, "select exists (select from rowlock.jobs where state = 'waiting')"))

    queues = app.stats().queues

    assert list(queues) == ["default", "mail", "slow"]
    mail, slow, default = queues["mail"], queues["slow"], queues["default"]
    assert (mail.runnable, mail.delayed, mail.running, mail.waiting) == (Count(3), ONE, NONE, {})
    assert mail.oldest is not None
    assert timedelta(minutes=1) <= mail.oldest < timedelta(minutes=10)
    assert (slow.runnable, slow.delayed, slow.oldest) == (NONE, ONE, None)
    assert (default.runnable, default.waiting) == (NONE, {"code": ONE})


def test_rates_are_what_workers_did_in_the_last_full_minutes(app: Rowlock, db: Db) -> None:
    @app.task(name="works", queue="mail")
    async def works() -> None: ...

    @app.task(name="fails", queue="mail", retry=Retry(attempts=1))
    async def fails() -> None:
        raise ValueError

    @app.task(name="again", queue="mail")
    def again() -> None:
        raise RetryAfter(timedelta(hours=9))

    @app.task(name="cancels", queue="mail")
    async def cancels() -> None:
        raise Cancel

    app.enqueue_many([works.bind(), works.bind(), works.bind(), fails.bind(), again.bind(), cancels.bind()])
    work_off(app, db, queues="mail")
    with travel(app, -LATER):
        too_early = app.stats()
    with travel(app, LATER):
        stats = app.stats()
    with travel(app, timedelta(minutes=10)):
        too_late = app.stats()

    per_second = 1 / stats.window.total_seconds()
    expected = Rates(claimed=6 * per_second, completed=5 * per_second, retried=per_second, failed=per_second)
    assert stats.queues["mail"].rates == expected
    assert stats.tasks["works"].rates == Rates(claimed=3 * per_second, completed=3 * per_second)
    assert stats.tasks["again"].rates == Rates(claimed=per_second, retried=per_second)
    assert {name: task.failed for name, task in stats.tasks.items()} == {
        "works": NONE,
        "fails": ONE,
        "again": NONE,
        "cancels": NONE,
    }
    assert too_early.tasks["works"].rates == Rates()
    assert too_late.tasks["works"].rates == Rates()


def test_percentiles_of_known_durations_are_right_to_within_a_bucket(app: Rowlock, url: str) -> None:
    row = ClaimedJob("", "", "t", "{}", "q", 0, "", 0, 0, 1, 10, None, False, None, None)
    known = [number / 100 for number in range(1, 101)]  # 10 ms to a second
    connection = ReconnectingSyncConnection(url, "rowlock", name="test")
    for share in (known[::2], known[1::2]):  # two workers
        counts = Counts(str(uuid4()))
        counts.begin(app.stats().at.timestamp())
        for took in share:
            counts.ended(row, Succeeded(None), took, 0.0)
        counts.write(connection)
    connection.close()

    durations = app.stats().tasks["t"].durations

    assert durations is not None
    assert (durations.count, durations.max) == (100, timedelta(seconds=1))
    assert durations.mean == pytest.approx(timedelta(seconds=0.505), abs=timedelta(milliseconds=1))
    for said, exact in ((durations.p50, 0.50), (durations.p95, 0.95), (durations.p99, 0.99)):
        assert exact / sqrt(2) <= said.total_seconds() <= exact * sqrt(2)


def test_how_long_jobs_had_been_due_shows_by_queue_and_by_task(app: Rowlock, db: Db) -> None:
    @app.task(name="send", queue="mail")
    async def send() -> None: ...

    @app.task(name="report", queue="mail")
    async def report() -> None: ...

    app.enqueue_many([send.bind(), report.bind()])
    db.execute("update rowlock.jobs set run_at = run_at - interval '1 hour' where task = 'report'")
    work_off(app, db, queues="mail")

    stats = app.stats()
    with travel(app, timedelta(hours=2)):
        later = app.stats()

    waits = {name: task.waits for name, task in stats.tasks.items()}
    waits["mail"] = stats.queues["mail"].waits
    assert {name: told and told.count for name, told in waits.items()} == {"send": 1, "report": 1, "mail": 2}
    longest = {name: told and told.max > timedelta(hours=1) for name, told in waits.items()}
    assert longest == {"send": False, "report": True, "mail": True}
    assert [queue.waits for queue in later.queues.values()] == []


def test_the_fleet_shows_what_workers_hold_and_how_they_claim(app: Rowlock, db: Db) -> None:
    @app.task(name="hangs")
    async def hangs() -> None:
        await asyncio.Event().wait()

    app.enqueue_many([hangs.bind(), hangs.bind()])

    async def work() -> Stats:
        async with app.worker(queues=["default", "mail"], slots=7, grace=timedelta(0)):
            # Its claims are in the books a moment after it has made them.
            await auntil(lambda: one(db, "select coalesce(sum(claimed), 0) = 2 from rowlock.workers"))
            return await app.astats()

    stats = asyncio.run(work())

    assert stats.fleet.workers is not None
    [worker] = stats.fleet.workers
    assert (worker.queues, worker.slots, worker.held) == (("default", "mail"), 7, 2)
    assert timedelta(0) < worker.lease_left <= timedelta(seconds=30)
    assert worker.started_at <= stats.at
    assert stats.queues["default"].running == Count(2)
    assert stats.queues["mail"].running == NONE
    claims = stats.fleet.claims
    assert claims is not None
    assert claims.rows in {1.0, 2.0}  # they may have come in one claim or in two
    assert timedelta(0) < claims.mean <= claims.max


@deep
def test_a_killed_workers_rescue_is_counted(app: Rowlock, db: Db, url: str) -> None:
    app.enqueue("hold")
    with worker_process(url, lease=1) as victim:
        until(lambda: one(db, "select count(*) = 1 from rowlock.jobs where state = 'running'"))
        victim.kill()
    with worker_process(url, lease=1):
        until(lambda: ended(db))

    now = app.stats().fleet
    with travel(app, timedelta(hours=2)):
        later = app.stats().fleet

    assert now.rescued is not None
    assert later.rescued is not None
    assert (now.rescued.hour, now.rescued.day) == (ONE, ONE)
    assert (later.rescued.hour, later.rescued.day) == (NONE, ONE)
    assert now.poisoned is not None
    assert now.poisoned.day == NONE


def test_a_pause_shows(app: Rowlock) -> None:
    app.enqueue("t")
    app.queues.pause("mail")
    app.tasks.pause("send", duration=timedelta(hours=1))

    now = app.stats()
    with travel(app, timedelta(hours=2)):
        later = app.stats()

    assert {name: queue.paused for name, queue in now.queues.items()} == {"default": False, "mail": True}
    assert now.tasks["send"].paused
    assert "send" not in later.tasks


# The database


def test_sizes_are_those_of_the_tables(app: Rowlock, db: Db) -> None:
    app.enqueue_many(app.call("t") for _ in range(2_000))
    work_until(app, lambda: one(db, "select count(*) = 2000 from rowlock.jobs where state = 'waiting'"))
    db.execute("vacuum analyze rowlock.jobs")

    database = app.stats().database

    assert database.sizes is not None
    assert database.sizes.jobs == one(db, "select pg_table_size('rowlock.jobs')")
    assert sum(database.sizes.jobs_indexes.values()) == one(db, "select pg_indexes_size('rowlock.jobs')")
    assert {"jobs_pkey", "jobs_ready"} <= database.sizes.jobs_indexes.keys()
    assert database.vacuum is not None
    assert database.vacuum.last_vacuum is not None
    assert database.connections is not None
    assert 0 < database.connections.used <= database.connections.limit


def test_who_holds_the_oldest_snapshot_is_named(app: Rowlock, db: Db, url: str) -> None:
    with psycopg.connect(url, application_name="the forgotten report") as holder:
        holder.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        holder.execute("select")
        with psycopg.connect(url, application_name="a younger one") as other:
            app.enqueue("t")
            other.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            other.execute("select")

            snapshots = app.stats().database.snapshots

        pid = holder.info.backend_pid

    assert snapshots is not None
    oldest, *younger = snapshots
    assert (oldest.kind, oldest.name, oldest.pid) == ("session", "the forgotten report", pid)
    assert oldest.state == "idle in transaction"
    assert oldest.user == one(db, "select current_user")
    assert oldest.transactions >= 1
    assert oldest.held_for is not None
    assert oldest.query_started is not None
    assert "a younger one" in [snapshot.name for snapshot in younger]


def test_a_session_that_waits_for_a_lock_on_our_tables_shows(app: Rowlock, db: Db, url: str) -> None:
    app.enqueue("t")
    touch = "update rowlock.jobs set tags = '{}'"
    with psycopg.connect(url) as holder, psycopg.connect(url, application_name="the second") as second:
        holder.execute(touch)
        waiting = threading.Thread(target=lambda: second.execute(touch))
        waiting.start()
        try:
            until(lambda: one(db, "select exists (select from pg_locks where not granted)"))

            lock_waits = app.stats().database.lock_waits
        finally:
            pid = holder.info.backend_pid
            holder.rollback()
            waiting.join()

    assert lock_waits is not None
    [wait] = lock_waits
    assert (wait.application, wait.blocked_by) == ("the second", (pid,))


def test_a_probe_says_what_a_claim_would_touch_and_claims_nothing(app: Rowlock, db: Db) -> None:
    app.enqueue_many(app.call("t") for _ in range(300))

    cost = app.stats().database.claim

    assert cost is not None
    assert cost.rows == 100
    assert 100 <= cost.buffers + 100 < 600
    assert cost.took > timedelta(0)
    assert one(db, "select count(*) from rowlock.jobs where state = 'ready'") == 300


def test_a_probe_passes_over_paused_queues_as_a_claim_does(app: Rowlock) -> None:
    app.enqueue("t")
    app.queues.pause("default")

    assert app.stats().database.claim is None


def test_expired_partitions_that_are_still_there_are_a_lag(app: Rowlock, db: Db) -> None:
    for first, after in (("2024-01-01", "2024-01-02"), ("2024-01-02", "2024-01-03")):
        part = f"history_{first.replace('-', '')}"
        bounds = f"for values from ('{first}') to ('{after}')"
        db.execute(f"create table rowlock.{part} partition of rowlock.history {bounds}".encode())

    stats = app.stats()

    assert stats.database.cleanup is not None
    assert stats.database.cleanup.partitions == 2
    assert (stats.at - stats.database.cleanup.lag).date() == date(2024, 1, 2)  # the first that the first was not wanted


# What it costs


@deep
def test_stats_cost_what_they_count_and_not_what_there_is(app: Rowlock, db: Db, url: str) -> None:
    work_until(app, lambda: True)  # which makes the partitions of history
    load(db, live=200_000, ended=300_000)

    stats = app.stats()
    with connect(url, name="test") as session:
        costs = {query.name: buffers(session, query) for query in COUNTS}

    assert stats.unknown == {}
    assert [queue.runnable for queue in stats.queues.values()] == [Count(20_000, more=True)] * 10
    assert stats.tasks["t"].failed == Count(10_000, more=True)
    # Each of them looks at a thousand rows, or at a thousand of each of ten lanes; whole tables are over 5,000 pages.
    assert {name: cost for name, cost in costs.items() if cost > 2_500} == {}


COUNTS: list[Query[Any]] = [
    counts.ready(500),
    counts.running(1_000),
    counts.waiting(1_000),
    counts.failed(1_000),
    counts.rescues(1_000),
    counts.probe([f"q{number}" for number in range(10)], limit=100),
    minutes.done(timedelta(minutes=5)),
    minutes.breakdown(timedelta(hours=1), most=1_000),
    minutes.series(since=LONG_AGO, step=timedelta(minutes=1), queue=None, task=None, most=1_000),
    store_stats.worker_rows(),
]


def load(db: Db, *, live: int, ended: int) -> None:
    """Load jobs that are due, of ten queues, jobs that have failed, and a day of seventy workers."""
    db.execute("""
        insert into rowlock.minutes
        select date_trunc('minute', rowlock.now()) - minute * interval '1 minute', gen_random_uuid(), 'q0', 't',
            1, 1, 0, 0, 0, 1, 1, 1000000000000, 1, 1, 1000000000000
        from generate_series(1, 1439) as minute cross join generate_series(1, 70) as worker
        order by minute desc
    """)
    past = "2024-01-01"
    with db.cursor().copy("copy rowlock.jobs (id, queue, task, attempts, run_at, created_at, args) from stdin") as copy:
        for number in range(live):
            copy.write(f"{uuid4()}\tq{number % 10}\tt\t10\t{past}\t{past}\t{{}}\n")
    day = one(db, "select (rowlock.now() at time zone 'UTC')::date")
    with db.cursor().copy("""
        copy rowlock.history (
            id, queue, task, state, priority, failures, crashes, claims, attempts, run_at, created_at, ended_at,
            expires_on, args
        ) from stdin
    """) as copy:
        for number in range(ended):
            kept = day + timedelta(days=1 + number % 7)
            copy.write(f"{uuid4()}\tq\tt\tfailed\t0\t1\t0\t1\t1\t{past}\t{past}\t{past}\t{kept}\t{{}}\n")


def buffers(session: Connection, query: Query[Any]) -> int:
    """How many pages a statement touches."""
    text = statement(query.name, "rowlock").strip()
    text = text if text.startswith("explain") else f"explain (analyze, buffers, format json) {text}"
    row = session.execute(text.encode(), query.params).fetchone()
    assert row is not None
    plan = json.loads(row[0])[0]["Plan"]
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


# What cannot be learned


def viewer(db: Db, url: str, *, grants: str) -> str:
    """The address of the same database for a new role that may look at our tables, and no further."""
    name = f"viewer_{uuid4().hex}"
    for said in (
        f"create role {name} login",
        f"grant usage on schema rowlock to {name}",
        f"grant {grants} to {name}",
        f"grant execute on function rowlock.now(), rowlock.shown_state to {name}",
    ):
        db.execute(said.encode())
    return re.sub(r"//[^@/]*@", f"//{name}@", url)


def test_a_role_that_may_not_see_others_sessions_learns_the_rest(app: Rowlock, db: Db, url: str) -> None:
    app.enqueue("t")
    address = viewer(db, url, grants="select on all tables in schema rowlock")
    with psycopg.connect(url, application_name="the forgotten report") as holder, Rowlock(address) as limited:
        holder.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        holder.execute("select")

        stats = limited.stats()

    assert list(stats.unknown) == ["snapshots"]
    assert "pg_monitor" in stats.unknown["snapshots"]
    assert stats.database.snapshots is not None
    oldest = stats.database.snapshots[0]
    assert (oldest.name, oldest.state, oldest.held_for) == ("the forgotten report", None, None)
    assert stats.queues["default"].runnable == ONE


def test_what_a_role_may_not_read_is_unknown_with_the_reason(db: Db, url: str) -> None:
    address = viewer(db, url, grants="select on rowlock.jobs, rowlock.workers, rowlock.minutes, rowlock.events")
    with Rowlock(address) as limited:
        limited_stats = limited.stats()

    assert limited_stats.unknown.keys() == {"paused", "failed"}
    assert "permission denied" in limited_stats.unknown["paused"]
    assert limited_stats.fleet.workers == ()


def test_what_somebody_has_locked_is_unknown_and_the_rest_is_there(app: Rowlock, url: str) -> None:
    app.enqueue("t")
    with psycopg.connect(url) as holder:
        holder.execute("lock table rowlock.pauses in access exclusive mode")

        stats = app.stats()

    assert stats.unknown == {"paused": "somebody holds a lock on it"}
    assert stats.queues["default"].paused is None
    assert stats.queues["default"].runnable == ONE


def test_without_our_schema_it_says_what_to_do(database_url: str) -> None:
    with pytest.raises(SchemaMissing, match="rowlock migrate"), Rowlock(database_url) as app:
        app.stats()


def test_the_session_goes_back_to_the_pool_as_it_was(app: Rowlock, db: Db) -> None:
    app.stats()

    app.enqueue("t")  # on the same connection, which only looked a moment ago

    assert one(db, "select count(*) from rowlock.jobs") == 1


# Its form


def test_stats_can_be_written_as_json(app: Rowlock, db: Db) -> None:
    @app.task(name="works")
    async def works() -> None: ...

    works.enqueue()
    work_off(app, db)
    works.enqueue()

    stats = app.stats()
    again = json.loads(json.dumps(stats.to_dict()))

    assert again["at"] == stats.at.isoformat()
    assert again["window"] == 300.0
    assert again["queues"]["default"]["runnable"] == {"value": 1, "more": False}
    assert again["tasks"]["works"]["durations"]["count"] == 1
    assert again["database"]["lock_waits"] == []
    assert again.keys() == {"at", "window", "queues", "tasks", "fleet", "database", "unknown"}


def test_on_an_event_loop_it_asks_for_its_twin(app: Rowlock) -> None:
    async def look() -> None:
        app.stats()

    with pytest.raises(RowlockError, match="astats"):
        asyncio.run(look())
