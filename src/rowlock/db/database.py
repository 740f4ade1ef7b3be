"""The database as the app sees it: queries and conversations in, answers out, on our connections or on the caller's."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TypeVar

import psycopg

from rowlock.db import borrowed, migrate
from rowlock.db.address import Address, Schema, find_schema
from rowlock.db.embedded import embedded
from rowlock.db.pool import AsyncPool, Pool
from rowlock.db.session import aconverse, arun, broken, connect, converse, run
from rowlock.errors import RowlockError, SchemaMissing
from rowlock.store.query import Conversation
from rowlock.store.schema import Migration

T = TypeVar("T")


class Database:
    """One database and schema; opens nothing before its first use."""

    def __init__(self, find_address: Callable[[], Address], schema: str | None) -> None:
        self._schema = None if schema is None else find_schema(schema)
        self._find_address = find_address
        self._address: Address | None = None
        self._conninfo: str | None = None
        self._starting = threading.Lock()
        self._pool = Pool(self.conninfo, "rowlock")
        self._apool = AsyncPool(self.conninfo, "rowlock")

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

    def move(self, *, find_address: Callable[[], Address] | None = None, schema: str | None = None) -> None:
        """Mean another database or schema from now on: for the command line, whose word comes after the app's own."""
        if self._conninfo is not None:
            raise RowlockError("the app has used its database already; it cannot be moved to another one now")
        if find_address is not None:
            self._find_address, self._address = find_address, None
        self._schema = self._schema if schema is None else find_schema(schema, said="--schema")

    @contextmanager
    def moved(self, find_address: Callable[[], Address]) -> Iterator[None]:
        """Mean another database for a while, used or not: for tests of an app that lives in a module."""
        before = (self._find_address, self._address, self._conninfo, self._pool, self._apool)
        self._find_address, self._address, self._conninfo = find_address, None, None
        self._pool, self._apool = Pool(self.conninfo, "rowlock"), AsyncPool(self.conninfo, "rowlock")
        try:
            yield
        finally:
            self._pool.close()
            self._apool.abandon()
            self._find_address, self._address, self._conninfo, self._pool, self._apool = before

    def let_go(self) -> None:
        """Keep no connection, and ask anew where the database is: for a framework's tests, where it comes and goes."""
        self._pool.close()
        self._apool.abandon()
        self._address, self._conninfo = None, None

    def conninfo(self) -> str:
        """The connection string; starts the embedded server, and migrates it, if that is what was asked for."""
        if (
            self._conninfo is not None
        ):  # without the lock: in a forked child a thread of the parent may hold it for ever
            return self._conninfo
        with self._starting:
            if self._conninfo is None:
                conninfo = self._server()
                if self.address.folder is not None:
                    with connect(conninfo, name="rowlock migrate") as connection:
                        migrate.migrate(connection, self.schema)
                self._conninfo = conninfo
            return self._conninfo

    def _server(self) -> str:
        folder = self.address.folder
        return embedded(folder).url if folder is not None else self.address.conninfo or ""

    def migrate(self) -> list[Migration]:
        """Apply the missing migrations; answers those applied."""
        with connect(self._server(), name="rowlock migrate") as connection:
            return migrate.migrate(connection, self.schema)

    def pending_sql(self) -> str:
        """The SQL that `migrate` would run."""
        with connect(self._server(), name="rowlock migrate") as connection:
            missing = migrate.pending(connection, self.schema)
        return migrate.script(missing, self.schema) if missing else ""

    def converse(
        self, begin: Callable[[bool], Conversation[T]], *, connection: object | None = None, atomic: bool = True
    ) -> T:
        """Hold a conversation: on the caller's connection, else on one of ours; all of it or nothing if `atomic`.

        `begin` is told whether this is a resend: when our connection breaks, the commit may have happened or not, and
        the conversation is held once more on a new one.
        """
        if connection is not None:
            return borrowed.converse(connection, begin(False), self.schema, atomic=atomic)
        try:
            return self._converse(begin(False), atomic=atomic)
        except psycopg.Error as error:
            if not broken(error):
                raise self.explained(error) from error
        self._pool.close()
        return self._converse(begin(True), atomic=True)

    def _converse(self, conversation: Conversation[T], *, atomic: bool) -> T:
        with self._pool.connection() as connection, connection.transaction() if atomic else nullcontext():
            return converse(partial(run, connection.cursor(), schema=self.schema), conversation)

    async def aconverse(
        self, begin: Callable[[bool], Conversation[T]], *, connection: object | None = None, atomic: bool = True
    ) -> T:
        """As `converse`, for async callers."""
        if connection is not None:
            return await borrowed.aconverse(connection, begin(False), self.schema, atomic=atomic)
        try:
            return await self._aconverse(begin(False), atomic=atomic)
        except psycopg.Error as error:
            if not broken(error):
                raise self.explained(error) from error
        await self._apool.close()
        return await self._aconverse(begin(True), atomic=True)

    async def _aconverse(self, conversation: Conversation[T], *, atomic: bool) -> T:
        async with self._apool.connection() as connection, connection.transaction() if atomic else nullcontext():
            return await aconverse(partial(arun, connection.cursor(), schema=self.schema), conversation)

    def explained(self, error: psycopg.Error) -> Exception:
        """The error to raise for what PostgreSQL said."""
        if isinstance(error, psycopg.errors.UndefinedTable | psycopg.errors.InvalidSchemaName):
            return SchemaMissing(f"{self.address} has no schema {self.schema!r}; run: rowlock migrate")
        return error

    def close(self) -> None:
        """Close the connections of sync callers."""
        self._pool.close()

    async def aclose(self) -> None:
        """Close the connections of this loop's async callers, and of sync ones."""
        await self._apool.close()
        self._pool.close()
