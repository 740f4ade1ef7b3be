"""The pages of schedules: what they say of each, and what can be done about it from there."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any
from urllib.parse import quote
from uuid import UUID

import pytest

from rowlock import Rowlock
from rowlock.dashboard import Dashboard, Visitor
from rowlock.store.query import Query
from rowlock.store.schedules import statements
from rowlock.store.schedules.statements import ScheduleRow
from tests.dashboard.browser import Browser, browsing
from tests.dashboard.conftest import Act
from tests.rows import Db, put
from tests.worker.working import one, work_until

SECRET = {"password": "hunter2"}
ODD = 'a/../b?c <i> "q" ü#1'


def declare(app: Rowlock, name: str = "nightly", **options: Any) -> None:  # noqa: ANN401  those of a schedule
    @app.task.every("0 3 * * 1-5", tz="Europe/Paris", name=name, **options)
    @app.task(name="report", queue="reports")
    async def report(region: str = "all", *, password: str = "") -> None: ...


def add(app: Rowlock, name: str = "nightly", rule: str | timedelta = "0 3 * * 1-5", **args: object) -> None:
    declared = app.tasks.get("report")
    if declared is None:

        @app.task(name="report", queue="reports")
        async def report(region: str = "all", *, password: str = "") -> None: ...

    tz = "Europe/Paris" if isinstance(rule, str) else None
    app.schedules.add(name, app.call("report", **args), rule, tz=tz, by="ben")


def schedule(client: Browser, name: str = "nightly") -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"/api/schedules/{quote(name, safe='')}").json()["one"]["schedule"]
    return found


def stored(db: Db, column: str, name: str = "nightly") -> Any:  # noqa: ANN401  whatever it holds
    return one(db, f"select {column} from rowlock.schedules where name = %s", name)


# What they say


def test_an_empty_page_says_how_a_schedule_is_declared(client: Browser) -> None:
    page = client.get("/schedules").text

    assert "No schedule yet" in page
    assert "@app.task.every(" in page


def test_a_schedule_is_told_in_words(client: Browser, app: Rowlock) -> None:
    add(app)

    overview, page = client.get("/schedules").text, client.get("/schedules/nightly").text

    assert "every weekday at 03:00, Europe/Paris" in overview
    assert "Every weekday at 03:00, Europe/Paris." in page
    slots = client.get("/api/schedules/nightly").json()["foreseen"]["slots"]
    assert len(slots) == 5
    assert {slot["local"][11:19] for slot in slots} == {"03:00:00"}


def test_what_became_of_its_slots_is_told_with_the_reason(client: Browser, app: Rowlock, db: Db) -> None:
    add(app, rule=timedelta(minutes=15))
    good, bad = put(db, "succeeded"), put(db, "failed")
    for ago, job, reason in ((1, bad, None), (2, good, "asked"), (3, None, "missed"), (4, None, "overlap")):
        db.execute(
            """insert into rowlock.firings
               values ('nightly', rowlock.now() - %s * interval '1 h', %s, %s, rowlock.now())""",
            [ago, job, reason],
        )

    page, told = client.get("/schedules/nightly").text, client.get("/api/schedules").json()["schedules"]

    assert [firing["state"] for firing in told[0]["firings"]] == ["failed", "succeeded", None, None]
    assert "an operator asked for it, beside the slots" in page
    assert "nobody fired it when its time had come" in page
    assert "the job before it was still live" in page
    assert f"/jobs/{bad}" in page


def test_no_more_than_the_last_twenty_slots_are_looked_at(client: Browser, app: Rowlock, db: Db) -> None:
    add(app)
    db.execute(
        """insert into rowlock.firings (schedule, slot, reason, at)
           select 'nightly', rowlock.now() - n * interval '1 h', 'missed', rowlock.now()
           from generate_series(1, 50) as n"""
    )

    [told] = client.get("/api/schedules").json()["schedules"]

    assert len(told["firings"]) == 20
    assert client.get("/schedules/nightly").text.count('<tr id="slot-') == 20


def test_a_schedule_of_code_says_who_declares_it(client: Browser, app: Rowlock, db: Db) -> None:
    declare(app)
    work_until(app, lambda: one(db, "select exists (select from rowlock.schedules)"), queues=["reports"])

    before = client.get("/schedules/nightly").text
    app.schedules.edit("nightly", rule="0 4 * * *", by="ben", why="clocks")
    after = client.get("/schedules/nightly").text

    assert "Comes from" in before
    assert "Reset to code" not in before
    assert "Reset to code" in after
    assert re.search(r"by <span[^>]*>ben</span>: <q[^>]*>clocks</q>", after)


def test_a_name_of_any_kind_leads_to_its_page(client: Browser, app: Rowlock) -> None:
    add(app, ODD)

    overview = client.get("/schedules").text
    link = re.search(r'<a class="cover wrap" href="(/schedules/[^"]+)"', overview)

    assert "<i>" not in overview
    assert link is not None
    assert client.get(link[1]).status_code == 200
    assert schedule(client, ODD)["name"] == ODD
    assert client.get("/schedules/none at all").status_code == 404


def test_pages_of_schedules_go_on_by_name(client: Browser, app: Rowlock) -> None:
    for number in range(45):
        add(app, f"s{number:02}")

    first = client.get("/api/schedules").json()
    second = client.get("/api/schedules", params={"after": first["after"]}).json()
    found = client.get("/api/schedules", params={"named": "S1"}).json()

    assert (len(first["schedules"]), first["after"], first["total"]) == (40, "s39", 45)
    assert [row["schedule"]["name"] for row in second["schedules"]] == ["s40", "s41", "s42", "s43", "s44"]
    assert second["after"] is None
    assert found["total"] == 10


def test_lists_do_not_load_arguments(client: Browser, app: Rowlock, monkeypatch: pytest.MonkeyPatch) -> None:
    add(app, "nightly", "0 3 * * *", region="north")
    app.schedules.pause("nightly", by="ann")
    whole = schedule(client)

    def loaded(name: str | None) -> Query[ScheduleRow]:
        raise AssertionError(f"the arguments of {name or 'every schedule'} are loaded")

    monkeypatch.setattr(statements, "listed", loaded)
    [row] = client.get("/api/schedules").json()["schedules"]
    overview = client.get("/")

    assert whole["args"] == {"region": "north"}
    assert row["schedule"] == {**whole, "args": None, "declared": None, "edits": None}
    assert "schedule nightly is paused" in overview.text.casefold()


def test_a_rule_that_this_machine_cannot_read_is_said_to_be_so(client: Browser, app: Rowlock, db: Db) -> None:
    add(app)
    db.execute("update rowlock.schedules set tz = 'Mars/Olympus'")

    overview, page = client.get("/schedules"), client.get("/schedules/nightly")

    assert "The rule cannot be read on this machine" in overview.text
    assert "is not a time zone that this machine knows" in page.text


def test_arguments_are_not_for_viewers(app: Rowlock) -> None:
    add(app, region="atlantis")

    with browsing(Dashboard(app, auth=lambda _request: Visitor("eve", "viewer"))) as viewer:
        page, told = viewer.get("/schedules/nightly").text, viewer.get("/api/schedules/nightly").text

    assert "Hidden from viewers." in page
    assert "atlantis" not in page + told
    assert "Run now" not in page


# Previewing


def test_a_rule_is_previewed_before_anybody_saves_it(client: Browser) -> None:
    told = client.get("/api/schedules-preview", params={"rule": "30 9 * * MON", "tz": "Asia/Tokyo"}).json()["foreseen"]

    assert told["words"] == "every Monday at 09:30, Asia/Tokyo"
    assert [slot["local"][11:] for slot in told["slots"]] == ["09:30:00+09:00"] * 5


def test_an_interval_is_previewed_from_now_on(client: Browser) -> None:
    told = client.get("/api/schedules-preview", params={"rule": "every 1h30min", "tz": "Asia/Tokyo"}).json()

    assert told["foreseen"]["words"] == "every 90 minutes"
    assert len(told["foreseen"]["slots"]) == 5


@pytest.mark.parametrize(
    ("rule", "tz", "fault"), [("61 * * * *", "", "is out of 0 to 59"), ("* * * * *", "Mars/Olympus", "not a time zone")]
)
def test_a_preview_says_what_is_wrong(client: Browser, rule: str, tz: str, fault: str) -> None:
    answer = client.get("/schedules-preview", params={"rule": rule, "tz": tz})

    assert answer.status_code == 200
    assert fault in answer.text


# Acting


def test_run_now_makes_a_job_and_leads_to_it(act: Act, app: Rowlock, db: Db) -> None:
    add(app, ODD, region="eu")

    answer = act("/schedules/run", name=ODD).json()

    assert answer["to"] == f"/jobs/{answer['facts']['job']}"
    assert one(db, "select args::text from rowlock.jobs where id = %s", answer["facts"]["job"]) == '{"region":"eu"}'
    assert one(db, "select actor from rowlock.events where kind = 'run_now'") == "ann"


def test_a_schedule_is_paused_and_resumed(act: Act, app: Rowlock, client: Browser, db: Db) -> None:
    add(app)

    paused = act("/schedules/pause", name="nightly", duration="1h", why="a holiday")
    page = client.get("/schedules/nightly").text
    resumed = act("/schedules/resume", name="nightly")

    assert paused.json()["says"] == "Schedule nightly is paused for 60 min: its slots are passed over."
    assert "a holiday" in page
    assert resumed.json()["says"] == "Schedule nightly goes on with its next slot."
    assert stored(db, "paused_at") is None


def test_what_is_edited_is_what_differs_from_what_was_seen(act: Act, app: Rowlock, db: Db) -> None:
    add(app, region="eu")
    seen = {"rule": "0 3 * * 1-5", "tz": "Europe/Paris", "queue": "reports", "args": '{"region": "eu"}', "jitter": "0s"}
    app.schedules.edit("nightly", queue="others", by="ben")

    answer = act(
        "/schedules/edit", **{**seen, "name": "nightly", "rule": "15min", "jitter": "30s"}, seen=json.dumps(seen)
    )

    assert answer.json()["facts"] == {"changed": ["rule", "jitter"]}
    assert stored(db, "every") == timedelta(minutes=15)
    assert stored(db, "jitter") == timedelta(seconds=30)
    assert stored(db, "queue") == "others"
    assert (
        one(db, "select details ->> 'args' from rowlock.events where kind = 'edited' order by id desc limit 1") is None
    )


def test_a_form_that_changes_nothing_changes_nothing(act: Act, app: Rowlock, client: Browser, db: Db) -> None:
    add(app, region="eu")
    page = client.get("/schedules/nightly").text
    seen = re.search(r'name="seen" value="([^"]*)"', page)
    assert seen is not None
    fields = json.loads(_unescaped(seen[1]))

    answer = act("/schedules/edit", **fields, name="nightly", seen=json.dumps(fields))

    assert answer.json()["says"] == "Nothing was changed: the form says what it said before."
    assert one(db, "select count(*) from rowlock.events where kind = 'edited'") == 0


def test_a_secret_that_is_not_shown_survives_an_edit_of_the_arguments(act: Act, app: Rowlock, client: Browser) -> None:
    add(app, region="eu", **SECRET)
    page = client.get("/schedules/nightly").text

    answer = act("/schedules/edit", name="nightly", args='{"region": "us", "password": "***"}')

    assert "hunter2" not in page
    assert answer.status_code == 200
    assert app.schedules.get("nightly").args == {"region": "us", "password": "hunter2"}


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"rule": "99 * * * *"}, "out of 0 to 59"),
        ({"tz": "Mars/Olympus"}, "not a time zone"),
        ({"args": "[1]"}, "must be a JSON object"),
        ({"args": "{"}, "is no JSON"),
        ({"args": '{"colour": 1}'}, "colour"),
        ({"overlap": "never"}, "overlap"),
        ({"catch_up": "some"}, "none, last or a number"),
        ({"jitter": "a while"}, "not a length of time"),
        ({"priority": "9"}, "priority"),
    ],
)
def test_a_wrong_edit_is_refused_in_a_sentence(
    act: Act, app: Rowlock, db: Db, fields: dict[str, str], fault: str
) -> None:
    add(app)

    answer = act("/schedules/edit", name="nightly", **fields)

    assert answer.status_code == 400
    assert fault in answer.json()["error"]
    assert one(db, "select count(*) from rowlock.events where kind = 'edited'") == 0


def test_a_schedule_is_reset_to_code(act: Act, app: Rowlock, db: Db) -> None:
    declare(app)
    work_until(app, lambda: one(db, "select exists (select from rowlock.schedules)"), queues=["reports"])
    app.schedules.edit("nightly", rule="0 4 * * *", by="ben")

    answer = act("/schedules/reset", name="nightly", why="enough")

    assert answer.json()["says"] == "Schedule nightly is again what code says."
    assert stored(db, "cron") == "0 3 * * 1-5"


def test_a_schedule_is_added_and_leads_to_its_page(act: Act, app: Rowlock, client: Browser, db: Db) -> None:
    declare(app)

    answer = act(
        "/schedules/add", name=ODD, task="report", rule="0 5 * * *", tz="Asia/Tokyo", args='{"region": "jp"}',
        queue="late", priority="-2", overlap="allow", catch_up="3", jitter="1min", at_boot="true",
    ).json()  # fmt: skip

    made = app.schedules.get(ODD)
    assert client.get(answer["to"]).status_code == 200
    assert (made.cron, made.tz, made.args, made.queue, made.priority) == (
        *("0 5 * * *", "Asia/Tokyo", {"region": "jp"}, "late", -2),
    )
    assert (made.overlap, made.catch_up, made.jitter, made.at_boot) == ("allow", 3, timedelta(minutes=1), True)
    assert one(db, "select actor from rowlock.events where kind = 'added'") == "ann"


@pytest.mark.parametrize(
    ("fields", "status", "fault"),
    [
        ({"task": "unheard of"}, 409, "has no task"),
        ({"args": '{"colour": 1}'}, 400, "colour"),
        ({"rule": "soon"}, 400, "cron"),
        ({"name": "taken"}, 409, "already"),
    ],
)
def test_a_schedule_that_cannot_be_is_not_added(
    act: Act, app: Rowlock, fields: dict[str, str], status: int, fault: str
) -> None:
    add(app, "taken")

    answer = act("/schedules/add", **{"name": "new", "task": "report", "rule": "0 5 * * *"} | fields)

    assert (answer.status_code, len(app.schedules.list())) == (status, 1)
    assert fault in answer.json()["error"]


def test_a_schedule_is_removed_and_its_jobs_live_on(act: Act, app: Rowlock, db: Db) -> None:
    add(app)
    job = act("/schedules/run", name="nightly").json()["facts"]["job"]

    answer = act("/schedules/remove", name="nightly", why="not wanted")

    assert answer.json()["to"] == "/schedules"
    assert app.schedules.list() == ()
    assert one(db, "select id from rowlock.jobs") == UUID(job)


def test_a_schedule_that_code_declares_is_not_removed(client: Browser, act: Act, app: Rowlock, db: Db) -> None:
    declare(app)
    work_until(app, lambda: one(db, "select exists (select from rowlock.schedules)"), queues=["reports"])
    db.execute(
        """insert into rowlock.workers
               (id, host, pid, queues, slots, tasks, schedules, version, started_at, lease, lasts)
           values (rowlock.uuid7(), 'h', 7, '{}', 1, '{}', '{nightly}', '1', rowlock.now(), 'infinity', '30 s')"""
    )

    answer, page = act("/schedules/remove", name="nightly"), client.get("/schedules/nightly").text

    assert answer.status_code == 409
    assert "is declared by the code of live workers (h:7)" in answer.json()["error"]
    assert "The code of h:7 declares it and would bring it back" in page


@pytest.mark.parametrize(
    ("path", "least"),
    [
        ("/schedules/run", "operator"),
        ("/schedules/pause", "operator"),
        ("/schedules/resume", "operator"),
        ("/schedules/edit", "admin"),
        ("/schedules/reset", "admin"),
        ("/schedules/add", "admin"),
        ("/schedules/remove", "admin"),
    ],
)
def test_each_action_asks_for_its_role(app: Rowlock, path: str, least: str) -> None:
    add(app)
    below = Visitor("eve", "viewer" if least == "operator" else "operator")

    with browsing(Dashboard(app, auth=lambda _request: below)) as other:
        answer = other.act(path, name="nightly", task="report", rule="0 4 * * *")

    assert answer.status_code == 403
    assert answer.json()["error"].startswith(f"this needs the role {least}")


def _unescaped(text: str) -> str:
    return text.replace("&#34;", '"').replace("&quot;", '"').replace("&#39;", "'").replace("&amp;", "&")
