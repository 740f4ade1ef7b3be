"""Our own connections: few, lazy, safe over threads, loops and forks; after a broken one the job is sent again."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.rows import TupleRow

from rowlock import Rowlock, Task
from rowlock.db import pool
from rowlock.errors import SchemaMissing
from tests.db.wire import Wire
from tests.engine import Engine
from tests.waiting import until

Db = psycopg.Connection[TupleRow]
T = Task[[str], None]


@pytest.fixture
def wire(url: str) -> Iterator[Wire]:
    """A wire to this test's database."""
    with tempfile.TemporaryDirectory(prefix="rowlock-") as folder, Wire(url, Path(folder)) as wire:
        yield wire


@pytest.fixture
def task(app: Rowlock) -> T:
    return declared(app)


def declared(app: Rowlock) -> T:
    def note(text: str) -> None:
        return None

    return app.task(name="t")(note)


def jobs(db: Db) -> list[UUID]:
    return [job for (job,) in db.execute("select id from rowlock.jobs order by id")]


def sessions(db: Db) -> list[int]:
    """The sessions that our pools have open."""
    found = db.execute(
        "select pid from pg_stat_activity where application_name = 'rowlock' and datname = current_database()"
    )
    return [pid for (pid,) in found]


def break_sessions(db: Db) -> None:
    """End our sessions from the server's side, and see them gone."""
    for pid in sessions(db):
        db.execute("select pg_terminate_backend(%s)", [pid])
    until(lambda: not sessions(db), what="the end of our sessions")


# Lazy and few


def test_nothing_is_opened_before_the_first_use(app: Rowlock, task: T, db: Db) -> None:
    assert sessions(db) == []

    task.enqueue("a")

    assert len(sessions(db)) == 1


def test_one_caller_after_the_other_shares_a_connection(task: T, db: Db) -> None:
    for text in "abc":
        task.enqueue(text)

    assert len(sessions(db)) == 1
    assert len(jobs(db)) == 3


def test_a_connection_that_another_thread_takes_first_is_none() -> None:
    class TakenBetween(list[Any]):
        """Between the look, which says that there is one, and the taking, another thread has had its turn."""

        def __bool__(self) -> bool:
            return True

        def __len__(self) -> int:
            return 1

    assert pool.take_idle(TakenBetween()) is None


def test_many_threads_share_a_few_connections(task: T, db: Db) -> None:
    everybody = threading.Barrier(20, timeout=60)

    def enqueue_ten(name: str) -> list[UUID]:
        everybody.wait()
        return [task.enqueue(f"{name} {n}").id for n in range(10)]

    with ThreadPoolExecutor(20) as threads:
        ids = [job for made in threads.map(enqueue_ten, map(str, range(20))) for job in made]

    assert sorted(ids) == jobs(db)
    assert len(sessions(db)) <= 8


def test_many_async_callers_with_keys_share_a_few_connections(app: Rowlock, task: T, db: Db) -> None:
    async def enqueue_all() -> list[UUID]:
        async with app:
            made = await asyncio.gather(*(task.using(key=str(n)).aenqueue("x") for n in range(50)))
            assert len(sessions(db)) <= 8
            return [job.id for job in made]

    ids = asyncio.run(enqueue_all())

    assert sorted(ids) == jobs(db)


def test_closing_an_app_closes_its_connections_and_it_can_be_used_again(app: Rowlock, task: T, db: Db) -> None:
    task.enqueue("a")

    app.close()

    until(lambda: not sessions(db), what="the end of our sessions")
    task.enqueue("b")
    assert len(jobs(db)) == 2


def test_our_sessions_do_not_depend_on_the_settings_of_the_role(app: Rowlock, task: T, db: Db) -> None:
    name = db.info.dbname
    for setting in ("statement_timeout = 1", "default_transaction_read_only = off", "datestyle = 'SQL, DMY'"):
        db.execute(f"alter database {name} set {setting}")

    job = task.enqueue("a")
    many = app.enqueue_many([task.bind(str(n)) for n in range(600)])

    assert jobs(db) == [job.id, *(job.id for job in many)]


# Over event loops


def test_two_loops_one_after_the_other_both_enqueue(app: Rowlock, task: T, db: Db) -> None:
    async def enqueue(text: str) -> None:
        async with app:
            await task.aenqueue(text)
            await task.using(key=text).aenqueue(text)

    for text in "ab":
        asyncio.run(enqueue(text))

    assert len(jobs(db)) == 4


def test_a_loop_that_has_ended_takes_its_connections_along_without_a_warning(app: Rowlock, task: T, db: Db) -> None:
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for text in "ab":
            asyncio.run(task.aenqueue(text))
        gc.collect()

    assert len(jobs(db)) == 2
    assert [str(one.message) for one in warned] == []


def test_loops_in_two_threads_both_enqueue(app: Rowlock, task: T, db: Db) -> None:
    async def enqueue_ten(name: str) -> None:
        async with app:
            await asyncio.gather(*(task.aenqueue(f"{name} {n}") for n in range(10)))

    with ThreadPoolExecutor(2) as threads:
        for done in [threads.submit(asyncio.run, enqueue_ten(name)) for name in "ab"]:
            done.result()

    assert len(jobs(db)) == 20


def test_an_app_used_in_a_loop_can_be_used_outside_of_it_after(app: Rowlock, task: T, db: Db) -> None:
    async def enqueue() -> None:
        async with app:
            await task.aenqueue("in")

    asyncio.run(enqueue())
    task.enqueue("out")

    assert len(jobs(db)) == 2


# Over a fork

