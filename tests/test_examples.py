"""Every program in examples/ does what it says, against a database that has been migrated."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from psycopg.rows import TupleRow

from tests.depth import deep_unless
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"

SAID = {
    "agent": [
        "a coat: rain in Oslo, rain in Rome, by boat? yes",
        "4 calls of the model, 400 tokens",
        "too expensive: 200 tokens",
    ],
    "approval": [
        "decision: a form with approved, by",
        "stored: True",
        "stored: False",
        "12000 approved by ann",
        "nobody has answered",
        "too late: succeeded",
    ],
    "asyncpg_connection": ["order 1 rolled back, and its job with it", "order 2 confirmed"],
    "breaker": [
        "order 1: ConnectionError",
        "order 2: ConnectionError",
        "order 3: ConnectionError",
        "breaker.deliver is paused by breaker",
        "order 4: waits",
        "order 4: delivered",
    ],
    "bulk": ["10000 enqueued", "10000 sent"],
    "cancel_running": [
        "cancelled: True",
        "a coroutine is cancelled where it awaits, told: True",
        "it ended as cancelled: asked",
        "cancelled: True",
        "a thread looks, and stops by itself",
        "it ended as cancelled: asked",
        "1 page, cancelled: False",
    ],
    "checkout": [
        "oar: 1 on the shelf",
        "receipt 1",
        "started once more: False",
        "oar: 0 on the shelf",
        "order 2 refunded",
        "oar: 1 on the shelf",
        "order 2: step 'ship' failed (2 attempts): no van today",
    ],
    "dashboard_mount": ["a stranger: 401", "ben: 200", "ann: 200"],
    "doctor": [
        "green: writable",
        "green: partitions ahead",
        "amber: queues without a worker",
        "do: rowlock worker --app MODULE",
    ],
    "exactly_once": [
        "order 1, attempt 1: 90 would be left",
        "order 1, attempt 2: 90 would be left",
        "order 1: 90 are left",
        "order 2, attempt 1: 80 would be left",
        "order 2, attempt 2: 80 would be left",
        "order 2: 80 are left",
    ],
    "expires": ["have you heard? it rains", "on default: expired", "on nobody listens: expired"],
    "explain": [
        "no_worker: No live worker listens on queue 'mail', nor does any worker live at all.",
        "queue_paused, by ann: the mail server moves",
        "do: `rowlock queues resume mail`",
        "also: No live worker listens on queue 'mail', nor does any worker live at all.",
        "succeeded, to do: None",
    ],
    "files": ["45 words in 10 files", "not read: ['UnicodeDecodeError']"],
    "first_job": ["enqueued on mail", "welcome, user 42! (attempt 1)"],
    "keys": [
        "first: True, again: False, the same job: True",
        "a key belongs to one task",
        "order 7 charged",
        "later: True",
    ],
    "keys_replaced": [
        "jobs made for 6 edits: 2",
        "a report for customer 7",
        "document 42: version 3 is indexed",
        "document 43: version 3 is indexed",
        "again within the hour, created: False, the same job: True",
        "taken by the first one: True",
    ],
    "lifespan_and_around": [
        "worker opens its door",
        "lifespan_and_around.welcome: attempt 1 begins",
        "lifespan_and_around.welcome: attempt 1 ends",
        "welcome, user 42",
        "worker closes its door",
    ],
    "pause": ["mail is paused by ann: the mail server moves", "resumed: True", "user 42 has mail"],
    "priorities_and_delay": ["first", "second", "third", "then", "last"],
    "progress": ["75%, resizing thole.png", "resized: 4"],
    "queues": ["strict: mail, mail, reports, reports", "weighted, in some order: mail, mail, reports, reports"],
    "results": [
        "a quarter: 0.25",
        "and once more: 0.25",
        "failed by ZeroDivisionError: division by zero",
        "cancelled: there is no right answer",
        "tomorrow: ready",
    ],
    "retries": [
        "order 7: attempt 1 of 3",
        "order 7: attempt 2 of 3",
        "order 7: attempt 3 of 3",
        "order 7: delivered",
        "reading 'seven'",
        "done",
    ],
    "retry_failed": [
        "would retry 1 of {'retry_failed.call_partner': 1}",
        "1 retried",
        "order 2 delivered",
        "retried by ann: the partner is back",
    ],
    "saga": [
        "['Ada is expected', 'Ada is expected']",
        "cancelled for None",
        "cancelled for Eve",
        "step 'book hotel' failed (1 attempt): no room",
    ],
    "schedules": [
        "each slot has one job: True",
        "schedules.report: paused False, edited True",
        "tick: paused True, edited False",
        "report on north, for schedules.report",
        "north next runs at 21:00 UTC",
    ],
    "snooze_and_cancel": [
        "parcel 1: closed, attempt 1 is not spent",
        "parcel 1: delivered in attempt 1",
        "user 42 has paid: nothing to remind of",
    ],
    "sqlalchemy_session": ["rolled back: table, order and job", "order 2 confirmed"],
    "stats": ["mail: 3 due, 1 later, 0 running, paused: True", "workers: 0, not known: {}"],
    "sync_tasks": [
        "sync_tasks.shrink of boat.png, beside the main thread: True",
        "sync_tasks.shrink of oar.png, beside the main thread: True",
        "sync_tasks.shrink of rowlock.png, beside the main thread: True",
        "done",
    ],
    "testing_jobs": ["1 passed"],
    "transaction": ["order 1 rolled back, and its job with it", "order 2 placed", "order 2 confirmed"],
    "within": ["others see: [3]", "and after the commit: [2, 3]"],
}
# Threads, and a worker beside its enqueuer, speak in any order.
IN_ANY_ORDER = {"cancel_running", "first_job", "keys_replaced", "sync_tasks"}


@pytest.mark.parametrize(
    "name",
    deep_unless(
        lambda name: name in {"first_job", "transaction", "checkout"},
        sorted(path.stem for path in EXAMPLES.glob("*.py")),
    ),
)
def test_an_example_says_what_happened(name: str, url: str) -> None:
    environment = os.environ | {"ROWLOCK_URL": url, "PYTHONWARNINGS": "error"}
    command = [sys.executable, str(EXAMPLES / f"{name}.py")]

    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)

    said, expected = done.stdout.splitlines(), SAID[name]
    assert done.returncode == 0, done.stderr
    # The log shows tracebacks of handlers that fail on purpose; what nobody catches in a thread or a task says so.
    assert not re.search("Exception in thread|never retrieved|Exception ignored", done.stderr), done.stderr
    assert sorted(said) == sorted(expected)
    assert name in IN_ANY_ORDER or said == expected


def test_every_example_explains_itself_and_can_be_imported() -> None:
    for path in EXAMPLES.glob("*.py"):
        text = path.read_text(encoding="utf-8")

        assert text.startswith('"""')
        assert '\nif __name__ == "__main__":\n' in text
        assert len(text.splitlines()) <= 65


