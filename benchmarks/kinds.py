"""Enqueue through callers' connections, one job to a transaction, against the driver's own insert of the same row."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from datetime import UTC, datetime
from functools import partial
from statistics import median
from typing import Any, Generic, NamedTuple, TypeVar
from uuid import UUID

import asyncpg
import django
import psycopg
from django.conf import settings
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.json import Json
from sqlalchemy import JSON, Column, DateTime, Integer, MetaData, SmallInteger, Table, Text, Uuid, create_engine
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from benchmarks.arena import Arena
from benchmarks.limit import new_jobs
from benchmarks.measure import Broken, Case, Effort, Target, Track, interleave
from benchmarks.tasks import SCHEMA, noop

T = TypeVar("T")

# Before the clock starts: psycopg prepares a statement when it comes for the sixth time.
_WARMING = 10
_MOST = 1.5

_COLUMNS = ("id", "queue", "task", "priority", "attempts", "run_at", "created_at", "args")
_INSERT = f"insert into {SCHEMA}.jobs ({', '.join(_COLUMNS)}) values ({{}})"
_BY_PLACE = _INSERT.format(", ".join(["%s"] * len(_COLUMNS)))
_BY_NUMBER = _INSERT.format(", ".join(f"${number}" for number in range(1, len(_COLUMNS) + 1)))
_TABLE = Table(
    "jobs",
    MetaData(schema=SCHEMA),
    Column("id", Uuid),
    Column("queue", Text),
    Column("task", Text),
    Column("priority", SmallInteger),
    Column("attempts", Integer),
    Column("run_at", DateTime(timezone=True)),
    Column("created_at", DateTime(timezone=True)),
    Column("args", JSON),
)


class Sides(NamedTuple, Generic[T]):
    """What Rowlock's enqueue is or has, and what the driver's own insert."""

    ours: T
    own: T


Put = Sides[Callable[[int], None]]
AsyncPut = Sides[Callable[[int], Awaitable[None]]]


def measure(arena: Arena, effort: Effort, track: Track) -> list[Case]:
    """The two sides take turns job by job, on one connection, because a commit's time is the disk's mood."""
    count = min(effort.sized(full=500, quick=100), 500)
    pairs = interleave(
        {kind: partial(timed, arena, count) for kind, timed in _KINDS.items()},
        rounds=effort.repeated(full=5, quick=2),
        track=track,
    )
    return [
        Case(
            scenario="enqueue",
            case=f"through={kind}",
            unit="ms/job",
            rowlock_rounds=[ours for ours, _ in figures],
            limit_rounds=[own for _, own in figures],
            limit_is=f"an insert of the same row through {kind} itself, each committed",
            target=Target(ratio_at_most=_MOST),
        )
        for kind, figures in pairs.items()
    ]


def _timed(opened: Callable[[Arena], AbstractContextManager[Put]], arena: Arena, count: int) -> Sides[float]:
    arena.clear()
    arena.calm()
    with opened(arena) as sides:
        took: Sides[list[float]] = Sides([], [])
        for n in range(_WARMING + count):
            for put, times in list(zip(sides, took, strict=True))[:: 1 if n % 2 else -1]:
                began = time.monotonic()
                put(n)
                times.append(time.monotonic() - began)
    return _each(arena, took)


def _atimed(opened: Callable[[Arena], AbstractAsyncContextManager[AsyncPut]], arena: Arena, count: int) -> Sides[float]:
    async def measured() -> Sides[list[float]]:
        took: Sides[list[float]] = Sides([], [])
        async with opened(arena) as sides:
            for n in range(_WARMING + count):
                for put, times in list(zip(sides, took, strict=True))[:: 1 if n % 2 else -1]:
                    began = time.monotonic()
                    await put(n)
                    times.append(time.monotonic() - began)
        return took

    arena.clear()
    arena.calm()
    return _each(arena, asyncio.run(measured()))


def _each(arena: Arena, took: Sides[list[float]]) -> Sides[float]:
    """The median job in milliseconds, once it is sure that they are all there."""
    there, put = arena.ask(f"select count(*) from {SCHEMA}.jobs"), len(took.ours) + len(took.own)
    if there != put:
        raise Broken(f"{put} jobs were enqueued, and {there} are there")
    return Sides(median(took.ours[_WARMING:]) * 1000, median(took.own[_WARMING:]) * 1000)


def _row(n: int) -> tuple[Any, ...]:
    """A job as its columns, of Python's types."""
    job = new_jobs(1)[0]
    now = datetime.now(UTC)
    return UUID(job.id), job.queue, job.task, job.priority, job.attempts, now, now, {"n": n}


