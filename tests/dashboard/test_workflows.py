"""The page /workflows: where workflows stand and what they wait for, filters, pages, and how far it looks."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest

from rowlock import Context, Rowlock
from rowlock.dashboard.pages import workflows as page
from tests.dashboard.browser import Browser
from tests.rows import Db
from tests.workflow.remembering import end, put_failure, put_step, put_workflow

STRANGE = 'a/b <i>c</i> ?x=1&y "q" \N{RIGHT-TO-LEFT OVERRIDE}z'


def rows(client: Browser, address: str = "/workflows") -> list[str]:
    """The ids of the workflows that a page lists."""
    answer = client.get(address)
    assert answer.status_code == 200, answer.text
    return re.findall(r'<tr id="workflow-([0-9a-f-]+)">', answer.text)


def told(text: str, job: UUID) -> str:
    """The words of one row."""
    row = text.partition(f'<tr id="workflow-{job}">')[2].partition("</tr>")[0]
    return " ".join(re.sub(r"<[^>]+>", " ", row).split())


def many_ended(db: Db, count: int) -> None:
    """So many workflows that went well, with ids older than all others."""
    db.execute(
        """
        insert into rowlock.history (
            id, queue, task, state, priority, failures, crashes, claims, attempts, run_at, created_at, ended_at,
            expires_on, args, version
        )
        select (lpad(to_hex(1700000000000 + n), 12, '0') || '70008000000000000000')::uuid, 'default', 'old',
            'succeeded', 0, 0, 0, 1, 1, rowlock.now(), rowlock.now(), rowlock.now(),
            (rowlock.now() at time zone 'UTC')::date + 1 + n %% 3, '{}', 1
        from generate_series(1, %s) as n
        """,
        [count],
    )


def test_an_empty_list_says_how_to_fill_it(client: Browser) -> None:
    text = (client.get("/workflows")).text

    assert "No workflows yet" in text
    assert "@app.workflow" in text


def test_each_row_says_where_a_workflow_stands_and_what_it_waits_for(client: Browser, db: Db) -> None:
    soon = datetime.now(UTC) + timedelta(hours=5)
    asks = put_workflow(db, "waiting", key="order:7", version=3)
    put_step(db, asks, "charge", at=1)
    put_step(db, asks, "approval", at=3, took=None, kind="signal", until=soon)
    maps = put_workflow(db, "waiting", waits_for="children")
    for number in range(3):
        put_step(db, maps, f"label#{number}", at=number, took=None, kind="child", child=uuid4())
    sleeps = put_workflow(db, run_at=soon, wakes_at=1)
    put_step(db, sleeps, "sleep", took=None, kind="sleep", until=soon)
    tries = put_workflow(db, run_at=soon, wakes_at=1)
    put_step(db, tries, "ship", took=None, state="retrying", attempts=2, until=soon)
    blocked = put_workflow(db, "waiting", waits_for="code", wakes_at=None, reason="changed code: other steps")
    races = put_workflow(db, "waiting", run_at=soon)
    put_step(db, races, "sleep", took=None, kind="sleep", until=soon)
    put_step(db, races, "paid", took=None, kind="signal")

    text = (client.get("/workflows")).text

    assert "parked" in told(text, asks)
    assert "v3" in told(text, asks)
    assert "order:7" in told(text, asks)
    assert "approval 1 signal approval , until in 5 h" in told(text, asks)
    assert "3 children" in told(text, maps)
    assert "the end of its sleep, in 5 h" in told(text, sleeps)
    assert "the next try of ship , in 5 h" in told(text, tries)
    assert "code that fits" in told(text, blocked)
    assert "signal paid" in told(text, races)


def test_a_failed_workflow_names_the_step_that_has_failed(client: Browser, db: Db) -> None:
    job = put_workflow(db)
    put_step(db, job, "charge", at=1, state="failed")
    put_failure(db, job, "charge", at=2)
    end(db, job, "failed", reason="raised; could not be undone: undo/refund")

    row = told((client.get("/workflows?state=failed")).text, job)

    assert row.startswith("failed shop.checkout v1")
    assert "charge" in row
    assert "could not be undone: undo/refund" in row


def test_filters_are_the_address(client: Browser, db: Db) -> None:
    old = put_workflow(db, version=1)
    new = put_workflow(db, version=2, queue="slow", key="k 1")
    other = put_workflow(db, "waiting", task="other")
    gone = put_workflow(db, task="other")
    end(db, gone, "succeeded")

    assert rows(client) == [str(job) for job in (gone, other, new, old)]
    assert rows(client, "/workflows?workflow=shop.checkout") == [str(new), str(old)]
    assert rows(client, "/workflows?version=2") == [str(new)]
    assert rows(client, "/workflows?queue=slow&version=") == [str(new)]
    assert rows(client, "/workflows?key=k+1") == [str(new)]
    assert rows(client, "/workflows?key=nobody") == []
    assert rows(client, "/workflows?state=parked") == [str(other)]
    assert rows(client, "/workflows?state=parked&state=succeeded") == [str(gone), str(other)]
    assert rows(client, "/workflows?state=ready&workflow=other") == []


@pytest.mark.parametrize("address", ["state=lost", "version=0", "version=x", "before=7"])
def test_a_filter_that_makes_no_sense_is_answered_by_a_sentence(client: Browser, address: str) -> None:
    answer = client.get(f"/workflows?{address}")

    assert answer.status_code == 400
    assert "Not possible" in answer.text


def test_pages_follow_each_other_without_a_gap(client: Browser, db: Db) -> None:
    jobs = [str(put_workflow(db)) for _ in range(120)]
    for job in jobs[::3]:
        end(db, UUID(job), "succeeded")

    found, address = [], "/workflows?workflow=shop.checkout"
    while address:
        text = (client.get(address)).text
        found += re.findall(r'<tr id="workflow-([0-9a-f-]+)">', text)
        older = re.search(r'rel="next" href="([^"]+)"', text)
        address = older[1].replace("&amp;", "&") if older else ""

    assert found == jobs[::-1]


def test_what_is_rare_among_very_many_is_looked_for_for_a_while_and_then_further(
    client: Browser, db: Db, monkeypatch: pytest.MonkeyPatch
) -> None:
    many_ended(db, 5_000)
    db.execute(
        "update rowlock.history set task = 'needle' where id = (select min(id::text)::uuid from rowlock.history)"
    )
    monkeypatch.setattr(page, "SCAN_TIMEOUT", timedelta(0))

    shown: list[str] = []
    address = "/workflows?workflow=needle"
    while address and len(shown) < 30:
        text = (client.get(address)).text
        shown.append(text)
        further = re.search(r'<a href="([^"]+)">Look further</a>', text)
        address = further[1].replace("&amp;", "&") if further else ""

    assert "Looked through 250 workflows, back to" in shown[0]
    assert 1 < len(shown) < 30
    assert sum('<tr id="workflow-' in text for text in shown) == 1


def test_the_live_ones_are_found_at_once_below_very_many_that_ended(client: Browser, db: Db) -> None:
    live = put_workflow(db, "waiting", id="00000000-0000-7000-8000-000000000007")
    many_ended(db, 3_000)

    answer = (client.get("/api/workflows?state=parked&state=running")).json()

    assert [record["id"] for record in answer["records"]] == [str(live)]
    assert answer["looked"] == 1


def test_a_key_leads_straight_to_its_workflow(client: Browser, db: Db) -> None:
    mine = put_workflow(db, "waiting", id="00000000-0000-7000-8000-000000000007", key="order:7")
    many_ended(db, 3_000)

    answer = (client.get("/api/workflows?key=order:7")).json()

    assert [record["id"] for record in answer["records"]] == [str(mine)]
    assert answer["looked"] == 1


def test_names_of_any_kind_are_shown_as_they_are(client: Browser, db: Db) -> None:
    job = put_workflow(db, task=STRANGE, queue=STRANGE, key=STRANGE)
    put_step(db, job, STRANGE, took=None, kind="signal")

    answer = client.get("/workflows", params={"workflow": STRANGE, "queue": STRANGE})

    assert str(job) in answer.text
    assert "<i>" not in answer.text
    assert (client.get("/api/workflows")).json()["records"][0]["workflow"] == STRANGE


def test_the_names_that_this_process_has_code_for_are_suggested(client: Browser, app: Rowlock) -> None:
    @app.workflow(name="orders.checkout")
    async def checkout(ctx: Context) -> None: ...

    assert '<option value="orders.checkout">' in (client.get("/workflows")).text
