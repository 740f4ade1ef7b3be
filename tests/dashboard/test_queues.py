"""The page of queues and tasks: what it says of them, and pausing them from there."""

from __future__ import annotations

import html
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rowlock import Breaker, Retry, Rowlock
from rowlock.dashboard import Dashboard, Visitor
from tests.dashboard.browser import Browser, browsing
from tests.dashboard.conftest import Act
from tests.rows import Db, put
from tests.worker.working import ended, one, work_until, working

NAME = 'a/b?c <i> "q" ü'
ODD = f"{NAME} \u202eabc"  # as only SQL can name a thing


def queues(client: Browser, **asked: str) -> dict[str, Any]:
    told = client.get("/api/queues", params=asked).json()
    return {queue["name"]: queue for queue in told["queues"]} | {
        "tasks": {task["name"]: task for task in told["tasks"]}
    }


def pauses(db: Db) -> list[tuple[Any, ...]]:
    return db.execute(
        "select kind, name, actor, reason, extract(epoch from until - at)::integer from rowlock.pauses order by 1, 2"
    ).fetchall()


# What it says


def test_an_empty_page_says_how_a_queue_comes_to_be(client: Browser) -> None:
    page = client.get("/queues")

    assert page.status_code == 200
    assert "No queue yet" in page.text
    assert "rowlock worker --app MODULE" in page.text


def test_a_queue_shows_what_lies_in_it(client: Browser, db: Db) -> None:
    for _ in range(2):
        put(db, queue="mail")
    put(db, "waiting", queue="mail", waits_for="code")
    put(db, "running", queue="mail")
    put(db, queue="mail", run_at=datetime.now(UTC) + timedelta(hours=1))

    mail = queues(client)["mail"]

    assert mail["stats"]["runnable"] == {"value": 2, "more": False}
    assert mail["stats"]["delayed"] == {"value": 1, "more": False}
    assert mail["stats"]["running"] == {"value": 1, "more": False}
    assert mail["stats"]["waiting"] == {"code": {"value": 1, "more": False}}


def test_a_queue_into_which_nobody_looks_says_so(client: Browser, db: Db, app: Rowlock) -> None:
    put(db, queue="mail")
    put(db, queue="far away")

    before = client.get("/queues").text
    with working(app, queues=["mail"]):
        work_until(app, lambda: one(db, "select exists (select from rowlock.workers)"), queues=["mail"])
        after = client.get("/queues").text

    assert before.count("No live worker looks into it.") == 2
    assert after.count("No live worker looks into it.") == 1
    assert "rowlock worker --app MODULE --queues &#39;far away&#39;" in after


def test_a_queue_shows_how_many_jobs_ended_in_each_minute(client: Browser, app: Rowlock, db: Db) -> None:
    @app.task(name="fine", queue="mail")
    async def fine() -> None: ...

    @app.task(name="bad", queue="mail", retry=Retry(attempts=1))
    async def bad() -> None:
        raise ValueError

    app.enqueue_many([fine.bind(), fine.bind(), bad.bind()])
    work_until(app, lambda: len(ended(db)) == 3, queues=["mail"])

    told = queues(client)

    assert sum(minute["ended"] for minute in told["mail"]["pulse"]) == 3
    assert sum(minute["failed"] for minute in told["mail"]["pulse"]) == 1
    assert [minute["ended"] for minute in told["tasks"]["bad"]["pulse"]].count(1) == 1
    assert told["tasks"]["bad"]["stats"]["failed"]["value"] == 1


def test_counts_end_where_nobody_reads_on(client: Browser, db: Db) -> None:
    db.execute(
        """insert into rowlock.jobs (id, queue, task, attempts, run_at, created_at, args)
           select rowlock.uuid7(), 'mail', 't', 10, rowlock.now(), rowlock.now(), '{}' from generate_series(1, 10050)"""
    )

    page = client.get("/queues").text

    assert queues(client)["mail"]["stats"]["runnable"] == {"value": 10_000, "more": True}
    assert "10,000+" in page


def test_a_task_shows_its_breaker_and_whether_it_has_tripped(client: Browser, app: Rowlock, db: Db) -> None:
    @app.task(name="calm", breaker=Breaker(failures=7))
    async def calm() -> None: ...

    @app.task(name="broken", breaker=Breaker(failures=1), retry=Retry(attempts=1))
    async def broken() -> None:
        raise ValueError

    broken.enqueue()
    work_until(app, lambda: one(db, "select exists (select from rowlock.pauses)"))

    page, tasks = client.get("/queues").text, queues(client)["tasks"]

    assert tasks["calm"]["breaker"]["failures"] == 7
    assert tasks["broken"]["pause"]["by"] == "breaker"
    assert "7 in 60 s" in page
    assert "tripped" in page


