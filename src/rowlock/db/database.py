"""Database: runs queries and conversations, on our connections or on the caller's."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TypeVar

import psycopg

from rowlock.db import borrowed, session
from rowlock.db.address import DEADLINE, LISTEN_URL, POOLER, Address, Schema, find_schema, writable
from rowlock.db.errors import ErrorKind, error_kind, first_line, is_connection_lost
from rowlock.db.pool import AsyncPool, Pool
from rowlock.db.session import Server, connect
from rowlock.db.setting import SettingValue
from rowlock.db.within import Framework, Within
from rowlock.errors import Locked, RowlockError, SchemaMissing
from rowlock.store.query import Conversation, Query, alone
from rowlock.store.schema import Migration, newest

T = TypeVar("T")

# Before a conversation is held again.
_PAUSES = (0.0, 0.1, 0.3, 0.9)
_SAID_BY_A_TIMEOUT = ("55P03", "57014")


class Database:
    """One database and schema; opens nothing before its first use."""

    def __init__(
        self,
        find_address: Callable[[], Address],
        schema: str | None,
        *,
        pooler: bool | None = None,
        listen_url: str | None = None,
        deadline: timedelta | None = None,
        connection: Callable[[], object | None] | None = None,
        framework: Framework | None = None,
    ) -> None:
        self.within = Within(connection, framework)
        # What was said is checked now; the environment is read when it is first needed.
        self._pooler = None if pooler is None else POOLER.chosen(pooler)
        self._listen_url = None if listen_url is None else LISTEN_URL.chosen(listen_url)
        self._deadline = None if deadline is None else DEADLINE.chosen(deadline)
        self._schema = None if schema is None else find_schema(schema)
        self._find_address = find_address
        self._address: Address | None = None
        self._conninfo: str | None = None
        self._starting = threading.Lock()
        self._reached = False  # a connection has been made: what fails from now on may pass
        self._pool, self._apool = self._pools()

    def _pools(self) -> tuple[Pool, AsyncPool]:
        return (
            Pool(self.server, "rowlock", deadline=self._seconds),
            AsyncPool(self.server, "rowlock", deadline=self._seconds),
        )

    @property
    def address(self) -> Address:
        """Where it is; NotConfigured if nobody said."""
        if self._address is None:
            self._address = self._find_address()
        return self._address

    @property
    def schema(self) -> str:
        """The name of our schema in it."""
        return self.named_schema.name

    @property
    def named_schema(self) -> Schema:
        """The schema, and where it was said."""
        if self._schema is None:
            self._schema = find_schema(None)
        return self._schema

    @property
    def pooler(self) -> SettingValue[bool | None]:
        """Whether a pooler stands before it that lends connections for one transaction; None is to be found out."""
        return POOLER.find(self._pooler)

    @property
    def listen_url(self) -> SettingValue[str | None]:
        """An address around that pooler, on which notifications come through."""
        return LISTEN_URL.find(self._listen_url)

    @property
    def deadline(self) -> SettingValue[timedelta]:
        """How long a caller waits for an answer."""
        return DEADLINE.find(self._deadline)

    def _seconds(self) -> float:
        return self.deadline.value.total_seconds()

    def move(self, *, find_address: Callable[[], Address] | None = None, schema: str | None = None) -> None:
        """Mean another database or schema from now on: for the command line, whose word comes after the app's own."""
        if self._conninfo is not None:
            raise RowlockError("the app has used its database already; it cannot be moved to another one now")
        if find_address is not None:
            self._find_address, self._address = find_address, None
            self._pooler = self._listen_url = None  # these were said of the other database
        self._schema = self._schema if schema is None else find_schema(schema, said="--schema")

    @contextmanager
    def moved(self, find_address: Callable[[], Address]) -> Iterator[None]:
        """Mean another database for a while, used or not: for tests of an app that lives in a module."""
        before = (self._find_address, self._address, self._conninfo, self._pool, self._apool)
        said, self._pooler, self._listen_url = (self._pooler, self._listen_url), None, None
        self._find_address, self._address, self._conninfo = find_address, None, None
        self._pool, self._apool = self._pools()
        try:
            yield
        finally:
            self._pool.close()
            self._apool.abandon()
            self._find_address, self._address, self._conninfo, self._pool, self._apool = before
            self._pooler, self._listen_url = said

    def let_go(self) -> None:
        """Keep no connection, and look the address up again: for a framework's tests, where databases come and go."""
        self._pool.close()
        self._apool.abandon()
        self._address, self._conninfo = None, None

    def conninfo(self) -> str:
        """The connection string; starts the embedded server, and migrates it, if that is what was asked for."""
        if self._conninfo is not None:  # without the lock: in a forked child a thread of the parent may hold it forever
            return self._conninfo
        with self._starting:
            if self._conninfo is None:
                server = self._started()
                if self.address.folder is not None:
                    from rowlock.db import migrate  # noqa: PLC0415  whoever only enqueues does without

                    with connect(server, name="rowlock migrate") as connection:
                        migrate.migrate(connection, self.schema)
                self._conninfo = server.conninfo
            return self._conninfo

    def server(self) -> Server:
        """The server, as connections want it; starts it if it is embedded."""
        self.within.check_own()
        return self._as_said(self.conninfo())

    def _started(self) -> Server:
        self.within.check_own()
        folder = self.address.folder
        if folder is None:
            return self._as_said(writable(self.address.conninfo or ""))
        from rowlock.db.embedded.server import embedded  # noqa: PLC0415  whoever only enqueues does without

        return self._as_said(embedded(folder).url)

    def _as_said(self, conninfo: str) -> Server:
        listen = self.listen_url.value
        return Server(conninfo, self.pooler.value, None if listen is None else writable(listen))

    def migrate(self, *, roles: bool = False) -> list[Migration]:
        """Apply the missing migrations, and make and endow the roles if asked; returns the migrations applied."""
        from rowlock.db import migrate  # noqa: PLC0415  whoever only enqueues does without

        with connect(self._started(), name="rowlock migrate") as connection:
            return migrate.migrate(connection, self.schema, roles=roles)

    def pending_sql(self, *, roles: bool = False) -> str:
        """The SQL that `migrate` would run."""
        from rowlock.db import migrate  # noqa: PLC0415  whoever only enqueues does without

        with connect(self._started(), name="rowlock migrate") as connection:
            missing = migrate.pending(connection, self.schema)
            endowing = migrate.roles_script(connection, self.schema) if roles else ""
        return (migrate.script(missing, self.schema) if missing else "") + endowing

    def run(self, query: Query[T]) -> list[T]:
        """Run one statement on one of our connections; returns its rows."""
        return self.converse(partial(alone, query), atomic=False)

    async def arun(self, query: Query[T]) -> list[T]:
        """As `run`, for async callers."""
        return await self.aconverse(partial(alone, query), atomic=False)

    def converse(
        self,
        begin: Callable[[], Conversation[T]],
        *,
        resend: Callable[[], Conversation[T]] | None = None,
        connection: object | None = None,
        atomic: bool = True,
    ) -> T:
        """Hold a conversation: on the caller's connection, else on one of ours; all of it or nothing if `atomic`.

        When our connection breaks, the commit may have happened or not, and the conversation is begun again on a new
        one: by `resend`, where that differs. So a server that restarts is a pause, and no error.
        """
        if connection is not None:
            return borrowed.converse(connection, begin(), self.schema, atomic=atomic)
        patience = _Patience(self._seconds())
        while True:
            try:
                return self._converse(begin(), atomic=atomic)
            except psycopg.Error as error:
                pause = patience.after(error, reached=self._reached)
                if pause is None:
                    raise self.explained(error) from error
                if is_connection_lost(error):
                    self._pool.close()
                    begin, atomic = resend or begin, True
            time.sleep(pause)

    def _converse(self, conversation: Conversation[T], *, atomic: bool) -> T:
        self.within.check_own()
        with self._pool.connection() as connection:
            self._reached = True
            with connection.transaction() if atomic else nullcontext():
                return session.converse(partial(session.run, connection.cursor(), schema=self.schema), conversation)

    async def aconverse(
        self,
        begin: Callable[[], Conversation[T]],
        *,
        resend: Callable[[], Conversation[T]] | None = None,
        connection: object | None = None,
        atomic: bool = True,
    ) -> T:
        """As `converse`, for async callers."""
        if connection is not None:
            return await borrowed.aconverse(connection, begin(), self.schema, atomic=atomic)
        patience = _Patience(self._seconds())
        while True:
            try:
                return await self._aconverse(begin(), atomic=atomic)
            except psycopg.Error as error:
                pause = patience.after(error, reached=self._reached)
                if pause is None:
                    raise self.explained(error) from error
                if is_connection_lost(error):
                    await self._apool.close()
                    begin, atomic = resend or begin, True
            await asyncio.sleep(pause)

    async def _aconverse(self, conversation: Conversation[T], *, atomic: bool) -> T:
        self.within.check_own()
        async with self._apool.connection() as connection:
            self._reached = True
            async with connection.transaction() if atomic else nullcontext():
                return await session.aconverse(
                    partial(session.arun, connection.cursor(), schema=self.schema), conversation
                )

    def explained(self, error: psycopg.Error) -> Exception:
        """The error to raise for what PostgreSQL said."""
        if isinstance(error, psycopg.errors.UndefinedTable | psycopg.errors.InvalidSchemaName):
            return SchemaMissing(f"{self.address} has no schema {self.schema!r}; run: rowlock migrate")
        if isinstance(error, psycopg.errors.LockNotAvailable):
            return Locked(
                f"another transaction has locked a row that this call waits for, for longer than the app's deadline of "
                f"{self._seconds():g} s; end that transaction, or, if it is your own, pass its connection="
            )
        if isinstance(error, psycopg.errors.UndefinedColumn | psycopg.errors.UndefinedFunction):
            return SchemaMissing(
                f"schema {self.schema!r} in {self.address} does not fit this Rowlock, for its version {newest()} "
                f"({first_line(error)}); run: rowlock migrate, or upgrade Rowlock here if a newer one has done so"
            )
        return error

    def read_only(self, *, timeout: timedelta) -> ReadOnlyDatabase:
        """This database on connections of its own that cannot write, each statement limited by `timeout`."""
        return ReadOnlyDatabase(self, timeout=timeout)

    def close(self) -> None:
        """Close the connections of sync callers."""
        self._pool.close()

    async def aclose(self) -> None:
        """Close the connections of this loop's async callers, and of sync ones."""
        await self._apool.close()
        self._pool.close()


