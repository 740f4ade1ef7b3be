"""Enqueue on a psycopg connection of the caller's, inside whatever transaction it has open."""

from __future__ import annotations

from typing import Any, TypeVar
from weakref import WeakSet

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from rowlock.db.session import read_as_text
from rowlock.errors import SchemaMissing, WrongConnection
from rowlock.store.query import Conversation, statement

T = TypeVar("T")

# Connections on which our schema was seen: asked once, because asking after a failed insert would be too late for the
# caller's transaction.
_seen: WeakSet[psycopg.Connection[Any] | psycopg.AsyncConnection[Any]] = WeakSet()
_LOOK = "select to_regclass(%s) is not null"


def converse(connection: object, conversation: Conversation[T], schema: str) -> T:
    """Hold a conversation on a sync connection."""
    if isinstance(connection, psycopg.AsyncConnection):
        raise WrongConnection("enqueue got an async connection; use `await task.using(connection=…).aenqueue(…)`")
    if not isinstance(connection, psycopg.Connection):
        raise _unknown(connection)
    _check_usable(connection)
    with connection.cursor(row_factory=tuple_row) as cursor:
        read_as_text(cursor.adapters)
        if connection not in _seen:
            _check_found(cursor.execute(_LOOK, [f"{schema}.jobs"]).fetchone(), schema)
            _seen.add(connection)
        try:
            query = next(conversation)
            while True:
                rows = cursor.execute(statement(query.name, schema), query.params).fetchall()
                query = conversation.send([query.read(row) for row in rows])
        except StopIteration as end:
            answer: T = end.value
            return answer


async def aconverse(connection: object, conversation: Conversation[T], schema: str) -> T:
    """Hold a conversation on an async connection."""
    if isinstance(connection, psycopg.Connection):
        raise WrongConnection("aenqueue got a sync connection; use `task.using(connection=…).enqueue(…)`")
    if not isinstance(connection, psycopg.AsyncConnection):
        raise _unknown(connection)
    _check_usable(connection)
    async with connection.cursor(row_factory=tuple_row) as cursor:
        read_as_text(cursor.adapters)
        if connection not in _seen:
            await cursor.execute(_LOOK, [f"{schema}.jobs"])
            _check_found(await cursor.fetchone(), schema)
            _seen.add(connection)
        try:
            query = next(conversation)
            while True:
                await cursor.execute(statement(query.name, schema), query.params)
                query = conversation.send([query.read(row) for row in await cursor.fetchall()])
        except StopIteration as end:
            answer: T = end.value
            return answer


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
