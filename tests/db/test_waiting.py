"""The waiting room: one connection for all who wait, told by push, bounded by the poll, safe over whatever happens."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from rowlock import Rowlock, Task
from rowlock.db.results import ResultWaiters
from rowlock.db.thread_connection import ReconnectingSyncConnection
from rowlock.errors import NotConfigured, SchemaMissing
from rowlock.model.outcome import Succeeded
from rowlock.model.row import ClaimedJob, JobEnd
from rowlock.store import jobs
from rowlock.store import settle as settle_store
from rowlock.store.query import Query
from rowlock.worker import upkeep
from tests.engine import Engine
from tests.waiting import auntil, until
from tests.worker.working import Db, one, working

NEVER = timedelta(hours=1)
SOON = 30.0

LISTENERS = "select count(*) from pg_stat_activity where application_name = 'rowlock results'"
LISTENER = "select pid from pg_stat_activity where application_name = 'rowlock results'"
ENTERED = "select count(*) from rowlock.waiters"
KILL = "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'rowlock results'"


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    engine = Engine(url)
    yield engine
    engine.close()


@pytest.fixture
def room(app: Rowlock) -> Iterator[ResultWaiters]:
    """A room that looks once and then only hears."""
    room = ResultWaiters(app.database, looks=(), poll=NEVER)
    yield room
    room.close()


@pytest.fixture
def double(app: Rowlock) -> Task[[int], int]:
    @app.task(name="double")
    async def double(n: int) -> int:
        return 2 * n

    return double


def claimed(engine: Engine) -> ClaimedJob:
    """A job that runs."""
    engine.enqueue()
    return engine.claim()[0]


def entered(room: ResultWaiters, job_id: str) -> Future[JobEnd]:
    """Somebody who waits, and whose job has been looked for."""
    end = room.enter(job_id)
    until(lambda: job_id in room._seen)
    return end


# Being told


def test_the_end_of_a_job_is_told_by_push(room: ResultWaiters, engine: Engine) -> None:
    row = claimed(engine)
    end = entered(room, row.id)

    engine.settle(row, outcome=Succeeded("7"))

    assert end.result(SOON) == JobEnd(row.id, "succeeded", None, 0, "7", None, seen=True)


def test_the_end_of_a_job_is_found_by_the_poll_when_nobody_told(app: Rowlock, engine: Engine, db: Db) -> None:
    room = ResultWaiters(app.database, looks=(), poll=timedelta(milliseconds=50))
    row = claimed(engine)
    end = entered(room, row.id)
    db.execute("delete from rowlock.waiters")

    engine.settle(row)

    assert end.result(SOON).state == "succeeded"
    room.close()


def test_a_settle_that_did_not_see_the_waiter_is_found_by_looking_again(app: Rowlock, engine: Engine) -> None:
    room = ResultWaiters(app.database, looks=[timedelta(milliseconds=20)] * 1000, poll=NEVER)
    row = claimed(engine)

    with engine.connection.transaction():
        engine.settle(row)
        end = entered(room, row.id)

    assert end.result(SOON).state == "succeeded"
    room.close()


def test_a_settle_notifies_where_somebody_waits_and_nowhere_else(engine: Engine, url: str) -> None:
    listener = str(uuid4())
    engine.enqueue(3)
    awaited, *others = engine.claim()
    engine.run(jobs.add_waiters(listener=listener, jobs=[awaited.id]))

    with psycopg.connect(url, autocommit=True) as listening:
        listening.execute(f'listen "{jobs.channel(listener)}"'.encode())
        told = [told_by_settling(engine, others[0]), told_by_settling(engine, awaited, others[1])]
        listening.execute("select pg_notify(%s, 'the last')", [jobs.channel(listener)])
        heard = [notify.payload for notify in listening.notifies(stop_after=2)]

    assert told == [0, 1]
    assert heard == ["", "the last"]


def told_by_settling(engine: Engine, *rows: ClaimedJob) -> int:
    settle = settle_store.settle_jobs([(row, Succeeded(None), timedelta(days=1)) for row in rows])
    query: Query[int] = Query(settle.name, settle.params, lambda row: row[-1])
    return engine.run(query)[0]


# Coming and going


def test_who_waits_is_entered_and_who_was_told_is_forgotten(room: ResultWaiters, engine: Engine, db: Db) -> None:
    row = claimed(engine)
    end = entered(room, row.id)
    before = one(db, ENTERED)

    engine.settle(row)
    end.result(SOON)

    assert before == 1
    until(lambda: one(db, ENTERED) == 0)
    assert room.is_empty


def test_who_waits_no_longer_is_forgotten(room: ResultWaiters, engine: Engine, db: Db) -> None:
    end = entered(room, claimed(engine).id)

    end.cancel()

    until(lambda: one(db, ENTERED) == 0)
    assert room.is_empty


def test_a_cancelled_task_that_waited_is_forgotten(app: Rowlock, double: Task[[int], int], db: Db) -> None:
    async def give_up() -> None:
        job = await double.aenqueue(1)
        waiting = asyncio.create_task(job.aresult())
        await auntil(lambda: one(db, ENTERED) == 1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(give_up())

    until(lambda: one(db, ENTERED) == 0)
    assert app.waiting_room.is_empty


def test_those_who_wait_for_one_job_share_and_one_who_leaves_takes_nobody_along(
    room: ResultWaiters, engine: Engine, db: Db
) -> None:
    row = claimed(engine)
    ends = [entered(room, row.id) for _ in range(3)]
    entries = one(db, ENTERED)

    ends[0].cancel()
    engine.settle(row)

    assert entries == 1
    assert [end.result(SOON).state for end in ends[1:]] == ["succeeded", "succeeded"]


def test_a_job_can_be_waited_for_again_after_it_was_retried(room: ResultWaiters, engine: Engine, db: Db) -> None:
    row = claimed(engine)
    first = entered(room, row.id)
    engine.settle(row)
    first.result(SOON)
    db.execute("delete from rowlock.history")
    db.execute(
        "insert into rowlock.jobs (id, queue, task, attempts, run_at, created_at, args)"
        " select %s, 'default', 't', 1, rowlock.now(), rowlock.now(), '{}'",
        [row.id],
    )

    end = entered(room, row.id)
    engine.settle(*engine.claim(), outcome=Succeeded("2"))

    assert end.result(SOON).result == "2"


def test_the_listener_goes_when_nobody_has_waited_for_a_while_and_comes_back(
    app: Rowlock, engine: Engine, db: Db
) -> None:
    room = ResultWaiters(app.database, linger=timedelta(0))
    row = claimed(engine)
    end = entered(room, row.id)
    engine.settle(row)
    end.result(SOON)

    until(lambda: one(db, LISTENERS) == 0)
    row = claimed(engine)
    end = entered(room, row.id)
    engine.settle(row)

    assert end.result(SOON).state == "succeeded"
    until(lambda: one(db, LISTENERS) == 0)


def test_closing_the_app_lets_the_listener_go(app: Rowlock, double: Task[[int], int], db: Db) -> None:
    job = double.enqueue(1)
    with working(app):
        job.result()
    before = one(db, LISTENERS)

    app.close()

    assert before == 1
    until(lambda: one(db, LISTENERS) == 0)
    assert "rowlock-results" not in {thread.name for thread in threading.enumerate()}


def test_closing_the_app_disturbs_nobody_who_waits(app: Rowlock, double: Task[[int], int], db: Db) -> None:
    job = double.enqueue(1)

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(job.result)
        until(lambda: one(db, ENTERED) == 1)
        app.close()
        with working(app):
            assert waiting.result() == 2

    until(lambda: one(db, LISTENERS) == 0)


# Many


def test_a_thousand_tasks_wait_over_one_connection(app: Rowlock, double: Task[[int], int], db: Db) -> None:
    async def wait_for_all() -> list[int]:
        handles = await app.aenqueue_many(double.bind(n) for n in range(1000))
        waiting = asyncio.gather(*(job.aresult() for job in handles))
        await auntil(lambda: one(db, ENTERED) == 1000)
        assert one(db, LISTENERS) == 1
        async with app.worker():
            return await waiting

    assert asyncio.run(wait_for_all()) == [2 * n for n in range(1000)]


def test_fifty_threads_wait_over_one_connection(app: Rowlock, double: Task[[int], int], db: Db) -> None:
    handles = app.enqueue_many(double.bind(n) for n in range(50))

    with ThreadPoolExecutor(50) as pool:
        waiting = pool.map(lambda job: job.result(), handles)
        until(lambda: one(db, ENTERED) == 50)
        listeners = one(db, LISTENERS)
        with working(app):
            assert list(waiting) == [2 * n for n in range(50)]

    assert listeners == 1


def test_threads_and_two_event_loops_wait_in_the_same_room(app: Rowlock, double: Task[[int], int], db: Db) -> None:
    handles = app.enqueue_many(double.bind(n) for n in range(3))

    with ThreadPoolExecutor(3) as pool:
        waiting: list[Future[Any]] = [
            pool.submit(handles[0].result),
            pool.submit(lambda: asyncio.run(handles[1].aresult())),
            pool.submit(lambda: asyncio.run(handles[2].aresult())),
        ]
        until(lambda: one(db, ENTERED) == 3)
        listeners = one(db, LISTENERS)
        with working(app):
            assert [wait.result() for wait in waiting] == [0, 2, 4]

    assert listeners == 1


def test_one_event_loop_after_another_waits(app: Rowlock, double: Task[[int], int]) -> None:
    async def once(n: int) -> int:
        return await (await double.aenqueue(n)).aresult()

    with working(app):
        assert [asyncio.run(once(n)) for n in range(2)] == [0, 2]


# Trouble


def test_who_waits_outlives_the_death_of_the_listening_connection(room: ResultWaiters, engine: Engine, db: Db) -> None:
    row = claimed(engine)
    end = entered(room, row.id)
    dead = one(db, LISTENER)

    db.execute("delete from rowlock.waiters")  # as after a crash of the server
    db.execute(KILL)
    until(lambda: db.execute(LISTENER).fetchall() not in ([], [(dead,)]))
    until(lambda: one(db, ENTERED) == 1)
    engine.settle(row)

    assert end.result(SOON).state == "succeeded"


def test_a_listener_that_nobody_needs_does_not_come_back_when_its_connection_dies(
    room: ResultWaiters, engine: Engine, db: Db, caplog: pytest.LogCaptureFixture
) -> None:
    row = claimed(engine)
    end = entered(room, row.id)
    engine.settle(row)
    end.result(SOON)
    until(lambda: one(db, ENTERED) == 0)

    db.execute(KILL)
    until(lambda: room._listener is None)

    assert one(db, LISTENERS) == 0
    assert caplog.messages == []


def test_a_job_that_ends_while_nobody_listens_is_found_afterwards(room: ResultWaiters, engine: Engine, db: Db) -> None:
    row = claimed(engine)
    end = entered(room, row.id)

    with engine.connection.transaction():
        engine.settle(row)
        db.execute(KILL)

    assert end.result(SOON).state == "succeeded"


def test_where_there_is_no_schema_whoever_waits_is_told(database_url: str) -> None:
    with Rowlock(database_url) as app, pytest.raises(SchemaMissing, match="rowlock migrate"):
        app.waiting_room.enter(str(uuid4())).result(SOON)


def test_where_there_is_no_database_whoever_waits_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROWLOCK_URL", raising=False)
    monkeypatch.delenv("DATABASE_URL", raising=False)

    with Rowlock() as app, pytest.raises(NotConfigured):
        app.waiting_room.enter(str(uuid4())).result(SOON)


# Processes


PROGRAM = """
import os, sys, threading
from datetime import timedelta
from rowlock import Rowlock
from rowlock.errors import ResultTimeout

