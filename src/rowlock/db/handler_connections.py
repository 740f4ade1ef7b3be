"""Connections for handlers that bring none: plain sessions, a few at a time.

None of the engine's settings is made on them, because what is said there is the handler's own. Nothing is prepared, so
that they are the same behind a pooler.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from math import ceil, inf, isinf
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from rowlock.db import borrowed
from rowlock.db.address import with_host_addresses
from rowlock.db.borrowed.joining import TransactionEnd
from rowlock.db.pool import take_idle
from rowlock.db.session import WHO, AsyncSession, Server, Session, is_pooled, server_at
from rowlock.db.within import Within
from rowlock.errors import RowlockError
from rowlock.store.query import Conversation

# Of each kind, sync and async. A block is short, and each holds a snapshot and locks.
MOST = 8

_CONNECT: dict[str, Any] = {
    "autocommit": True,  # a transaction is begun by its block, and between two of them there is none
    "prepare_threshold": None,
    "application_name": "rowlock handler",
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
}
_LONGEST_CONNECT_TIMEOUT = 10
# Whatever the last handler has set, listened to or left in temporary tables. It also shows whether the server is there.
_CLEAN = "discard all"
# Behind a pooler that server connection is everybody's, and the next transaction may be on another: there is nothing to
# clear, and PgBouncer 1.21 would go on to use the statements that others have prepared there.
_PING = "select 1"


class HandlerConnections:
    """At most so many connections for each kind of handlers, opened when they are needed and closed with the worker.

    `deadline` is how many seconds one may wait for a connection, and the end of a transaction for its answers; what
    the handler says in between takes as long as it takes.
    """

    def __init__(
        self,
        server: Server | str,
        schema: str,
        *,
        within: Within | None = None,
        deadline: float = inf,
        most: int = MOST,
    ) -> None:
        self._within = within or Within(None)
        self._server = server_at(server)
        self._pooled = self._server.pooler  # None: to be found out
        self._schema = schema
        self._deadline = deadline
        self._most = most
        self._loop = asyncio.get_running_loop()
        self._closed = False
        self._free = threading.BoundedSemaphore(most)
        self._afree = asyncio.Semaphore(most)
        self._idle: list[Session] = []
        self._aidle: list[AsyncSession] = []
        self._out: set[Session | AsyncSession] = set()

    def choose(self, named: object | None) -> object | None:
        """The handler's connection, where it has named this one: as for an enqueue. None is one of these."""
        return self._within.choose(named)

    @contextmanager
    def transaction(self, connection: object | None, last: TransactionEnd) -> Iterator[object]:
        """A transaction that ends with the last words, on the handler's connection or on one of these."""
        if connection is not None:
            with borrowed.transaction(connection, last, self._schema):
                yield connection
            return
        _refuse_in_loop()
        with self._connection() as mine, borrowed.transaction(mine, self._hurried(mine, last), self._schema):
            yield mine

    @asynccontextmanager
    async def atransaction(self, connection: object | None, last: TransactionEnd) -> AsyncIterator[object]:
        """As `transaction`, for async handlers."""
        if connection is not None:
            async with borrowed.atransaction(connection, last, self._schema):
                yield connection
            return
        if asyncio.get_running_loop() is not self._loop:
            raise RowlockError("this is not the worker's event loop; use `with current_job().transaction()`")
        async with (
            self._aconnection() as mine,
            borrowed.atransaction(mine, self._hurried(mine, last), self._schema),
        ):
            yield mine

    async def close(self) -> None:
        """Close what is idle, and cut off the handlers that were left behind: their jobs are not theirs any more."""
        self._closed = True
        for connection in list(self._out):
            _cut(connection)
        while idle := take_idle(self._idle):
            idle.close()
        while idling := take_idle(self._aidle):
            await idling.close()

    def _hurried(self, connection: Session | AsyncSession, last: TransactionEnd) -> TransactionEnd:
        """The same last words; from then on no answer may take longer than our deadline, up to the commit."""

        def say() -> Conversation[None]:
            connection.deadline = self._deadline
            return last.say()

        return last._replace(say=say)

    @contextmanager
    def _connection(self) -> Iterator[Session]:
        """A connection for a handler in a thread, in no transaction."""
        if not self._free.acquire(timeout=min(self._deadline, threading.TIMEOUT_MAX)):
            raise self._none_free()
        try:
            connection = self._cleaned() or Session.connect(self._server.conninfo, **self._options())
            self._lend(connection)
            try:
                yield connection
            finally:
                if self._is_spent(connection):
                    connection.close()
                else:
                    self._idle.append(connection)
        finally:
            self._free.release()

    @asynccontextmanager
    async def _aconnection(self) -> AsyncIterator[AsyncSession]:
        """A connection for a handler on the loop, in no transaction."""
        try:
            async with asyncio.timeout(None if isinf(self._deadline) else self._deadline):
                await self._afree.acquire()
        except TimeoutError as error:
            raise self._none_free() from error
        try:
            connection = await self._acleaned()
            if connection is None:
                connection = await AsyncSession.connect(
                    await with_host_addresses(self._server.conninfo), **self._options()
                )
            self._lend(connection)
            try:
                yield connection
            finally:
                if self._is_spent(connection):
                    await connection.close()
                else:
                    self._aidle.append(connection)
        finally:
            self._afree.release()

    def _options(self) -> dict[str, Any]:
        seconds = _LONGEST_CONNECT_TIMEOUT if isinf(self._deadline) else ceil(self._deadline)
        return {**_CONNECT, "connect_timeout": min(seconds, _LONGEST_CONNECT_TIMEOUT)}

    def _cleaned(self) -> Session | None:
        """One that was used before, as good as new; those that broke meanwhile are thrown away."""
        while connection := take_idle(self._idle):
            try:
                connection.deadline, connection.row_factory = self._deadline, tuple_row
                if self._pooled is None:
                    self._pooled = is_pooled(self._server, connection.execute(WHO).fetchone(), connection)
                if self._pooled:
                    connection.execute(_PING)
                else:
                    connection.execute(_CLEAN)
            except psycopg.Error:
                connection.close()
            else:
                return connection
        return None

    async def _acleaned(self) -> AsyncSession | None:
        while connection := take_idle(self._aidle):
            try:
                connection.deadline, connection.row_factory = self._deadline, tuple_row
                if self._pooled is None:
                    who = await (await connection.execute(WHO)).fetchone()
                    self._pooled = is_pooled(self._server, who, connection)
                if self._pooled:
                    await connection.execute(_PING)
                else:
                    await connection.execute(_CLEAN)
            except psycopg.Error:
                await connection.close()
            except BaseException:
                await connection.close()
                raise
            else:
                return connection
        return None

    def _lend(self, connection: Session | AsyncSession) -> None:
        connection.deadline = inf
        connection.row_factory = tuple_row
        self._out.add(connection)

    def _is_spent(self, connection: Session | AsyncSession) -> bool:
        self._out.discard(connection)
        return self._closed or connection.closed or connection.pgconn.transaction_status != TransactionStatus.IDLE

    def _none_free(self) -> RowlockError:
        return RowlockError(
            f"no connection for current_job().transaction() was free within {self._deadline:g} s: the worker lends "
            f"{self._most} at a time; keep the blocks short, give the worker fewer slots, or pass connection= from a "
            "pool of your own"
        )


def _refuse_in_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RowlockError(
        "`with current_job().transaction()` would block the running event loop; in an async handler, use `async with`"
    )


def _cut(connection: Session | AsyncSession) -> None:
    """Let whatever is being said there fail at once. Closing it is up to the thread or task that uses it."""
    if not connection.closed:
        with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.fileno())) as end:
            end.shutdown(socket.SHUT_RDWR)
