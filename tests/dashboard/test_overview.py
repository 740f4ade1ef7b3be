"""The overview: what needs attention, the moment, and what was done over a span, by queue and by task."""

from __future__ import annotations

import asyncio
import html
import json
import re
from collections.abc import Awaitable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from rowlock import Rowlock
from rowlock.dashboard.drawings.charts import Chart, charts
from rowlock.dashboard.notices import notices
from rowlock.dashboard.pages import overview
from rowlock.dashboard.pages.overview import in_time
from rowlock.dashboard.render import ref
from rowlock.doctor import locks
from rowlock.model.checkup import Checkup, Finding
from rowlock.model.pause import Pause
from rowlock.model.stats.histogram import bucket, pack
from rowlock.model.stats.series import Point, Series
from rowlock.model.stats.stats import Count, DatabaseStats, Durations, FleetStats, Stats, TaskStats
from tests.dashboard.browser import Browser
from tests.depth import deep
from tests.rows import Db, put
from tests.test_doctor import register
from tests.workflow.remembering import put_step, put_workflow

ODD = 'a/b?c <i> "q"'
MINUTE = timedelta(minutes=1)
NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


def told(client: Browser, **asked: str) -> dict[str, Any]:
    answer = client.get("/api/", params=asked)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def needs(client: Browser) -> dict[str, tuple[str, str, dict[str, str]]]:
    """Needs attention, by name: what, and where it leads. The tests' server does without fsync, which is red."""
    found = {one["name"]: (one["what"], one["path"], one["asked"]) for one in told(client)["notices"]}
    assert found.pop("fsync")[1] == "/database"
    return found


def count_minute(
    db: Db, ago: int, *, queue: str = "mail", task: str = "send", succeeded: int = 60, failed: int = 0
) -> None:
    """What a worker would have counted in one minute: each job was due for 10 ms, and took a second."""
    jobs = succeeded + failed
    durations, waits = (pack([0] * bucket(seconds) + [jobs]) for seconds in (1.0, 0.01))
    columns = "worker, queue, task, claimed, succeeded, failed, durations, waits"
    db.execute(
        f"""insert into rowlock.minutes ({columns}, minute, cancelled, retried, seconds, slowest, waited, longest)
            values (%s, %s, %s, %s, %s, %s, %s::numeric, %s::numeric,
                date_trunc('minute', rowlock.now()) - make_interval(mins => %s), 0, 2, 60, 1, 1, 0.01)""".encode(),
        [uuid4(), queue, task, jobs, succeeded, failed, durations, waits, ago],
    )


# Needs attention


def test_an_empty_overview_says_how_to_begin(client: Browser) -> None:
    page = client.get("/")

    assert page.status_code == 200
    assert "No job has run yet" in page.text
    assert "rowlock worker --app MODULE" in page.text


def test_nothing_needs_a_person_when_all_is_well(client: Browser, app: Rowlock, durable: None) -> None:
    register(app)

    page = client.get("/")

    assert told(client)["notices"] == []
    assert "Nothing needs attention" in page.text


def test_due_jobs_that_are_all_in_paused_queues_are_no_oldest_job(client: Browser, app: Rowlock, db: Db) -> None:
    register(app)
    put(db, queue="mail")
    app.queues.pause("mail", by="ann")

    page = client.get("/")

    assert '<div class="note">all are in paused queues</div>' in page.text
    assert (told(client)["now"]["oldest"], told(client)["now"]["runnable"]["value"]) == (None, 1)


