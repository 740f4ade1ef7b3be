"""Pools of our own connections: few, lazy, safe over fork and over event loops.

No threads and no background tasks: a connection is opened by the call that needs it and kept for the next one.
(psycopg's pool brings threads of its own, which do not survive a fork and must be closed before exit.)
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from math import inf, isinf
from typing import TypeVar
from weakref import WeakKeyDictionary, finalize

import psycopg

from rowlock.db.session import AsyncSession, Server, Session, aconnect, connect
from rowlock.db.threads import in_own_thread

S = TypeVar("S", bound=Session | AsyncSession)

# Enqueuing is short: more connections than this only queue up inside PostgreSQL.
_MOST = 8


class Pool:
    """Connections for sync callers of one process."""

    def __init__(self, server: Callable[[], Server], name: str, *, deadline: Callable[[], float] = lambda: inf) -> None:
        self._server = server
        self._name = name
        self._deadline = deadline
        self._own = self._new()

    def _new(self) -> _ProcessPool:
        own = _ProcessPool()
        finalize(self, own.close)  # with the app, or at exit: nobody has to close us
        return own

    @contextmanager
    def connection(self) -> Iterator[Session]:
        """An open connection, in no transaction; one that broke, or was left in a transaction, is not used again."""
        pool = self._here()
        if not pool.free.acquire(timeout=min(self._deadline(), threading.TIMEOUT_MAX)):
            raise _all_in_use(self._deadline())
        try:
            connection = take_idle(pool.idle) or self._connect()
            try:
                yield connection
            finally:
                if connection.closed or connection.pgconn.transaction_status:
                    connection.close()
                else:
                    pool.idle.append(connection)
        finally:
            pool.free.release()

    def _connect(self) -> Session:
        return connect(self._server(), name=self._name, deadline=self._deadline())

    def close(self) -> None:
        """Close the idle connections."""
        self._here().close()

    def _here(self) -> _ProcessPool:
        """After a fork the sockets belong to the parent: let go of them without a word to the server.

        Two threads of the child may each make a pool, without harm: a lock may have been held when the process forked.
        """
        if self._own.pid != os.getpid():
            self._own = self._new()  # the finalizer keeps the parent's, so that nothing closes them
        return self._own


class _ProcessPool:
    def __init__(self) -> None:
        self.pid = os.getpid()
        self.idle: list[Session] = []
        self.free = threading.BoundedSemaphore(_MOST)

    def close(self) -> None:
        """Close connections, unless they belong to the process that this one was forked from."""
        while self.pid == os.getpid() and (connection := take_idle(self.idle)):
            connection.close()


def take_idle(idle: list[S]) -> S | None:
    """One of the idle connections, if there is one: to look first and take then is two steps, for threads."""
    try:
        return idle.pop()
    except IndexError:
        return None


def _all_in_use(deadline: float) -> psycopg.OperationalError:
    return psycopg.OperationalError(
        f"all {_MOST} connections of this process were busy for {deadline:g} s; the server is slow or does not respond"
    )


class AsyncPool:
    """Connections for async callers, apart for each event loop."""

    def __init__(self, server: Callable[[], Server], name: str, *, deadline: Callable[[], float] = lambda: inf) -> None:
        self._server = server
        self._name = name
        self._deadline = deadline
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopPool] = WeakKeyDictionary()
        self._parents: _LoopPool | None = None

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[AsyncSession]:
        """An open connection, in no transaction; one that broke, or was left in a transaction, is not used again."""
        pool, deadline = self._here(), self._deadline()
        try:
            async with asyncio.timeout(None if isinf(deadline) else deadline):
                await pool.free.acquire()
        except TimeoutError:
            raise _all_in_use(self._deadline()) from None
        try:
            connection = take_idle(pool.idle) or await self._connect()
            try:
                yield connection
            finally:
                if connection.closed or connection.pgconn.transaction_status:
                    await connection.close()
                else:
                    pool.idle.append(connection)
        finally:
            pool.free.release()

    async def _connect(self) -> AsyncSession:
        server = await in_own_thread(self._server)  # the first call may start an embedded server
        return await aconnect(server, name=self._name, deadline=self._deadline())

    async def close(self) -> None:
        """Close the idle connections of the running loop."""
        pool = self._here()
        while connection := take_idle(pool.idle):
            await connection.close()

    def abandon(self) -> None:
        """Drop the idle connections of every loop without a word to the server."""
        for pool in self._loops.values():
            pool.abandon()

    def _here(self) -> _LoopPool:
        loop = asyncio.get_running_loop()
        pool = self._loops.get(loop)
        if pool is None or pool.pid != os.getpid():
            self._close_ended_loops()
            self._parents = pool
            pool = self._loops[loop] = _LoopPool()
            finalize(loop, pool.abandon)
        return pool

    def _close_ended_loops(self) -> None:
        """Connections of a loop that is closed cannot be awaited any more: drop their sockets."""
        for loop, pool in list(self._loops.items()):
            if loop.is_closed():
                pool.abandon()
                del self._loops[loop]


class _LoopPool:
    def __init__(self) -> None:
        self.pid = os.getpid()
        self.idle: list[AsyncSession] = []
        self.free = asyncio.Semaphore(_MOST)

    def abandon(self) -> None:
        while self.pid == os.getpid() and (connection := take_idle(self.idle)):
            connection.pgconn.finish()
