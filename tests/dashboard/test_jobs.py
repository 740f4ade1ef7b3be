"""The page of jobs: what it finds and how far it looks, what is typed to search, and orders for many jobs."""

from __future__ import annotations

import asyncio
import json
import re
import time
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from rowlock import Filter, Rowlock
from rowlock.dashboard import Dashboard, Role, Visitor
from rowlock.dashboard.bulk_runs import BulkRuns, Track
from rowlock.dashboard.filter_params import JobFilterParams, read_arguments
from rowlock.dashboard.search import KnownNames, read_terms
from rowlock.errors import InvalidArguments, RowlockError
from rowlock.model.results import Done
from rowlock.store.find import pages as found_pages
from rowlock.store.find import windows
from tests.dashboard.browser import Browser, browsing
from tests.dashboard.conftest import Act
from tests.rows import Db, put
from tests.waiting import auntil, until

ODD = 'a/b <script>alert(1)</script> "q" ?x=1&y مرحبا'


def listed(client: Browser, query: str = "") -> dict[str, Any]:
    answer = client.get(f"/api/jobs{query}", follow_redirects=True)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def ids(found: dict[str, Any]) -> list[UUID]:
    return [UUID(job["id"]) for job in found["jobs"]]


# Finding


def test_jobs_are_shown_newest_first_live_and_ended(client: Browser, db: Db) -> None:
    made = [put(db, state) for state in ("ready", "failed", "running", "succeeded", "waiting", "cancelled")]

    page = client.get("/jobs")
    found = listed(client)

    assert ids(found) == made[::-1]
    assert [page.text.index(f'id="job-{job}"') for job in made[::-1]] == sorted(
        page.text.index(f'id="job-{job}"') for job in made
    )
    assert (found["next"], found["cut_short"]) == (None, False)


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("?state=failed", "failed"),
        ("?state=ready&state=failed&queue=mail", "ready"),
        ("?task=send", "ready"),
        ("?tag=web", "ready"),
        ("?key=order:7", "ready"),
        ("?error=TimeoutError", "failed"),
        ("?reason=exhausted", "failed"),
        ("?arg=order%3D7", "ready"),
        ("?arg=%7B%22order%22%3A7%7D", "ready"),
        ("?until=1d", "old"),
    ],
)
def test_an_address_says_which_jobs_are_meant(client: Browser, db: Db, query: str, wanted: str) -> None:
    made = {
        "ready": put(db, queue="mail", task="send", tags=["web"], key="order:7", args={"order": 7}),
        "failed": put(db, "failed", error="TimeoutError", reason="exhausted"),
        "old": put(db, "succeeded", created_at=datetime.now(UTC) - timedelta(days=2)),
    }

    assert ids(listed(client, query)) == [made[wanted]]


def test_names_may_hold_anything_and_are_only_ever_text(client: Browser, db: Db) -> None:
    job = put(db, queue=ODD, task=ODD, tags=[ODD], key=ODD, args={ODD: ODD})
    put(db)

    searched = client.get("/jobs", params={"queue": ODD, "task": ODD, "tag": ODD, "key": ODD})
    found = client.get("/api/jobs", params={"queue": ODD, "task": ODD, "tag": ODD, "key": ODD})

    assert ids(found.json()) == [job]
    assert "<script>alert" not in searched.text
    assert "a/b &lt;script&gt;" in searched.text


def test_pages_hold_every_job_once(client: Browser, db: Db) -> None:
    made = {put(db, state) for state in ("ready", "failed") for _ in range(5)}

    seen: list[UUID] = []
    query = "?limit=3"
    while True:
        found = listed(client, query)
        seen += ids(found)
        if found["next"] is None:
            break
        query = f"?limit=3&before={found['next']}"

    assert len(seen) == len(made)
    assert set(seen) == made


