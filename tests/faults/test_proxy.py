"""The proxy itself: what it says of statements is so, and what it does to them leaves the protocol in step."""

from __future__ import annotations

import threading
from importlib import resources

import psycopg
import pytest
from psycopg.rows import TupleRow

from rowlock import Rowlock
from rowlock.db.session import connect, run
from rowlock.store import jobs
from tests.engine import SCHEMA
from tests.faults import protocol
from tests.faults.proxy import Call, Cut, Hole, Proxy, Refuse
from tests.waiting import until

Db = psycopg.Connection[TupleRow]


def test_every_statement_of_ours_has_its_own_name() -> None:
    files = [file.name for file in (resources.files("rowlock.store") / "sql").iterdir() if file.name.endswith(".sql")]

    names = protocol._names(SCHEMA)

    assert sorted(f"{name}.sql" for name in names.values()) == sorted(files)


def test_it_records_what_passes_under_the_names_of_our_files(proxy: Proxy) -> None:
    with Rowlock(proxy.url) as app:
        app.enqueue("greet")
        app.enqueue("greet")

    assert proxy.sent("job_put") == 2
    assert {one.who for one in proxy.passed} == {"rowlock"}


def test_a_forged_error_keeps_the_connection_in_step(proxy: Proxy) -> None:
    session = connect(proxy.url, name="rowlock test")
    proxy.on("job_held", Refuse("40P01"), nth=2)

    with session:
        run(session.cursor(), jobs.held([]), SCHEMA)
        with pytest.raises(psycopg.errors.DeadlockDetected):
            run(session.cursor(), jobs.held([]), SCHEMA)
        run(session.cursor(), jobs.held([]), SCHEMA)

    assert proxy.sent("job_held") == 3


def test_a_commit_that_is_refused_has_rolled_back(proxy: Proxy, db: Db) -> None:
    fault = proxy.on("transaction_commit", Refuse("40001"))

    with connect(proxy.url, name="rowlock test") as session:
        with pytest.raises(psycopg.errors.SerializationFailure), session.transaction():
            session.execute("insert into rowlock.queues (name) values ('mail')")
        left = session.execute("select count(*) from rowlock.queues").fetchone()

    assert fault.happened.is_set()
    assert left == (0,)


def test_an_error_inside_a_transaction_leaves_it_to_be_rolled_back(proxy: Proxy, db: Db) -> None:
    proxy.on("job_held", Refuse("53100"))

    with connect(proxy.url, name="rowlock test") as session:
        session.execute("begin")
        session.execute("insert into rowlock.queues (name) values ('mail')")
        with pytest.raises(psycopg.errors.DiskFull):
            run(session.cursor(), jobs.held([]), SCHEMA)
        session.rollback()
        left = session.execute("select count(*) from rowlock.queues").fetchone()

    assert left == (0,)


@pytest.mark.parametrize("after", [False, True], ids=["before the server hears", "before the client hears"])
def test_a_cut_connection_loses_the_request_or_the_reply(proxy: Proxy, db: Db, *, after: bool) -> None:
    session = connect(proxy.url, name="rowlock test")
    fault = proxy.on("insert", Cut(after=after))

    with pytest.raises(psycopg.OperationalError):
        session.execute("insert into rowlock.queues (name) values ('mail')")

    assert fault.happened.is_set()
    assert db.execute("select count(*) from rowlock.queues").fetchone() == (int(after),)
    assert session.closed


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_somebody_is_called_before_the_server_or_the_client_hears(proxy: Proxy, db: Db, *, after: bool) -> None:
    seen: list[object] = []
    look = "select count(*) from rowlock.queues"
    proxy.on("insert", Call(lambda: seen.append(db.execute(look).fetchone()), after=after))

    with connect(proxy.url, name="rowlock test") as session:
        session.execute("insert into rowlock.queues (name) values ('mail')")

    assert seen == [(int(after),)]


def test_a_copy_loses_its_reply_after_its_data_has_arrived(proxy: Proxy, db: Db) -> None:
    session = connect(proxy.url, name="rowlock test")
    fault = proxy.on("copy", Cut(after=True))

    with (
        pytest.raises(psycopg.OperationalError),
        session.cursor().copy("copy rowlock.queues (name) from stdin") as copy,
    ):
        copy.write("mail\n")

    assert fault.happened.is_set()
    assert db.execute("select count(*) from rowlock.queues").fetchone() == (1,)


def test_what_a_black_hole_held_back_arrives_when_it_heals(proxy: Proxy, db: Db) -> None:
    session = connect(proxy.url, name="rowlock test")
    fault = proxy.on("insert", Hole())
    insert = threading.Thread(
        target=session.execute, args=["insert into rowlock.queues (name) values ('mail')"], daemon=True
    )

    insert.start()
    until(fault.happened.is_set)
    before = db.execute("select count(*) from rowlock.queues").fetchone()
    proxy.heal()
    insert.join()

    assert before == (0,)
    assert db.execute("select count(*) from rowlock.queues").fetchone() == (1,)
    session.close()


def test_new_connections_are_refused_until_it_heals(proxy: Proxy) -> None:
    with psycopg.connect(proxy.url) as before:
        proxy.refuse()

        with pytest.raises(psycopg.OperationalError, match="refused"):
            psycopg.connect(proxy.url)
        assert before.execute("select 1").fetchone() == (1,)
        proxy.heal()
        psycopg.connect(proxy.url).close()


def test_a_reset_ends_every_connection(proxy: Proxy) -> None:
    session = psycopg.connect(proxy.url, autocommit=True)

    proxy.reset()

    with pytest.raises(psycopg.OperationalError):
        session.execute("select 1")
    assert proxy.open == 0


def test_a_half_open_connection_is_gone_for_the_server_only(proxy: Proxy, db: Db) -> None:
    session = psycopg.connect(proxy.url, autocommit=True, application_name="half")

    proxy.half_open()

    until(
        lambda: db.execute("select count(*) from pg_stat_activity where application_name = 'half'").fetchone() == (0,)
    )
    assert session.pgconn.status == psycopg.pq.ConnStatus.OK
    session.pgconn.finish()
