"""Worker connection: reconnects, and listens, behind a pooler on a second connection."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import TypeVar

import psycopg

from rowlock.db.errors import Blame, ErrorKind, Lost, Refused, blame, error_kind, first_line
from rowlock.db.safe_logger import SafeLogger
from rowlock.db.session import AsyncSession, Server, aconnect, aconverse, arun, server_at
from rowlock.store import schema as schema_store
from rowlock.store.query import Conversation, Query

log = SafeLogger("rowlock.worker")

T = TypeVar("T")

# Short, so that a worker is back soon after an outage: thousands that knock twice a second do not hurt a server.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0
# An outage is logged again after so many seconds.
_TELL_EVERY = 60.0
# What goes on failing fails at least once in so many times the longest that a try and the pause after it take.
_STILL_TRIED = 3
# A connection that only listens says something so often: one that leads nowhere is silent, too.
_PULSE = 30.0
# What a notification says that means: look everywhere.
_BELOW = "below"


@dataclass(slots=True)
class _Fault:
    """Something that fails, by time.monotonic()."""

    since: float
    at: float = -inf  # when it has failed for the last time
    told: float = -inf  # when the log has said so for the last time
    said: str = ""


class ReconnectingConnection:
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
        self._is_greeting = False
        self._listener: _ListenConnection | None = None
        self._knows_pooler = False
        # Behind a pooler a statement is a transaction, which another task's statement must not get into.
        self._exchange = asyncio.Lock()
        self._faults: dict[str, _Fault] = {}  # by what fails
        self._reads: int | None = None

    @property
    def fault(self) -> tuple[str, float] | None:
        """What has been going wrong, and for how many seconds; None while all is well, or nothing is tried again."""
        faults = [fault for fault in list(self._faults.values()) if self._is_tried(fault)]
        if not faults:
            return None
        first = min(faults, key=lambda fault: fault.since)
        return f"{self._name}: {first.said}", time.monotonic() - first.since

    def _is_tried(self, fault: _Fault) -> bool:
        return time.monotonic() - fault.at <= _STILL_TRIED * (min(self._deadline, _TELL_EVERY) + _LONGEST_PAUSE)

    def another(self, *, name: str, deadline: float) -> ReconnectingConnection:
        """Another connection to the same server."""
        return ReconnectingConnection(self._server, self._schema, name=name, deadline=deadline)

    def listen(self, channels: Sequence[str], notified: Callable[[str], None]) -> None:
        """Listen from the next connection on; `notified` is called with each payload."""
        self._channels, self._notified = channels, notified

    async def listen_to(self, channels: Sequence[str]) -> None:
        """Listen to these, too. Around a pooler they are not heard: whoever waits looks once a second."""
        self._channels = [*self._channels, *(channel for channel in channels if channel not in self._channels)]
        connection = await self.open()
        if not connection.pooled:
            await self._at_last("listen", partial(self._listen, channels), inf)

    async def _listen(self, channels: Sequence[str], connection: AsyncSession) -> None:
        """In one round trip: a worker of a thousand queues has a thousand channels."""
        if channels:
            channel = psycopg.sql.SQL("listen {}").format
            listens = psycopg.sql.SQL("; ").join(channel(psycopg.sql.Identifier(name)) for name in channels)
            await connection.execute(listens, prepare=False)

    @property
    def hears(self) -> bool:
        """Whether notifications come in now: through a pooler they do not."""
        if self._listener is not None:
            return self._listener.hears
        connection = self._connection
        return bool(self._channels) and connection is not None and not (connection.closed or connection.pooled)

    def on_reconnect(self, greet: Callable[[], Awaitable[None]]) -> None:
        """What to do first on each connection after the first one; what it asks is repeated as any other query is."""
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
        if not again or self._greet is None or self._is_greeting:
            return connection
        # What is done first may cost the connection. Repeated on each, within itself, it would never come to an end.
        self._is_greeting = True
        try:
            await self._greet()
            return await self.open()
        finally:
            self._is_greeting = False

    async def _connect_at_last(self) -> AsyncSession:
        pauses = _pauses()
        while True:
            try:
                connection = await self._connect()
            except (psycopg.Error, OSError) as error:  # a resolver's too
                await self._pause(pauses, "connect", f"no connection ({first_line(error)})")
            else:
                self._faults.pop("connect", None)
                return connection

    async def _connect(self) -> AsyncSession:
        connection = await aconnect(self._server, name=self._name, deadline=self._deadline, engine=True)
        if connection.pooled:
            self._behind_pooler()
            return connection
        connection.add_notify_handler(lambda notify: self._notified(notify.payload))
        try:
            await self._listen(self._channels, connection)
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
            around = ReconnectingConnection(
                self._server.listen, self._schema, name="rowlock listen", deadline=self._deadline
            )
            around.listen(self._channels, self._notified)
            self._listener = _ListenConnection(around, missed=lambda: self._notified(_BELOW))
        log.info(
            "%s: a pooler lends us connections; %s. A worker that dies is noticed when its lease runs out",
            self._name,
            how,
        )

    async def run(self, query: Query[T], *, tries: float = inf) -> list[T]:
        """Run a query, again through every passing trouble: any query given here may be sent twice.

        Refused when PostgreSQL does not accept what it carries; or after so many tries that failed in a way for which
        the query itself may be the reason.
        """
        return await self._at_last(query.name, lambda connection: arun(connection.cursor(), query, self._schema), tries)

    async def converse(self, begin: Callable[[], Conversation[T]], *, tries: float = inf) -> T:
        """Hold a conversation in one transaction, again through every passing trouble: it may be held twice."""

        async def hold(connection: AsyncSession) -> T:
            async with connection.transaction():
                return await aconverse(partial(arun, connection.cursor(), schema=self._schema), begin())

        return await self._at_last("a conversation", hold, tries)

    async def _at_last(self, what: str, say: Callable[[AsyncSession], Awaitable[T]], tries: float) -> T:
        pauses = _pauses()
        failures = 0
        while True:
            connection = await self.open()
            try:
                async with self._exchange:
                    said = await say(connection)
            except psycopg.Error as error:
                kind = error_kind(error)
                if kind is ErrorKind.REFUSED:
                    raise Refused(error) from error
                if kind in {
                    ErrorKind.GONE,
                    ErrorKind.ODD,
                }:  # a statement prepared for other tables is odd on this one only
                    await connection.close()
                if blame(error) is not Blame.SURROUNDINGS:
                    failures += 1
                fault = f"{what} failed ({first_line(error)})"
                if failures >= tries:
                    self._note(what, fault)
                    raise Refused(error, certain=False) from error
                await self._pause(pauses, what, fault)
            else:
                if self._faults:
                    self._faults.pop(what, None)
                return said

    async def once(self, query: Query[T]) -> list[T]:
        """Run a query that must not be sent twice: Lost, whatever the trouble is."""
        connection = await self.open()
        try:
            async with self._exchange:
                return await arun(connection.cursor(), query, self._schema)
        except psycopg.Error as error:
            if error_kind(error) is ErrorKind.GONE:
                await connection.close()
            raise Lost(error) from error

    async def try_once(self, query: Query[T]) -> list[T] | None:
        """Run a query that can be done without, once: None when it fails, whatever the trouble is."""
        try:
            said = await self.once(query)
        except Lost as error:
            self._note(query.name, f"{query.name} failed ({error})")
            return None
        self._faults.pop(query.name, None)
        return said

    async def _pause(self, pauses: Iterator[float], what: str, said: str) -> None:
        self._note(what, said)
        await asyncio.sleep(next(pauses) * random.uniform(0.5, 1.0))  # jitter, not a secret

    def _note(self, what: str, said: str) -> None:
        now = time.monotonic()
        fault = self._faults.get(what)
        if fault is None or not self._is_tried(fault):
            fault = self._faults[what] = _Fault(since=now)
        fault.said, fault.at = said, now
        # The first failure of an outage is news; the others are not, unless it is long.
        level = logging.WARNING if now - fault.told >= _TELL_EVERY else logging.DEBUG
        if level == logging.WARNING:
            fault.told = now
        lasts = f", for {now - fault.since:.0f} s now" if now - fault.since >= _TELL_EVERY else ""
        log.log(level, "%s: %s%s; trying again", self._name, said, lasts)

    async def rest(self, event: asyncio.Event, timeout: float) -> bool:
        """Wait for `event` while notifications come in; False when `timeout` seconds passed first."""
        loop = asyncio.get_running_loop()
        connection = await self.open()
        number = connection.fileno()  # when libpq finds the connection broken, it has none any more
        self._reads = number
        loop.add_reader(number, self._readable, connection, event)
        try:
            async with asyncio.timeout(timeout):
                await event.wait()
        except TimeoutError:
            return False
        else:
            return True
        finally:
            self._stop_reading()

    def _stop_reading(self) -> None:
        if self._reads is not None:
            asyncio.get_running_loop().remove_reader(self._reads)
            self._reads = None

    def _readable(self, connection: AsyncSession, event: asyncio.Event) -> None:
        """Notifications have come, or the server has gone."""
        try:
            connection.pgconn.consume_input()
        except psycopg.OperationalError:
            self._stop_reading()  # at once: libpq has closed the socket, and the next one that is opened has its number
            connection.pgconn.finish()
            event.set()
            return
        while notify := connection.pgconn.notifies():
            self._notified(notify.extra.decode())

    async def close(self) -> None:
        """Close the connection."""
        if self._listener is not None:
            await self._listener.close()
        if self._connection is not None:
            await self._connection.close()


class _ListenConnection:
    """A connection around a pooler that only listens.

    Each time it begins to, it may have missed something: then `missed` is called.
    """

    def __init__(self, connection: ReconnectingConnection, *, missed: Callable[[], None]) -> None:
        self._connection = connection
        self._missed = missed
        connection.on_reconnect(self._resumed)
        self._listening = asyncio.create_task(self._listen())

    @property
    def hears(self) -> bool:
        """Whether notifications come in now."""
        return self._connection.hears

    async def _listen(self) -> None:
        broken = asyncio.Event()
        await self._connection.open()
        self._missed()  # whoever waits has begun before we listened
        while True:
            if await self._connection.rest(broken, _PULSE):
                broken.clear()  # the next rest is on a new connection
            else:
                await self._connection.run(schema_store.now())

    async def _resumed(self) -> None:
        self._missed()

    async def close(self) -> None:
        self._listening.cancel()
        await asyncio.wait([self._listening])
        await self._connection.close()


def _pauses() -> Iterator[float]:
    pause = _FIRST_PAUSE
    while True:
        yield pause
        pause = min(pause * 2, _LONGEST_PAUSE)


def _ignore(_payload: str) -> None:
    return None
