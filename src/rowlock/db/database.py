"""The database as the app sees it: queries and conversations in, answers out, on our connections or on the caller's."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import nullcontext
from typing import TypeVar

import psycopg

from rowlock.db import migrate
from rowlock.db.address import Address
from rowlock.db.borrowed import psycopg as borrowed
from rowlock.db.embedded import embedded
from rowlock.db.pool import AsyncPool, Pool
from rowlock.db.session import aconverse, broken, connect, converse
from rowlock.errors import RowlockError, SchemaMissing
from rowlock.model.names import check_schema
from rowlock.store.query import Conversation
from rowlock.store.schema import Migration

T = TypeVar("T")


class Database:
    """One database and schema; opens nothing before its first use."""

    def __init__(self, find_address: Callable[[], Address], schema: str) -> None:
        self.schema = check_schema(schema)
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

    def move(self, *, find_address: Callable[[], Address] | None = None, schema: str | None = None) -> None:
        """Mean another database or schema from now on: for the command line, whose word comes after the app's own."""
        if self._conninfo is not None:
            raise RowlockError("the app has used its database already; it cannot be moved to another one now")
        self._find_address = find_address or self._find_address
        self.schema = self.schema if schema is None else check_schema(schema)

    def conninfo(self) -> str:
        """The connection string; starts the embedded server, and migrates it, if that is what was asked for."""
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
                raise self._explained(error) from error
        self._pool.close()
        return self._converse(begin(True), atomic=True)

    def _converse(self, conversation: Conversation[T], *, atomic: bool) -> T:
        with self._pool.connection() as connection, connection.transaction() if atomic else nullcontext():
            return converse(connection.cursor(), conversation, self.schema)

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
                raise self._explained(error) from error
        await self._apool.close()
        return await self._aconverse(begin(True), atomic=True)

    async def _aconverse(self, conversation: Conversation[T], *, atomic: bool) -> T:
        async with self._apool.connection() as connection, connection.transaction() if atomic else nullcontext():
            return await aconverse(connection.cursor(), conversation, self.schema)

    def _explained(self, error: psycopg.Error) -> Exception:
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
