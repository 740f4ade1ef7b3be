"""Every kind of connection that a caller may lend us, behind one face, so that one suite can try them all.

The face is async. Behind it, sync kinds never wait for anything, so their stories run without an event loop.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import asyncpg
import psycopg
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import create_async_engine

from rowlock import Call, Job, Rowlock

Rows = list[tuple[Any, ...]]


class Lender:
    """A caller who has opened a connection. Its transactions are begun and ended by the verbs below alone."""

    is_async: bool = False
    pooled: bool = False
    closes: bool = True  # a connection that is closed stays so

    connection: Any

    async def execute(self, sql: str) -> Rows:
        raise NotImplementedError

    async def begin(self) -> None:
        """For kinds that do not begin by themselves."""

    async def commit(self) -> None:
        raise NotImplementedError

    async def rollback(self) -> None:
        raise NotImplementedError

    def undone(self) -> AbstractAsyncContextManager[None]:
        """A savepoint that is rolled back at the end of the block."""
        raise NotImplementedError

    async def close(self) -> None:
        raise NotImplementedError

    async def end(self) -> None:
        """Let go of everything; the connection may be closed already."""
        await self.close()

    async def again(self) -> None:
        """Give the connection back to its pool and take it out once more."""
        raise NotImplementedError

    async def enqueue(self, app: Rowlock, *calls: Call[None]) -> list[Job[None]]:
        """Enqueue on this connection, with the verb of its kind."""
        with app.within(self.connection):
            return await self.enqueue_here(app, *calls)

    async def enqueue_here(self, app: Rowlock, *calls: Call[None]) -> list[Job[None]]:
        """Enqueue without saying where."""
        if self.is_async:
            return [await calls[0].aenqueue()] if len(calls) == 1 else await app.aenqueue_many(calls)
        return [calls[0].enqueue()] if len(calls) == 1 else app.enqueue_many(calls)


class Psycopg(Lender):
    def __init__(self, url: str, *, autocommit: bool) -> None:
        self.connection = psycopg.connect(url, autocommit=autocommit)

    async def execute(self, sql: str) -> Rows:
        cursor = self.connection.execute(sql.encode())
        return cursor.fetchall() if cursor.description else []

    async def commit(self) -> None:
        self.connection.commit()

    async def rollback(self) -> None:
        self.connection.rollback()

    @asynccontextmanager
    async def undone(self) -> AsyncIterator[None]:
        with self.connection.transaction(force_rollback=True):
            yield

    async def close(self) -> None:
        self.connection.close()


class PsycopgAsync(Lender):
    is_async = True

    @classmethod
    async def open(cls, url: str, *, autocommit: bool) -> PsycopgAsync:
        lender = cls()
        lender.connection = await psycopg.AsyncConnection.connect(url, autocommit=autocommit)
        return lender

    async def execute(self, sql: str) -> Rows:
        cursor = await self.connection.execute(sql.encode())
        return await cursor.fetchall() if cursor.description else []

    async def commit(self) -> None:
        await self.connection.commit()

    async def rollback(self) -> None:
        await self.connection.rollback()

    @asynccontextmanager
    async def undone(self) -> AsyncIterator[None]:
        async with self.connection.transaction(force_rollback=True):
            yield

    async def close(self) -> None:
        await self.connection.close()


class Asyncpg(Lender):
    is_async = True

    def __init__(self, *, autocommit: bool) -> None:
        self.autocommit = autocommit
        self._transaction: Any = None

    @classmethod
    async def open(cls, url: str, *, autocommit: bool) -> Asyncpg:
        lender = cls(autocommit=autocommit)
        lender.connection = await asyncpg.connect(url)
        return lender

    async def execute(self, sql: str) -> Rows:
        return [tuple(row) for row in await self.connection.fetch(sql)]

    async def begin(self) -> None:
        if not self.autocommit:
            self._transaction = self.connection.transaction()
            await self._transaction.start()

    async def commit(self) -> None:
        await self._transaction.commit()

    async def rollback(self) -> None:
        await self._transaction.rollback()

    @asynccontextmanager
    async def undone(self) -> AsyncIterator[None]:
        savepoint = self.connection.transaction()
        await savepoint.start()
        yield
        await savepoint.rollback()

    async def close(self) -> None:
        await self.connection.close()


class AsyncpgPool(Asyncpg):
    pooled = True

    @classmethod
    async def open(cls, url: str, *, autocommit: bool) -> AsyncpgPool:
        lender = cls(autocommit=autocommit)
        lender._pool = await asyncpg.create_pool(url, min_size=1, max_size=1)
        lender.connection = await lender._pool.acquire()
        return lender

    _pool: Any

    async def again(self) -> None:
        await self._pool.release(self.connection)
        self.connection = await self._pool.acquire()

    async def close(self) -> None:
        await self._pool.release(self.connection)

    async def end(self) -> None:
        await self.close()
        await self._pool.close()


def sqlalchemy_url(url: str, driver: str) -> str:
    return url.replace("postgresql://", f"postgresql+{driver}://", 1)


class SQLAlchemy(Lender):
    """Session, Connection and scoped_session look alike."""

    pooled = True

    def __init__(self, url: str, *, autocommit: bool, make: Callable[[Any], Any], closes: bool) -> None:
        options = {"isolation_level": "AUTOCOMMIT"} if autocommit else {}
        self._engine = create_engine(sqlalchemy_url(url, "psycopg"), pool_size=1, max_overflow=0, **options)
        self._make = make
        self.closes = closes
        self.connection = make(self._engine)

    async def execute(self, sql: str) -> Rows:
        result = self.connection.execute(text(sql))
        return [tuple(row) for row in result] if result.returns_rows else []

    async def commit(self) -> None:
        self.connection.commit()

    async def rollback(self) -> None:
        self.connection.rollback()

    @asynccontextmanager
    async def undone(self) -> AsyncIterator[None]:
        savepoint = self.connection.begin_nested()
        yield
        savepoint.rollback()

    async def close(self) -> None:
        self.connection.close()

    async def end(self) -> None:
        self.connection.close()
        self._engine.dispose()

    async def again(self) -> None:
        self.connection.close()
        self.connection = self._make(self._engine)


class SQLAlchemyAsync(Lender):
    """AsyncSession, AsyncConnection and async_scoped_session look alike."""

    is_async = True
    pooled = True

    _engine: Any
    _make: Callable[[Any], Coroutine[Any, Any, Any]]

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        autocommit: bool,
        driver: str,
        make: Callable[[Any], Coroutine[Any, Any, Any]],
        closes: bool,
    ) -> SQLAlchemyAsync:
        lender = cls()
        options = {"isolation_level": "AUTOCOMMIT"} if autocommit else {}
        lender._engine = create_async_engine(sqlalchemy_url(url, driver), pool_size=1, max_overflow=0, **options)
        lender._make = make
        lender.closes = closes
        lender.connection = await make(lender._engine)
        return lender

    async def execute(self, sql: str) -> Rows:
        result = await self.connection.execute(text(sql))
        return [tuple(row) for row in result] if result.returns_rows else []

    async def commit(self) -> None:
        await self.connection.commit()

    async def rollback(self) -> None:
        await self.connection.rollback()

    @asynccontextmanager
    async def undone(self) -> AsyncIterator[None]:
        savepoint = await self.connection.begin_nested()
        yield
        await savepoint.rollback()

    async def close(self) -> None:
        await self.connection.close()

    async def end(self) -> None:
        await self.connection.close()
        await self._engine.dispose()

    async def again(self) -> None:
        await self.connection.close()
        self.connection = await self._make(self._engine)
