"""Asyncpg: a borrowed connection, from a pool or not."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractContextManager, asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from rowlock.db import session
from rowlock.db.borrowed.joining import (
    TransactionEnd,
    has_failed,
    is_async,
    is_closed,
    is_inside,
    joined,
    needs_async_with,
    nothing,
    wrong_kind,
)
from rowlock.errors import WrongConnection
from rowlock.store.query import Conversation, Copy, Row, Statement, numbered, target

T = TypeVar("T")


def converse(connection: object, conversation: Conversation[T], schema: str, *, atomic: bool) -> T:  # noqa: ARG001
    """Refuse: every asyncpg connection is async."""
    physical(connection)
    raise is_async()


async def aconverse(connection: object, conversation: Conversation[T], schema: str, *, atomic: bool) -> T:
    """Hold a conversation."""
    mine = _usable(connection)
    inside = mine.is_in_transaction()
    whole = joined(conversation, physical=mine, schema=schema, atomic=atomic, inside=inside)
    return await session.aconverse(partial(_run, mine, schema), whole)


def physical(connection: object) -> asyncpg.Connection | None:
    """The connection itself, without the pool's wrapper."""
    if isinstance(connection, asyncpg.Pool):
        raise WrongConnection("connection= is an asyncpg pool; pass `async with pool.acquire() as connection:`")
    if isinstance(connection, PoolConnectionProxy):
        # A new wrapper each time it is acquired, with nothing public that tells one connection from another.
        return connection._con  # noqa: SLF001
    if not isinstance(connection, asyncpg.Connection):
        raise wrong_kind(connection)
    return connection


def in_transaction(connection: object) -> bool:
    """Whether it has a transaction open."""
    mine = physical(connection)
    return mine is not None and not mine.is_closed() and bool(mine.is_in_transaction())


def transaction(connection: object, last: TransactionEnd, schema: str) -> AbstractContextManager[None]:  # noqa: ARG001
    """Refuse: every asyncpg connection is async."""
    physical(connection)
    raise needs_async_with()


@asynccontextmanager
async def atransaction(connection: object, last: TransactionEnd, schema: str) -> AsyncIterator[None]:
    """A transaction; one that is open belongs to the block that began it, and asyncpg lets nobody else commit it."""
    mine = _usable(connection)
    if mine.is_in_transaction():
        raise is_inside("a transaction")
    async with mine.transaction():
        await aconverse(mine, nothing(), schema, atomic=False)
        yield
        await aconverse(mine, last.say(), schema, atomic=False)
    last.committed()


def savepoint(connection: object) -> Any:  # noqa: ANN401  of a library without types
    """The library's own."""
    return _usable(connection).transaction()


def _usable(connection: object) -> asyncpg.Connection:
    mine = physical(connection)
    if mine is None:
        raise WrongConnection("connection= went back to its pool; pass one that is acquired")
    if mine.is_closed():
        raise is_closed()
    return mine


async def _run(connection: asyncpg.Connection, schema: str, said: Statement) -> list[Any]:
    """Run one query, or one copy."""
    try:
        if isinstance(said, Copy):
            table, columns = target(said.name)
            await connection.copy_to_table(
                table, source=_encoded(said.blocks), columns=columns, schema_name=schema, format="text"
            )
            return []
        asked = numbered(said.name, schema)
        rows = await connection.fetch(asked.text, *[said.params[name] for name in asked.names])
    except asyncpg.InFailedSQLTransactionError as error:  # asyncpg cannot tell before
        raise has_failed() from error
    return [said.read(_row(row)) for row in rows]


async def _encoded(blocks: Iterable[str]) -> AsyncIterator[bytes]:
    for block in blocks:
        yield block.encode()


def _row(record: Iterable[object]) -> Row:
    """Values as on our own connections: ids and moments as text."""
    return tuple([_plain(value) for value in record])


def _plain(value: object) -> object:
    match value:
        case UUID():
            return str(value)
        case datetime():
            return value.astimezone(UTC).isoformat()
        case _:
            return value