def test_a_look_that_takes_too_long_says_how_far_it_came_and_goes_on_from_there(
    client: Browser, db: Db, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = put(db, tags=["rare"])
    for _ in range(20):
        put(db)
    monkeypatch.setattr(windows, "WINDOW", 8)
    monkeypatch.setattr("rowlock.dashboard.pages.jobs.SCAN_TIMEOUT", timedelta(0))

    page = client.get("/jobs?tag=rare")
    first = listed(client, "?tag=rare")
    looks = [first]
    while looks[-1]["next"] is not None:
        looks.append(listed(client, f"?tag=rare&before={looks[-1]['next']}"))

    assert (first["jobs"], first["cut_short"], first["looked"]) == ([], True, 8)
    assert "Looked through the newest 8 jobs" in page.text
    assert f"before={first['next']}" in page.text
    assert ids(looks[-1]) == [wanted]
    assert len(looks) == 3


def test_without_a_limit_of_time_every_job_is_looked_at(app: Rowlock, db: Db, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = put(db, tags=["rare"])
    for _ in range(20):
        put(db)
    monkeypatch.setattr(windows, "WINDOW", 8)

    found = app.jobs.list(Filter(tag="rare"))
    hurried = app.jobs.list(Filter(tag="rare"), time_limit=timedelta(0))

    assert ([record.id for record in found.records], found.next, found.looked) == ([wanted], None, 21)
    assert (hurried.records, hurried.looked) == ((), 8)


def test_what_makes_no_sense_is_refused_in_a_sentence(client: Browser) -> None:
    for query, words in (
        ("since=yesterday", "2026-03-01T08:00Z"),
        ("arg=order", "NAME=VALUE"),
        ("state=lost", "state"),
    ):
        answer = client.get(f"/jobs?{query}")

        assert (answer.status_code, words in answer.text) == (400, True), answer.text


# Searching


@pytest.mark.parametrize(
    ("typed", "fields"),
    [
        ("queue:mail task:send", {"queue": "mail", "task": "shop.send"}),
        ("task:shop queue:ma", {"task": "shop", "queue": "mail"}),  # of two tasks, one has to choose
        ("task:pa", {"task": "shop.pay"}),
        ("ConnectionError", {"error": "ConnectionError"}),
        ("CardDeclined", {"error": "CardDeclined"}),
        ("Order", {"key": "Order"}),
        ("error:Timeout tag:x order_id=17", {"error": "Timeout", "tag": "x", "arg": ("order_id=17",)}),
        ('task:"a b" note="x y"', {"task": "a b", "arg": ('note="x y"',)}),
        ('{"a": 1, "b": "c d"}', {"arg": ('{"a": 1, "b": "c d"}',)}),
        ("failed state:cancelled", {"state": ("failed", "cancelled")}),
        ("send", {"task": "shop.send"}),
        ("mail", {"queue": "mail"}),
        ("order:7", {"key": "order:7"}),
        ("key:order:7 since:2h", {"key": "order:7", "since": "2h"}),
        ("queue:mail queue:slow", {"queue": "slow"}),
        ("", {}),
    ],
)
def test_what_is_typed_becomes_a_filter(typed: str, fields: dict[str, Any]) -> None:
    known = KnownNames(tasks=("shop.send", "shop.pay"), queues=("mail", "slow"))

    assert read_terms(typed, known) == fields


def test_where_a_name_is_unknown_those_that_are_near_stand_there(client: Browser, app: Rowlock, db: Db) -> None:
    for name in ("mail.send", "mail.send_all", "pay"):
        app.task(name=name)(lambda: None)

    by_part, by_sound = client.get("/jobs?task=send").text, client.get("/jobs?task=mial.send").text
    as_key, as_error = client.get("/jobs?key=Boom").text, client.get("/jobs?error=CardLost").text

    assert re.findall(r'<a href="(/jobs\?task=[^"]+)">[\w.]+</a>', by_part) == [
        "/jobs?task=mail.send",
        "/jobs?task=mail.send_all",
    ]
    assert '<a href="/jobs?task=mail.send">mail.send</a>' in by_sound
    assert 'href="/jobs?error=Boom"' in as_key
    assert 'href="/jobs?key=CardLost"' in as_error


def test_an_id_that_is_typed_leads_to_its_job_and_terms_to_their_address(client: Browser, db: Db) -> None:
    job = put(db)

    by_id = client.get("/jobs", params={"q": f" {job} "})
    by_terms = client.get("/jobs", params={"q": "queue:mail x=1", "state": "failed"})
    for_programs = client.get("/api/jobs", params={"q": str(job)})

    assert (by_id.status_code, by_id.headers["location"]) == (303, f"/jobs/{job}")
    assert by_terms.headers["location"] == "/jobs?state=failed&queue=mail&arg=x%3D1"
    assert for_programs.headers["location"] == f"/api/jobs/{job}"


def test_a_term_that_is_taken_away_leaves_the_others() -> None:
    wanted = JobFilterParams(queue="mail", arg=("a=1", "b=2"), state=("failed",))

    without = {term.value: JobFilterParams.model_validate(term.without) for term in wanted.terms()}

    assert without["mail"] == JobFilterParams(arg=("a=1", "b=2"), state=("failed",))
    assert without["a=1"] == JobFilterParams(queue="mail", arg=("b=2",), state=("failed",))


def test_an_argument_is_json_or_a_word() -> None:
    assert [read_arguments(text) for text in ("n=3", 'n="3"', "n=three", "n=NaN", '{"a": {"b": [1]}}')] == [
        {"n": 3},
        {"n": "3"},
        {"n": "three"},
        {"n": "NaN"},
        {"a": {"b": [1]}},
    ]
    with pytest.raises(InvalidArguments, match="is no JSON"):
        read_arguments("{a}")


# Orders


def states(db: Db) -> dict[str, int]:
    rows = db.execute(
        "select state, count(*) from (select state from rowlock.jobs union all select state from rowlock.history) as j"
        " group by 1"
    ).fetchall()
    return dict(rows)


def test_what_is_typed_is_read_once_however_many_quotes_are_in_it() -> None:
    began = time.process_time()
    for typed in ('"\\' * 100_000, '"' * 200_000, '"\\" ' * 70_000, "{" * 200_000):
        assert read_terms(typed, KnownNames())

    assert time.process_time() - began < 5  # one second for 5,000 of them, when it was quadratic


def test_jobs_are_found_by_when_they_ended_and_show_it_and_the_attempts_they_took(client: Browser, db: Db) -> None:
    now = datetime.now(UTC)
    old = {"created_at": now - timedelta(hours=3)}
    late = put(db, "failed", ended_at=now, **old)
    put(db, "failed", ended_at=now - timedelta(hours=2), **old)
    done = put(db, "succeeded", failures=0, claims=1)

    found = listed(client, "?state=failed&ended_after=1h")
    typed = client.get("/jobs?q=state:failed+ended:1h")
    page = client.get(f"/jobs?ids={done}").text

    assert ids(found) == [late]
    assert typed.headers["location"] == "/jobs?state=failed&ended_after=1h"
    assert '<th scope="col">Ended</th>' in client.get("/jobs?state=failed").text
    assert '>1<span class="quiet">/10</span>' in page


def test_a_preview_says_what_a_verb_would_do_and_does_nothing(client: Browser, db: Db) -> None:
    for task in ("pay", "pay", "send"):
        put(db, "failed", task=task)
    put(db)

    page = client.get("/jobs/preview?verb=retry")
    preview = (client.get("/api/jobs/preview?verb=retry")).json()["preview"]

    assert (preview["count"], preview["tasks"], preview["capped"]) == (3, {"pay": 2, "send": 1}, False)
    assert "Retry 3" in page.text
    assert states(db) == {"failed": 3, "ready": 1}


def test_only_ticked_jobs_are_meant_if_any_are(client: Browser, db: Db) -> None:
    first, second, _ = (put(db, "failed") for _ in range(3))

    preview = (client.get(f"/api/jobs/preview?verb=retry&tick={first}&tick={second}")).json()["preview"]

    assert preview["count"] == 2


def test_all_jobs_that_match_are_retried_in_the_name_of_who_asked(act: Act, app: Rowlock, db: Db) -> None:
    for _ in range(3):
        put(db, "failed", queue="mail")
    put(db, "failed", queue="other")

    answer = act("/jobs/retry", queue="mail", expected="3", why="host is back")

    assert answer.json()["says"] == "3 jobs will run again."
    assert states(db) == {"ready": 3, "failed": 1}
    events = app.jobs.events()
    assert {(event.kind, event.actor, event.details["why"]) for event in events} == {("retried", "ann", "host is back")}


def test_jobs_that_come_after_the_preview_are_left_alone(client: Browser, act: Act, db: Db) -> None:
    put(db, "failed")
    at = (client.get("/api/jobs/preview?verb=retry&state=failed")).json()["at"]
    put(db, "failed", created_at=datetime.now(UTC) + timedelta(seconds=5))

    answer = act("/jobs/retry", state="failed", until=at, expected="1")

    assert answer.json()["says"] == "1 job will run again."
    assert states(db) == {"ready": 1, "failed": 1}


def test_each_verb_changes_what_it_says(act: Act, db: Db) -> None:
    job = put(db)

    says = [
        (act("/jobs/move", ids=str(job), to="slow")).json()["says"],
        (act("/jobs/reprioritise", ids=str(job), priority="3")).json()["says"],
        (act("/jobs/run_next", ids=str(job))).json()["says"],
    ]
    stands = db.execute("select queue, priority from rowlock.jobs").fetchone()
    says.append((act("/jobs/cancel", ids=str(job))).json()["says"])
    says.append((act("/jobs/delete", ids=str(job), expected="1", typed="1")).json()["says"])

    assert stands == ("slow", 4)
    assert says == [
        "1 job was moved.",
        "1 job has the new priority.",
        "1 job runs next.",
        "1 job is cancelled.",
        "1 job is deleted.",
    ]
    assert states(db) == {}


def test_ticked_jobs_that_cannot_be_changed_are_counted_as_passed_over(act: Act, db: Db) -> None:
    failed, ready = put(db, "failed"), put(db)

    answer = act("/jobs/retry", ids=[str(failed), str(ready)])

    assert answer.json()["says"] == "1 job will run again; 1 was passed over."


def test_to_mean_every_job_must_be_said_and_to_delete_the_number_typed(act: Act, db: Db) -> None:
    put(db, "failed")

    unsaid = act("/jobs/retry")
    mistyped = act("/jobs/delete", state="failed", expected="1", typed="2")
    pointless = act("/jobs/retry", state="ready")
    left = states(db)
    said = act("/jobs/retry", everything="true", expected="1")

    assert [unsaid.status_code, mistyped.status_code, pointless.status_code] == [400] * 3
    assert "type 1 to confirm" in mistyped.json()["error"]
    assert left == {"failed": 1}
    assert said.json()["says"] == "1 job will run again."


def test_to_delete_more_than_were_counted_the_number_is_typed_with_a_plus(
    client: Browser, act: Act, db: Db, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(4):
        put(db, "failed")
    monkeypatch.setattr(found_pages, "_MOST_COUNTED", 3)

    preview = client.get("/jobs/preview?verb=delete&state=failed").text
    bare = act("/jobs/delete", state="failed", expected="3", at_least="true", typed="3")
    left = states(db)
    exact = act("/jobs/delete", state="failed", expected="3", at_least="true", typed="3+")

    assert "At least 3 jobs will be deleted, which cannot be undone. Type 3+ to confirm" in preview
    assert 'pattern="3[+]"' in preview
    assert (bare.status_code, bare.json()["error"]) == (400, "type 3+ to confirm; nothing was changed")
    assert left == {"failed": 4}
    assert exact.json()["says"] == "4 jobs are deleted."


def test_a_slip_in_the_name_of_a_field_changes_nothing_and_is_named(act: Act, db: Db) -> None:
    for _ in range(3):
        put(db, queue="typo-test")

    answer = act("/jobs/delete", queue="typo-test", sate="failed", expected="3")

    assert (answer.status_code, "'sate'; did you mean state?" in answer.json()["error"]) == (400, True)
    assert states(db) == {"ready": 3}


def test_a_verb_over_more_jobs_than_were_expected_changes_nothing(act: Act, db: Db) -> None:
    for _ in range(3):
        put(db, "failed")

    unsaid = act("/jobs/retry", state="failed")
    few = act("/jobs/retry", state="failed", expected="2")
    left = states(db)
    enough = act("/jobs/retry", state="failed", expected="2", at_least="true")

    assert (unsaid.status_code, "expected" in unsaid.json()["error"]) == (400, True)
    assert (few.status_code, "3 jobs would be changed now, and 2 were expected" in few.json()["error"]) == (409, True)
    assert left == {"failed": 3}
    assert enough.json()["says"] == "3 jobs will run again."


def test_an_order_stops_where_it_has_changed_more_jobs_than_were_expected() -> None:
    async def work(track: Track) -> Done:
        for changed in (10, 20, 30):
            track(Done("retry", changed=changed, before=UUID(int=1)))
        return Done("retry", changed=30)

    async def given() -> tuple[str, int]:
        order = await BulkRuns().start("retry", "all", by="ann", most=15, work=work)
        return order.status, order.changed

    assert asyncio.run(given()) == ("stopped", 20)


@pytest.mark.parametrize(
    ("role", "verb", "status"),
    [("viewer", "retry", 403), ("operator", "retry", 200), ("operator", "delete", 403), ("admin", "delete", 200)],
)
def test_each_role_may_do_what_is_its_own(app: Rowlock, db: Db, role: Role, verb: str, status: int) -> None:
    put(db, "failed")
    dashboard = Dashboard(app, auth=lambda _request: Visitor("vic", role))

    with browsing(dashboard) as browser:
        page = browser.get("/jobs?state=failed")
        answer = browser.act(f"/jobs/{verb}", state="failed", expected="1")

    assert answer.status_code == status
    assert (f'value="{verb}"' in page.text) == (status == 200)


def test_an_order_that_takes_long_goes_on_after_it_was_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        monkeypatch.setattr("rowlock.dashboard.bulk_runs._PATIENCE", 0.0)
        orders, more = BulkRuns(), asyncio.Event()

        async def work(track: Track) -> Done:
            track(Done("retry", 2000, 1, UUID(int=7)))
            await more.wait()
            return Done("retry", 4000, 1)

        given = await orders.start("retry", "every job", by="ann", work=work)
        await auntil(lambda: orders.shown()[0].changed == 2000)
        more.set()
        await auntil(lambda: orders.shown()[0].status == "done")

        assert (given.status, given.by) == ("underway", "ann")
        assert (orders.shown()[0].changed, orders.shown()[0].passed_over) == (4000, 1)

    asyncio.run(story())


def test_an_order_can_be_stopped_between_two_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        monkeypatch.setattr("rowlock.dashboard.bulk_runs._PATIENCE", 0.0)
        orders, window = BulkRuns(), asyncio.Event()

        async def work(track: Track) -> Done:
            for changed in (2000, 4000, 6000):
                await window.wait()
                track(Done("cancel", changed, 0, UUID(int=7)))
            return Done("cancel", 6000)

        given = await orders.start("cancel", "queue mail", by="ann", work=work)
        orders.stop(given.id)
        window.set()
        await auntil(lambda: orders.shown()[0].status == "stopped")

        assert orders.shown()[0].changed == 2000
        assert orders.stop("nobody") is None

    asyncio.run(story())


def test_orders_that_fail_say_so_and_no_more_than_a_few_are_underway(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        monkeypatch.setattr("rowlock.dashboard.bulk_runs._PATIENCE", 0.0)
        orders, never = BulkRuns(), asyncio.Event()

        async def fail(_track: Track) -> Done:
            raise OSError("the disk is full")

        async def wait(_track: Track) -> Done:
            await never.wait()
            return Done("retry")

        await orders.start("retry", "every job", by="ann", work=fail)
        await auntil(lambda: orders.shown()[0].status == "failed")
        for _ in range(4):
            await orders.start("retry", "every job", by="ann", work=wait)

        with pytest.raises(RowlockError, match="4 orders are underway"):
            await orders.start("retry", "every job", by="ann", work=wait)
        await orders.aclose()
        assert "the disk is full" in caplog.text
        assert {order.status for order in orders.shown()} == {"failed", "stopped"}

    asyncio.run(story())


def test_orders_that_take_long_are_shown_on_the_page_of_jobs(
    client: Browser, act: Act, db: Db, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(db, "failed", args={"card": "4000"})
    put(db, "failed", args={"card": "5000"})

    act("/jobs/retry", state="failed", arg='card="5000"', expected="1")
    at_once = client.get("/jobs").text
    monkeypatch.setattr("rowlock.dashboard.bulk_runs._PATIENCE", 0.0)
    act("/jobs/retry", state="failed", arg='card="4000"', expected="1")
    page = until(lambda: text if "1 job changed, 0 passed over" in (text := client.get("/jobs").text) else "")

    assert "passed over" not in at_once
    assert "failed, argument card" in page
    assert "card=" not in page


def test_failed_jobs_are_grouped_by_their_errors_and_each_group_leads_to_its_list(app: Rowlock, db: Db) -> None:
    for number in range(3):
        error = {"type": "shop.Refused", "message": f"order {number} is refused", "attempt": 1}
        put(db, "failed", task="pay", errors=[json.dumps(error)])
    put(db, "failed", task="send", error="OSError")
    pages = {
        "viewer": page_of(app, "viewer", "/jobs?state=failed"),
        "operator": page_of(app, "operator", "/jobs?state=failed"),
    }

    groups = re.findall("<tr>(.*?)</tr>", pages["operator"].partition('id="groups"')[2], re.DOTALL)
    assert " ".join(re.sub(r"<[^>]+>", " ", groups[1]).split()).startswith("3 pay Refused : order # is refused")
    assert 'href="/jobs?state=failed&amp;task=pay&amp;error=shop.Refused"' in groups[1]
    assert ('id="groups"' in pages["viewer"], "is refused" in pages["viewer"]) == (True, False)
    assert 'id="groups"' not in page_of(app, "operator", "/jobs")


def page_of(app: Rowlock, role: Role, path: str) -> str:
    with browsing(Dashboard(app, auth=lambda _request: Visitor("ann", role))) as browser:
        return browser.get(path).text