def test_everything_that_needs_a_person_leads_to_where_it_is_seen(client: Browser, app: Rowlock, db: Db) -> None:
    register(app)
    for _ in range(2):
        put(db, "failed", task="charge")
    put(db, "waiting", queue=ODD, waits_for="code")
    job = put(db, "failed", task="charge", reason="poison")
    for kind in ("poisoned", "rescued"):
        db.execute("insert into rowlock.events (kind, actor, job) values (%s, 'worker h:1', %s)", [kind, job])
    app.queues.pause(ODD, by="ann", why="<b>")
    app.tasks.pause("mail.send", by="ben", duration=timedelta(hours=1))
    app.schedules.add("nightly/1", app.call("report"), "0 3 * * *")
    app.schedules.pause("nightly/1", by="ann")

    found = needs(client)

    assert found == {
        "failed": ("3 failed jobs", "/jobs", {"state": "failed"}),
        "poison": ("1 poison job in the last day", "/jobs", {"state": "failed", "reason": "poison"}),
        "rescued": ("1 job rescued in the last hour", "/audit", {"kind": "rescued"}),
        f"code {ODD}": (f"1 job in {ODD} waiting for code", "/jobs", {"state": "waiting", "queue": ODD}),
        f"pause queue {ODD}": (f"queue {ODD} is paused", "/queues", {}),
        "pause task mail.send": ("task mail.send is paused", "/queues", {}),
        "pause schedule nightly/1": ("schedule nightly/1 is paused", "/schedules/nightly/1", {}),
    }
    page = client.get("/").text
    assert 'href="/jobs?state=failed&amp;reason=poison"' in page
    assert "<i>" not in page
    assert "by ann: &lt;b&gt;" in page


def test_the_id_of_an_element_is_plain_whatever_a_name_holds(client: Browser, app: Rowlock, db: Db) -> None:
    # The script that updates an open page looks for elements by `[id="…"]`: a quote in an id would stop all updates.
    app.queues.pause(ODD, by="ann")
    app.tasks.pause(ODD, by="ann")
    count_minute(db, 5, queue=ODD, task=ODD)
    db.execute("""create index "a ""quoted"" index" on rowlock.jobs (tags)""")

    for path in ("/", "/queues", "/database"):
        ids = re.findall(r'\bid="([^"]*)"', client.get(path).text)
        assert [name for name in ids if not re.fullmatch(r"[\w-]+", name)] == [], path


def test_approvals_suspects_and_schedules_that_stand_still_need_a_person(client: Browser, app: Rowlock, db: Db) -> None:
    register(app)
    form = {"type": "boolean"}
    refunds = [put_workflow(db, "waiting", task="refund") for _ in range(2)]
    [signup, nap] = (put_workflow(db, "waiting", task=task) for task in ("signup", "nap"))
    for job in (*refunds, signup):
        put_step(db, job, "approval", took=None, kind="signal", form=form)
    put_step(db, nap, "anything", took=None, kind="signal")
    put(db, "waiting", queue="mail", waits_for="suspect")
    app.schedules.add("sync", app.call("report"), timedelta(hours=1))
    for ago in range(3):
        db.execute(
            """insert into rowlock.firings (schedule, slot, reason, at)
               values ('sync', rowlock.now() - make_interval(mins => %s), 'overlap', rowlock.now())""",
            [ago],
        )

    found = needs(client)

    assert found["approval refund"] == (
        "2 approvals of refund",
        "/workflows",
        {"workflow": "refund", "status": "parked"},
    )
    assert found["approval signup"] == ("1 approval of signup", f"/workflows/{signup}", {})
    assert "approval nap" not in found
    assert found["suspects mail"][:2] == ("1 job in mail may have killed a worker", "/jobs")
    assert found["passing sync"] == ("schedule sync starts no jobs", "/schedules/sync", {})


def test_failed_jobs_and_the_share_that_fails_are_one_line() -> None:
    checkup = Checkup(NOON, (Finding("work", "failures", "red", "55 of 69", "of the jobs that ended", "retry"),))
    task = TaskStats(rates=None, durations=None, waits=None, failed=Count(6254), paused=False)
    fleet, database = FleetStats(None, None, None, None, None), DatabaseStats(None, None, None, None, None, None, None)
    stats = Stats(NOON, 5 * MINUTE, {}, {"charge": task}, fleet, database, {})

    [line] = notices(stats, checkup, pauses=[], schedules=[], recent_failures={"charge": 55}, window="hour")

    assert line.what == "6,254 failed jobs"
    assert line.says == "55 jobs in the last hour, of charge; 55 of 69 that ended in the last 5 min"


def test_a_pause_by_a_breaker_is_said_once_and_what_is_unknown_with_its_reason() -> None:
    why = "breaker: 3 failures within 1 min, the last: OSError"
    unknown = [Finding("server", name, "amber", "?", "unknown: took longer than 2 s", "look") for name in ("a", "b")]
    pause = Pause(queue=None, task="charge", until=None, why=why, by="breaker", at=NOON)

    found = notices(
        None, Checkup(NOON, tuple(unknown)), pauses=[pause], schedules=[], recent_failures={}, window="hour"
    )

    assert [one.says for one in found] == [
        "a, b: took longer than 2 s",
        "by breaker: 3 failures within 1 min, the last: OSError",
    ]


