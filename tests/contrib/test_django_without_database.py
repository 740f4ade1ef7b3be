"""A test that may not use the database: Django's guard, and pytest-django's, hold for connections of ours, too."""

from __future__ import annotations

import asyncio
import unittest
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from typing import Any, NoReturn

import psycopg
import pytest
from asgiref.sync import async_to_sync
from django.db import connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import SimpleTestCase
from django.test.testcases import _DatabaseFailure
from psycopg.rows import TupleRow

from rowlock import Filter, Job, Rowlock
from rowlock.contrib.django import DjangoRowlock
from rowlock.testing import adrain, drain, fire
from tests.db.django_site import visit

Db = psycopg.Connection[TupleRow]


@pytest.fixture
def app(url: str) -> Iterator[DjangoRowlock]:
    visit(url)
    with DjangoRowlock() as app:
        yield app
    connection.close()


@pytest.fixture
def job(app: DjangoRowlock) -> Job[Any]:
    """A job of before, by whom every connection of ours is open already."""
    job = app.task(name="t")(lambda: None).enqueue()
    assert job.record().state == "ready"
    connection.close()
    return job


SYNC: dict[str, Callable[[DjangoRowlock, Job[Any]], object]] = {
    "look": lambda app, _job: app.jobs.list(),
    "change": lambda app, _job: app.jobs.delete(Filter.all()),
    "drain": lambda app, _job: drain(app),
    "fire": lambda app, _job: fire(app),
    "wait": lambda _app, job: job.result(timedelta(seconds=30)),
    "record": lambda _app, job: job.record(),
    "stats": lambda app, _job: app.stats(),
    "migrate": lambda app, _job: app.migrate(),
    "pause": lambda app, _job: app.queues.pause("default"),
    "enqueue": lambda app, _job: app.enqueue("t"),
}
ASYNC: dict[str, Callable[[DjangoRowlock, Job[Any]], Awaitable[object]]] = {
    "look": lambda app, _job: app.jobs.alist(),
    "drain": lambda app, _job: adrain(app),
    "wait": lambda _app, job: job.aresult(timedelta(seconds=30)),
    "work": lambda app, _job: app.worker().run(),
    "on our own": lambda app, _job: _enqueue_apart(app),
}


async def awaited(averb: Callable[..., Awaitable[object]], app: DjangoRowlock, job: Job[Any]) -> None:
    await averb(app, job)


async def _enqueue_apart(app: Rowlock) -> None:
    with app.within(None):
        await app.aenqueue("t")


def refused(app: DjangoRowlock, job: Job[Any], check: Callable[[Callable[[], object]], None]) -> None:
    sync_refused(app, job, check)
    for averb in ASYNC.values():
        check(lambda averb=averb: asyncio.run(awaited(averb, app, job)))  # type: ignore[misc]


def sync_refused(app: DjangoRowlock, job: Job[Any], check: Callable[[Callable[[], object]], None]) -> None:
    for verb in SYNC.values():
        check(lambda verb=verb: verb(app, job))  # type: ignore[misc]  # bound now


def test_djangos_simple_test_case_forbids_connections_of_ours(app: DjangoRowlock, job: Job[Any], db: Db) -> None:
    class NoDatabase(SimpleTestCase):  # type: ignore[misc]  # Django has no types
        def test(self) -> None:
            def check(verb: Callable[[], object]) -> None:
                with pytest.raises(AssertionError, match="to 'default' are not allowed in SimpleTestCase"):
                    verb()

            refused(app, job, check)

    result = unittest.TestResult()
    unittest.TestSuite([NoDatabase("test")]).run(result)

    assert (result.testsRun, result.errors, result.failures) == (1, [], [])
    assert db.execute("select count(*) from rowlock.jobs").fetchone() == (1,)
    assert app.jobs.list().records  # afterwards all is as before


def test_the_guard_of_django_before_51_forbids_connections_of_ours(
    app: DjangoRowlock, job: Job[Any], db: Db, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(verb: Callable[[], object]) -> None:
        with pytest.raises(AssertionError, match="not allowed in SimpleTestCase"):
            verb()

    wrapper = connections["default"]
    for name, _ in SimpleTestCase._disallowed_connection_methods:  # the wrapper is patched, and its class is not
        failure = _DatabaseFailure(getattr(wrapper, name), "not allowed in SimpleTestCase")
        monkeypatch.setattr(wrapper, name, failure)

    sync_refused(app, job, check)
    for name in ("look", "drain", "wait"):  # in the loop that Django makes for an async test
        check(lambda averb=ASYNC[name]: async_to_sync(awaited)(averb, app, job))  # type: ignore[misc]

    assert db.execute("select count(*) from rowlock.jobs").fetchone() == (1,)


def test_the_guard_of_pytest_django_forbids_connections_of_ours(
    app: DjangoRowlock, job: Job[Any], db: Db, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbid(*_: object) -> NoReturn:
        raise RuntimeError('Database access not allowed, use the "django_db" mark')

    def check(verb: Callable[[], object]) -> None:
        with pytest.raises(RuntimeError, match="Database access not allowed"):
            verb()

    monkeypatch.setattr(BaseDatabaseWrapper, "ensure_connection", forbid)  # which is what it does

    refused(app, job, check)

    assert db.execute("select count(*) from rowlock.jobs").fetchone() == (1,)
