"""Behind PgBouncer in transaction pooling everything works, and nothing of ours stays on its connections."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import TupleRow

from rowlock import Filter, Rowlock
from rowlock.db.borrowed.joining import TransactionEnd, nothing
from rowlock.db.embedded.server import EmbeddedPostgres
from rowlock.db.handler_connections import HandlerConnections
from rowlock.db.session import AsyncConnection, Server, connect
from rowlock.db.worker_connection import ReconnectingConnection
from tests.cli.programs import shop_in
from tests.depth import deep
from tests.faults.pgbouncer import MISSING, PROGRAM, PgBouncer, pgbouncer
from tests.faults.smoke import LEASE, SOON, Place, check_everything
from tests.waiting import auntil, until
from tests.worker.process import worker_process
from tests.worker.working import one, working

Db = psycopg.Connection[TupleRow]

pytestmark = pytest.mark.skipif(PROGRAM is None, reason=MISSING)

# What a pooled connection must be like when we have used it: as the server gives it to anybody.
SETTINGS = (
    "enable_seqscan",
    "enable_hashjoin",
    "plan_cache_mode",
    "search_path",
    "timezone",
    "datestyle",
    "statement_timeout",
    "lock_timeout",
    "idle_session_timeout",
    "idle_in_transaction_session_timeout",
    "default_transaction_isolation",
    "default_transaction_read_only",
    "array_nulls",
)


@pytest.fixture
def bouncer(server: EmbeddedPostgres) -> Iterator[PgBouncer]:
    """A PgBouncer with three connections to the server for each database."""
    with pgbouncer(server) as bouncer:
        yield bouncer


@pytest.fixture
def pooled(bouncer: PgBouncer, url: str) -> str:
    """The address of the test's database through PgBouncer."""
    return bouncer.url(url)


def backends(bouncer: PgBouncer, url: str) -> set[int]:
    """The server's processes that PgBouncer has lent for this database."""
    name = conninfo_to_dict(url)["dbname"]
    return {int(row["remote_pid"]) for row in bouncer.show("servers") if row["database"] == name}


# Everything works


@pytest.mark.parametrize(
    "around", [pytest.param(False, id="polling", marks=deep), pytest.param(True, id="with listen_url")]
)
def test_everything_works_behind_a_pooler_and_nothing_is_left_on_its_connections(
    pooled: str,
    url: str,
    db: Db,
    bouncer: PgBouncer,
    around: bool,  # noqa: FBT001
) -> None:
    with Rowlock(pooled, listen_url=url if around else None) as app:
        check_everything(Place(app, db))

        check_nothing_is_left(pooled, db, backends(bouncer, url))


def check_nothing_is_left(pooled: str, db: Db, lent: set[int]) -> None:
    """Every connection that was lent is as it would be for anybody else."""
    expected = {name: one(db, f"show {name}") for name in SETTINGS}
    with ExitStack() as stack:
        others = [stack.enter_context(psycopg.connect(pooled)) for _ in lent]
        # Each in a transaction of its own, so that every connection is lent to one of them.
        seen = {one(other, "select pg_backend_pid()") for other in others}
        for other in others:
            assert {name: one(other, f"show {name}") for name in SETTINGS} == expected
            assert other.execute("select name from pg_prepared_statements").fetchall() == []
            assert other.execute("select pg_listening_channels()").fetchall() == []
    assert seen == lent != set()
    held = "select count(*) from pg_locks where locktype = 'advisory' and pid = any(%s)"
    assert one(db, held, sorted(lent)) == 0


@deep
def test_a_database_is_migrated_through_a_pooler_by_many_at_once(bouncer: PgBouncer, database_url: str) -> None:
    async def migrate() -> list[list[str]]:
        apps = [Rowlock(bouncer.url(database_url)) for _ in range(4)]
        return await asyncio.gather(*[app.amigrate() for app in apps])

    applied = asyncio.run(migrate())

    assert sorted(len(names) > 0 for names in applied) == [False, False, False, True]


def test_two_workers_share_the_jobs_and_the_few_connections(pooled: str, db: Db) -> None:
    with Rowlock(pooled) as one_app, Rowlock(pooled) as other_app, Rowlock(pooled) as enqueuer:
        place = Place(one_app, db)
        Place(other_app, db)
        with working(one_app, slots=2), working(other_app, slots=2):
            jobs = enqueuer.enqueue_many(enqueuer.call("add", a=n, b=1) for n in range(200))
            until(lambda: one(db, "select count(*) from rowlock.history") == 200)

        assert [place.app.jobs.get(job.id).result(SOON) for job in jobs[:5]] == [1, 2, 3, 4, 5]
        assert one(db, "select count(*) from rowlock.history where state = 'succeeded' and claims = 1") == 200


