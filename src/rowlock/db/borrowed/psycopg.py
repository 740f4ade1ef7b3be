"""Psycopg: a borrowed connection."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.pq import Format, PipelineStatus, TransactionStatus
from psycopg.rows import TupleRow, tuple_row
from psycopg.types.string import TextBinaryLoader

from rowlock.db import session
from rowlock.db.borrowed.joining import (
    TransactionEnd,
    has_failed,
    in_pipeline,
    is_async,
    is_closed,
    is_inside,
    is_sync,
    joined,
    needs_async_with,
    needs_with,
    nothing,
    wrong_kind,
)
from rowlock.store.query import Conversation

T = TypeVar("T")

_Either = psycopg.Connection[Any] | psycopg.AsyncConnection[Any]

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)


def converse(connection: object, conversation: Conversation[T], schema: str, *, atomic: bool) -> T:
    """Hold a conversation on a sync connection."""
    if isinstance(connection, psycopg.AsyncConnection):
        raise is_async()
    if not isinstance(connection, psycopg.Connection):
        raise wrong_kind(connection)
    _check_usable(connection)
    whole = joined(conversation, physical=connection, schema=schema, atomic=atomic, inside=_is_inside(connection))
    with psycopg.Cursor(connection, row_factory=tuple_row) as cursor:  # whatever kind the caller's cursors are
        _read_alike(cursor)
        return session.converse(partial(session.run, cursor, schema=schema), whole)


async def aconverse(connection: object, conversation: Conversation[T], schema: str, *, atomic: bool) -> T:
    """Hold a conversation on an async connection."""
    if isinstance(connection, psycopg.Connection):
        raise is_sync()
    if not isinstance(connection, psycopg.AsyncConnection):
        raise wrong_kind(connection)
    _check_usable(connection)
    whole = joined(conversation, physical=connection, schema=schema, atomic=atomic, inside=_is_inside(connection))
    async with psycopg.AsyncCursor(connection, row_factory=tuple_row) as cursor:
        _read_alike(cursor)
        return await session.aconverse(partial(session.arun, cursor, schema=schema), whole)


def physical(connection: object) -> _Either:
    """The connection itself."""
    if not isinstance(connection, psycopg.Connection | psycopg.AsyncConnection):
        raise wrong_kind(connection)
    return connection


def in_transaction(connection: object) -> bool:
    """Whether it has a transaction open."""
    mine = physical(connection)
    return not mine.closed and mine.pgconn.transaction_status != TransactionStatus.IDLE


@contextmanager
def transaction(connection: object, last: TransactionEnd, schema: str) -> Iterator[None]:
    """A transaction on a sync connection; psycopg refuses commit() and rollback() inside of it."""
    if isinstance(connection, psycopg.AsyncConnection):
        raise needs_async_with()
    if not isinstance(connection, psycopg.Connection):
        raise wrong_kind(connection)
    _check_outermost(connection)
    is_open, said = in_transaction(connection), False
    try:
        with connection.transaction():
            converse(connection, nothing(), schema, atomic=False)
            yield
            converse(connection, last.say(), schema, atomic=False)
            said = True
        if is_open and said:
            connection.commit()
    finally:
        if is_open and in_transaction(connection):
            with suppress(psycopg.Error):  # what failed first is what the caller has to know
                connection.rollback()
    if said:  # psycopg.Rollback, raised in the block, ends it without a word
        last.committed()


@asynccontextmanager
async def atransaction(connection: object, last: TransactionEnd, schema: str) -> AsyncIterator[None]:
    """A transaction on an async connection; psycopg refuses commit() and rollback() inside of it."""
    if isinstance(connection, psycopg.Connection):
        raise needs_with()
    if not isinstance(connection, psycopg.AsyncConnection):
        raise wrong_kind(connection)
    _check_outermost(connection)
    is_open, said = in_transaction(connection), False
    try:
        async with connection.transaction():
            await aconverse(connection, nothing(), schema, atomic=False)
            yield
            await aconverse(connection, last.say(), schema, atomic=False)
            said = True
        if is_open and said:
            await connection.commit()
    finally:
        if is_open and in_transaction(connection):
            with suppress(psycopg.Error):
                await connection.rollback()
    if said:
        last.committed()


def savepoint(connection: object) -> Any:  # noqa: ANN401  of either colour
    """The library's own."""
    return physical(connection).transaction()


def _check_outermost(connection: _Either) -> None:
    _check_usable(connection)
    if connection._num_transactions:  # noqa: SLF001  nothing public tells
        raise is_inside("a connection.transaction() block")


def _check_usable(connection: _Either) -> None:
    if connection.closed:
        raise is_closed()
    if connection.pgconn.pipeline_status != PipelineStatus.OFF:
        raise in_pipeline()
    if connection.pgconn.transaction_status == TransactionStatus.INERROR:
        raise has_failed()


def _is_inside(connection: _Either) -> bool:
    """Whether what is said next belongs to a transaction that the caller will end."""
    return not connection.autocommit or connection.pgconn.transaction_status != TransactionStatus.IDLE


def _read_alike(cursor: psycopg.Cursor[TupleRow] | psycopg.AsyncCursor[TupleRow]) -> None:
    """Read rows as on our own connections, whatever the caller has registered, and whatever its session's settings.

    In binary form, because a moment as text is written as DateStyle and TimeZone say.
    """
    cursor.format = Format.BINARY
    cursor.adapters.register_loader("uuid", _Id)
    cursor.adapters.register_loader("json", TextBinaryLoader)
    cursor.adapters.register_loader("timestamptz", _Moment)


class _Id(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> str:
        return str(UUID(bytes=bytes(data)))


class _Moment(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> str:
        return (_EPOCH + timedelta(microseconds=int.from_bytes(data, "big", signed=True))).isoformat()