class ReadOnlyDatabase(Database):
    """Another Database, wherever that is now, for reading: PostgreSQL refuses to write, or to read for too long."""

    def __init__(self, whole: Database, *, timeout: timedelta) -> None:
        self._whole = whole
        self._timeout = timeout.total_seconds()
        super().__init__(lambda: whole.address, None)

    @property
    def named_schema(self) -> Schema:
        """The schema, and where it was said."""
        return self._whole.named_schema

    @property
    def deadline(self) -> SettingValue[timedelta]:
        """How long a caller waits for an answer."""
        return self._whole.deadline

    def server(self) -> Server:
        """The server, as connections want it; starts it if it is embedded."""
        return replace(self._whole.server(), read_timeout=self._timeout)


class _Patience:
    """How often a conversation on our own connections is held again: once after a broken connection, which may have
    taken a whole deadline to be known for broken, and for the rest no longer than one deadline in all.
    """

    def __init__(self, deadline: float) -> None:
        self._until = time.monotonic() + deadline
        self._pauses = iter(_PAUSES)

    def after(self, error: psycopg.Error, *, reached: bool) -> float | None:
        """Seconds to wait before the next try; None when the error is the answer."""
        kind = error_kind(error)
        if kind is ErrorKind.AGAIN and error.sqlstate in _SAID_BY_A_TIMEOUT:
            return None  # it has waited long enough
        passes = (kind is ErrorKind.GONE and reached) or kind is ErrorKind.AGAIN
        pause = next(self._pauses, None) if passes else None
        return pause if pause == _PAUSES[0] or time.monotonic() < self._until else None