@deep
def test_a_worker_of_the_command_line_works_behind_a_pooler(pooled: str, db: Db, tmp_path: Path) -> None:
    with shop_in(tmp_path) as shop, Rowlock(pooled) as app:
        environment = {"ROWLOCK_URL": pooled, "ROWLOCK_APP": "shop"}
        worker = shop.start("worker", "--grace", "1", env=environment)
        said = worker.says("a pooler lends us connections")
        worker.says("works on default")

        greeted = app.enqueue("shop.greet", name="Ada").result(SOON)
        lingering = app.enqueue("shop.linger")
        until(lambda: lingering.record().state == "running")
        worker.signal(signal.SIGTERM)

        assert greeted == "hello Ada"
        assert "looking once a second" in said
        assert worker.ended() == 0, worker.errors
        assert lingering.record().state == "ready"
        stats = shop.run("stats", "--json", env=environment)
        assert json.loads(stats.output)["queues"]["default"]["runnable"]["value"] == 1


@deep
def test_the_bench_command_measures_behind_a_pooler(bouncer: PgBouncer, database_url: str, tmp_path: Path) -> None:
    with shop_in(tmp_path) as shop:
        program = shop.run("bench", "--jobs", "100", "--json", env={"ROWLOCK_URL": bouncer.url(database_url)})

    assert program.process.returncode == 0, program.errors
    assert json.loads(program.output)["jobs"] == 100


# A pooler is found, or said to be there


@pytest.mark.parametrize(("said", "expected"), [(None, True), (True, True), (False, False)])
def test_a_pooler_is_found_unless_somebody_says_what_is_there(pooled: str, said: bool | None, expected: bool) -> None:  # noqa: FBT001
    with Rowlock(pooled, pooler=said) as app, connect(app.database.server(), name="rowlock test") as session:
        assert session.pooled is expected


@pytest.mark.parametrize(("said", "expected"), [(None, False), (True, True)])
def test_no_pooler_is_found_where_there_is_none(url: str, said: bool | None, expected: bool) -> None:  # noqa: FBT001
    with Rowlock(url, pooler=said) as app, connect(app.database.server(), name="rowlock test") as session:
        assert session.pooled is expected


@deep
def test_a_pooler_that_keeps_a_session_for_each_client_can_be_used_as_none(
    server: EmbeddedPostgres, url: str, db: Db
) -> None:
    with (
        pgbouncer(server, pool_mode="session", default_pool_size="20") as bouncer,
        Rowlock(bouncer.url(url), pooler=False) as app,
    ):
        place = Place(app, db)
        with working(app):
            until(lambda: parked(db))
            assert place.add.enqueue(1, 2).result(SOON) == 3


def parked(db: Db) -> int:
    """How many workers ask to be notified."""
    return int(one(db, "select count(*) from rowlock.parked"))


# Listening


def test_nobody_is_parked_where_nobody_listens(pooled: str, db: Db) -> None:
    with Rowlock(pooled) as app:
        place = Place(app, db)
        with working(app):
            results = [place.add.enqueue(n, n).result(SOON) for n in range(3)]
            seen = parked(db), one(db, "select count(*) from rowlock.waiters")

    assert results == [0, 2, 4]
    assert seen == (0, 0)


def test_a_worker_listens_around_the_pooler(pooled: str, url: str, db: Db, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rowlock.worker.claim._POLL", 3600.0)  # only a notification wakes it
    with Rowlock(pooled, listen_url=url) as app:
        place = Place(app, db)
        with working(app):
            until(lambda: parked(db))
            listening = sessions(db, "rowlock listen")
            first = place.add.enqueue(1, 2).result(SOON)
            db.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'rowlock listen'"
            )
            missed = place.add.enqueue(3, 4)
            until(lambda: sessions(db, "rowlock listen"))

            assert (first, missed.result(SOON)) == (3, 7)
            assert place.add.enqueue(5, 6).result(SOON) == 11
            assert len(listening) == 1


def test_whoever_listens_around_the_pooler_looks_after_each_break(pooled: str, url: str, db: Db) -> None:
    heard: list[str] = []

    async def listen() -> None:
        link = ReconnectingConnection(Server(pooled, listen=url), "rowlock", name="rowlock claim")
        link.listen(["channel"], heard.append)
        await link.open()
        await auntil(lambda: link.hears)
        db.execute("notify channel, 'first'")
        await auntil(lambda: "first" in heard)
        db.execute("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'rowlock listen'")
        await auntil(lambda: len(heard) == 3)
        db.execute("notify channel, 'second'")
        await auntil(lambda: "second" in heard)
        await link.close()

    asyncio.run(listen())

    assert heard == ["below", "first", "below", "second"]


def sessions(db: Db, name: str) -> list[tuple[int]]:
    """The server's processes of sessions with this name in the test's database."""
    return db.execute(
        "select pid from pg_stat_activity where application_name = %s and datname = current_database()", [name]
    ).fetchall()


