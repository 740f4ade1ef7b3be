"""One connection of ours: how it is opened, and how a query runs on it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
from psycopg.adapt import AdaptersMap
from psycopg.rows import TupleRow
from psycopg.types.string import TextLoader

from rowlock.store.query import Conversation, Copy, Query, Said, statement

T = TypeVar("T")

Connection = psycopg.Connection[TupleRow]
AsyncConnection = psycopg.AsyncConnection[TupleRow]
Cursor = psycopg.Cursor[TupleRow]
AsyncCursor = psycopg.AsyncCursor[TupleRow]

# What the engine needs of a session, whatever the role's or the database's defaults are.
# - Statistics of a queue are always wrong, so nothing is left to them: with these off, each statement has one plan,
#   index look-ups in nested loops. Then it need be made only once: planning anew doubled the time of a small claim.
# - The statements' decisions are argued for READ COMMITTED.
# - Every name in our SQL is qualified; nothing of the caller's search_path can stand in front of pg_catalog.
_SETTINGS = {
    "enable_seqscan": "off",
    "plan_cache_mode": "force_generic_plan",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "jit": "off",
    "default_transaction_isolation": "read committed",
    "search_path": "pg_catalog",
    "timezone": "UTC",
    "datestyle": "ISO",
    "intervalstyle": "postgres",
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "idle_session_timeout": "0",
}
_CONFIGURE = "select " + ", ".join(f"set_config('{name}', '{value}', false)" for name, value in _SETTINGS.items())

_CONNECT: dict[str, Any] = {
    "autocommit": True,
    "prepare_threshold": 0,
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
}


def connect(conninfo: str, *, name: str) -> Connection:
    """Open a session of ours; `name` is what pg_stat_activity shows."""
    connection = psycopg.connect(conninfo, application_name=name, **_CONNECT)
    try:
        connection.execute(_CONFIGURE)
    except BaseException:
        connection.close()
        raise
    read_as_text(connection.adapters)
    return connection


async def aconnect(conninfo: str, *, name: str) -> AsyncConnection:
    """Open a session of ours; `name` is what pg_stat_activity shows."""
    connection = await psycopg.AsyncConnection.connect(conninfo, application_name=name, **_CONNECT)
    try:
        await connection.execute(_CONFIGURE)
    except BaseException:  # a worker that is stopped while it starts cancels us here
        await connection.close()
        raise
    read_as_text(connection.adapters)
    return connection


def read_as_text(adapters: AdaptersMap) -> None:
    """Leave ids, JSON and times as the text they came as: the hot path never looks inside."""
    for kind in ("uuid", "json", "timestamptz"):
        adapters.register_loader(kind, TextLoader)


def run(cursor: Cursor, query: Query[T] | Copy, schema: str) -> list[T]:
    """Run one query, or one copy."""
    text = statement(query.name, schema)
    if isinstance(query, Copy):
        with cursor.copy(text) as copy:
            for block in query.blocks:
                copy.write(block)
        return []
    cursor.execute(text, query.params)
    return [query.read(row) for row in cursor.fetchall()] if cursor.description else []


async def arun(cursor: AsyncCursor, query: Query[T] | Copy, schema: str) -> list[T]:
    """Run one query, or one copy."""
    text = statement(query.name, schema)
    if isinstance(query, Copy):
        async with cursor.copy(text) as copy:
            for block in query.blocks:
                await copy.write(block)
        return []
    await cursor.execute(text, query.params)
    return [query.read(row) for row in await cursor.fetchall()] if cursor.description else []


def converse(run_one: Callable[[Said], list[Any]], conversation: Conversation[T]) -> T:
    """Hold a conversation on whatever connection `run_one` means, in whatever transaction is open there."""
    try:
        said = next(conversation)
        while True:
            try:
                rows = run_one(said)
            except BaseException as error:
                said = conversation.throw(error)
            else:
                said = conversation.send(rows)
    except StopIteration as end:
        answer: T = end.value
        return answer


async def aconverse(run_one: Callable[[Said], Awaitable[list[Any]]], conversation: Conversation[T]) -> T:
    """Hold a conversation on whatever connection `run_one` means, in whatever transaction is open there."""
    try:
        said = next(conversation)
        while True:
            try:
                rows = await run_one(said)
            except BaseException as error:
                said = conversation.throw(error)
            else:
                said = conversation.send(rows)
    except StopIteration as end:
        answer: T = end.value
        return answer


class Unreachable(Exception):
    """The database does not answer; it may again."""


class Steady:
    """One sync connection that is opened again after it breaks; Unreachable as long as it cannot be."""

    def __init__(self, conninfo: str, schema: str, *, name: str) -> None:
        self.schema = schema
        self._conninfo = conninfo
        self._name = name
        self._connection: Connection | None = None

    def open(self) -> Connection:
        """The open connection."""
        if self._connection is None or self._connection.closed or self._connection.broken:
            with self._reaching():
                self._connection = connect(self._conninfo, name=self._name)
        return self._connection

    def run(self, query: Query[T]) -> list[T]:
        """Run one query."""
        with self._reaching():
            return run(self.open().cursor(), query, self.schema)

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        try:
            yield
        except psycopg.OperationalError as error:
            if not broken(error):
                raise
            if self._connection is not None:
                self._connection.close()
            raise Unreachable(str(error).partition("\n")[0]) from error

    @contextmanager
    def sweep(self, chore: str) -> Iterator[bool]:
        """A transaction under a lock that only one session holds at a time; False when another has it."""
        connection = self.open()
        with self._reaching(), connection.transaction():
            cursor = connection.execute(
                "select pg_try_advisory_xact_lock(hashtextextended(%s, 0))", [f"{self.schema}.{chore}"]
            )
            row = cursor.fetchone()
            yield bool(row and row[0])

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()


def broken(error: psycopg.Error) -> bool:
    """Whether an error means that the connection is gone: sent by a dying server, or never sent at all."""
    if not isinstance(error, psycopg.OperationalError):
        return False
    state = error.sqlstate
    return state is None or state.startswith(("08", "57P"))
