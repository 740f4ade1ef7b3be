"""Pause and resume: nothing of a paused queue or task starts, nothing else is held up, and nothing is forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from rowlock import Rowlock, RowlockError
from rowlock.errors import InvalidOption
from rowlock.model.outcome import Blocked
from rowlock.model.stats.stats import Count
from rowlock.store import pauses
from tests.engine import Engine
from tests.rows import Db, put_many, travel
from tests.waiting import auntil
from tests.worker.working import ended, one, work_off, work_until

HOUR = timedelta(hours=1)
# With a lease so short, upkeep comes round within a second.
SHORT = timedelta(seconds=3)

SET_ASIDE = "select count(*) from rowlock.jobs where state = 'waiting' and waits_for = 'pause'"


@pytest.fixture
def app(app: Rowlock) -> Rowlock:
    """An app with tasks to pause."""

    @app.task(name="mail")
    async def mail(n: int = 0) -> None: ...

    @app.task(name="other")
    async def other() -> None: ...

    @app.task(name="slow", queue="slow")
    async def slow() -> None: ...

    return app


def names(db: Db) -> list[str]:
    return sorted(row[0] for row in ended(db))


def events(app: Rowlock) -> list[tuple[str, str, dict[str, Any]]]:
    return [(event.kind, event.actor, dict(event.details)) for event in app.jobs.events()]


# Queues


def test_jobs_of_a_paused_queue_stay_where_they_are_until_it_is_resumed(app: Rowlock, db: Db) -> None:
    app.enqueue("slow")
    app.enqueue("other")
    app.queues.pause("slow")

    work_until(app, lambda: names(db) == ["other"], queues=["slow", "default"])
    meanwhile = one(db, "select (state, claims)::text from rowlock.jobs")
    resumed = app.queues.resume("slow")
    work_off(app, db, queues=["slow", "default"])

    assert meanwhile == "(ready,0)"
    assert resumed is True
    assert names(db) == ["other", "slow"]


def test_a_resumed_queue_wakes_its_parked_workers(app: Rowlock, db: Db) -> None:
    app.queues.pause("slow")
    db.execute("insert into rowlock.parked (queue, worker) values ('slow', gen_random_uuid())")
    channel = one(db, "select rowlock.channel('slow')")
    db.execute(f'listen "{channel}"'.encode())

    app.queues.resume("slow")

    assert [notice.payload for notice in db.notifies(timeout=10, stop_after=1)] == ["below"]


def test_a_paused_queue_goes_on_by_itself_when_its_time_is_over(app: Rowlock, db: Db) -> None:
    app.enqueue("slow")
    app.enqueue("other")
    app.queues.pause("slow", duration=HOUR)
    work_until(app, lambda: names(db) == ["other"], queues=["slow", "default"])

    travel(db, 2 * HOUR)
    work_off(app, db, queues=["slow", "default"])

    assert names(db) == ["other", "slow"]
    assert app.queues.pauses() == ()


# Tasks


def test_jobs_of_a_paused_task_are_set_aside_hold_nobody_up_and_run_when_it_is_resumed(app: Rowlock, db: Db) -> None:
    app.enqueue_many(app.call("mail", n) for n in range(200))
    app.enqueue("other")
    app.tasks.pause("mail")

    work_until(app, lambda: one(db, SET_ASIDE) == 200 and names(db) == ["other"], slots=5)
    reasons = db.execute("select distinct reason, failures from rowlock.jobs").fetchall()
    app.tasks.resume("mail")
    released = one(
        db, "select count(*) from rowlock.jobs where state = 'ready' and waits_for is null and reason is null"
    )
    work_off(app, db)

    assert reasons == [("task 'mail' is paused", 0)]
    assert released == 200
    assert names(db) == ["mail"] * 200 + ["other"]


def test_a_worker_at_work_takes_up_what_is_resumed(app: Rowlock, db: Db) -> None:
    async def work() -> None:
        async with app, app.worker(grace=HOUR):
            await app.aenqueue("mail")
            await auntil(lambda: one(db, SET_ASIDE) == 1)
            await app.tasks.aresume("mail")
            await auntil(lambda: names(db) == ["mail"])

    app.tasks.pause("mail")

    asyncio.run(work())

    assert one(db, "select claims from rowlock.history") == 2


def test_a_paused_task_goes_on_by_itself_when_its_time_is_over(app: Rowlock, db: Db) -> None:
    app.enqueue("mail")
    app.tasks.pause("mail", duration=HOUR, by="ada")
    work_until(app, lambda: one(db, SET_ASIDE) == 1)

    travel(db, 2 * HOUR)
    work_until(app, lambda: names(db) == ["mail"], lease=SHORT)

    assert one(db, "select count(*) from rowlock.pauses") == 0
    (kind, actor, details), paused = events(app)
    assert (kind, details["task"]) == ("pause_over", "mail")
    assert ":" in actor  # the worker: HOST:PID
    assert paused[:2] == ("paused", "ada")


def test_a_pause_that_lasts_is_left_alone_by_upkeep(app: Rowlock, db: Db) -> None:
    put_many(db, 1, "waiting")
    app.tasks.pause("t", duration=HOUR)
    app.tasks.pause("mail", duration=HOUR)
    app.queues.pause("slow")
    engine = Engine(db.info.dsn)

    stranded = engine.run(pauses.expire(actor="me"))
    released = engine.run(pauses.release("t"))

    engine.close()
    assert stranded == [None]
    assert released == [0]
    assert (len(app.queues.pauses()), len(app.tasks.pauses())) == (1, 2)


def test_a_job_that_is_set_aside_while_its_task_is_resumed_is_found_by_upkeep(app: Rowlock, db: Db) -> None:
    engine = Engine(db.info.dsn)
    app.enqueue("mail")
    app.tasks.pause("mail")
    (claimed,) = engine.claim()
    assert claimed.paused
    app.tasks.resume("mail")
    engine.give_back(claimed, outcome=Blocked("pause", "task 'mail' is paused"))
    engine.close()
    assert one(db, SET_ASIDE) == 1

    work_until(app, lambda: names(db) == ["mail"], lease=SHORT)

    assert one(db, SET_ASIDE) == 0


def test_jobs_set_aside_are_released_chunk_by_chunk(app: Rowlock, db: Db, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pauses, "CHUNK", 100)
    put_many(db, 1_050, "waiting")
    app.tasks.pause("t")

    app.tasks.resume("t")

    assert one(db, SET_ASIDE) == 0
    assert one(db, "select count(*) from rowlock.jobs where state = 'ready'") == 1_050


# What is known of them


def test_pauses_are_there_for_everybody_with_who_and_why(app: Rowlock, url: str) -> None:
    until = datetime.now(UTC) + HOUR

    made = app.queues.pause("slow", why="their host is down", by="ada", until=until)
    app.tasks.pause("mail")

    with Rowlock(url) as another:
        [queue], [task] = another.queues.pauses(), another.tasks.pauses()
    assert queue == made
    assert (queue.queue, queue.task, queue.why, queue.by, queue.until) == (
        "slow",
        None,
        "their host is down",
        "ada",
        until,
    )
    assert (task.queue, task.task, task.why, task.until) == (None, "mail", None, None)
    assert queue.to_dict()["until"] == until.isoformat()


def test_a_second_pause_replaces_the_first(app: Rowlock) -> None:
    app.queues.pause("slow", duration=HOUR, why="first")

    app.queues.pause("slow", why="second")

    [pause] = app.queues.pauses()
    assert (pause.why, pause.until) == ("second", None)


def test_resuming_what_is_not_paused_says_so_and_leaves_no_event(app: Rowlock) -> None:
    app.queues.pause("slow")

    assert app.queues.resume("other") is False
    assert app.tasks.resume("slow") is False
    assert app.queues.resume("slow") is True
    assert app.queues.resume("slow") is False
    assert [kind for kind, _, _ in events(app)] == ["resumed", "paused"]


def test_events_say_who_paused_and_resumed_and_why(app: Rowlock) -> None:
    app.tasks.pause("mail", by="ada", why="a bad release")
    app.tasks.resume("mail", by="bob", why="it was repaired")

    assert events(app) == [
        ("resumed", "bob", {"task": "mail", "why": "it was repaired"}),
        ("paused", "ada", {"task": "mail", "why": "a bad release"}),
    ]


@pytest.mark.parametrize("name", ["'; drop table rowlock.pauses; --", "%s", "$1", ":name", "é \\ \"'"])
def test_a_hostile_name_is_only_a_name(app: Rowlock, db: Db, name: str) -> None:
    app.queues.pause(name, why=name, by=name)
    app.tasks.pause(name)

    [queue], [task] = app.queues.pauses(), app.tasks.pauses()

    assert (queue.queue, queue.why, queue.by, task.task) == (name, name, name, name)
    assert app.queues.resume(name)
    assert app.tasks.resume(name)


@pytest.mark.parametrize(
    ("ask", "advice"),
    [
        (lambda app: app.queues.pause("a", until=datetime.now(UTC), duration=HOUR), "not both"),
        (lambda app: app.queues.pause("a", until=datetime(2030, 1, 1)), "no time zone"),  # noqa: DTZ001  wrong on purpose
        (lambda app: app.queues.pause("a", duration=timedelta(0)), "leave it out"),
        (lambda app: app.queues.pause("a", duration=-HOUR), "from zero"),
        (lambda app: app.queues.pause("a", duration=60), "must be a timedelta"),
        (lambda app: app.queues.pause("a*"), "contains"),
        (lambda app: app.tasks.pause(""), "use 1 to 200"),
        (lambda app: app.tasks.pause("t", why=""), "why"),
    ],
)
def test_a_pause_that_makes_no_sense_is_refused_with_what_to_do(ask: Callable[[Rowlock], object], advice: str) -> None:
    with pytest.raises(InvalidOption, match=advice):
        ask(Rowlock())


def test_queues_are_listed_by_name_paused_ones_too(app: Rowlock) -> None:
    app.enqueue("t")
    app.queues.pause("slow")

    queues = app.queues.list()

    assert list(queues) == ["default", "slow"]
    assert [(one.runnable, one.paused) for one in queues.values()] == [(Count(1), False), (Count(0), True)]


# Twins


def test_async_twins_do_the_same(app: Rowlock, db: Db) -> None:
    async def ask() -> list[Any]:
        async with app:
            made = await app.tasks.apause("t", duration=HOUR, by="ada", why="so")
            return [
                made,
                await app.tasks.apauses(),
                await app.tasks.aresume("t", by="bob"),
                await app.tasks.aresume("t"),
            ]

    put_many(db, 3, "waiting")

    made, listed, first, second = asyncio.run(ask())

    assert (listed, first, second) == ((made,), True, False)
    assert one(db, SET_ASIDE) == 0


@pytest.mark.parametrize(
    "ask", [lambda app: app.queues.pause("a"), lambda app: app.queues.resume("a"), lambda app: app.tasks.pauses()]
)
def test_a_sync_verb_refuses_to_block_an_event_loop(ask: Callable[[Rowlock], object]) -> None:
    async def inside() -> None:
        ask(Rowlock())

    with pytest.raises(RowlockError, match="use `await app"):
        asyncio.run(inside())


def test_an_app_that_only_reads_pauses_nothing(app: Rowlock) -> None:
    app.queues.pause("slow")
    app.tasks.pause("mail")
    reader = app.read_only(timeout=HOUR)

    listed = (reader.queues.pauses(), reader.tasks.pauses())

    assert [[pause.queue or pause.task for pause in pauses] for pauses in listed] == [["slow"], ["mail"]]
    for refused in (reader.queues.resume, reader.tasks.resume):
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            refused("slow")
