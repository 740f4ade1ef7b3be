"""Run a worker in a test until a thing has happened."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import psycopg
from psycopg.rows import TupleRow

from rowlock import Rowlock
from tests.waiting import auntil

Db = psycopg.Connection[TupleRow]

# What a worker promises is a tenth of it.
_STOPS_WITHIN = 60.0


def work_until(app: Rowlock, happened: Callable[[], object], **options: Any) -> None:  # noqa: ANN401  app.worker's own
    """Work until it has happened, then stop gracefully."""

    async def work() -> None:
        options.setdefault("grace", timedelta(seconds=5))
        async with app, app.worker(**options):
            await auntil(happened, what="what the worker should do")

    asyncio.run(work())


def work_off(app: Rowlock, db: Db, **options: Any) -> None:  # noqa: ANN401  app.worker's own
    """Work until no job is due, running or about to be retried within a second."""
    query = """select not exists (
        select from rowlock.jobs
        where state = 'running' or state = 'ready' and run_at < rowlock.now() + interval '1 second'
    )"""
    work_until(app, lambda: one(db, query), **options)


def one(db: Db, query: str, *params: object) -> Any:  # noqa: ANN401  whatever the query asks for
    """The one value that a query gives."""
    row = db.execute(query.encode(), params).fetchone()
    assert row is not None, f"no row: {query}"
    return row[0]


def ended(db: Db) -> list[tuple[Any, ...]]:
    """The jobs in history, in the order in which they were made: task, state, reason, failures."""
    return db.execute("select task, state, reason, failures from rowlock.history order by id").fetchall()


@contextmanager
def working(app: Rowlock, **options: Any) -> Iterator[None]:  # noqa: ANN401  app.worker's own
    """A worker that lives in another thread while the test goes on."""
    stop, errors = threading.Event(), list[BaseException]()

    async def work() -> None:
        async with app.worker(grace=timedelta(seconds=5), **options):
            await asyncio.to_thread(stop.wait)

    def life() -> None:
        try:
            asyncio.run(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=life, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(_STOPS_WITHIN)
    assert not thread.is_alive(), f"the worker has not stopped within {_STOPS_WITHIN} s"
    assert errors == []