def _named(n: int) -> dict[str, Any]:
    return dict(zip(_COLUMNS, _row(n), strict=True))


@contextmanager
def _psycopg(arena: Arena) -> Iterator[Put]:
    with psycopg.connect(arena.conninfo) as connection:

        def ours(n: int) -> None:
            noop.using(connection=connection).enqueue(n)
            connection.commit()

        def own(n: int) -> None:
            *plain, args = _row(n)
            connection.execute(_BY_PLACE, (*plain, Json(args)))
            connection.commit()

        yield Sides(ours, own)


@asynccontextmanager
async def _psycopg_async(arena: Arena) -> AsyncIterator[AsyncPut]:
    async with await psycopg.AsyncConnection.connect(arena.conninfo) as connection:

        async def ours(n: int) -> None:
            await noop.using(connection=connection).aenqueue(n)
            await connection.commit()

        async def own(n: int) -> None:
            *plain, args = _row(n)
            await connection.execute(_BY_PLACE, (*plain, Json(args)))
            await connection.commit()

        yield Sides(ours, own)


@asynccontextmanager
async def _asyncpg(arena: Arena) -> AsyncIterator[AsyncPut]:
    connection = await _asyncpg_connection(arena)

    async def ours(n: int) -> None:
        async with connection.transaction():
            await noop.using(connection=connection).aenqueue(n)

    async def own(n: int) -> None:
        *plain, _args = _row(n)
        async with connection.transaction():
            await connection.execute(_BY_NUMBER, *plain, noop.bind(n).args)

    yield Sides(ours, own)
    await connection.close()


async def _asyncpg_connection(arena: Arena) -> asyncpg.Connection:
    parts = conninfo_to_dict(arena.conninfo)
    names = {"host": "host", "port": "port", "user": "user", "password": "password", "dbname": "database"}
    return await asyncpg.connect(**{name: parts[key] for key, name in names.items() if key in parts})


@contextmanager
def _sqlalchemy(arena: Arena, *, session: bool) -> Iterator[Put]:
    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(arena.conninfo))
    with Session(engine) if session else engine.connect() as connection:

        def ours(n: int) -> None:
            noop.using(connection=connection).enqueue(n)
            connection.commit()

        def own(n: int) -> None:
            connection.execute(_TABLE.insert(), _named(n))
            connection.commit()

        yield Sides(ours, own)
    engine.dispose()


@asynccontextmanager
async def _sqlalchemy_async(arena: Arena, *, session: bool) -> AsyncIterator[AsyncPut]:
    engine = create_async_engine("postgresql+asyncpg://", async_creator=partial(_asyncpg_connection, arena))
    async with AsyncSession(engine) if session else engine.connect() as connection:

        async def ours(n: int) -> None:
            await noop.using(connection=connection).aenqueue(n)
            await connection.commit()

        async def own(n: int) -> None:
            await connection.execute(_TABLE.insert(), _named(n))
            await connection.commit()

        yield Sides(ours, own)
    await engine.dispose()


@contextmanager
def _django(arena: Arena) -> Iterator[Put]:
    if not settings.configured:
        parts = conninfo_to_dict(arena.conninfo)
        names = {"host": "HOST", "port": "PORT", "user": "USER", "password": "PASSWORD", "dbname": "NAME"}
        database = {name: parts[key] for key, name in names.items() if key in parts}
        settings.configure(DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", **database}})
        django.setup()
    from django.db import connection, transaction  # noqa: PLC0415  it reads the settings

    def ours(n: int) -> None:
        with transaction.atomic():
            noop.using(connection=connection).enqueue(n)

    def own(n: int) -> None:
        *plain, args = _row(n)
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(_BY_PLACE, (*plain, Json(args)))

    yield Sides(ours, own)
    connection.close()


_KINDS: dict[str, Callable[[Arena, int], Sides[float]]] = {
    "psycopg": partial(_timed, _psycopg),
    "psycopg-async": partial(_atimed, _psycopg_async),
    "asyncpg": partial(_atimed, _asyncpg),
    "sqlalchemy-psycopg": partial(_timed, partial(_sqlalchemy, session=False)),
    "sqlalchemy-session": partial(_timed, partial(_sqlalchemy, session=True)),
    "sqlalchemy-asyncpg": partial(_atimed, partial(_sqlalchemy_async, session=False)),
    "sqlalchemy-async-session": partial(_atimed, partial(_sqlalchemy_async, session=True)),
    "django": partial(_timed, _django),
}
