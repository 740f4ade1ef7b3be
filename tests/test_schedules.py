"""Schedules as people use them: add, look, edit, pause, run and remove, in sync and in async code."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import psycopg
import pytest
from psycopg.rows import TupleRow

from rowlock import Rowlock, RowlockError, Task
from rowlock.app.tasks import schedule_spec
from rowlock.errors import InvalidArguments, InvalidOption, ScheduleError, ScheduleNotFound
from rowlock.model.schedule.schedule import Schedule
from rowlock.store.schedules import change
from rowlock.testing import travel
from tests.depth import deep
from tests.waiting import until
from tests.worker.working import one, working

Db = psycopg.Connection[TupleRow]

MINUTE = timedelta(minutes=1)
NIGHTLY = "0 3 * * *"


@pytest.fixture
def send(app: Rowlock) -> Task[[str], None]:
    @app.task(name="shop.send", queue="mail", priority=2)
    async def send(city: str) -> None: ...

    return send


# Adding and looking


def test_a_schedule_is_added_with_everything_its_call_says(app: Rowlock, db: Db, send: Task[[str], None]) -> None:
    call = send.using(queue="slow", tags=["a"], attempts=3, expires=MINUTE).bind("paris")

    added = app.schedules.add(
        "send-paris",
        call,
        "0 9 * * MON-FRI",
        tz="Europe/Paris",
        jitter=timedelta(seconds=30),
        overlap="allow",
        catch_up=3,
        at_boot=True,
        by="ann",
        why="paris asked",
    )

    assert added == app.schedules.get("send-paris")
    assert (added.task, added.args, added.queue, added.priority) == ("shop.send", {"city": "paris"}, "slow", 2)
    assert (added.attempts, added.expires, added.tags) == (3, MINUTE, ("a",))
    assert (added.cron, added.tz, added.every) == ("0 9 * * MON-FRI", "Europe/Paris", None)
    assert (added.jitter, added.overlap, added.catch_up, added.at_boot) == (timedelta(seconds=30), "allow", 3, True)
    assert (added.is_declared, added.is_edited, added.is_orphan, added.is_paused) == (False, False, False, False)
    assert added.next_at == app.schedules.next("send-paris", 1)[0]
    assert events(db) == [("added", "ann", "send-paris", "paris asked")]


def test_the_first_slot_is_after_the_databases_now(app: Rowlock, db: Db, send: Task[[str], None]) -> None:
    db.execute(
        "create or replace function rowlock.now() returns timestamptz return timestamptz '2030-01-01 12:34:56.7Z'"
    )

    hourly = app.schedules.add("hourly", send.bind("x"), "@hourly")
    often = app.schedules.add("often", send.bind("x"), timedelta(minutes=5))

    assert hourly.next_at == datetime(2030, 1, 1, 13, tzinfo=UTC)
    assert often.next_at == datetime(2030, 1, 1, 12, 39, 56, tzinfo=UTC)
    assert app.schedules.next("hourly", 2) == (hourly.next_at, hourly.next_at + timedelta(hours=1))
    assert app.schedules.next("often", 2) == (often.next_at, often.next_at + timedelta(minutes=5))


def test_a_task_that_is_not_known_here_can_be_scheduled_by_name(app: Rowlock) -> None:
    app.schedules.add("bill", app.call("billing.invoice", month=1), NIGHTLY)

    assert [(one.name, one.task, one.args) for one in app.schedules.list()] == [
        ("bill", "billing.invoice", {"month": 1})
    ]


def test_a_name_is_taken_once(app: Rowlock, send: Task[[str], None]) -> None:
    first = app.schedules.add("nightly", send.bind("paris"), NIGHTLY)

    with pytest.raises(ScheduleError, match=r"'nightly' already: an operator added it, .*; edit that one, or choose"):
        app.schedules.add("nightly", send.bind("rome"), NIGHTLY)

    assert app.schedules.list() == (first,)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"rule": "0 25 * * *"}, "hour"),
        ({"rule": NIGHTLY, "tz": "Europe/Pari"}, "Europe/Paris"),
        ({"rule": timedelta(0)}, "1"),
        ({"rule": timedelta(hours=1), "tz": "UTC"}, "interval"),
        ({"rule": NIGHTLY, "jitter": timedelta(days=2)}, "jitter"),
        ({"rule": NIGHTLY, "overlap": "maybe"}, "overlap"),
        ({"rule": NIGHTLY, "catch_up": -1}, "catch_up"),
        ({"rule": NIGHTLY, "name": "a,b"}, "','"),
        ({"rule": NIGHTLY, "name": "x" * 91}, "91 bytes"),
        ({"rule": NIGHTLY, "by": ""}, "by"),
    ],
)
def test_what_makes_no_sense_is_refused_before_any_sql(given: dict[str, Any], match: str) -> None:
    with Rowlock("postgresql://localhost:1/nowhere") as app, pytest.raises(InvalidOption, match=match):
        app.schedules.add(**{"name": "n", "call": app.call("t"), **given})


@pytest.mark.parametrize("option", [{"key": "k"}, {"delay": MINUTE}, {"run_at": datetime.now(UTC)}, {"connection": 1}])
def test_what_is_said_of_one_job_cannot_be_said_of_all(
    app: Rowlock, send: Task[[str], None], option: dict[str, Any]
) -> None:
    with pytest.raises(InvalidOption, match=f"takes no {next(iter(option))}="):
        app.schedules.add("n", send.using(**option).bind("x"), NIGHTLY)


VERBS: dict[str, Callable[[Rowlock], object]] = {
    "get": lambda app: app.schedules.get("nightli"),
    "next": lambda app: app.schedules.next("nightli"),
    "firings": lambda app: app.schedules.firings("nightli"),
    "edit": lambda app: app.schedules.edit("nightli", queue="q"),
    "pause": lambda app: app.schedules.pause("nightli"),
    "resume": lambda app: app.schedules.resume("nightli"),
    "run_now": lambda app: app.schedules.run_now("nightli"),
    "remove": lambda app: app.schedules.remove("nightli"),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_schedule_that_is_not_there_is_asked_for_by_its_likeliest_name(
    app: Rowlock, db: Db, send: Task[[str], None], verb: str
) -> None:
    app.schedules.add("nightly", send.bind("x"), NIGHTLY)

    with pytest.raises(ScheduleNotFound, match="no schedule 'nightli'; did you mean 'nightly'") as missing:
        VERBS[verb](app)

    assert missing.value.schedule == "nightli"
    assert [kind for kind, *_ in events(db)] == ["added"]


# Editing


def test_an_edit_changes_what_it_names_and_nothing_else(app: Rowlock, db: Db, send: Task[[str], None]) -> None:
    before = app.schedules.add("n", send.bind("paris"), NIGHTLY, tz="Europe/Paris")

    after = app.schedules.edit("n", queue="slow", args={"city": "rome"}, catch_up="none", by="ann")

    assert (after.queue, after.args, after.catch_up) == ("slow", {"city": "rome"}, 0)
    assert (after.next_at, after.tz, after.priority, after.is_edited) == (before.next_at, "Europe/Paris", 2, False)
    [details] = [details for kind, details in details_of(db) if kind == "edited"]
    assert details["changes"] == {"queue": ["mail", "slow"], "catch_up": [1, 0], "args": "changed"}


def test_a_new_rule_has_a_new_next_slot(app: Rowlock, send: Task[[str], None]) -> None:
    app.schedules.add("n", send.bind("x"), NIGHTLY, tz="Europe/Paris")

    at_noon = app.schedules.edit("n", rule="0 12 * * *")
    in_utc = app.schedules.edit("n", tz="UTC")
    often = app.schedules.edit("n", rule=timedelta(minutes=5))

    assert (at_noon.cron, at_noon.tz) == ("0 12 * * *", "Europe/Paris")
    assert at_noon.next_at.hour in (10, 11)
    assert (in_utc.cron, in_utc.tz, in_utc.next_at.hour) == ("0 12 * * *", "UTC", 12)
    assert (often.cron, often.tz, often.every) == (None, None, timedelta(minutes=5))
    with pytest.raises(InvalidOption, match="interval"):
        app.schedules.edit("n", tz="UTC")


def test_expires_is_taken_away_by_zero(app: Rowlock, send: Task[[str], None]) -> None:
    app.schedules.add("n", send.using(expires=MINUTE).bind("x"), NIGHTLY)

    assert app.schedules.edit("n", jitter=MINUTE).expires == MINUTE
    assert app.schedules.edit("n", expires=timedelta(0)).expires is None


def test_arguments_must_fit_a_task_that_is_known_here(app: Rowlock, send: Task[[str], None]) -> None:
    app.schedules.add("known", send.bind("x"), NIGHTLY)
    app.schedules.add("unknown", app.call("elsewhere", n=1), NIGHTLY)

    with pytest.raises(InvalidArguments):
        app.schedules.edit("known", args={"town": "x"})
    edited = app.schedules.edit("unknown", args={"anything": [1, 2]})

    assert app.schedules.get("known").args == {"city": "x"}
    assert edited.args == {"anything": [1, 2]}


def test_an_edit_that_changes_nothing_leaves_no_trace(app: Rowlock, db: Db, send: Task[[str], None]) -> None:
    before = app.schedules.add("n", send.bind("x"), NIGHTLY)

    same = app.schedules.edit("n", queue="mail", rule=NIGHTLY)

    assert same == before
    assert [kind for kind, *_ in events(db)] == ["added"]
    with pytest.raises(InvalidOption, match="nothing to change"):
        app.schedules.edit("n", why="so")
    with pytest.raises(ScheduleError, match="nothing to go back to"):
        app.schedules.edit("n", reset=True)


def test_numbers_in_arguments_outlive_an_edit_of_something_else(app: Rowlock, db: Db, send: Task[[str], None]) -> None:
    app.schedules.add("n", send.bind("x"), NIGHTLY)
    db.execute("""update rowlock.schedules set args = '{"huge": 1e400, "exact": 12345678901234567890.10}'""")

    app.schedules.edit("n", queue="other")

    assert one(db, "select args::text from rowlock.schedules") == '{"huge": 1e400, "exact": 12345678901234567890.10}'


# Pausing


def test_a_pause_is_said_until_it_ends_or_somebody_resumes(app: Rowlock, db: Db, send: Task[[str], None]) -> None:
    app.schedules.add("n", send.bind("x"), NIGHTLY)

    paused = app.schedules.pause("n", why="the host moves", by="ann")
    shorter = app.schedules.pause("n", duration=timedelta(hours=1))
    resumed = app.schedules.resume("n", by="bob"), app.schedules.resume("n")

    assert (paused.is_paused, paused.paused_by, paused.paused_why) == (True, "ann", "the host moves")
    assert paused.paused_until is None
    assert shorter.paused_at is not None
    assert shorter.paused_until == shorter.paused_at + timedelta(hours=1)
    assert resumed == (True, False)
    assert not app.schedules.get("n").is_paused
    assert [kind for kind, *_ in events(db)] == ["added", "paused", "paused", "resumed"]


def test_a_pause_whose_time_is_over_is_none(app: Rowlock, db: Db, send: Task[[str], None]) -> None:
    app.schedules.add("n", send.bind("x"), NIGHTLY)
    app.schedules.pause("n", duration=timedelta(hours=1))

    with travel(app, timedelta(hours=2)):
        assert not app.schedules.get("n").is_paused
        assert not app.schedules.resume("n")
    with pytest.raises(InvalidOption, match="is past already"):
        app.schedules.pause("n", until=datetime(2020, 1, 1, tzinfo=UTC))


def test_what_a_pause_covered_is_not_caught_up(app: Rowlock, db: Db, send: Task[[str], None]) -> None:
    app.schedules.add("cron", send.bind("x"), NIGHTLY)
    app.schedules.add("interval", send.bind("x"), timedelta(hours=1))
    for name in ("cron", "interval"):
        app.schedules.pause(name)
    db.execute("update rowlock.schedules set next_at = next_at - interval '3 days'")
    anchor = app.schedules.get("interval").next_at

    for name in ("cron", "interval"):
        app.schedules.resume(name)

    now = one(db, "select rowlock.now()")
    interval = app.schedules.get("interval").next_at
    assert app.schedules.get("cron").next_at > now
    assert now < interval <= now + timedelta(hours=1)
    assert (interval - anchor) % timedelta(hours=1) == timedelta(0)


# Running now


def test_a_job_beside_the_slots_is_seen_by_the_overlap(app: Rowlock, db: Db, send: Task[[str], None]) -> None:
    before = app.schedules.add("n", send.using(tags=["a"]).bind("paris"), NIGHTLY)
    app.schedules.pause("n")

    job = app.schedules.run_now("n", by="ann", why="the numbers were wrong")

    record = job.record()
    after = app.schedules.get("n")
    [firing] = app.schedules.firings("n")
    assert (record.task, record.queue, record.args, record.priority) == ("shop.send", "mail", {"city": "paris"}, 2)
    assert record.tags == ("a", "schedule:n")
    assert (after.jobs, after.next_at) == ((job.id,), before.next_at)
    assert (firing.job, firing.reason, firing.state) == (job.id, "asked", "ready")
    assert app.jobs.events(job.id)[0].details["schedule"] == "n"

    job.cancel()

    assert app.schedules.get("n").jobs == ()
    assert app.schedules.firings("n")[0].state == "cancelled"


def test_a_job_that_was_asked_for_wakes_a_parked_worker(app: Rowlock) -> None:
    @app.task(name="quick")
    async def quick() -> int:
        return 42

    async def main() -> int:
        async with app.worker():
            await app.schedules.aadd("n", quick.bind(), NIGHTLY)
            job = await app.schedules.arun_now("n")
            return int(await job.aresult(timeout=MINUTE))

    assert asyncio.run(main()) == 42


# Removing


def test_a_removed_schedule_leaves_its_jobs_and_what_it_did(app: Rowlock, db: Db, send: Task[[str], None]) -> None:
    added = app.schedules.add("n", send.bind("x"), NIGHTLY)
    job = app.schedules.run_now("n")

    removed = app.schedules.remove("n", by="ann", why="no more")

    assert (removed.name, removed.created_at) == (added.name, added.created_at)
    assert app.schedules.list() == ()
    assert job.record().state == "ready"
    assert [firing.job for firing in app.schedules.firings("n")] == [job.id]
    assert events(db)[-1] == ("removed", "ann", "n", "no more")


# Both kinds of callers


def test_every_verb_has_an_async_twin(app: Rowlock, send: Task[[str], None]) -> None:
    async def main() -> None:
        schedules = app.schedules
        added = await schedules.aadd("n", send.bind("x"), NIGHTLY)
        assert await schedules.alist() == (added,)
        assert await schedules.aget("n") == added
        assert (await schedules.aedit("n", queue="q")).queue == "q"
        assert (await schedules.apause("n")).is_paused
        assert await schedules.aresume("n")
        assert len(await schedules.anext("n", 3)) == 3
        job = await schedules.arun_now("n")
        assert [firing.job for firing in await schedules.afirings("n")] == [job.id]
        assert (await schedules.aremove("n")).queue == "q"
        for verb in (schedules.list, lambda: schedules.pause("n"), lambda: schedules.run_now("n")):
            with pytest.raises(RowlockError, match="would block the running event loop; use `await"):
                verb()
        await app.aclose()

    asyncio.run(main())


# In a crowd


def test_whoever_changes_a_schedule_waits_for_whoever_fires_it(
    app: Rowlock, url: str, db: Db, send: Task[[str], None]
) -> None:
    app.schedules.add("n", send.bind("x"), timedelta(hours=1))
    found = list[Schedule]()
    with psycopg.connect(url) as firing:
        firing.execute("select from rowlock.schedules where name = 'n' for update")
        editing = threading.Thread(target=lambda: found.append(app.schedules.edit("n", queue="q")))
        editing.start()
        until(lambda: one(db, "select exists (select from pg_locks where not granted)"), what="the edit to wait")
        firing.execute("update rowlock.schedules set next_at = '2040-01-01 00:00Z', last_at = '2039-12-31 23:00Z'")
        firing.commit()
        editing.join()

    [edited] = found
    assert (edited.queue, edited.next_at) == ("q", datetime(2040, 1, 1, tzinfo=UTC))


def test_of_two_who_add_the_same_name_one_is_refused(app: Rowlock, send: Task[[str], None]) -> None:
    def add(city: str) -> str | None:
        try:
            return str(app.schedules.add("n", send.bind(city), NIGHTLY).args["city"])
        except ScheduleError:
            return None

    with ThreadPoolExecutor(8) as threads:
        added = [city for city in threads.map(add, [f"city {n}" for n in range(8)]) if city is not None]

    assert added == [app.schedules.get("n").args["city"]]


def test_an_add_whose_answer_was_lost_is_no_name_that_is_taken(app: Rowlock, db: Db, send: Task[[str], None]) -> None:
    spec = schedule_spec(send.bind("paris"), name="n", rule=NIGHTLY)
    other = schedule_spec(send.bind("rome"), name="n", rule=NIGHTLY)
    say = partial(change.add, actor="ann", why=None)
    first = app.database.converse(lambda: say(spec, resend=False))

    again = app.database.converse(lambda: say(spec, resend=True))

    assert again == first
    assert [kind for kind, *_ in events(db)] == ["added"]
    with pytest.raises(ScheduleError):
        app.database.converse(lambda: say(other, resend=True))


def test_rows_that_sql_made_can_be_listed_mended_and_removed(app: Rowlock, db: Db) -> None:
    db.execute(
        """
        insert into rowlock.schedules (name, cron, tz, task, args, queue, priority, attempts, jitter, overlap, catch_up,
            at_boot, next_at, created_at)
        values ('a*b', 'no cron', 'No/Zone', 't', '{}', 'q', 0, 1, '10000000 years', 'skip', 1, false, 'infinity',
            now())
        """
    )

    [odd] = app.schedules.list()
    with pytest.raises(InvalidOption):
        app.schedules.next("a*b")
    app.schedules.pause("a*b")
    app.schedules.resume("a*b")

    assert (odd.name, odd.jitter) == ("a*b", timedelta.max)
    assert app.schedules.remove("a*b").name == "a*b"


# Code and operators


def deployed(url: str, **declared: dict[str, Any]) -> Rowlock:
    """A program as it was deployed: it declares these schedules of its one task."""
    app = Rowlock(url)

    @app.task(name="shop.report", queue="reports")
    async def report(day: str = "today") -> None: ...

    for name, facts in declared.items():
        options = {key: facts[key] for key in facts.keys() - {"rule", "day"}}
        report.bind(facts.get("day", "today")).every(facts["rule"], name=name, **options)
    return app


def test_what_operators_say_outlives_every_deploy(url: str, app: Rowlock, db: Db) -> None:
    with deployed(url, report={"rule": NIGHTLY, "tz": "Europe/Paris", "day": "monday"}) as first, working(first):
        until(app.schedules.list, what="the schedule to be declared")
        app.schedules.edit("report", rule="30 4 * * *", args={"day": "friday"}, by="ann", why="the backup runs at 3")
        app.schedules.pause("report", why="no reports in august", by="bob")
        before = app.schedules.get("report")

    with deployed(url, report={"rule": "@hourly", "day": "tuesday", "jitter": MINUTE}) as second, working(second):
        until(lambda: app.schedules.get("report").jitter, what="the new code to declare it")
        after = app.schedules.get("report")
        with pytest.raises(ScheduleError, match=r"declared by the code of live workers .*; pause it, or take it out"):
            app.schedules.remove("report")

    assert (after.cron, after.tz, after.args) == ("30 4 * * *", "Europe/Paris", {"day": "friday"})
    assert (after.next_at, after.jitter) == (before.next_at, MINUTE)
    assert (after.is_paused, after.paused_by, after.paused_why) == (True, "bob", "no reports in august")
    assert after.declared is not None
    assert (after.declared["cron"], after.declared["args"]) == ("@hourly", '{"day":"tuesday"}')
    assert after.edits is not None
    assert (after.edits["by"], after.edits["why"]) == ("ann", "the backup runs at 3")
    assert (after.is_declared, after.is_edited, after.is_orphan) == (True, True, False)


def test_a_reset_goes_back_to_what_code_says_now(url: str, app: Rowlock, db: Db) -> None:
    with deployed(url, report={"rule": "@hourly", "day": "monday"}) as code, working(code):
        until(app.schedules.list, what="the schedule to be declared")
        app.schedules.edit("report", rule=timedelta(minutes=5), args={"day": "friday"}, queue="slow")

        half = app.schedules.edit("report", queue="reports")
        whole = app.schedules.edit("report", reset=True, why="august is over")
        again = app.schedules.edit("report", reset=True, priority=3)

    assert (half.every, half.queue) == (timedelta(minutes=5), "reports")
    assert half.edits is not None
    assert {*half.edits} == {"cron", "tz", "every", "args", "by", "at"}
    assert (whole.cron, whole.every, whole.args, whole.edits) == ("@hourly", None, {"day": "monday"}, None)
    assert whole.next_at.minute == 0
    assert (again.cron, again.priority, again.is_edited) == ("@hourly", 3, True)
    changes = [details["changes"] for kind, details in details_of(db) if kind == "edited"]
    assert changes[2] == {"rule": ["every 0:05:00", "@hourly"], "args": "changed"}


def test_a_declaration_that_is_gone_leaves_an_orphan_that_goes_on(url: str, app: Rowlock, db: Db) -> None:
    with deployed(url, report={"rule": timedelta(seconds=1)}, other={"rule": "@yearly"}) as first, working(first):
        until(lambda: len(app.schedules.list()) == 2, what="the schedules to be declared")
    nobody = {schedule.name: schedule.is_orphan for schedule in app.schedules.list()}

    with deployed(url, other={"rule": "@yearly"}) as second, working(second):
        until(lambda: app.schedules.get("report").is_orphan, what="the orphan to be seen")
        seen = app.schedules.firings("report")
        until(lambda: len(app.schedules.firings("report")) > len(seen) + 1, what="the orphan to go on")
        other = app.schedules.get("other")
        removed = app.schedules.remove("report", why="nobody reads them")

    assert nobody == {"report": False, "other": False}, "where no worker lives, nobody can tell"
    assert not other.is_orphan
    assert removed.is_orphan
    assert [schedule.name for schedule in app.schedules.list()] == ["other"]


def test_code_takes_over_what_an_operator_added_under_its_name(url: str, app: Rowlock, db: Db) -> None:
    app.schedules.add("report", app.call("anything"), NIGHTLY)

    with deployed(url, report={"rule": "@hourly"}) as code, working(code):
        until(lambda: app.schedules.get("report").is_declared, what="the code to declare it")

    assert app.schedules.get("report").task == "shop.report"
    with pytest.raises(ScheduleError, match="code declares it"):
        app.schedules.add("report", app.call("anything"), NIGHTLY)


@deep
def test_edits_and_fires_at_the_same_time_lose_nothing(url: str, app: Rowlock, db: Db) -> None:
    with deployed(url, report={"rule": timedelta(seconds=1), "overlap": "allow"}) as code, working(code):
        until(app.schedules.list, what="the schedule to be declared")
        edits = 0

        def edit_once_more() -> bool:
            nonlocal edits
            edits += 1
            assert app.schedules.edit("report", priority=edits % 9 - 4).priority == edits % 9 - 4
            return len(app.schedules.firings("report")) >= 4

        until(edit_once_more, what="four firings", limit=120)
        slots = [firing.slot for firing in app.schedules.firings("report") if firing.job is not None]

    jobs = one(db, "select count(*) from rowlock.firings where job is not null")
    made = (
        "select count(distinct id) from (select id from rowlock.jobs union all select id from rowlock.history) as made"
    )
    assert len(set(slots)) == len(slots)
    assert one(db, made) == jobs
    assert app.schedules.get("report").priority == edits % 9 - 4


# Between the lines


def events(db: Db) -> list[tuple[Any, ...]]:
    """What was done to schedules: kind, actor, schedule, why."""
    return db.execute(
        "select kind, actor, details ->> 'schedule', details ->> 'why' from rowlock.events order by at, id"
    ).fetchall()


def details_of(db: Db) -> list[tuple[Any, ...]]:
    return db.execute("select kind, details from rowlock.events order by at, id").fetchall()
