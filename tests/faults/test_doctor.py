"""The doctor on servers that are ill as a whole, and for those who may not see everything."""

from __future__ import annotations

import psycopg

from rowlock import Rowlock
from rowlock.types import Checkup
from tests.depth import deep
from tests.faults.estate import OWNER, Estate
from tests.faults.servers import Cluster, Servers
from tests.rows import put
from tests.test_doctor import register
from tests.waiting import until
from tests.worker.working import one

NOTIFY = "select count(pg_notify('somebody', repeat('x', 7000) || n)) from generate_series(1, 20) as n"
FULL = 0.01
ROUNDS = 2_000  # of 140 kB, of a queue of 8 GB, where its size is not to be chosen


def examined(cluster: Cluster) -> Checkup:
    with Rowlock(cluster.url) as app:
        return app.doctor()


def ill(checkup: Checkup) -> dict[str, str]:
    return {finding.name: finding.level for finding in checkup.findings if finding.level != "green"}


def test_a_server_that_loses_what_it_accepted_is_found(servers: Servers) -> None:
    switches = ("fsync", "full_page_writes", "synchronous_commit", "autovacuum", "track_counts")
    server = servers.start(dict.fromkeys(switches, "off"))
    with Rowlock(server.url) as app:
        register(app)

    checkup = examined(server)

    assert ill(checkup) == {
        "fsync": "red",
        "full_page_writes": "red",
        "synchronous_commit": "red",
        "autovacuum": "red",
    }
    assert checkup["autovacuum"].figure == "autovacuum and track_counts off"


def test_a_standby_is_found_and_so_is_a_primary_that_waits_for_one_that_is_not_there(servers: Servers) -> None:
    primary = servers.start({"fsync": "on"})
    standby = servers.start_standby(primary)

    following = examined(standby)
    with Rowlock(primary.url) as app:
        register(app)
    with primary.connect() as db:
        db.execute("alter system set synchronous_standby_names = 'nobody'")
        db.execute("select pg_reload_conf()")
        until(lambda: one(db, "show synchronous_standby_names") == "nobody")
    waiting = examined(primary)

    assert following["writable"].level == "red"
    assert following["writable"].figure == "standby"
    assert "a standby takes no writes" in following["claim index"].says
    assert ill(waiting) == {"synchronous standbys": "red"}


@deep
def test_a_notify_queue_that_a_stuck_listener_blocks_is_found_and_the_session_named(servers: Servers) -> None:
    with psycopg.connect(servers.start().url) as probe:
        sized = probe.info.server_version >= 170000
    server = servers.start({"fsync": "on", **({"max_notify_queue_pages": "64"} if sized else {})})
    with Rowlock(server.url) as app:
        register(app)
    with (
        psycopg.connect(server.url, application_name="the stuck listener") as listener,
        server.connect() as db,
    ):
        listener.execute("listen somebody")
        listener.commit()
        listener.execute("select 1")  # and now it is in a transaction
        for _ in range(ROUNDS):
            db.execute(NOTIFY)
            if one(db, "select pg_notification_queue_usage()") >= FULL:
                break

        checkup = examined(server)

        pid = listener.info.backend_pid

    assert ill(checkup) == {"notify queue": "amber"}
    assert f"pg_terminate_backend({pid})  (the stuck listener" in (checkup["notify queue"].do or "")


def test_a_viewer_is_told_what_is_not_its_to_see(estate: Estate) -> None:
    with estate.session(OWNER) as db, estate.app("viewer") as viewer, estate.app(OWNER) as owner:
        job = put(db)

        seen, owned = viewer.doctor(), owner.doctor()

        db.execute("delete from rowlock.jobs where id = %s", [job])

    unknown = {finding.name for finding in seen.findings if finding.figure == "?"}
    assert {"claim index", "share of a core"} <= unknown
    assert all("run as the schema's owner" in (seen[name].do or "") for name in unknown)
    assert "permission denied" in seen["claim index"].says
    assert "claim pages" not in unknown
    assert owned["claim index"].level == "green"
    assert owned["roles"].figure == "5 as made"
