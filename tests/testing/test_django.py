"""Inside Django's own TestCase, whose transaction is rolled back after each test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

from tests.worker.working import Db, one

PROGRAM = """
import sys, threading
from datetime import timedelta

import django
from django.conf import settings

settings.configure(
    DATABASES={
        "default": dict(ENGINE="django.db.backends.postgresql", NAME=sys.argv[1], USER=sys.argv[2], HOST=sys.argv[3]),
    },
    USE_TZ=True,
)
django.setup()

import unittest
from asgiref.sync import sync_to_async
from django.db import connection, transaction
from django.test import TestCase
from rowlock import Rowlock
from rowlock.testing import aassert_enqueued, adrain, assert_enqueued, assert_not_enqueued, drain, travel

app = Rowlock(connection=lambda: connection)


def count():
    with connection.cursor() as cursor:
        cursor.execute("select count(*) from orders")
        return cursor.fetchone()[0]


def insert(number):
    with connection.cursor() as cursor:
        cursor.execute("insert into orders values (%s)", [number])


@app.task(name="confirm")
def confirm(number: int) -> None:
    with transaction.atomic():
        insert(number)


@app.task(name="remind")
async def remind(number: int) -> None:
    await sync_to_async(insert)(number)
    await confirm.aenqueue(number)


@app.task(name="fails")
def fails() -> None:
    with transaction.atomic():
        insert("no number")


class Orders(TestCase):
    def test_handlers_of_both_kinds_run_in_the_transaction_of_the_test(self):
        insert(1)
        with transaction.atomic():
            remind.enqueue(2)
        assert_enqueued(remind.bind(2), connection=connection)
        drained = drain(app, connection=connection, raising=True)
        self.assertEqual([attempt.task for attempt in drained], ["remind", "confirm"])
        self.assertEqual(count(), 3)
        assert_not_enqueued(remind, connection=connection)

    def test_time_passes(self):
        confirm.using(delay=timedelta(days=100)).enqueue(1)
        with travel(app, timedelta(days=100), connection=connection):
            self.assertEqual(drain(app, connection=connection).succeeded, 1)
        self.assertEqual(count(), 1)

    def test_an_error_of_the_database_inside_of_atomic_is_the_handlers_own(self):
        fails.enqueue()
        drained = drain(app, connection=connection)
        self.assertEqual((drained.retried, type(drained.errors[0]).__name__), (1, "DataError"))
        self.assertEqual(count(), 0)

    async def test_async_tests_drain_too(self):
        await remind.aenqueue(2)
        await aassert_enqueued(remind, connection=connection)
        drained = await adrain(app, connection=connection, raising=True)
        self.assertEqual(drained.succeeded, 2)
        self.assertEqual(await sync_to_async(count)(), 2)


unittest.main(argv=["orders"])
"""


def test_jobs_run_inside_a_test_case(url: str, db: Db, tmp_path: Path) -> None:
    db.execute("create table orders (number integer)")
    (tmp_path / "orders.py").write_text(PROGRAM)
    place = conninfo_to_dict(url)
    names = [str(place[part]) for part in ("dbname", "user", "host")]

    done = subprocess.run(
        [sys.executable, "-W", "error", "orders.py", *names],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "Ran 4 tests" in done.stderr
    assert one(db, "select count(*) from rowlock.history") == one(db, "select count(*) from orders") == 0