def test_names_of_any_kind_are_shown_and_led_to(client: Browser, db: Db) -> None:
    put(db, queue=ODD, task=ODD)

    page = client.get("/queues").text

    assert "<i>" not in page
    assert html.escape(ODD, quote=False) in html.unescape(page).replace("<i>", "&lt;i&gt;")
    assert "/jobs?queue=a%2Fb%3Fc+%3Ci%3E+%22q%22+%C3%BC+%E2%80%AEabc" in page


def test_queues_and_tasks_can_be_looked_for_by_name(client: Browser, db: Db) -> None:
    put(db, queue="mail.eu")
    put(db, queue="MAIL.us")
    put(db, queue="default")

    found = queues(client, named="Mail")

    assert [name for name in found if name != "tasks"] == ["MAIL.us", "mail.eu"]
    assert "No queue has such a name" in client.get("/queues", params={"named": "none"}).text


def test_what_cannot_be_learned_is_said(client: Browser, db: Db) -> None:
    put(db, queue="mail")
    with db.transaction():
        db.execute("lock table rowlock.minutes in access exclusive mode")

        page = client.get("/queues").text

    assert "Unknown:" in page
    assert "somebody holds a lock on it" in page


# Pausing


def test_a_queue_is_paused_for_a_while_by_whoever_asks(act: Act, client: Browser, db: Db) -> None:
    put(db, queue="mail")

    answer = act("/queues/pause", queue="mail", duration="15min", why="the server moves")

    assert answer.json()["says"] == "Queue mail is paused for 15 min: what runs goes on, and nothing new starts."
    assert pauses(db) == [("queue", "mail", "ann", "the server moves", 900)]
    assert one(db, "select actor from rowlock.events where kind = 'paused'") == "ann"
    page = client.get("/queues").text
    assert "the server moves" in page
    assert 'aria-label="Resume mail"' in page


def test_a_task_is_paused_until_somebody_resumes_it(act: Act, db: Db) -> None:
    put(db, task=NAME)

    paused = act("/tasks/pause", task=NAME, duration="", why="")
    before = pauses(db)
    resumed = act("/tasks/resume", task=NAME)

    assert paused.status_code == resumed.status_code == 200
    assert before == [("task", NAME, "ann", None, None)]
    assert pauses(db) == []
    assert resumed.json()["says"] == f"Task {NAME} goes on."


@pytest.mark.parametrize("kind", ["queue", "task"])
def test_a_name_that_nobody_uses_is_paused_only_anyway(act: Act, db: Db, kind: str) -> None:
    refused = act(f"/{kind}s/pause", **{kind: "mails"})
    before = pauses(db)
    anyway = act(f"/{kind}s/pause", **{kind: "mails"}, anyway="true")

    assert refused.status_code == 409
    assert f"no job and no worker knows a {kind} 'mails'" in refused.json()["error"]
    assert before == []
    assert anyway.status_code == 200
    assert [name for _, name, *_ in pauses(db)] == ["mails"]


def test_a_queue_that_is_not_paused_cannot_be_resumed(act: Act) -> None:
    assert act("/queues/resume", queue="mail").json()["says"] == "Queue mail was not paused."


def test_a_pause_of_no_length_is_refused_with_an_example(act: Act, db: Db) -> None:
    answer = act("/queues/pause", queue="mail", duration="soon")

    assert answer.status_code == 400
    assert "write 90s, 15min" in answer.json()["error"]
    assert pauses(db) == []


@pytest.mark.parametrize("path", ["/queues/pause", "/queues/resume", "/tasks/pause", "/tasks/resume"])
def test_a_viewer_can_do_none_of_it(app: Rowlock, db: Db, path: str) -> None:
    app.queues.pause("mail", by="ben")
    with browsing(Dashboard(app, auth=lambda _request: Visitor("eve", "viewer"))) as viewer:
        page = viewer.get("/queues").text

        answer = viewer.act(path, queue="mail", task="mail")

    assert answer.status_code == 403
    assert pauses(db) == [("queue", "mail", "ben", None, None)]
    assert "Resume" not in page


def test_the_page_goes_on_without_scripts(client: Browser, app: Rowlock) -> None:
    app.queues.pause("mail", by="ben", duration=timedelta(hours=1))
    fields = {"csrf": client.csrf, "queue": "mail"}

    answer = client.post("/queues/resume", data=fields, headers={"sec-fetch-site": "same-origin"})

    assert "Queue mail goes on." in answer.text
    assert app.queues.pauses() == ()
