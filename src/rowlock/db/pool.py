"""Our own connections for callers that bring none: few, lazy, safe over fork and over event loops.

No threads and no background tasks: a connection is opened by the call that needs it and kept for the next one.
(psycopg's pool brings threads of its own, which do not survive a fork and must be closed before exit.)
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from weakref import WeakKeyDictionary, finalize

from rowlock.db.session import AsyncConnection, Connection, aconnect, connect

# Enqueuing is short: more connections than this only queue up inside PostgreSQL.
_MOST = 8


class Pool:
    """Connections for sync callers of one process."""

    def __init__(self, conninfo: Callable[[], str], name: str) -> None:
        self._conninfo = conninfo
        self._name = name
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._idle: list[Connection] = []
        self._free = threading.BoundedSemaphore(_MOST)
        finalize(self, _close_own, self._idle, self._pid)  # with the app, or at exit: nobody has to close us

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """An open connection, in no transaction; one that broke, or was left in a transaction, is not used again."""
        self._forget_parents()
        with self._free:
            connection = self._idle.pop() if self._idle else connect(self._conninfo(), name=self._name)
            try:
                yield connection
            finally:
                if connection.closed or connection.pgconn.transaction_status:
                    connection.close()
                else:
                    self._idle.append(connection)

    def close(self) -> None:
        """Close the idle connections."""
        self._forget_parents()
        while self._idle:
            self._idle.pop().close()

    def _forget_parents(self) -> None:
        """After a fork the sockets belong to the parent: let go of them without a word to the server."""
        if self._pid != os.getpid():
            self._reset()  # the finalizer made by the parent keeps its connections, so that nothing closes them


def _close_own(idle: list[Connection], pid: int) -> None:
    """Close connections, unless they belong to the process that this one was forked from."""
    while idle and pid == os.getpid():
        idle.pop().close()


class AsyncPool:
    """Connections for async callers, apart for each event loop."""

    def __init__(self, conninfo: Callable[[], str], name: str) -> None:
        self._conninfo = conninfo
        self._name = name
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopPool] = WeakKeyDictionary()
        self._parents: _LoopPool | None = None

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[AsyncConnection]:
        """An open connection, in no transaction; one that broke, or was left in a transaction, is not used again."""
        pool = self._here()
        async with pool.free:
            if pool.idle:
                connection = pool.idle.pop()
            else:
                conninfo = await asyncio.to_thread(self._conninfo)  # the first call may start an embedded server
                connection = await aconnect(conninfo, name=self._name)
            try:
                yield connection
            finally:
                if connection.closed or connection.pgconn.transaction_status:
                    await connection.close()
                else:
                    pool.idle.append(connection)

    async def close(self) -> None:
        """Close the idle connections of the running loop."""
        pool = self._here()
        while pool.idle:
            await pool.idle.pop().close()

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
        self.idle: list[AsyncConnection] = []
        self.free = asyncio.Semaphore(_MOST)

    def abandon(self) -> None:
        while self.idle and self.pid == os.getpid():
            connection = self.idle.pop()
            connection.pgconn.finish()
