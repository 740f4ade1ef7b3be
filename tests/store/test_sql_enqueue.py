"""rowlock.enqueue(): the door for other languages, triggers and psql."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from rowlock import Rowlock
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
            expires_at - created_at = '2 hours'
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
