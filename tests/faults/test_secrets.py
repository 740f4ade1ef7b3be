"""A secret that a job carries is where it belongs, in the job's row, and nowhere else: S10, S15, T55."""

from __future__ import annotations

import json
import logging
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql
from psycopg.rows import TupleRow

from rowlock import Filter, Retry, Rowlock, current_job
from rowlock.errors import JobFailed
from rowlock.model.row import ClaimedJob
from rowlock.store import claim as claim_store
from rowlock.store.claim import Lane
from rowlock.store.query import Query
from tests.cli.programs import Shop, shop_in
from tests.depth import deep
from tests.faults.estate import OWNER, STRANGER, Estate
from tests.waiting import until
from tests.worker.working import one, working

Db = psycopg.Connection[TupleRow]

LIMIT = timedelta(seconds=60)
FLOOD = 4_000

VAULT = """
from rowlock import Rowlock, current_job

app = Rowlock()


@app.task
async def keep(secret: str) -> str:
    current_job().progress(0.5, secret)
    return secret


@app.task
async def leak(secret: str) -> None:
    raise RuntimeError(len(secret))  # what an error says is logged, and is its handler's own choice


@app.task
def fits(secret: int) -> None:
    raise AssertionError
"""


@pytest.fixture
def canary() -> str:
    """A secret that is nowhere yet."""
    return f"canary-{uuid4().hex}"


@pytest.fixture
def overheard(app: Rowlock, url: str, db: Db) -> Iterator[list[str]]:
    """What pg_stat_activity showed at any look, and every notification that any channel of ours carried."""
    heard: list[str] = []
    stop = threading.Event()

    def listen() -> None:
        with psycopg.connect(url, autocommit=True) as ear, psycopg.connect(url, autocommit=True) as eye:
            while not stop.is_set():
                channels = eye.execute(
                    """
                    select rowlock.channel(queue) from rowlock.parked
                    union select 'rowlock:' || worker from rowlock.parked
                    union select 'rowlock:' || listener from rowlock.waiters
                    """
                ).fetchall()
                for (channel,) in channels:
                    ear.execute(sql.SQL("listen {}").format(sql.Identifier(channel)))
                rows = eye.execute("select query, application_name from pg_stat_activity where pid <> pg_backend_pid()")
                heard.extend(text for row in rows for text in row if text)
                heard.extend(f"{notice.channel} {notice.payload}" for notice in ear.notifies(timeout=0.005))

    thread = threading.Thread(target=listen)
    thread.start()
    yield heard
    stop.set()
    thread.join()


def test_it_is_in_no_notification_no_activity_and_no_log_record(
    app: Rowlock, db: Db, canary: str, overheard: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    @app.task(name="keep")
    async def keep(secret: str) -> str:
        current_job().progress(0.5, secret)
        return secret

    @app.task(name="fail", retry=Retry(attempts=2, base=timedelta(milliseconds=1)))
    async def fail(secret: str) -> None:
        raise RuntimeError(len(secret))  # what an error says is logged, and is its handler's own choice

    with working(app):
        until(lambda: one(db, "select exists (select from rowlock.parked)"))  # else nobody is notified
        kept = [keep.enqueue(canary), keep.using(tags=["t"], key="k").enqueue(canary)]
        app.enqueue_many([keep.bind(canary) for _ in range(600)])
        failed = fail.enqueue(canary)
        assert [job.result(LIMIT) for job in kept] == [canary, canary]
        with pytest.raises(JobFailed):
            failed.result(LIMIT)
        until(lambda: one(db, "select count(*) from rowlock.jobs") == 0, limit=60)
        found = app.jobs.list(Filter(args={"secret": canary})).records
        app.stats()

    assert found
    assert len(overheard) > 100
    assert any(text.startswith("rowlock:") for text in overheard)
    assert [text for text in overheard if canary in text] == []
    assert caplog.records
    assert [text for text in said(caplog) if canary in text] == []


def test_it_is_in_no_record_of_an_argument_that_does_not_fit(
    app: Rowlock, db: Db, canary: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    @app.task(name="fits")
    async def fits(secret: int) -> int:
        return secret

    one(db, "select rowlock.enqueue('fits', args => %s)", json.dumps({"secret": canary}))
    with working(app):
        until(lambda: one(db, "select count(*) from rowlock.jobs where waits_for = 'code'"), limit=60)

    assert fits.name == "fits"
    assert [text for text in said(caplog) if canary in text] == []
    assert canary not in one(db, "select reason from rowlock.jobs")


@deep
def test_it_is_in_nothing_that_processes_show_of_themselves(shop: Shop, url: str, db: Db, canary: str) -> None:
    shop.write("vault.py", VAULT)
    password = {"ROWLOCK_URL": url.replace("@", f":{canary}@", 1)}
    worker = shop.start("worker", "--app", "vault", "--processes", "2", env=password)
    with Rowlock(url) as app:
        app.enqueue("vault.keep", secret=canary)
        app.enqueue("vault.leak", secret=canary)
        app.enqueue("vault.fits", secret=canary)
        until(lambda: one(db, "select count(*) from rowlock.history") == 1, limit=60)
        until(lambda: one(db, "select sum(failures) from rowlock.jobs"), limit=60)
        until(lambda: one(db, "select count(*) from rowlock.jobs where waits_for = 'code'"), limit=60)

        listed = subprocess.run(["ps", "axww", "-o", "args"], capture_output=True, text=True, check=True).stdout
        shown = [
            shop.run(*command, env=password)
            for command in (
                ["stats", "--json"],
                ["workers", "--json"],
                ["queues", "list", "--json"],
                ["jobs", "events", "--json"],
                ["config"],
                ["config", "--json"],
            )
        ]

    worker.process.terminate()
    worker.ended()
    assert "vault" in listed
    assert canary not in listed
    assert [program.process.returncode for program in shown] == [0] * 6, [program.errors for program in shown]
    assert [program.output for program in shown if canary in program.output + program.errors] == []
    assert canary not in worker.output + worker.errors


# Notifications are open to everybody


def test_a_flood_of_forged_notifications_costs_a_bounded_number_of_looks(
    estate: Estate, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[float] = []
    claim = claim_store.claim

    def counted(*, lanes: Sequence[Lane], limit: int, worker: str, free: int | None = None) -> Query[ClaimedJob]:
        looks.append(time.monotonic())
        return claim(lanes=lanes, limit=limit, worker=worker, free=free)

    monkeypatch.setattr(claim_store, "claim", counted)
    with estate.app("worker") as app, estate.session(STRANGER) as stranger, estate.session(OWNER) as db:
        task = app.task(name="t", queue="flooded")(nothing)
        with working(app, queues=["flooded"]):
            until(lambda: one(db, "select count(*) from rowlock.parked where queue = 'flooded'"), limit=60)
            before, started = len(looks), time.monotonic()

            for _ in range(FLOOD):
                stranger.execute("select pg_notify('rowlock:' || md5('rowlock.flooded'), 'below')")

            made, took = len(looks) - before, time.monotonic() - started
            task.enqueue()
            until(lambda: one(db, "select count(*) from rowlock.jobs where queue = 'flooded'") == 0, limit=60)

    # One look in 20 ms; and a few more, as there are in the moment in which a worker parks.
    assert made <= took / 0.02 + 20
    assert made < FLOOD / 3


async def nothing() -> None:
    return None


# Between the lines


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    with shop_in(tmp_path) as shop:
        yield shop


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Every record at INFO and above, as it is printed, with its traceback."""
    formatter = logging.Formatter("%(message)s")
    return [formatter.format(record) for record in caplog.records if record.levelno >= logging.INFO]
