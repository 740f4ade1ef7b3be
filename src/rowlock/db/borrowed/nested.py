"""Transactions of handlers inside of one that is not theirs to commit: under savepoints of a test's own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import psycopg

from rowlock.db import borrowed
from rowlock.db.borrowed.joining import LastWords, kind_name
from rowlock.db.borrowed.lent import FromLoop, FromThread
from rowlock.db.within import Within
from rowlock.errors import WrongConnection


class Nested:
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
    def transaction(self, connection: object | None, last: LastWords) -> Iterator[object]:
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
    async def atransaction(self, connection: object | None, last: LastWords) -> AsyncIterator[object]:
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