def test_results_come_by_notification_around_the_pooler(pooled: str, url: str, db: Db) -> None:
    with Rowlock(pooled, listen_url=url) as app:
        place = Place(app, db)
        app.waiting_room.poll = timedelta(hours=1)
        app.waiting_room.looks = ()
        job = place.add.using(delay=timedelta(hours=1)).enqueue(1, 2)
        end = app.waiting_room.enter(str(job.id))
        until(lambda: one(db, "select count(*) from rowlock.waiters"))
        with working(app):
            app.jobs.run_next(Filter(ids=[job.id]))

            assert end.result(60).state == "succeeded"


@pytest.mark.parametrize("wrong", ["nowhere", "a pooler"])
def test_a_listen_url_that_is_of_no_use_costs_only_the_notifications(
    pooled: str, db: Db, wrong: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    listen_url = pooled if wrong == "a pooler" else f"postgresql:///none?host={quote(str(tmp_path), safe='')}"
    with Rowlock(pooled, listen_url=listen_url) as app:
        place = Place(app, db)
        with working(app):
            answer = place.add.enqueue(1, 2).result(SOON)

    assert answer == 3
    assert "looking for results once a second" in caplog.text


# Trouble


@deep
def test_a_worker_outlives_the_pooler(pooled: str, db: Db, bouncer: PgBouncer) -> None:
    with Rowlock(pooled) as app:
        place = Place(app, db)
        with working(app, lease=LEASE):
            before = place.add.enqueue(1, 1).result(SOON)
            bouncer.kill()
            with pytest.raises(psycopg.OperationalError):
                place.add.enqueue(2, 2)
            bouncer.start()

            assert place.add.enqueue(3, 3).result(SOON) == 6
            assert before == 2


def test_a_pooler_that_lets_go_of_its_servers_is_not_noticed(pooled: str, db: Db, bouncer: PgBouncer) -> None:
    with Rowlock(pooled) as app:
        place = Place(app, db)
        with working(app, lease=LEASE):
            for n in range(5):
                job = place.add.enqueue(n, n)
                bouncer.order("reconnect")  # every server connection is closed as soon as it is free
                assert job.result(SOON) == 2 * n


@deep
def test_jobs_wait_while_the_pool_is_exhausted(server: EmbeddedPostgres, url: str, db: Db) -> None:
    with pgbouncer(server, default_pool_size="1", query_wait_timeout="1") as bouncer:
        pooled = bouncer.url(url)
        with Rowlock(pooled) as app, Rowlock(url) as direct:
            place = Place(app, db)
            with working(app):
                before = place.add.enqueue(1, 1).result(SOON)
                with psycopg.connect(pooled) as hog:
                    hog.execute("select 1")  # and keeps its transaction open
                    until(lambda: any(row["cl_waiting"] for row in bouncer.show("pools")))
                    with pytest.raises(psycopg.OperationalError):
                        place.add.enqueue(2, 2)
                    waiting = direct.enqueue("add", a=3, b=3)

                assert (before, app.jobs.get(waiting.id).result(SOON)) == (2, 6)


@deep
def test_the_jobs_of_a_worker_that_is_killed_run_elsewhere_when_its_lease_has_run_out(pooled: str, db: Db) -> None:
    with Rowlock(pooled) as app:
        place = Place(app, db)
        job = place.hold.enqueue()
        with worker_process(pooled, lease=2) as doomed:
            until(lambda: job.record().state == "running")
            doomed.kill()
            doomed.wait()

        with working(app, lease=LEASE):
            assert place.holding.wait(60)
            record = job.record()

    assert (record.state, record.crashes, record.failures) == ("running", 1, 0)


def test_another_client_of_the_pool_is_not_disturbed_while_a_worker_works(pooled: str, db: Db) -> None:
    with Rowlock(pooled) as app, psycopg.connect(pooled, autocommit=True, prepare_threshold=None) as other:
        place = Place(app, db)
        expected = {name: one(db, f"show {name}") for name in SETTINGS}
        with working(app, lease=LEASE):
            jobs = [place.add.enqueue(n, n) for n in range(50)]
            seen = [{name: one(other, f"show {name}") for name in SETTINGS} for _ in range(20)]
            for job in jobs:
                job.result(SOON)

    assert all(look == expected for look in seen)


def test_what_others_have_prepared_on_the_poolers_connections_stays_there(pooled: str) -> None:
    """PgBouncer 1.21 has it prepared for them, and goes on to use it."""

    async def story() -> object:
        lent = HandlerConnections(pooled, "rowlock")
        found: Any = None
        for text in ("prepare theirs as select 7", "execute theirs"):
            async with lent.atransaction(None, TransactionEnd(nothing, lambda: None)) as connection:
                found = await cast(AsyncConnection, connection).execute(text.encode())
        await lent.close()
        return await found.fetchone()

    assert asyncio.run(story()) == (7,)
