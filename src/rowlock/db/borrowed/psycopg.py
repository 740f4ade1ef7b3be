"""Enqueue on a psycopg connection of the caller's, inside whatever transaction it has open."""

from __future__ import annotations

from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from rowlock.db import session
from rowlock.db.session import read_as_text
from rowlock.errors import SchemaMissing, WrongConnection
from rowlock.store.query import Conversation, qualified

T = TypeVar("T")

# The schemas seen on each connection: asked once, and first, because after a failed insert it would be too late for the
# caller's transaction.
_seen: WeakKeyDictionary[psycopg.Connection[Any] | psycopg.AsyncConnection[Any], set[str]] = WeakKeyDictionary()
_LOOK = "select to_regclass(%s) is not null"


def converse(connection: object, conversation: Conversation[T], schema: str, *, atomic: bool) -> T:
    """Hold a conversation on a sync connection."""
    if isinstance(connection, psycopg.AsyncConnection):
        raise WrongConnection("enqueue got an async connection; use `await task.using(connection=…).aenqueue(…)`")
    if not isinstance(connection, psycopg.Connection):
        raise _unknown(connection)
    _check_usable(connection)
    with psycopg.Cursor(connection, row_factory=tuple_row) as cursor:  # whatever kind the caller's cursors are
        read_as_text(cursor.adapters)
        if schema not in _seen.setdefault(connection, set()):
            _check_found(cursor.execute(_LOOK, [qualified(schema, "jobs")]).fetchone(), schema)
            _seen[connection].add(schema)
        if not atomic:
            return session.converse(cursor, conversation, schema)
        if not connection.autocommit:
            cursor.execute("select")  # opens the caller's transaction, so that ours is a savepoint in it and no commit
        with connection.transaction():
            return session.converse(cursor, conversation, schema)


async def aconverse(connection: object, conversation: Conversation[T], schema: str, *, atomic: bool) -> T:
    """Hold a conversation on an async connection."""
    if isinstance(connection, psycopg.Connection):
        raise WrongConnection("aenqueue got a sync connection; use `task.using(connection=…).enqueue(…)`")
    if not isinstance(connection, psycopg.AsyncConnection):
        raise _unknown(connection)
    _check_usable(connection)
    async with psycopg.AsyncCursor(connection, row_factory=tuple_row) as cursor:
        read_as_text(cursor.adapters)
        if schema not in _seen.setdefault(connection, set()):
            await cursor.execute(_LOOK, [qualified(schema, "jobs")])
            _check_found(await cursor.fetchone(), schema)
            _seen[connection].add(schema)
        if not atomic:
            return await session.aconverse(cursor, conversation, schema)
        if not connection.autocommit:
            await cursor.execute("select")
        async with connection.transaction():
            return await session.aconverse(cursor, conversation, schema)


def _check_usable(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
    if connection.closed:
        raise WrongConnection("connection= is closed; pass an open one")
    if connection.info.transaction_status == TransactionStatus.INERROR:
        raise WrongConnection("connection= is in a failed transaction; roll it back first")


def _check_found(row: tuple[bool] | None, schema: str) -> None:
    if row is None or not row[0]:
        raise SchemaMissing(f"the connection's database has no schema {schema!r}; run: rowlock migrate")


def _unknown(connection: object) -> WrongConnection:
    kind = f"{type(connection).__module__}.{type(connection).__qualname__}"
    return WrongConnection(f"connection= is a {kind}; pass a psycopg 3 Connection or AsyncConnection")
