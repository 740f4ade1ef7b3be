"""The page of the database: what the doctor says when it may only look, the figures, and the trial on demand."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from rowlock import Rowlock
from rowlock.dashboard import Dashboard, Visitor
from rowlock.dashboard.pages.database import DatabaseShown
from rowlock.doctor.examine import Inspection, ainspect
from tests.dashboard.browser import Browser, browsing
from tests.dashboard.conftest import Act
from tests.rows import Db, put, put_many
from tests.test_doctor import register
from tests.waiting import until


def told(client: Browser) -> dict[str, Any]:
    answer = client.get("/api/database")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def findings(client: Browser) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in told(client)["findings"]}


async def looked_over(app: Rowlock) -> Inspection:
    look = app.read_only(timeout=timedelta(seconds=2))
    try:
        return await ainspect(look.database, longest=look.keep.longest)
    finally:
        await look.aclose()


def test_a_look_says_what_the_doctor_says_but_for_what_needs_a_trial(app: Rowlock) -> None:
    register(app)
    whole = app.doctor()

    looked = asyncio.run(looked_over(app)).checkup

    names = [finding.name for finding in looked.findings]
    assert [one.name for one in whole.findings if one.name not in names] == ["claim index", "share of a core"]
    assert {one.name: one.level for one in looked.findings} == {name: whole[name].level for name in names}
    assert not [one.name for one in looked.findings if one.figure == "?"]


def test_to_look_changes_nothing(client: Browser, app: Rowlock, db: Db) -> None:
    register(app)
    put(db)
    kept = "select id, state, claims, xmin::text from rowlock.jobs"
    before = db.execute(kept).fetchall()

    page = client.get("/database")

    assert page.status_code == 200
    assert db.execute(kept).fetchall() == before
    assert "cannot execute" not in page.text
    assert "Not measured yet" in page.text


def test_what_is_ill_comes_first_with_what_to_do(client: Browser, app: Rowlock, db: Db) -> None:
    register(app)
    db.execute("create index stray on rowlock.jobs (created_at)")

    page = client.get("/database").text

    ill = page[page.index("What to do") : page.index("Figures")]
    assert "stray" in ill
    assert page.index('class="finding red" id="ill-fsync"') < page.index('class="finding amber" id="ill-objects"')
    assert 'data-copy="alter system set fsync = on; select pg_reload_conf()"' in ill


def test_who_keeps_vacuum_from_its_work_is_named(client: Browser, app: Rowlock, url: str) -> None:
    register(app)
    with psycopg.connect(url, application_name="a report <b>") as reader:
        pid = reader.info.backend_pid
        reader.execute("set transaction isolation level repeatable read")
        reader.execute("select 1 from rowlock.jobs")

        snapshots = told(client)["database"]["snapshots"]
        page = client.get("/database").text

    [mine] = [one for one in snapshots if one["pid"] == pid]
    assert (mine["kind"], mine["name"], mine["state"]) == ("session", "a report <b>", "idle in transaction")
    assert mine["query_started"] is not None
    assert "a report &lt;b&gt;" in page


@pytest.fixture
def waiter(url: str) -> Iterator[psycopg.Connection[Any]]:
    """A session that is about to wait for a lock."""
    connection = psycopg.connect(url, application_name="who waits", autocommit=True)
    yield connection
    connection.close()


def test_who_waits_for_a_lock_is_named_with_who_holds_it(
    client: Browser, db: Db, url: str, waiter: psycopg.Connection[Any]
) -> None:
    with psycopg.connect(url) as holder:
        pid = holder.info.backend_pid
        holder.execute("lock table rowlock.breakers in access exclusive mode")
        waiter.pgconn.send_query(b"select from rowlock.breakers")
        until(lambda: db.execute("select from pg_locks where not granted").fetchone() is not None)

        shown = told(client)
        page = client.get("/database").text

    [wait] = [one for one in shown["database"]["lock_waits"] if one["application"] == "who waits"]
    assert (wait["table"], wait["blocked_by"]) == ("rowlock.breakers", [pid])
    assert f'id="wait-{waiter.info.backend_pid}"' in page


def test_room_is_told_by_table_and_by_part(client: Browser, db: Db) -> None:
    for _ in range(3):
        put(db, "succeeded")
    db.execute("analyze rowlock.history")

    shown = told(client)
    page = client.get("/database").text

    tables = {one["name"]: one for one in shown["tables"]}
    filled = [one for one in shown["parts"] if one["rows"]]
    assert tables["history"]["rows"] == 3
    assert "jobs" in tables
    assert not [name for name in tables if re.search(r"_\d{8}$", name)]
    assert [(one["table"], one["rows"]) for one in filled] == [("history", 3)]
    assert f'id="part-{filled[0]["name"]}"' in page
    assert f"{len(shown['parts']) - 1} parts made ahead and empty" in page


def test_a_part_that_has_expired_and_is_still_there_is_shown_so(client: Browser, app: Rowlock, db: Db) -> None:
    register(app)
    db.execute("create table rowlock.history_20200101 (like rowlock.history)")

    shown = told(client)

    [old] = [one for one in shown["parts"] if one["is_expired"]]
    assert old["name"] == "history_20200101"
    assert findings(client)["retention"]["level"] == "red"
    assert "expired 2020-01-02" in client.get("/database").text


# Measuring


def test_measuring_tries_a_claim_and_leaves_nothing(client: Browser, act: Act, app: Rowlock, db: Db) -> None:
    register(app)
    put_many(db, 20)
    kept = "select id, state, claims, xmin::text from rowlock.jobs order by id"
    before = db.execute(kept).fetchall()

    answer = act("/database/measure")

    facts = answer.json()["facts"]
    assert answer.status_code == 200
    assert (facts["by"], [one["name"] for one in facts["findings"]]) == (
        "ann",
        ["claim index", "claim pages", "share of a core"],
    )
    assert "claim index: jobs_ready" in answer.json()["says"]
    assert db.execute(kept).fetchall() == before
    page = client.get("/database").text
    assert "tried by ann" in page
    assert "Not measured yet" not in page


def test_a_viewer_may_look_and_not_measure(app: Rowlock) -> None:
    with browsing(Dashboard(app, auth=lambda _request: Visitor("vera", "viewer"))) as client:
        page = client.get("/database")
        refused = client.act("/database/measure")

    assert page.status_code == 200
    assert ">Measure a claim</button>" not in page.text
    assert refused.status_code == 403


def test_an_operator_has_a_button_to_measure(app: Rowlock) -> None:
    with browsing(Dashboard(app, auth=lambda _request: Visitor("otto", "operator"))) as client:
        page = client.get("/database")

    assert ">Measure a claim</button>" in page.text


# Remedies


@pytest.mark.parametrize(
    ("remedy", "commands"),
    [
        ("upgrade PostgreSQL", []),
        ("rowlock migrate", ["rowlock migrate"]),
        ("rowlock queues resume mail, or pause it again with --for", ["rowlock queues resume mail"]),
        (
            "alter system set fsync = on; select pg_reload_conf()",
            ["alter system set fsync = on", "select pg_reload_conf()"],
        ),
        ("set synchronous_commit = on, for roles too; claims do without", ["set synchronous_commit = on"]),
        ("end it: select pg_terminate_backend(7)  (a report, idle)", ["select pg_terminate_backend(7)"]),
        ("bring it back, or select pg_drop_replication_slot('s')", ["select pg_drop_replication_slot('s')"]),
    ],
)
def test_commands_are_told_apart_from_words(remedy: str, commands: list[str]) -> None:
    pieces = DatabaseShown.remedy(remedy)

    assert "".join(piece.text for piece in pieces) == remedy
    assert [piece.text for piece in pieces if piece.is_command] == commands
