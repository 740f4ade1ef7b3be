"""`rowlock demo`: it ends by itself or when told, leaves nothing running, and would see a lost job."""

from __future__ import annotations

import io
import re
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg
import pytest
from psycopg.rows import TupleRow
from rich.console import Console

from rowlock import Rowlock
from rowlock.db.embedded.server import EmbeddedPostgres
from rowlock.db.thread_connection import ReconnectingSyncConnection
from rowlock.demo.job_log import JobLog
from rowlock.demo.terminal.view import View
from rowlock.demo.watch import DemoEvent, DemoState, WorkerState
from tests.cli.programs import Program, Shop, is_gone
from tests.depth import deep
from tests.waiting import until

Db = psycopg.Connection[TupleRow]


def facts(program: Program) -> dict[str, int]:
    """The numbers of the summary."""
    found = re.findall(r"^  ([a-z ]+?) +([\d,]+)", program.output, re.MULTILINE)
    return {name: int(number.replace(",", "")) for name, number in found}


def pids(program: Program) -> list[int]:
    """The worker processes that it has told of."""
    return [int(pid) for pid in re.findall(r"starts, pid (\d+)", program.output)]


@deep
def test_one_round_kills_workers_that_hold_jobs_and_loses_none(shop: Shop, tmp_path: Path) -> None:
    program = shop.start("demo", "--once", tmp_path / "demo")

    assert program.ended(limit=150) == 0, program.output + program.errors
    told = facts(program)
    assert program.out[-1] == "lost: 0"
    assert told["jobs enqueued"] >= 300
    assert told["done"] + told["failed for good"] == told["jobs enqueued"]
    assert told["retried"] > 0
    assert told["workers killed"] == 2
    assert told["rescued"] >= 2
    assert len(pids(program)) >= 3 + 1
    assert all(is_gone(pid) for pid in pids(program))
    assert not (tmp_path / "demo" / "data" / "postmaster.pid").exists()


@deep
def test_the_demo_in_the_terminal_ends_cleanly_on_ctrl_c(shop: Shop, tmp_path: Path) -> None:
    program = shop.start("demo", "--terminal", tmp_path / "demo")
    until(lambda: len(pids(program)) == 3, what="the start of three workers")

    program.signal(signal.SIGINT)

    assert program.ended() == 0, program.output + program.errors
    assert program.out[-1] == "lost: 0"
    assert all(is_gone(pid) for pid in pids(program))
    assert not (tmp_path / "demo" / "data" / "postmaster.pid").exists()


@deep
def test_the_demo_prints_the_link_to_its_page_and_ends_cleanly_on_ctrl_c(shop: Shop, tmp_path: Path) -> None:
    program = shop.start("demo", "--port", "0", tmp_path / "demo")
    link = until(lambda: re.findall(r"(http://127.0.0.1:\d+)/login\?next=/demo#(\S{40,})", program.output), limit=60)[0]
    with httpx.Client(base_url=link[0], headers={"authorization": f"Bearer {link[1]}"}, timeout=60) as client:
        workers = [card["pid"] for card in client.get("/api/demo").json()["picture"]["cards"]]

        # A browser that watches must not keep the demo from ending.
        with client.stream("GET", "/demo", headers={"accept": "text/event-stream"}) as answer:
            assert answer.status_code == 200
            program.signal(signal.SIGINT)
            assert program.ended() == 0, program.output + program.errors

    assert program.out[-1] == "lost: 0"
    assert len(workers) == 3
    assert all(is_gone(pid) for pid in workers)
    assert not (tmp_path / "demo" / "data" / "postmaster.pid").exists()


def test_the_demo_keeps_off_a_folder_in_which_a_server_runs(server: EmbeddedPostgres, shop: Shop) -> None:
    program = shop.run("demo", "--terminal", server.folder)

    assert program.process.returncode == 1
    assert "give the demo another folder" in program.errors


# The count of the lost


@pytest.fixture
def database(url: str) -> Iterator[ReconnectingSyncConnection]:
    """A connection of ours to the test's database."""
    steady = ReconnectingSyncConnection(url, "rowlock", name="test")
    yield steady
    steady.close()


@pytest.fixture
def job_log(app: Rowlock) -> JobLog:
    """A ledger of five jobs that were enqueued."""
    job_log = JobLog()
    job_log.add(str(job.id) for job in app.enqueue_many(app.call("anything") for _ in range(5)))
    return job_log


def test_a_job_that_lives_is_not_lost(job_log: JobLog, database: ReconnectingSyncConnection) -> None:
    audit = job_log.audit(database.run)

    assert audit.is_whole
    assert audit.left == 5
    assert audit.states == Counter(ready=5)


def test_a_job_that_vanished_is_counted_as_lost(job_log: JobLog, database: ReconnectingSyncConnection, db: Db) -> None:
    db.execute("delete from rowlock.jobs where id = %s", [job_log.enqueued[2]])

    audit = job_log.audit(database.run)

    assert not audit.is_whole
    assert audit.lost == 1
    assert audit.left == 4


def test_a_job_that_ended_and_lives_on_is_counted_as_ended_twice(
    job_log: JobLog, database: ReconnectingSyncConnection, db: Db
) -> None:
    db.execute(
        """
        insert into rowlock.history (
            id, queue, task, state, priority, failures, crashes, claims, attempts, run_at, created_at, ended_at,
            expires_on, args
        )
        select id, queue, task, 'succeeded', 0, 0, 0, 1, 1, run_at, created_at, now(), now() + '1 day', args
        from rowlock.jobs where id = %s
        """,
        [job_log.enqueued[0]],
    )

    audit = job_log.audit(database.run)

    assert not audit.is_whole
    assert audit.ended_twice == 1
    assert audit.lost == 0


# The view


def demo_state(workers: int = 3, happenings: int = 50) -> DemoState:
    """A busy moment, with long words everywhere."""
    return DemoState(
        at=3671.0,
        story="Worker 2 was killed with SIGKILL while it held 8 jobs. " * 2,
        workers=tuple(
            WorkerState(n, 4_000_000 + n, n != 2, 12, 8, None if n == 3 else 2.94, "killed (SIGKILL); starts in 5 s")
            for n in range(1, workers + 1)
        ),
        states=Counter(waiting=1, ready=123_456, running=24, succeeded=1_234_567, failed=12_345),
        delayed=12_345,
        enqueued=1_500_000,
        retried=123_456,
        killed=123,
        rescued=1_234,
        lost=0,
        rates=tuple(range(60)),
        happenings=tuple(
            DemoEvent(
                float(n), "killed" if n == 3 else "retry", "charge_card …1234 failed, attempt 1 of 3; " + "again " * 20
            )
            for n in range(happenings)
        ),
    )


@pytest.mark.parametrize(("width", "height"), [(80, 24), (80, 50), (132, 43), (220, 60)])
def test_the_view_fits_the_terminal_and_leaves_no_number_out(width: int, height: int) -> None:
    console = Console(width=width, height=height, file=io.StringIO(), record=True, color_system=None)

    console.print(View(demo_state(), footer="Ctrl-C ends it."), height=height, end="")

    lines = console.export_text().rstrip("\n").splitlines()
    text = "\n".join(lines)
    assert len(lines) <= height
    assert max(map(len, lines)) <= width
    for number in ("1,234,567", "123,456", "12,345", "1,500,000", "1,234", "2.9 s", "61:11"):
        assert number in text
    assert "00:03" in text  # the kill is shown, however many retries came after it
    assert lines[-1].strip() == "Ctrl-C ends it."
