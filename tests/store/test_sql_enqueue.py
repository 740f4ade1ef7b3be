"""rowlock.enqueue(): the door for other languages, triggers and psql."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import psycopg
import pytest

from rowlock import Rowlock
from tests.rows import travel
from tests.waiting import auntil
from tests.worker.working import Db, ended, one, work_off


def test_a_job_enqueued_in_sql_runs_like_any_other(app: Rowlock, db: Db) -> None:
    @app.task(name="add")
    async def add(a: int, b: int) -> int:
        return a + b

    job_id = one(db, """select rowlock.enqueue('add', '{"a": 1, "b": 2}')""")
    work_off(app, db)

    assert db.execute("select id, state, result from rowlock.history").fetchall() == [(job_id, "succeeded", 3)]
    assert job_id.version == 7


def test_every_option_lands_in_its_column(db: Db) -> None:
    db.execute(
        """select rowlock.enqueue('t', queue => 'q', priority => 2, delay => '1 hour', key => 'k', tags => '{a,b}',
            attempts => 3, expires => '2 hours')"""
    )

    row = db.execute(
        """select queue, priority, run_at - created_at = '1 hour', key, tags, attempts,
            expires_at - run_at = '2 hours'
        from rowlock.jobs"""
    ).fetchone()
    assert row == ("q", 2, True, "k", ["a", "b"], 3, True)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ('["a"]', "must be a JSON object"),
        ('{"a": "\\u0000"}', "what JSON cannot carry"),
        ('{"a": "\\ud800"}', "what JSON cannot carry"),
        ('{"a": "' + "x" * 1_100_000 + '"}', "1 MiB is the limit"),
    ],
    ids=["no object", "NUL", "lone surrogate", "too large"],
)
def test_arguments_that_no_handler_could_be_given_are_refused(db: Db, args: str, words: str) -> None:
    with pytest.raises(psycopg.Error, match=words):
        db.execute("select rowlock.enqueue('t', %s)", [args])


@pytest.mark.parametrize(
    ("tags", "words"),
    [
        ("array['a', null]", r"tags hold a null; leave it out: array_remove\(tags, null\)"),
        ("array[['a'], ['b']]", "tags is an array of arrays"),
    ],
)
def test_tags_that_are_no_list_of_words_are_refused_also_in_a_row_of_ones_own(db: Db, tags: str, words: str) -> None:
    columns = "(id, queue, task, attempts, run_at, created_at, args, tags)"
    row = f"insert into rowlock.jobs {columns} values (rowlock.uuid7(), 'q', 't', 1, now(), now(), '{{}}', {tags})"

    with pytest.raises(psycopg.errors.InvalidParameterValue, match=words):
        db.execute(f"select rowlock.enqueue('t', tags => {tags})".encode())
    with pytest.raises(psycopg.Error, match=r"tags_are_a_list_without_null|multidimensional"):
        db.execute(row.encode())
    assert one(db, "select rowlock.enqueue('t', tags => '{}')")


def test_a_held_key_gives_the_job_that_holds_it_and_another_task_is_told(db: Db) -> None:
    first = one(db, "select rowlock.enqueue('t', key => 'k')")

    assert one(db, "select rowlock.enqueue('t', key => 'k')") == first
    with pytest.raises(psycopg.errors.UniqueViolation, match=r"belongs to job .* of task t"):
        db.execute("select rowlock.enqueue('other', key => 'k')")


def test_a_rolled_back_transaction_leaves_no_job(db: Db) -> None:
    with db.transaction(force_rollback=True):
        db.execute("select rowlock.enqueue('t', key => 'k')")

    assert one(db, "select (select count(*) from rowlock.jobs) + (select count(*) from rowlock.keys)") == 0


def test_a_parked_worker_is_woken(app: Rowlock, db: Db) -> None:
    @app.task(name="quick")
    async def quick() -> None: ...

    async def work() -> None:
        async with app, app.worker():
            await auntil(lambda: one(db, "select exists (select from rowlock.parked)"))
            db.execute("select rowlock.enqueue('quick')")
            await auntil(lambda: ended(db))

    asyncio.run(work())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("taken => 'drop', key => 'k'", "say return, skip, raise, replace or debounce"),
        ("taken => null, key => 'k'", "taken is null"),
        ("taken => 'skip'", "give a key"),
        ("period => '1 hour'", "give a key"),
        ("period => '0', key => 'k'", "more than 0"),
        ("period => '401 days', key => 'k'", "up to 400 days"),
        ("period => '1 hour', taken => 'replace', key => 'k'", "cannot be taken => 'replace'"),
        ("taken => 'debounce', key => 'k', delay => '1 s'", "at_most goes with"),
        ("taken => 'replace', key => 'k', at_most => '1 s'", "at_most goes with"),
        ("taken => 'debounce', key => 'k', at_most => '1 s'", "give a delay or run_at"),
        ("taken => 'debounce', key => 'k', at_most => '0', delay => '1 s'", "say more than 0"),
    ],
)
def test_a_key_that_makes_no_sense_is_refused(db: Db, options: str, words: str) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue, match=words):
        db.execute(f"select rowlock.enqueue('t', {options})".encode())


def test_a_taken_key_means_what_is_said(db: Db) -> None:
    first = one(db, "select rowlock.enqueue('t', '{\"n\": 1}', key => 'k', delay => '10 min')")

    answers = [
        one(db, f"select rowlock.enqueue({call})")
        for call in (
            "'t', '{\"n\": 2}', key => 'k', taken => 'return'",
            "'other', '{\"n\": 3}', key => 'k', taken => 'skip'",
            "'t', '{\"n\": 4}', key => 'k', taken => 'replace', priority => 3",
            "'t', '{\"n\": 5}', key => 'k', taken => 'debounce', delay => '20 min', at_most => '15 min'",
        )
    ]

    facts = "select args ->> 'n', priority, run_at - created_at = '15 min' from rowlock.jobs"
    assert answers == [first] * 4
    assert db.execute(facts.encode()).fetchall() == [("5", 3, True)]
    for call in ("'t', key => 'k', taken => 'raise'", "'other', key => 'k', taken => 'replace'"):
        with pytest.raises(psycopg.errors.UniqueViolation, match=f"belongs to job {first} of task t"):
            db.execute(f"select rowlock.enqueue({call})".encode())


def test_a_key_is_held_for_its_period(app: Rowlock, db: Db) -> None:
    @app.task(name="quick")
    async def quick() -> None: ...

    hourly = "select rowlock.enqueue('quick', key => 'k', period => '1 hour')"
    first = one(db, hourly)
    work_off(app, db)

    assert one(db, hourly) == first
    travel(db, timedelta(hours=1))
    assert one(db, hourly) != first
