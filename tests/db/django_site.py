"""Django, configured once for this process, and its connections as a lender's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import django
from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import connection, connections, transaction
from psycopg.conninfo import conninfo_to_dict

from tests.db.kinds import Lender, Rows

T = TypeVar("T")

DEFAULT = "default"
SQLITE = "sqlite"


def visit(url: str) -> None:
    """Make this database Django's default one, from each thread's next connection on."""
    if not settings.configured:
        lite = {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}
        settings.configure(DATABASES={DEFAULT: _database(url), SQLITE: lite}, USE_TZ=True)
        django.setup()
    connections.settings[DEFAULT].update(_database(url))


def _database(url: str) -> dict[str, object]:
    parts = conninfo_to_dict(url)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts["dbname"],
        "USER": parts["user"],
        "HOST": parts["host"],
        "PORT": parts["port"],
    }


class Django(Lender):
    """`django.db.connection`; a transaction is an atomic block."""

    closes = False

    def __init__(self, url: str, *, autocommit: bool, by_alias: bool = False) -> None:
        visit(url)
        self.autocommit = autocommit
        self.connection = connections[DEFAULT] if by_alias else connection
        self._blocks: list[Any] = []

    async def execute(self, sql: str) -> Rows:
        return await self.there(_execute, sql)

    async def begin(self) -> None:
        if not self.autocommit:
            await self.there(self._enter)

    async def commit(self) -> None:
        await self.there(self._leave, undo=False)

    async def rollback(self) -> None:
        await self.there(self._leave, undo=True)

    @asynccontextmanager
    async def undone(self) -> AsyncIterator[None]:
        await self.there(self._enter)
        yield
        await self.there(self._leave, undo=True)

    async def close(self) -> None:
        await self.there(_close)

    async def there(self, function: Callable[..., T], *args: object, **kwargs: object) -> T:
        """Call it where Django's connection lives."""
        return function(*args, **kwargs)

    def here(self) -> object:
        """The connection of the thread that asks."""
        return connections[DEFAULT]

    def _enter(self) -> None:
        block = transaction.atomic()
        block.__enter__()
        self._blocks.append(block)

    def _leave(self, *, undo: bool) -> None:
        if undo:
            transaction.set_rollback(True)
        self._blocks.pop().__exit__(None, None, None)


class DjangoAsync(Django):
    """The same from async code: everything happens in one thread, and not in the loop's."""

    is_async = True

    @classmethod
    async def open(cls, url: str, *, autocommit: bool, by_alias: bool = False) -> DjangoAsync:
        return cls(url, autocommit=autocommit, by_alias=by_alias)

    async def there(self, function: Callable[..., T], *args: object, **kwargs: object) -> T:
        return await sync_to_async(function, thread_sensitive=True)(*args, **kwargs)


def _execute(sql: str) -> Rows:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall() if cursor.description else []


def _close() -> None:
    connection.close()
