"""`rowlock worker`: it runs jobs, stops in good order, and keeps its processes together."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo
from psycopg.rows import TupleRow

from rowlock import Rowlock
from tests.cli.conftest import Type
from tests.cli.programs import Program, Shop, is_gone
from tests.depth import deep
from tests.waiting import until

Db = psycopg.Connection[TupleRow]


def start_worker(shop: Shop, url: str, *options: str) -> Program:
    """A worker of the shop that works."""
    program = shop.start("worker", "--app", "shop", "--url", url, *options)
    program.says("works on")
    return program


def states(db: Db) -> list[tuple[object, ...]]:
    """The jobs that live: state, attempts spent, crashes."""
    return db.execute("select state, failures, crashes from rowlock.jobs").fetchall()


def wait_until_running(db: Db, jobs: int = 1) -> None:
    until(lambda: [state for state, *_ in states(db)] == ["running"] * jobs, what=f"{jobs} jobs running")


def worker_pids(db: Db, count: int) -> set[int]:
    """The processes on the books, once there are so many."""

    def pids() -> set[int]:
        return {pid for (pid,) in db.execute("select pid from rowlock.workers where lease > rowlock.now()").fetchall()}

    until(lambda: len(pids()) == count, what=f"{count} workers on the books")
    return pids()


def test_a_worker_runs_jobs_and_stops_when_it_is_told(shop: Shop, app: Rowlock, url: str, db: Db) -> None:
    worker = start_worker(shop, url)

    app.enqueue("shop.greet", name="Ada")
    until(lambda: db.execute("select from rowlock.history").fetchall(), what="an ended job")
    worker.signal(signal.SIGTERM)

    assert worker.ended() == 0, worker.errors
    ended = db.execute("select task, state, result #>> '{}' from rowlock.history").fetchall()
    assert ended == [("shop.greet", "succeeded", "hello Ada")]
    assert db.execute("select from rowlock.workers").fetchall() == []


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_what_still_runs_after_the_grace_period_is_handed_back(
    shop: Shop, app: Rowlock, url: str, db: Db, stop: signal.Signals
) -> None:
    worker = start_worker(shop, url, "--grace", "0.1")
    app.enqueue("shop.linger")
    wait_until_running(db)

    worker.signal(stop)

    assert worker.ended() == 0, worker.errors
    assert states(db) == [("ready", 0, 0)]


def test_a_second_signal_hands_back_at_once(shop: Shop, app: Rowlock, url: str, db: Db) -> None:
    worker = start_worker(shop, url, "--grace", "86400")
    app.enqueue("shop.linger")
    wait_until_running(db)

    worker.signal(signal.SIGTERM)
    worker.says("stopping: running jobs get 86400 s")
    worker.signal(signal.SIGTERM)

    assert worker.ended() == 0, worker.errors
    assert states(db) == [("ready", 0, 0)]


@pytest.mark.parametrize("task", ["shop.block", pytest.param("shop.block_elsewhere", marks=deep)])
def test_a_handler_that_is_stuck_in_a_thread_does_not_keep_the_process(
    shop: Shop, app: Rowlock, url: str, db: Db, task: str
) -> None:
    worker = start_worker(shop, url, "--grace", "0")
    app.enqueue(task)
    worker.says("blocks its thread")

    worker.signal(signal.SIGTERM)

    assert worker.ended() == 0, worker.errors
    assert "if it ran a job, that was handed back" in worker.errors
    assert states(db) == [("ready", 0, 0)]


POOLED = """
import asyncio, atexit
from concurrent.futures import ThreadPoolExecutor
from shop import app

pool = ThreadPoolExecutor()
atexit.register(print, "left in order")


@app.task
async def compute() -> int:
    return await asyncio.get_running_loop().run_in_executor(pool, sum, [1, 2])
