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
from django.db import IntegrityError
from rowlock import Filter, Rowlock, RowlockError, current_job
from rowlock.contrib.django import DjangoRowlock
from rowlock.testing import aassert_enqueued, adrain, assert_enqueued, assert_not_enqueued, drain, fire, moved, travel

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


found = DjangoRowlock()


@found.task(name="pay")
def pay(number: int) -> int:
    insert(number)
    return number


@found.task(name="twice")
def twice() -> None:
    insert(1)
    insert("no number")


@found.task(name="once")
def once(number: int) -> int:
    with current_job().transaction():
        insert(number)
        if number < 0:
            raise IntegrityError("below zero")
        return current_job().give_result(number)


@found.task(name="durable")
def durable() -> None:
    with transaction.atomic(durable=True):
        insert(1)


@found.workflow(name="order", version=1)
async def order(ctx, number: int) -> int:
    return await ctx.signal("paid", int)


class Found(TestCase):
    def test_every_verb_finds_the_transaction_of_the_test(self):
        job = pay.using(delay=timedelta(days=100)).enqueue(7)
        assert_enqueued(pay.bind(7))
        self.assertEqual(job.record().state, "ready")
        self.assertEqual(job.explain().state, "ready")
        with travel(found, timedelta(days=100)):
            self.assertEqual(drain(found, raising=True).succeeded, 1)
        self.assertEqual((job.result(), job.result(timedelta(0)), count()), (7, 7, 1))
        self.assertEqual(len(found.jobs.list().records), 1)
        self.assertEqual(found.jobs.delete(Filter.all()).changed, 1)
        self.assertEqual(found.jobs.list().records, ())
        self.assertEqual(fire(found), [])

    def test_what_operators_do_is_in_the_transaction_of_the_test(self):
        job, flow = pay.enqueue(7), order.enqueue(1)

        found.jobs.edit(job.id, args={"number": 8})
        twin = found.jobs.enqueue(pay.bind(9), like=job.id)
        found.tasks.pause("pay")
        found.schedules.add("nightly", pay.bind(1), "0 3 * * *", tz="UTC")
        made = found.schedules.run_now("nightly")

        self.assertEqual((job.record().args, twin.record().state), ({"number": 8}, "ready"))
        with self.assertRaisesRegex(RowlockError, "commit first"):
            twin.result()
        self.assertEqual([pause.task for pause in found.tasks.pauses()], ["pay"])
        self.assertTrue(found.tasks.resume("pay"))
        self.assertEqual((made.task, len(found.schedules.list())), ("pay", 1))
        self.assertEqual([record.id for record in found.workflows.list().records], [flow.id])
        self.assertEqual(found.workflows.show(flow.id).job.args, {"number": 1})
        self.assertEqual(found.workflows.check().workflows[0].id, flow.id)

    def test_what_operators_do_disappears_with_its_block(self):
        job, flow = pay.enqueue(7), order.enqueue(1)
        try:
            with transaction.atomic():
                found.jobs.edit(job.id, args={"number": 8})
                found.jobs.enqueue(pay.bind(9))
                found.queues.pause("default")
                flow.signal("paid", 1)
                assert found.workflows.terminate(flow.id)
                raise ZeroDivisionError
        except ZeroDivisionError:
            self.assertEqual((job.record().args, flow.record().state), ({"number": 7}, "ready"))
        self.assertEqual((len(found.jobs.list().records), found.queues.pauses()), (2, ()))

    async def test_so_is_what_operators_do_in_async_tests(self):
        flow = await order.aenqueue(1)
        await found.queues.apause("default")
        self.assertEqual((await found.workflows.ashow(flow.id)).job.id, flow.id)
        self.assertEqual((await found.workflows.acheck()).workflows[0].id, flow.id)
        self.assertTrue(await found.workflows.aterminate(flow.id))
        self.assertEqual(len(await found.queues.apauses()), 1)

    def test_figures_are_those_that_are_committed(self):
        pay.enqueue(7)
        self.assertEqual(dict(found.stats().queues), {})

    def test_a_job_that_has_not_ended_is_not_waited_for(self):
        with self.assertRaisesRegex(RowlockError, "commit first"):
            pay.enqueue(7).result()

    def test_a_cancellation_belongs_to_its_block(self):
        job = pay.enqueue(7)
        try:
            with transaction.atomic():
                assert job.cancel()
                raise ZeroDivisionError
        except ZeroDivisionError:
            self.assertEqual(job.record().state, "ready")
        assert job.cancel()
        self.assertEqual(job.record().state, "cancelled")

    def test_an_error_of_the_database_is_the_handlers_own_and_the_test_goes_on(self):
        twice.enqueue()
        pay.using(priority=-1).enqueue(7)
        drained = drain(found)
        self.assertEqual((drained.retried, drained.succeeded), (1, 1))
        self.assertEqual(type(drained.errors[0]).__name__, "DataError")
        self.assertEqual(count(), 1)

    def test_a_transaction_is_on_the_apps_own_connection(self):
        job, failing = once.enqueue(7), once.enqueue(-7)
        drained = drain(found)
        self.assertEqual((drained.succeeded, drained.retried, count()), (1, 1, 1))
        self.assertEqual(job.result(), 7)

    def test_a_durable_block_is_none_inside_a_drain(self):
        durable.enqueue()
        self.assertEqual(drain(found, raising=True).succeeded, 1)

    def test_it_cannot_be_put_elsewhere(self):
        with self.assertRaisesRegex(RowlockError, "settings.DATABASES says where"):
            with moved(found, "postgresql://localhost/other"):
                pass

    async def test_so_it_is_in_async_tests(self):
        job = await pay.aenqueue(7)
        await aassert_enqueued(pay.bind(7))
        async with travel(found, timedelta(days=1)):
            self.assertEqual((await adrain(found, raising=True)).succeeded, 1)
        self.assertEqual(await job.aresult(), 7)
        self.assertEqual((await job.arecord()).state, "succeeded")
        self.assertEqual((await found.jobs.adelete(Filter.all())).changed, 1)


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
    assert "Ran 16 tests" in done.stderr
    for table in ("jobs", "history", "events", "pauses", "schedules"):
        assert one(db, f"select count(*) from rowlock.{table}") == 0, table
    assert one(db, "select count(*) from orders") == 0