FORK = """
import asyncio, os, sys
from rowlock import Rowlock

app = Rowlock(sys.argv[1])

@app.task(name="t")
def note(text: str) -> None: ...

note.enqueue("before")
{before}
backend = app.database._pool._own.idle[0].info.backend_pid
child = os.fork()
if child:
    assert os.waitpid(child, 0)[1] == 0
    note.enqueue("parent")
    assert app.database._pool._own.idle[0].info.backend_pid == backend
    app.close()
else:
    {child}
"""


def forked(url: str, *, before: str = "", child: str) -> None:
    """Run a program of its own: a test process has threads, and Python warns of forking those."""
    program = FORK.format(before=before, child=child)
    done = subprocess.run([sys.executable, "-c", program, url], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_after_a_fork_the_child_enqueues_and_the_parents_connection_still_works(url: str, db: Db) -> None:
    forked(url, child='note.enqueue("child")')

    texts = db.execute("select args->>'text' from rowlock.jobs order by created_at")
    assert [text for (text,) in texts] == ["before", "child", "parent"]


@pytest.mark.parametrize("child", ["pass", "app.close()", "asyncio.run(app.aclose())"])
def test_after_a_fork_a_child_that_enqueues_nothing_does_no_harm(url: str, db: Db, child: str) -> None:
    forked(url, child=child)

    assert len(jobs(db)) == 2


def test_after_a_fork_the_child_may_have_a_loop(url: str, db: Db) -> None:
    run = 'asyncio.run(note.aenqueue("{}"))'

    forked(url, before=run.format("in a loop"), child=run.format("child"))

    texts = db.execute("select args->>'text' from rowlock.jobs order by created_at")
    assert [text for (text,) in texts] == ["before", "in a loop", "child", "parent"]


# Broken connections


def test_a_broken_connection_is_replaced(task: T, db: Db) -> None:
    task.enqueue("a")
    break_sessions(db)

    task.enqueue("b")

    assert len(jobs(db)) == 2


def test_broken_connections_of_a_loop_are_replaced(app: Rowlock, task: T, db: Db) -> None:
    async def enqueue() -> None:
        async with app:
            await asyncio.gather(*(task.using(key=str(n)).aenqueue("x") for n in range(8)))
            break_sessions(db)
            await asyncio.gather(*(task.using(key=str(n)).aenqueue("x") for n in range(8, 16)))
            break_sessions(db)
            await asyncio.gather(*(task.aenqueue("x") for _ in range(8)))

    asyncio.run(enqueue())

    assert len(jobs(db)) == 24


def test_a_job_whose_reply_was_lost_is_there_once(wire: Wire, db: Db) -> None:
    with Rowlock(wire.url) as app:
        task = declared(app)
        task.enqueue("before")

        wire.lose_next_reply()
        job = task.enqueue("lost")

    assert wire.lost == 1
    assert jobs(db)[1:] == [job.id]


def test_a_job_of_a_loop_whose_reply_was_lost_is_there_once(wire: Wire, db: Db) -> None:
    async def enqueue() -> UUID:
        async with Rowlock(wire.url) as app:
            task = declared(app)
            await task.aenqueue("before")
            wire.lose_next_reply()
            return (await task.aenqueue("lost")).id

    job = asyncio.run(enqueue())

    assert wire.lost == 1
    assert jobs(db)[1:] == [job]


def test_a_job_whose_reply_was_lost_and_that_has_ended_does_not_run_again(wire: Wire, url: str, db: Db) -> None:
    with Rowlock(wire.url) as app:
        task = declared(app)
        task.using(queue="other").enqueue("before")

        wire.lose_next_reply(meanwhile=lambda: end_everything(url))
        job = task.enqueue("lost")

    assert jobs(db)[1:] == []
    assert db.execute("select id from rowlock.history").fetchall() == [(job.id,)]


def test_the_key_of_a_job_whose_reply_was_lost_and_that_has_ended_is_free(wire: Wire, url: str, db: Db) -> None:
    with Rowlock(wire.url) as app:
        task = declared(app)
        task.using(queue="other", key="b").enqueue("before")  # the statement for keys is prepared: one reply, not two
        wire.lose_next_reply(meanwhile=lambda: end_everything(url))
        first = task.using(key="k").enqueue("lost")

        second = task.using(key="k").enqueue("next")

    assert db.execute("select id from rowlock.history").fetchall() == [(first.id,)]
    assert second.created
    assert jobs(db)[1:] == [second.id]


def test_a_bulk_whose_reply_was_lost_is_there_once(wire: Wire, db: Db) -> None:
    with Rowlock(wire.url) as app:
        task = declared(app)
        task.enqueue("before")

        wire.lose_next_reply()
        made = app.enqueue_many([task.bind(str(n)) for n in range(1000)])

    assert jobs(db)[1:] == [job.id for job in made]


def end_everything(url: str) -> None:
    """Claim and settle what is in the queue `default`, as a worker would."""
    engine = Engine(url)
    engine.settle(*engine.claim())
    engine.close()


# Databases that are not there


def test_a_database_that_cannot_be_reached_is_an_error_of_the_drivers() -> None:
    app = Rowlock("postgresql:///nothing?host=/nowhere&port=1")

    with pytest.raises(psycopg.OperationalError):
        declared(app).enqueue("a")


def test_a_database_without_our_schema_is_refused_with_what_to_do(database_url: str) -> None:
    with Rowlock(database_url) as app, pytest.raises(SchemaMissing, match="run: rowlock migrate"):
        declared(app).enqueue("a")


def test_a_database_without_our_schema_is_refused_in_a_loop_too(database_url: str) -> None:
    async def enqueue() -> None:
        async with Rowlock(database_url) as app:
            with pytest.raises(SchemaMissing, match="run: rowlock migrate"):
                await declared(app).aenqueue("a")

    asyncio.run(enqueue())
