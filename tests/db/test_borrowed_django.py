"""A Django connection of the caller's: what is its own, beside what test_conformance.py asks of every kind."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import ModuleType
from uuid import UUID

import psycopg
import pytest
from django.db import DataError, connection, connections, transaction
from psycopg.rows import TupleRow

from rowlock import Rowlock, Task
from rowlock.errors import WrongConnection
from rowlock.store import jobs as job_store
from rowlock.store.query import Conversation
from tests.db.django_site import DEFAULT, SQLITE, visit

Db = psycopg.Connection[TupleRow]
T = Task[[str], None]


@pytest.fixture
def task(url: str) -> Iterator[T]:
    visit(url)
    with Rowlock(url, connection=lambda: connection) as app:

        @app.task(name="t")
        def note(text: str) -> None:
            return None

        yield note
    connection.close()


def jobs(db: Db) -> list[UUID]:
    return [job for (job,) in db.execute("select id from rowlock.jobs order by id")]


def test_a_job_joins_the_atomic_block_around_it(task: T, db: Db) -> None:
    with transaction.atomic():
        kept = task.enqueue("kept")
        with suppress(ZeroDivisionError), transaction.atomic():
            task.enqueue("undone")
            raise ZeroDivisionError
        assert jobs(db) == []

    assert jobs(db) == [kept.id]


def test_a_job_is_there_when_on_commit_is_told(task: T, db: Db) -> None:
    seen: list[list[UUID]] = []

    with transaction.atomic():
        job = task.enqueue("a")
        transaction.on_commit(lambda: seen.append(jobs(db)))

    assert seen == [[job.id]]


def test_a_block_that_will_be_rolled_back_is_refused(task: T, db: Db) -> None:
    with transaction.atomic():
        transaction.set_rollback(True)

        with pytest.raises(WrongConnection, match="will be rolled back; leave the block first"):
            task.enqueue("a")

    assert jobs(db) == []
    assert task.enqueue("a").created


def test_a_connection_that_was_closed_inside_its_block_is_refused(task: T, db: Db) -> None:
    with transaction.atomic():
        connection.close()

        with pytest.raises(WrongConnection, match="will be rolled back; leave the block first"):
            task.enqueue("a")

    assert task.enqueue("a").id in jobs(db)


def test_the_connection_of_another_thread_is_refused(task: T) -> None:
    theirs = connections[DEFAULT]

    with (
        ThreadPoolExecutor(1) as thread,
        pytest.raises(WrongConnection, match=r"of another thread; pass django.db.connection"),
    ):
        thread.submit(task.using(connection=theirs).enqueue, "a").result()


def test_inside_a_loop_the_sync_verb_is_refused(task: T) -> None:
    async def caller() -> None:
        with pytest.raises(WrongConnection, match=r"block the running event loop .*; use `await task.aenqueue"):
            task.enqueue("a")

    asyncio.run(caller())


def test_another_database_is_refused(task: T) -> None:
    with pytest.raises(WrongConnection, match="Django's 'sqlite', which speaks to sqlite; pass one to the PostgreSQL"):
        task.using(connection=connections[SQLITE]).enqueue("a")


def test_psycopg2_is_refused(task: T, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections[DEFAULT], "Database", ModuleType("psycopg2"), raising=False)

    with pytest.raises(WrongConnection, match="through psycopg2; install psycopg 3"):
        task.enqueue("a")


def test_what_the_database_refuses_is_raised_as_djangos_own(task: T, url: str) -> None:
    def wrong() -> Conversation[None]:
        yield job_store.show("no id")

    with Rowlock(url) as app, pytest.raises(DataError):
        app.database.converse(wrong, connection=connection, atomic=False)