app = Rowlock(sys.argv[1])
job = app.enqueue("t")

def entered():
    while str(job.id) not in app.waiting_room._seen:
        threading.Event().wait(0.005)
"""

WAIT_AND_EXIT = """
try:
    job.result(timedelta(milliseconds=1))
except ResultTimeout:
    pass
"""

EXIT_WHILE_A_THREAD_WAITS = """
threading.Thread(target=job.result, daemon=True).start()
entered()
"""

FORK = """
answers = []
waiting = threading.Thread(target=lambda: answers.append(job.result()))
waiting.start()
entered()
child = os.fork()
if child:
    assert os.waitpid(child, 0)[1] == 0
    waiting.join()
    assert answers == [7], answers
else:
    other = app.enqueue("t")
    print(job.id, other.id, flush=True)
    assert (other.result(), job.result()) == (7, 7)
    app.close()
    os._exit(0)
"""


def program(url: str, body: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "error", "-c", PROGRAM + body, url]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("body", [WAIT_AND_EXIT, EXIT_WHILE_A_THREAD_WAITS], ids=["after", "while"])
def test_a_process_that_closes_nothing_exits_in_peace(url: str, db: Db, body: str) -> None:
    process = program(url, body)

    said = process.communicate(timeout=60)

    assert (process.returncode, *said) == (0, "", "")
    until(lambda: one(db, LISTENERS) == 0)


def test_after_a_fork_parent_and_child_wait_each_over_a_connection_of_its_own(url: str, engine: Engine, db: Db) -> None:
    process = program(url, FORK)
    assert process.stdout is not None
    process.stdout.readline()
    until(lambda: one(db, LISTENERS) == 2)
    until(lambda: one(db, ENTERED) == 2)

    engine.settle(*engine.claim(), outcome=Succeeded("7"))
    said = process.communicate(timeout=60)

    assert (process.returncode, *said) == (0, "", "")


def test_what_a_killed_process_left_is_cleared_away(url: str, engine: Engine, db: Db) -> None:
    live, gone, recent = engine.enqueue()[0], str(uuid4()), str(uuid4())
    engine.run(jobs.add_waiters(listener=str(uuid4()), jobs=[live, gone]))
    db.execute("update rowlock.waiters set at = at - interval '2 hours'")
    engine.run(jobs.add_waiters(listener=str(uuid4()), jobs=[recent]))
    steady = ReconnectingSyncConnection(url, "rowlock", name="test")

    upkeep.clear_waiters(steady)

    assert {str(job) for (job,) in db.execute("select job from rowlock.waiters")} == {live, recent}
    steady.close()