def test_jobs_that_nobody_does_lead_to_the_queues(client: Browser, db: Db) -> None:
    put(db, queue="mail")

    found = needs(client)

    assert found["queues without a worker"][:2] == ("queues without a worker: mail", "/queues")
    assert found["live workers"][:2] == ("live workers: 0", "/workers")


def test_a_worker_that_has_lost_its_lease_is_noticed(client: Browser, app: Rowlock, db: Db) -> None:
    register(app)
    register(app)
    db.execute(
        """update rowlock.workers set lease = rowlock.now() - interval '5 s'
           where id = (select id from rowlock.workers limit 1)"""
    )

    found = needs(client)

    assert found["leases"][:2] == ("leases: h:1", "/workers")
    assert told(client)["now"]["lost"] == 1


def test_what_could_not_be_learned_is_one_line() -> None:
    unknown = [Finding("server", f"line {n}", "amber", "?", "unknown: no right", "grant it") for n in range(7)]

    found = notices(None, Checkup(NOON, tuple(unknown)), pauses=[], schedules=[], recent_failures={}, window="hour")

    assert [(one.what, one.path) for one in found] == [("7 things unknown about the database", "/database")]


def test_the_worst_comes_first() -> None:
    lines = [
        Finding("server", "isolation", "amber", "serializable", "says", "do"),
        Finding("server", "fsync", "red", "off", "says", "do"),
        Finding("server", "version", "green", "18", "says"),
    ]

    found = notices(None, Checkup(NOON, tuple(lines)), pauses=[], schedules=[], recent_failures={}, window="hour")

    assert [one.name for one in found] == ["fsync", "isolation"]


# The moment and the span


def test_the_moment_is_counted(client: Browser, app: Rowlock, db: Db) -> None:
    register(app)
    put(db, queue="mail", run_at=datetime.now(UTC) - timedelta(hours=2))
    put(db, queue="default")
    put(db, "running", queue="mail")

    now = told(client)["now"]

    assert (now["runnable"]["value"], now["running"]["value"]) == (2, 1)
    assert now["oldest_queue"] == "mail"
    assert now["oldest"] >= 7200
    assert (now["workers"], now["slots"]) == (1, 100)


def test_queues_and_tasks_are_told_by_what_they_did_in_the_span(client: Browser, db: Db) -> None:
    count_minute(db, 5, queue="mail", task="send")
    count_minute(db, 6, queue="mail", task="weekly", succeeded=6, failed=3)
    count_minute(db, 300, queue="slow", task="report")

    hour, six = told(client), told(client, span="6h")

    [mail] = hour["queues"]
    assert (mail["name"], mail["done"]["succeeded"], mail["done"]["failed"]) == ("mail", 66, 3)
    assert [one["name"] for one in hour["tasks"]] == ["send", "weekly"]
    assert [one["name"] for one in six["tasks"]] == ["report", "send", "weekly"]
    assert hour["done"]["failed"] == 3
    assert mail["done"]["waits"]["p50"] == pytest.approx(0.01, rel=0.5)
    assert mail["done"]["durations"]["count"] == 69


def test_charts_are_of_one_queue_or_task_if_asked(client: Browser, db: Db) -> None:
    count_minute(db, 5, queue=ODD, task="send", succeeded=7)
    count_minute(db, 5, queue="slow", task="report", succeeded=11)

    def succeeded(**asked: str) -> int:
        return sum(point["succeeded"] for point in told(client, **asked)["series"]["points"])

    assert (succeeded(), succeeded(queue=ODD), succeeded(task="report")) == (18, 7, 11)
    page = client.get("/", params={"queue": ODD}).text
    assert "queue a/b?c &lt;i&gt;" in page
    assert "<i>" not in page


def drawn(page: str) -> dict[str, Any]:
    """The charts' data as the browser reads it, by name."""
    found = re.findall(r'id="chart-(\w+)".*?data-chart="([^"]*)"', page)
    return {name: json.loads(html.unescape(data)) for name, data in found}


