"""A worker's connection: it comes back after every outage, and it can listen."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import psycopg

from rowlock.db.session import AsyncConnection, aconnect, arun, broken
from rowlock.store.query import Query

log = logging.getLogger("rowlock.worker")

T = TypeVar("T")

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 5.0


class Refused(Exception):  # an answer of the server's, not a fault of ours
    """PostgreSQL does not accept what a statement carries; sending it again would not help."""

    def __init__(self, error: psycopg.Error) -> None:
        super().__init__(error.diag.message_primary or str(error))
        # A row for which no partition is there violates a check that has no name.
        self.lacks_partition = isinstance(error, psycopg.errors.CheckViolation) and error.diag.constraint_name is None


class Link:
    """One async connection that is opened again whenever it breaks."""

    def __init__(self, conninfo: str, schema: str, *, name: str) -> None:
        self._conninfo = conninfo
        self._schema = schema
        self._name = name
        self._connection: AsyncConnection | None = None
        self._channels: Sequence[str] = ()
        self._notified: Callable[[str], None] = _ignore
        self._greet: Callable[[], Awaitable[None]] | None = None

    def listen(self, channels: Sequence[str], notified: Callable[[str], None]) -> None:
        """Listen from the next connection on; `notified` is called with each payload."""
        self._channels, self._notified = channels, notified

    def on_reconnect(self, greet: Callable[[], Awaitable[None]]) -> None:
        """What to do first on each connection after the first one."""
        self._greet = greet

    async def open(self) -> AsyncConnection:
        """The open connection; waits through an outage, with growing, jittered pauses."""
        if self._connection is not None and not self._connection.closed:
            return self._connection
        again, pause = self._connection is not None, _FIRST_PAUSE
        while True:
            try:
                self._connection = await self._connect()
                break
            except psycopg.OperationalError as error:
                log.warning("%s: no connection (%s); trying again", self._name, str(error).splitlines()[0])
                await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # jitter, not a secret
                pause = min(pause * 2, _LONGEST_PAUSE)
        if again and self._greet is not None:
            await self._greet()
        return self._connection

    async def _connect(self) -> AsyncConnection:
        connection = await aconnect(self._conninfo, name=self._name)
        connection.add_notify_handler(lambda notify: self._notified(notify.payload))
        try:
            for channel in self._channels:
                await connection.execute(psycopg.sql.SQL("listen {}").format(psycopg.sql.Identifier(channel)))
        except BaseException:
            await connection.close()
            raise
        return connection

    async def run(self, query: Query[T]) -> list[T]:
        """Run a query, again through every passing trouble: any query given here may be sent twice."""
        pause = _FIRST_PAUSE
        while True:
            connection = await self.open()
            try:
                return await arun(connection.cursor(), query, self._schema)
            except (psycopg.DataError, psycopg.IntegrityError) as error:
                raise Refused(error) from error
            except psycopg.Error as error:
                log.warning("%s: %s failed (%s); trying again", self._name, query.name, str(error).partition("\n")[0])
                if broken(error):
                    await connection.close()
                await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # jitter, not a secret
                pause = min(pause * 2, _LONGEST_PAUSE)

    async def rest(self, event: asyncio.Event, timeout: float) -> bool:
        """Wait for `event` while notifications come in; False when `timeout` seconds passed first."""
        loop = asyncio.get_running_loop()
        connection = await self.open()
        loop.add_reader(connection.fileno(), self._readable, connection, event)
        try:
            async with asyncio.timeout(timeout):
                await event.wait()
        except TimeoutError:
            return False
        else:
            return True
        finally:
            if not connection.closed:
                loop.remove_reader(connection.fileno())

    def _readable(self, connection: AsyncConnection, event: asyncio.Event) -> None:
        """Notifications have come, or the server has gone."""
        try:
            connection.pgconn.consume_input()
        except psycopg.OperationalError:
            asyncio.get_running_loop().remove_reader(connection.fileno())
            connection.pgconn.finish()
            event.set()
            return
        while notify := connection.pgconn.notifies():
            self._notified(notify.extra.decode())

    async def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            await self._connection.close()


def _ignore(_payload: str) -> None:
    return None