def test_the_program_in_the_readme_does_what_stands_below_it(
    url: str, db: psycopg.Connection[TupleRow], tmp_path: Path
) -> None:
    program = re.search(r"```python\n(# shop\.py\n.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert program is not None
    (tmp_path / "shop.py").write_text(program[1], encoding="utf-8")
    environment = os.environ | {"ROWLOCK_URL": url}

    subprocess.run([sys.executable, "shop.py"], cwd=tmp_path, env=environment, check=True)
    command = [
        str(Path(sys.executable).with_name("rowlock")),
        "worker",
        "--app",
        "shop:app",
        "--queues",
        "mail,default",
    ]
    with subprocess.Popen([*command, "--slots", "100"], cwd=tmp_path, env=environment, stderr=-3) as worker:
        try:
            until(
                lambda: db.execute("select count(*) from rowlock.jobs").fetchone() == (1,),
                what="the end of all but one",
            )
        finally:
            worker.terminate()

    assert worker.returncode == 0
    assert db.execute("select task, key, state from rowlock.jobs").fetchall() == [
        ("shop.send_welcome", "welcome:7", "ready")
    ]
    ended = db.execute("select task, state, count(*) from rowlock.history group by 1, 2 order by 1").fetchall()
    assert ended == [("shop.resize", "succeeded", 10_000), ("shop.send_welcome", "succeeded", 1)]