def test_charts_carry_their_data_and_a_table_says_the_same(client: Browser, db: Db) -> None:
    count_minute(db, 5, succeeded=120, failed=6)

    page = client.get("/").text

    found = drawn(page)
    assert list(found) == ["throughput", "trouble", "latency", "duration"]
    assert max(found["throughput"]["lines"][0]["values"]) == 2.0
    assert found["throughput"]["unit"] == "/s"
    assert (found["trouble"]["unit"], max(found["trouble"]["lines"][0]["values"])) == ("/min", 6.0)
    assert "In all 120 succeeded." in page
    assert re.search(r'<td class="number">120</td><td class="number">2</td><td class="number">6</td>', page)


def test_no_style_and_no_script_stands_in_the_page(client: Browser, db: Db) -> None:
    count_minute(db, 5)

    for path in ("/", "/database", "/audit"):
        page = client.get(path).text
        assert not re.search(r"\sstyle=|<style|<script(?![^>]*\ssrc=)|\son\w+=", page)


@pytest.mark.parametrize("asked", [{"span": "2h"}, {"queue": "q" * 10_000}])
def test_what_cannot_be_asked_is_refused(client: Browser, asked: dict[str, str]) -> None:
    answer = client.get("/api/", params=asked)

    assert answer.status_code == 400
    assert next(iter(asked)) in answer.json()["error"]


# What takes too long


async def _failing(error: Exception) -> int:
    raise error


def test_what_takes_too_long_is_left_out_with_the_reason() -> None:
    unknown: dict[str, str] = {}
    late: Awaitable[int] = _failing(psycopg.errors.QueryCanceled("canceling statement due to statement timeout"))

    found = asyncio.run(in_time("series", late, unknown))

    assert found is None
    assert unknown == {"series": "took longer than 2 s"}


def test_any_other_error_is_the_pages() -> None:
    with pytest.raises(ZeroDivisionError):
        asyncio.run(in_time("series", _failing(ZeroDivisionError()), {}))


# Charts


def chart(name: str, *points: Point, step: timedelta = MINUTE) -> Chart:
    found = {one.name: one for one in charts(Series(NOON, step, points))}
    return found[name]


def test_little_is_told_by_the_minute_and_much_by_the_second() -> None:
    little = chart("throughput", Point(NOON, True, succeeded=30))
    much = chart("throughput", Point(NOON, True, succeeded=6_000))

    assert (little.unit, little.lines[0].values) == ("/min", (30.0,))
    assert (much.unit, much.lines[0].values) == ("/s", (100.0,))


def test_a_step_that_is_not_whole_is_not_drawn() -> None:
    found = chart("throughput", Point(NOON, True, succeeded=60), Point(NOON + MINUTE, False, succeeded=3))

    assert found.at == (int(NOON.timestamp()),)
    assert found.says == "In all 60 succeeded."


def test_where_nothing_was_counted_there_is_a_gap() -> None:
    second = timedelta(seconds=1)
    took = Durations(count=1, mean=second, p50=second, p95=2 * second, p99=2 * second, max=2 * second)

    found = chart("duration", Point(NOON, True), Point(NOON + MINUTE, True, durations=took))

    assert [line.values for line in found.lines] == [(None, 1.0), (None, 2.0)]
    assert found.says == "Last p50 1.0 s, p95 2.0 s; the highest p95 was 2.0 s."


def test_lines_are_told_apart_without_colours() -> None:
    point = Point(NOON, True, succeeded=1, failed=1, retried=1)

    for name in ("trouble", "latency", "duration"):
        dashes = [line.dash for line in chart(name, point).lines]
        assert len(set(dashes)) == len(dashes)


@deep
def test_who_has_locked_the_jobs_comes_first_though_nothing_else_can_be_read(
    client: Browser, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "_RED", timedelta(0))
    monkeypatch.setattr(overview, "_HEALTH_WHEN_LOCKED", timedelta(0))
    client.get("/")  # all was well then, and what the doctor said is kept for a while
    with psycopg.connect(url, application_name="the migration") as holder:
        holder.execute("lock table rowlock.jobs in access exclusive mode")

        page = client.get("/")

    notices = re.findall(r'<li id="notice-([^"]+)"', page.text)
    assert (page.status_code, notices[0]) == (200, ref("table locks"))
