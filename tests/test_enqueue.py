"""Enqueue: what a call says lands in its row, what it must not say is refused, and bulk is the same in large."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.rows import TupleRow, dict_row

from rowlock import Call, Job, Retry, Rowlock, RowlockError, Task
from rowlock.errors import InvalidArguments, InvalidOption
from rowlock.store.enqueue import LOAD_FROM
from tests.depth import deep

Db = psycopg.Connection[TupleRow]
T = Task[[str], None]
Row = dict[str, Any]

MINUTE = timedelta(minutes=1)
NOWHERE = "postgresql:///nothing?host=/nowhere&port=1"
NASTY = [
    "plain",
    "back\\slash",
    "\\",
    "\\N",
    "\\.",
    "tab\there",
    "line\nbreak\r\n",
    "quote \" and ' and `",
    '{"a": [1, 2]}',
    "{null,NULL}",
    "ünïcödé 漢字 🚣",
    "\u2028\x7f\x1b[31m",
    "$1 %s %(x)s {} :name",
    "",
]


@pytest.fixture
def task(app: Rowlock) -> T:
    return declared(app)


def declared(app: Rowlock, **options: Any) -> T:  # noqa: ANN401
    def note(text: str) -> None:
        return None

    found: T = app.task(name=options.pop("name", "t"), **options)(note)
    return found


def rows(db: Db) -> list[Row]:
    with db.cursor(row_factory=dict_row) as cursor:
        return cursor.execute("select *, args::text as raw from rowlock.jobs order by id").fetchall()


def row_of(db: Db, job: Job[Any]) -> Row:
    [row] = [row for row in rows(db) if row["id"] == job.id]
    return row


# The ways into the table: a statement for one, one for a few, COPY from so many on. Each answers the first call's row.
def by_statement(app: Rowlock, call: Call[None], db: Db) -> Row:
    return row_of(db, call.enqueue())


def by_array(app: Rowlock, call: Call[None], db: Db) -> Row:
    return row_of(db, app.enqueue_many([call] * 2)[0])


def by_copy(app: Rowlock, call: Call[None], db: Db) -> Row:
    return row_of(db, app.enqueue_many([call] * LOAD_FROM)[0])


def by_the_loop(app: Rowlock, call: Call[None], db: Db) -> Row:
    async def enqueue() -> Job[None]:
        async with app:
            return await call.aenqueue()

    return row_of(db, asyncio.run(enqueue()))


each_way = pytest.mark.parametrize("way", [by_statement, by_array, by_copy, by_the_loop])
Way = Callable[[Rowlock, Call[None], Db], Row]


# What lands in the row


@each_way
def test_a_job_starts_ready_due_and_untried(app: Rowlock, task: T, db: Db, way: Way) -> None:
    row = way(app, task.bind("a"), db)

    facts = {name: row[name] for name in ("state", "queue", "task", "priority", "attempts", "args")}
    assert facts == {
        "state": "ready", "queue": "default", "task": "t", "priority": 0, "attempts": 10, "args": {"text": "a"}
    }  # fmt: skip
    assert (row["failures"], row["crashes"], row["claims"]) == (0, 0, 0)
    assert row["run_at"] == row["created_at"] <= datetime.now(UTC)
    absent = ("started_at", "expires_at", "token", "worker", "key", "tags", "waits_for", "reason", "errors")
    assert {row[name] for name in absent} == {None}


@each_way
def test_the_options_of_a_call_land_in_its_row(app: Rowlock, task: T, db: Db, way: Way) -> None:
    tags = ['with "quotes"', "back\\slash", "comma, brace}", "null", "漢字"]
    call = task.using(queue="queue \\ 'two'", priority=-4, attempts=3, tags=tags, expires=MINUTE, delay=3 * MINUTE)

    row = way(app, call.bind("a"), db)

    assert (row["queue"], row["priority"], row["attempts"]) == ("queue \\ 'two'", -4, 3)
    assert row["tags"] == tags
    assert row["run_at"] - row["created_at"] == 3 * MINUTE
    assert row["expires_at"] - row["run_at"] == MINUTE


@each_way
def test_run_at_lands_to_the_microsecond_in_any_zone(app: Rowlock, task: T, db: Db, way: Way) -> None:
    moment = datetime(2099, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)

    row = way(app, task.using(run_at=moment).bind("a"), db)

    assert row["run_at"] == moment


@each_way
def test_run_at_in_the_past_becomes_now(app: Rowlock, task: T, db: Db, way: Way) -> None:
    row = way(app, task.using(run_at=datetime(2001, 1, 1, tzinfo=UTC)).bind("a"), db)

    assert row["run_at"] == row["created_at"]


def test_a_key_lands_in_its_row(task: T, db: Db) -> None:
    job = task.using(key="order:1 'ü' \\").enqueue("a")

    assert row_of(db, job)["key"] == "order:1 'ü' \\"
    assert db.execute("select key, task, job from rowlock.keys").fetchall() == [("order:1 'ü' \\", "t", job.id)]


def test_a_call_wins_over_its_task_and_its_task_over_the_defaults(app: Rowlock, db: Db) -> None:
    task = declared(app, queue="mail", priority=2, retry=Retry(attempts=5))

    declared_so = row_of(db, task.enqueue("a"))
    called_so = row_of(db, task.using(queue="fast", priority=0, attempts=1).enqueue("a"))

    assert (declared_so["queue"], declared_so["priority"], declared_so["attempts"]) == ("mail", 2, 5)
    assert (called_so["queue"], called_so["priority"], called_so["attempts"]) == ("fast", 0, 1)


def test_a_handle_says_what_it_stands_for(task: T, db: Db) -> None:
    job = task.using(queue="mail").enqueue("a")

    assert (job.task, job.queue, job.created) == ("t", "mail", True)
    assert job.id == rows(db)[0]["id"]
    assert job.id.version == 7
    assert repr(job) == f"<Job {job.id} of t on mail>"
    assert {job, job} == {job}
    assert job != task.enqueue("a")


def test_ids_increase_in_the_order_of_the_calls(app: Rowlock, task: T) -> None:
    ids = [task.enqueue("a").id, *(job.id for job in app.enqueue_many([task.bind("b")] * 600)), task.enqueue("c").id]

    assert ids == sorted(set(ids))


def test_a_bound_call_can_be_enqueued_twice_as_two_jobs(task: T, db: Db) -> None:
    call = task.bind("a")

    assert call.enqueue() != call.enqueue()
    assert len(rows(db)) == 2


def test_calling_a_task_runs_it_here_and_now(app: Rowlock, db: Db) -> None:
    double = app.task(name="double")(lambda number: number * 2)

    assert double(21) == 42
    assert rows(db) == []


# What is refused, before any SQL


@pytest.mark.parametrize(
    "options",
    [
        {"queue": ""},
        {"queue": "a\nb"},
        {"queue": "a,b"},
        {"queue": "q" * 201},
        {"priority": 5},
        {"priority": -5},
        {"priority": True},
        {"priority": 1.0},
        {"run_at": datetime(2030, 1, 1)},  # noqa: DTZ001  that is the fault
        {"run_at": "2030-01-01"},
        {"run_at": datetime.max.replace(tzinfo=UTC)},
        {"delay": -MINUTE},
        {"delay": 60},
        {"run_at": datetime(2030, 1, 1, tzinfo=UTC), "delay": MINUTE},
        {"key": ""},
        {"key": "a\x00b"},
        {"key": "k" * 501},
        {"key": "\ud800"},
        {"key": 5},
        {"tags": [""]},
        {"tags": ["a\tb"]},
        {"tags": ["a"] * 21},
        {"tags": [5]},
        {"tags": "urgent"},
        {"attempts": 0},
        {"attempts": -1},
        {"attempts": 2.0},
        {"attempts": 10**10},
        {"expires": -MINUTE},
        {"expires": timedelta(0)},
        {"expires": 60},
    ],
    ids=str,
)
def test_an_option_that_makes_no_sense_is_refused_before_any_sql(options: dict[str, Any]) -> None:
    task = declared(Rowlock(NOWHERE))

    with pytest.raises(InvalidOption):
        task.using(**options).enqueue("a")


@each_way
@pytest.mark.parametrize("option", ["delay", "expires"])
def test_a_time_too_far_away_is_refused_or_means_a_century(
    app: Rowlock, task: T, db: Db, way: Way, option: str
) -> None:
    try:
        call = task.using(**{option: timedelta.max}).bind("a")  # type: ignore[arg-type]
    except InvalidOption:
        return

    row = way(app, call, db)

    assert (row["run_at"] if option == "delay" else row["expires_at"]).year - row["created_at"].year == 100


def test_an_argument_that_does_not_fit_is_refused_before_any_sql() -> None:
    task = declared(Rowlock(NOWHERE))

    for wrong in (5, None, "a\x00b", "\ud800"):
        with pytest.raises(InvalidArguments):
            task.enqueue(wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidArguments):
        task.enqueue()  # type: ignore[call-arg]


def test_sync_enqueue_inside_a_running_loop_is_refused_naming_aenqueue(app: Rowlock, task: T, db: Db) -> None:
    async def inside() -> None:
        with pytest.raises(RowlockError, match=r"use `await task\.aenqueue"):
            task.enqueue("a")
        with pytest.raises(RowlockError, match="aenqueue"):
            app.enqueue_many([task.bind("a")])

    asyncio.run(inside())

    assert rows(db) == []


# In bulk


def test_a_bulk_of_nothing_is_nothing(app: Rowlock, db: Db) -> None:
    calls: list[Call[None]] = []

    async def enqueue() -> list[Job[None]]:
        async with app:
            return await app.aenqueue_many(calls)

    assert app.enqueue_many(calls) == []
    assert asyncio.run(enqueue()) == []


@deep
def test_a_hundred_thousand_jobs_in_one_call(app: Rowlock, task: T, db: Db) -> None:
    texts = [f"{n} {NASTY[n % len(NASTY)]}" for n in range(100_000)]

    made = app.enqueue_many(task.bind(text) for text in texts)

    stored = db.execute("select id, args ->> 'text' from rowlock.jobs order by id").fetchall()
    assert stored == [(job.id, text) for job, text in zip(made, texts, strict=True)]


def test_a_hundred_thousand_jobs_are_all_there_or_none(app: Rowlock, task: T, db: Db) -> None:
    db.execute("alter table rowlock.jobs add check (args ->> 'text' <> 'the last')")

    with pytest.raises(psycopg.errors.CheckViolation):
        app.enqueue_many([*[task.bind("x")] * 5000, task.bind("the last")])

    assert rows(db) == []


def test_a_few_jobs_with_large_arguments_are_all_there_or_none(app: Rowlock, task: T, db: Db) -> None:
    db.execute("alter table rowlock.jobs add check (args ->> 'text' <> 'the last')")

    with pytest.raises(psycopg.errors.CheckViolation):
        app.enqueue_many([*[task.bind("x" * 1_000_000)] * 10, task.bind("the last")])

    assert rows(db) == []


def test_arguments_are_the_same_by_statement_and_by_copy(app: Rowlock, task: T, db: Db) -> None:
    few = [task.bind(text) for text in NASTY]
    filler = [task.using(queue="filler").bind("x")] * LOAD_FROM

    one_by_one = [call.enqueue() for call in few]
    together = app.enqueue_many(few)
    by_copy = app.enqueue_many([*few, *filler])[: len(few)]

    raw = {row["id"]: row["raw"] for row in rows(db)}
    text = {row["id"]: row["args"]["text"] for row in rows(db)}
    assert [raw[job.id] for job in one_by_one] == [raw[job.id] for job in together]
    assert [raw[job.id] for job in one_by_one] == [raw[job.id] for job in by_copy]
    assert [text[job.id] for job in by_copy] == NASTY


def test_a_bulk_may_mix_tasks_queues_and_options(app: Rowlock, task: T, db: Db) -> None:
    other = declared(app, name="other", queue="mail")
    calls = [task.bind("a"), other.bind("b"), task.using(priority=4).bind("c"), other.using(delay=MINUTE).bind("d")]

    app.enqueue_many(calls * 200)

    facts = {(row["task"], row["queue"], row["priority"], row["args"]["text"]) for row in rows(db)}
    assert facts == {
        ("t", "default", 0, "a"),
        ("other", "mail", 0, "b"),
        ("t", "default", 4, "c"),
        ("other", "mail", 0, "d"),
    }


def test_an_async_bulk_is_the_same(app: Rowlock, task: T, db: Db) -> None:
    async def enqueue() -> list[UUID]:
        async with app:
            few = await app.aenqueue_many([task.bind(text) for text in NASTY])
            many = await app.aenqueue_many([task.bind(text) for text in NASTY * 50])
            return [job.id for job in [*few, *many]]

    ids = asyncio.run(enqueue())

    assert [row["id"] for row in rows(db)] == ids
    assert [row["args"]["text"] for row in rows(db)] == NASTY * 51