"""


def test_an_idle_thread_of_a_pool_of_the_programs_own_is_not_taken_for_a_stuck_one(
    shop: Shop, app: Rowlock, url: str, db: Db
) -> None:
    shop.write("pooled.py", POOLED)
    worker = shop.start("worker", "--app", "pooled", "--url", url)
    app.enqueue("pooled.compute")
    until(lambda: db.execute("select from rowlock.history").fetchall(), what="an ended job")

    worker.signal(signal.SIGTERM)

    assert worker.ended() == 0, worker.errors
    assert "was still running" not in worker.errors
    assert worker.output.endswith("left in order")


def test_queues_are_looked_into_as_the_command_line_says(shop: Shop, app: Rowlock, url: str, db: Db) -> None:
    worker = start_worker(shop, url, "--queues", "mail=3,default=1", "--slots", "7", "--threads", "2", "--lease", "5")

    facts = db.execute("select queues, slots, lasts = '5 seconds' from rowlock.workers").fetchall()
    worker.signal(signal.SIGTERM)

    assert facts == [(["mail", "default"], 7, True)]
    assert worker.ended() == 0


@pytest.mark.parametrize(
    "options",
    [
        ("--queues", "mail=3,default"),
        ("--queues", "mail,,default"),
        ("--queues", "mail,mail"),
        ("--lease", "0.5"),
        ("--grace", "nan"),
        ("--slots", "0"),
    ],
    ids=" ".join,
)
def test_wrong_usage_is_exit_code_2(typed: Type, options: tuple[str, str]) -> None:
    said = typed("worker", "--app", "shop", *options)

    assert said.code == 2
    assert options[0] in said.err


def test_a_worker_without_app_or_database_ends_with_a_sentence(shop: Shop) -> None:
    no_app = shop.run("worker", "--app", "nothing")
    no_database = shop.run("worker", "--app", "shop")

    assert no_app.is_one_sentence, no_app.errors
    assert "there is no module 'nothing'" in no_app.errors
    assert no_database.is_one_sentence, no_database.errors
    assert "set $ROWLOCK_URL" in no_database.errors


def test_a_worker_that_comes_before_its_server_waits_for_it(shop: Shop) -> None:
    worker = shop.start("worker", "--app", "shop", env={"ROWLOCK_URL": "postgresql://localhost:1/none"})

    line = worker.says("cannot reach the database postgresql://localhost:1/none (from $ROWLOCK_URL)")
    worker.signal(signal.SIGTERM)

    assert line.endswith("(waiting)")
    assert worker.ended() == -signal.SIGTERM


def test_a_worker_whose_role_lacks_rights_or_does_not_exist_ends_with_a_sentence(shop: Shop, url: str, db: Db) -> None:
    role = f"stranger_{db.info.dbname}"
    db.execute(sql.SQL("create role {} login").format(sql.Identifier(role)))
    stranger = shop.run("worker", "--app", "shop", "--url", make_conninfo(url, user=role))
    nowhere = shop.run("worker", "--app", "shop", "--url", make_conninfo(url, dbname="no_such_database"))
    db.execute(sql.SQL("drop role {}").format(sql.Identifier(role)))

    assert stranger.is_one_sentence, stranger.errors
    assert "permission denied for schema rowlock; give this role the right" in stranger.errors
    assert nowhere.is_one_sentence, nowhere.errors


def test_the_first_line_names_the_database_and_where_it_was_said(shop: Shop, url: str) -> None:
    shop.start("worker", "--app", "shop", env={"ROWLOCK_URL": url}).says(
        f"works on default with 100 slots, in {url}, schema rowlock (from $ROWLOCK_URL)"
    )


def test_a_worker_that_comes_before_the_schema_waits_for_it(shop: Shop, database_url: str) -> None:
    worker, other = [shop.start("worker", "--app", "shop", "--url", database_url) for _ in range(2)]
    worker.says("run: rowlock migrate")
    other.says("run: rowlock migrate")

    other.signal(signal.SIGTERM)  # it has nothing to hand back, and need not wait
    told_to_stop = other.ended()
    with Rowlock(database_url) as app:
        app.migrate()

    assert told_to_stop == -signal.SIGTERM
    worker.says("works on")


def test_a_log_line_cannot_be_broken_or_repainted_by_data(shop: Shop, app: Rowlock, url: str) -> None:
    worker = start_worker(shop, url)

    app.enqueue("shop.say", text="a\x1b[31mb\nc")
    line = worker.says("shop.say 01")

    assert line.endswith(r": a\x1b[31mb\nc")


@deep
def test_a_process_whose_threads_are_stuck_is_replaced_under_its_pid(
    shop: Shop, app: Rowlock, url: str, db: Db
) -> None:
    worker = start_worker(shop, url, "--threads", "2", "--slots", "5", "--grace", "0.1")
    app.enqueue("shop.linger")
    wait_until_running(db)
    before = db.execute("select id, pid from rowlock.workers").fetchall()

    db.execute("select rowlock.enqueue('shop.hang', attempts => 1) from generate_series(1, 2)")
    worker.says("works on", times=2)
    wait_until_running(db)
    after = db.execute("select id, pid from rowlock.workers").fetchall()
    worker.signal(signal.SIGTERM)
    worker.signal(signal.SIGTERM)

    assert worker.ended() == 0, worker.errors
    assert "is worn out: 2 of its attempts are stuck" in worker.errors
    assert [pid for _, pid in before] == [pid for _, pid in after] == [worker.pid]
    assert before != after
    assert {(row[0], row[1]) for row in db.execute("select task, reason from rowlock.history")} == {
        ("shop.hang", "exhausted")
    }
    assert states(db) == [("ready", 0, 0)]


# Several processes


@pytest.fixture
def pair(shop: Shop, url: str) -> Program:
    """A worker with two processes."""
    program = shop.start("worker", "--app", "shop", "--url", url, "--processes", "2")
    program.says("works on", times=2)
    return program


def test_two_processes_share_the_work_and_stop_together(pair: Program, app: Rowlock, db: Db) -> None:
    pids = worker_pids(db, 2)
    jobs = app.enqueue_many(app.call("shop.linger") for _ in range(150))
    wait_until_running(db, len(jobs))  # more than one process has slots for

    pair.signal(signal.SIGTERM)
    pair.says("stopping: running jobs get", times=2)
    pair.signal(signal.SIGTERM)

    assert pair.ended() == 0, pair.errors
    assert pair.pid not in pids
    assert all(is_gone(pid) for pid in pids)
    assert states(db) == [("ready", 0, 0)] * 150


@deep
def test_a_child_that_was_killed_is_started_again(pair: Program, app: Rowlock, db: Db) -> None:
    killed, other = worker_pids(db, 2)

    os.kill(killed, signal.SIGKILL)
    pair.says("was killed by SIGKILL; starting another")
    pair.says("works on", times=3)
    now = {pid for (pid,) in db.execute("select pid from rowlock.workers").fetchall()}
    pair.signal(signal.SIGTERM)

    assert other in now
    assert len(now - {killed, other}) == 1
    assert pair.ended() == 0, pair.errors


@deep
def test_children_hand_back_and_end_when_their_parent_is_killed(pair: Program, app: Rowlock, db: Db) -> None:
    pids = worker_pids(db, 2)
    app.enqueue("shop.linger")
    wait_until_running(db)

    pair.signal(signal.SIGKILL)

    until(lambda: all(is_gone(pid) for pid in pids), what="the end of the children")
    assert states(db) == [("ready", 0, 0)]
    assert db.execute("select from rowlock.workers").fetchall() == [], pair.errors


@deep
def test_processes_share_an_embedded_database_that_ends_with_them(shop: Shop, tmp_path: Path) -> None:
    folder = tmp_path / "pg"
    program = shop.start("worker", "--app", "shop", "--embedded", folder, "--processes", "2")
    program.says("works on", times=2)
    server = int((folder / "data" / "postmaster.pid").read_text().split()[0])

    program.signal(signal.SIGINT)

    assert program.ended() == 0, program.errors
    assert is_gone(server)
