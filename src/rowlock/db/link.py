"""A worker's connection: it comes back after every outage, and it can listen, behind a pooler by a second one."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from math import inf
from typing import TypeVar

import psycopg

from rowlock.db.session import AsyncSession, Server, aconnect, aconverse, arun, server_at
from rowlock.db.trouble import Trouble, first_line, trouble
from rowlock.store import schema as schema_store
from rowlock.store.query import Conversation, Query

log = logging.getLogger("rowlock.worker")

T = TypeVar("T")

# Short, so that a worker is back soon after an outage: thousands that knock twice a second do not hurt a server.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0
# A connection that only listens says something so often: one that leads nowhere is silent, too.
_PULSE = 30.0
# What a notification says that means: look everywhere.
_LOOK = "below"


class Refused(Exception):  # an answer of the server's, not a fault of ours
    """PostgreSQL does not accept what a statement carries; sending it again would not help."""

    def __init__(self, error: psycopg.Error) -> None:
        super().__init__(error.diag.message_primary or str(error))
        # A row for which no partition is there violates a check that has no name.
        self.lacks_partition = isinstance(error, psycopg.errors.CheckViolation) and error.diag.constraint_name is None


class Lost(Exception):  # as above
    """A query that is said only once has not been answered as it should; whether it was heard is not known."""


class Link:
    """One async connection that is opened again whenever it breaks."""

    def __init__(self, server: Server | str, schema: str, *, name: str, deadline: float = inf) -> None:
        self._server = server_at(server)
        self._schema = schema
        self._name = name
        self._deadline = deadline
        self._connection: AsyncSession | None = None
        self._opening = asyncio.Lock()
        self._channels: Sequence[str] = ()
        self._notified: Callable[[str], None] = _ignore
        self._greet: Callable[[], Awaitable[None]] | None = None
        self._ear: _Ear | None = None
        self._knows_pooler = False

    def listen(self, channels: Sequence[str], notified: Callable[[str], None]) -> None:
        """Listen from the next connection on; `notified` is called with each payload."""
        self._channels, self._notified = channels, notified

    @property
    def hears(self) -> bool:
        """Whether notifications come in now: through a pooler they do not."""
        if self._ear is not None:
            return self._ear.hears
        connection = self._connection
        return bool(self._channels) and connection is not None and not (connection.closed or connection.pooled)

    def on_reconnect(self, greet: Callable[[], Awaitable[None]]) -> None:
        """What to do first on each connection after the first one."""
        self._greet = greet

    async def open(self) -> AsyncSession:
        """The open connection; waits through an outage, with growing, jittered pauses."""
        if self._connection is not None and not self._connection.closed:
            return self._connection
        async with self._opening:  # two that find it broken must not open two
            if self._connection is not None and not self._connection.closed:
                return self._connection
            again = self._connection is not None
            connection = self._connection = await self._connect_at_last()
        if again and self._greet is not None:
            await self._greet()
        return connection

    async def _connect_at_last(self) -> AsyncSession:
        pauses = _pauses()
        while True:
            try:
                return await self._connect()
            except (psycopg.Error, OSError) as error:  # a resolver's too
                await self._pause(pauses, f"no connection ({first_line(error)})")

    async def _connect(self) -> AsyncSession:
        connection = await aconnect(self._server, name=self._name, deadline=self._deadline)
        if connection.pooled:
            self._behind_pooler()
            return connection
        connection.add_notify_handler(lambda notify: self._notified(notify.payload))
        try:
            for channel in self._channels:
                await connection.execute(psycopg.sql.SQL("listen {}").format(psycopg.sql.Identifier(channel)))
        except BaseException:
            await connection.close()
            raise
        return connection

    def _behind_pooler(self) -> None:
        """Listen around it, if there is a way."""
        if not self._channels or self._knows_pooler:
            return
        self._knows_pooler = True
        if self._server.listen is None:
            how = "jobs are found by looking once a second (listen_url= would name a way around it, to be notified)"
        else:
            how = "notifications come in around it, on listen_url"
            link = Link(self._server.listen, self._schema, name="rowlock listen", deadline=self._deadline)
            link.listen(self._channels, self._notified)
            self._ear = _Ear(link, missed=lambda: self._notified(_LOOK))
        log.info(
            "%s: a pooler lends us connections; %s. A worker that dies is noticed when its lease runs out",
            self._name,
            how,
        )

    async def run(self, query: Query[T]) -> list[T]:
        """Run a query, again through every passing trouble: any query given here may be sent twice."""
        return await self._at_last(query.name, lambda connection: arun(connection.cursor(), query, self._schema))

    async def converse(self, begin: Callable[[], Conversation[T]]) -> T:
        """Hold a conversation in one transaction, again through every passing trouble: it may be held twice."""

        async def hold(connection: AsyncSession) -> T:
            async with connection.transaction():
                return await aconverse(partial(arun, connection.cursor(), schema=self._schema), begin())

        return await self._at_last("a conversation", hold)

    async def _at_last(self, what: str, say: Callable[[AsyncSession], Awaitable[T]]) -> T:
        pauses = _pauses()
        while True:
            connection = await self.open()
            try:
                return await say(connection)
            except psycopg.Error as error:
                kind = trouble(error)
                if kind is Trouble.REFUSED:
                    raise Refused(error) from error
                if kind is Trouble.GONE:
                    await connection.close()
                await self._pause(pauses, f"{what} failed ({first_line(error)})")

    async def once(self, query: Query[T]) -> list[T]:
        """Run a query that must not be sent twice: Lost, whatever the trouble is."""
        connection = await self.open()
        try:
            return await arun(connection.cursor(), query, self._schema)
        except psycopg.Error as error:
            if trouble(error) is Trouble.GONE:
                await connection.close()
            raise Lost(first_line(error)) from error

    async def _pause(self, pauses: Iterator[float], fault: str) -> None:
        pause = next(pauses)
        # The first of an outage is news; the others are not, and an outage may be long.
        level = logging.WARNING if pause == _FIRST_PAUSE else logging.DEBUG
        log.log(level, "%s: %s; trying again until it works", self._name, fault)
        await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # jitter, not a secret

    async def rest(self, event: asyncio.Event, timeout: float) -> bool:
        """Wait for `event` while notifications come in; False when `timeout` seconds passed first."""
        loop = asyncio.get_running_loop()
        connection = await self.open()
        number = connection.fileno()  # when libpq finds the connection broken, it has none any more
        loop.add_reader(number, self._readable, connection, event)
        try:
            async with asyncio.timeout(timeout):
                await event.wait()
        except TimeoutError:
            return False
        else:
            return True
        finally:
            loop.remove_reader(number)

    def _readable(self, connection: AsyncSession, event: asyncio.Event) -> None:
        """Notifications have come, or the server has gone."""
        try:
            connection.pgconn.consume_input()
        except psycopg.OperationalError:
            connection.pgconn.finish()
            event.set()
            return
        while notify := connection.pgconn.notifies():
            self._notified(notify.extra.decode())

    async def close(self) -> None:
        """Close the connection."""
        if self._ear is not None:
            await self._ear.close()
        if self._connection is not None:
            await self._connection.close()


class _Ear:
    """A link around a pooler that does nothing but listen. When it begins to, again and again, others are to look: it
    has missed something, perhaps.
    """

    def __init__(self, link: Link, *, missed: Callable[[], None]) -> None:
        self._link = link
        self._missed = missed
        link.on_reconnect(self._resumed)
        self._listening = asyncio.create_task(self._listen())

    @property
    def hears(self) -> bool:
        """Whether notifications come in now."""
        return self._link.hears

    async def _listen(self) -> None:
        broken = asyncio.Event()
        await self._link.open()
        self._missed()  # whoever waits has begun before we listened
        while True:
            if await self._link.rest(broken, _PULSE):
                broken.clear()  # the next rest is on a new connection
            else:
                await self._link.run(schema_store.now())

    async def _resumed(self) -> None:
        self._missed()

    async def close(self) -> None:
        self._listening.cancel()
        await asyncio.wait([self._listening])
        await self._link.close()


def _pauses() -> Iterator[float]:
    pause = _FIRST_PAUSE
    while True:
        yield pause
        pause = min(pause * 2, _LONGEST_PAUSE)


def _ignore(_payload: str) -> None:
    return None
