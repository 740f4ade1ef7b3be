"""Lent connections: sync and async code enqueue in one open transaction.

Elsewhere the wrong kind is refused, because waiting across that line may block forever. Here somebody waits on the
other side: `rowlock.testing.drain`, which runs handlers of both kinds on one connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from importlib import import_module
from typing import Any, TypeVar

import psycopg

from rowlock.db import borrowed
from rowlock.db.borrowed.joining import TransactionEnd, kind_name
from rowlock.db.within import Within
from rowlock.errors import WrongConnection
from rowlock.store.query import Conversation

T = TypeVar("T")


class FromThread:
    """A sync connection whose thread runs what async code has to say on it."""

    def __init__(self, connection: object, run: Callable[[Callable[[], Any]], Awaitable[Any]]) -> None:
        self.connection = connection
        self.run = run


class FromLoop:
    """An async connection whose loop runs what the threads of sync code have to say on it."""

    def __init__(self, connection: object, loop: asyncio.AbstractEventLoop) -> None:
        self.connection = connection
        self.loop = loop


def from_loop(connection: Any, loop: asyncio.AbstractEventLoop) -> object:  # noqa: ANN401  of any library
    """Lend an async connection; Django's are not lent, for its async verbs find the right thread by themselves."""
    libraries = {parent.__module__.partition(".")[0] for parent in type(connection).__mro__}
    if "django" in libraries:
        utils: Any = import_module("django.utils.connection")
        return utils.ConnectionProxy(import_module("django.db").connections, connection.alias)  # each thread's own
    if "sqlalchemy" in libraries and hasattr(connection, "registry"):
        connection = connection.registry()  # each task has a session of its own there: meant is that of this one
    return FromLoop(connection, loop)


def converse(connection: FromThread | FromLoop, conversation: Conversation[T], schema: str, *, atomic: bool) -> T:
    """Hold a conversation, in the connection's thread or from another one than its loop's."""
    if isinstance(connection, FromThread):
        return borrowed.converse(connection.connection, conversation, schema, atomic=atomic)
    held = borrowed.aconverse(connection.connection, conversation, schema, atomic=atomic)
    return asyncio.run_coroutine_threadsafe(held, connection.loop).result()


async def aconverse(
    connection: FromThread | FromLoop, conversation: Conversation[T], schema: str, *, atomic: bool
) -> T:
    """Hold a conversation, on the connection's loop or by asking its thread."""
    if isinstance(connection, FromLoop):
        return await borrowed.aconverse(connection.connection, conversation, schema, atomic=atomic)
    answer: T = await connection.run(
        partial(borrowed.converse, connection.connection, conversation, schema, atomic=atomic)
    )
    return answer


def mark(connection: object) -> Callable[[], None] | None:
    """Mark the open transaction beneath, lent or not, in the thread to which it belongs."""
    return borrowed.mark(connection.connection if isinstance(connection, FromThread | FromLoop) else connection)


def physical(connection: FromThread | FromLoop) -> object | None:
    """The driver's own connection behind it; None while there is none."""
    return borrowed.physical(connection.connection)


def in_transaction(connection: FromThread | FromLoop) -> bool:
    """Whether the driver's own connection has a transaction open, be it a failed one."""
    return borrowed.in_transaction(connection.connection)


class NestedTransactions:
    """Where the handlers of a drain hold their transactions: on the drained connection, which alone can see the jobs.

    What they write and the ends of their jobs are then part of its open transaction, all of it or nothing. If it has
    none open, because it commits each statement, it is used as in a worker.
    """

    def __init__(self, offered: object, schema: str, within: Within) -> None:
        """`offered` is the connection as it is lent to what handlers enqueue."""
        self._connection = offered.connection if isinstance(offered, FromThread | FromLoop) else offered
        self._schema = schema
        self._within = within

    def choose(self, named: object | None) -> object | None:
        """The handler's connection; else the app's own, as in a worker, if it is the drained one."""
        if named is not None or (own := self._within.own()) is None:
            return named
        return own if borrowed.physical(own) is borrowed.physical(self._connection) else None

    @contextmanager
    def transaction(self, connection: object | None, last: TransactionEnd) -> Iterator[object]:
        """A transaction that ends with the last words, for sync handlers."""
        mine = self._here(connection, psycopg.Connection)
        if not borrowed.in_transaction(mine):
            with borrowed.transaction(mine, last, self._schema):
                yield mine
            return
        said = False
        with borrowed.savepoint(mine):
            yield mine
            borrowed.converse(mine, last.say(), self._schema, atomic=False)
            said = True
        if said:
            last.committed()

    @asynccontextmanager
    async def atransaction(self, connection: object | None, last: TransactionEnd) -> AsyncIterator[object]:
        """A transaction that ends with the last words, for async handlers."""
        mine = self._here(connection, psycopg.AsyncConnection)
        if not borrowed.in_transaction(mine):
            async with borrowed.atransaction(mine, last, self._schema):
                yield mine
            return
        said = False
        async with borrowed.savepoint(mine):
            yield mine
            await borrowed.aconverse(mine, last.say(), self._schema, atomic=False)
            said = True
        if said:
            last.committed()

    def _here(self, connection: object | None, kind: type) -> object:
        """The connection to use: the handler's, if it is the drained one; else the driver's connection beneath that."""
        drained = borrowed.physical(self._connection)
        if connection is not None:
            if borrowed.physical(connection) is not drained:
                raise WrongConnection(
                    "the job is part of the open transaction of the connection that is drained, where nobody else sees "
                    "it; give that connection to current_job().transaction(…)"
                )
            return connection
        if not isinstance(drained, kind):
            raise WrongConnection(
                f"current_job().transaction() would give this handler a psycopg.{kind.__name__}, but what is drained "
                f"is a {kind_name(self._connection)}; drain without connection=, or on a psycopg connection of its kind"
            )
        return drained
