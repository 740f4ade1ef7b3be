"""SQLAlchemy: a borrowed session or connection; statements go to the driver's connection beneath it.

SQLAlchemy is made to begin its transaction first, where it has not yet: it must know that there is one to commit.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, TypeVar

from sqlalchemy import Connection, Dialect, Engine
from sqlalchemy.engine.interfaces import AdaptedConnection
from sqlalchemy.exc import InvalidRequestError, MissingGreenlet, PendingRollbackError, ResourceClosedError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession, async_scoped_session, async_sessionmaker
from sqlalchemy.orm import Session, scoped_session, sessionmaker
from sqlalchemy.pool import PoolProxiedConnection

from rowlock.db import borrowed
from rowlock.db.borrowed.joining import (
    TransactionEnd,
    has_failed,
    is_async,
    is_closed,
    is_inside,
    is_sync,
    needs_async_with,
    needs_with,
    nothing,
    wrong_kind,
)
from rowlock.errors import WrongConnection
from rowlock.store.query import Conversation

T = TypeVar("T")


def converse(connection: object, conversation: Conversation[T], schema: str, *, atomic: bool) -> T:
    """Hold a conversation on a sync session or connection."""
    mine = _unscoped(connection)
    if isinstance(mine, AsyncSession | AsyncConnection):
        raise is_async()
    with _explained():
        pooled = _begun(mine)
    adapted: object = pooled.dbapi_connection
    if isinstance(adapted, AdaptedConnection):  # inside of run_sync, where SQLAlchemy does the awaiting
        with _explained():
            answer: T = adapted.run_async(
                lambda driver: borrowed.aconverse(driver, conversation, schema, atomic=atomic)
            )
        return answer
    return borrowed.converse(pooled.driver_connection, conversation, schema, atomic=atomic)


async def aconverse(connection: object, conversation: Conversation[T], schema: str, *, atomic: bool) -> T:
    """Hold a conversation on an async session or connection."""
    mine = _unscoped(connection)
    if isinstance(mine, Session | Connection):
        raise is_sync()
    with _explained():
        pooled = await mine.run_sync(_begun)
    return await borrowed.aconverse(pooled.driver_connection, conversation, schema, atomic=atomic)


def physical(connection: object) -> object | None:
    """The driver's own connection, while there is one."""
    live: Connection | None
    match _unscoped(connection):
        case Session() as session:
            live = _held(session)
        case AsyncSession(sync_session=session):
            live = _held(session)
        case AsyncConnection(sync_connection=live):
            pass
        case Connection() as live:
            pass
    if live is None or live.closed or live.invalidated:
        return None
    driver: object = live.connection.driver_connection
    return driver


def _held(session: Session) -> Connection | None:
    """The connection that a session has out of its pool now; `session.connection()` would take one."""
    root = session.get_transaction()
    held = () if root is None else root._connections  # noqa: SLF001  nothing public tells
    return next((one for one in held if isinstance(one, Connection)), None)


def in_transaction(connection: object) -> bool:
    """Whether the driver's own connection has a transaction open."""
    driver = physical(connection)
    return driver is not None and borrowed.in_transaction(driver)


@contextmanager
def transaction(connection: object, last: TransactionEnd, schema: str) -> Iterator[None]:
    """A transaction on a sync session or connection, as SQLAlchemy sees it: one that it has begun is gone on with."""
    mine = _unscoped(connection)
    if isinstance(mine, AsyncSession | AsyncConnection):
        raise needs_async_with()
    with _explained():
        _check_outermost(mine)
    converse(mine, nothing(), schema, atomic=False)
    try:
        yield
        if isinstance(mine, Session):
            mine.flush()
        converse(mine, last.say(), schema, atomic=False)
        mine.commit()
    except BaseException:
        with suppress(Exception):  # what failed first is what the caller has to know
            mine.rollback()
        raise
    last.committed()


@asynccontextmanager
async def atransaction(connection: object, last: TransactionEnd, schema: str) -> AsyncIterator[None]:
    """As `transaction`, on an async session or connection."""
    mine = _unscoped(connection)
    if isinstance(mine, Session | Connection):
        raise needs_with()
    with _explained():
        await mine.run_sync(_check_outermost)
    await aconverse(mine, nothing(), schema, atomic=False)
    try:
        yield
        if isinstance(mine, AsyncSession):
            await mine.flush()
        await aconverse(mine, last.say(), schema, atomic=False)
        await mine.commit()
    except BaseException:
        with suppress(Exception):
            await mine.rollback()
        raise
    last.committed()


def savepoint(connection: object) -> Any:  # noqa: ANN401  of either colour
    """The library's own."""
    return _unscoped(connection).begin_nested()


def _check_outermost(mine: Session | Connection) -> None:
    """Refuse what commit() would not commit."""
    if mine.in_nested_transaction():
        raise is_inside("a savepoint")
    driver: Any = _begun(mine).dbapi_connection
    if driver.autocommit:
        raise WrongConnection(
            "connection= has the isolation level AUTOCOMMIT: each statement commits; pass one with transactions"
        )
    if isinstance(mine, Session) and _has_joined(mine):
        raise is_inside("a transaction of its connection's, which the session has joined")


def _has_joined(session: Session) -> bool:
    """Whether a session that is bound to a connection found it in a transaction, which its commit() leaves open."""
    root = session.get_transaction()
    begun = () if root is None else root._connections.values()  # noqa: SLF001  nothing public tells
    return session.connection().in_nested_transaction() or not all(commits for _, _, commits, _ in begun)


def _unscoped(connection: object) -> Session | Connection | AsyncSession | AsyncConnection:
    match connection:
        case scoped_session() | async_scoped_session():
            return _unscoped(connection.registry())
        case Session() | Connection() | AsyncSession() | AsyncConnection():
            return connection
        case Engine():
            raise _maker(connection, "`with engine.begin() as connection:`")
        case AsyncEngine():
            raise _maker(connection, "`async with engine.begin() as connection:`")
        case sessionmaker():
            raise _maker(connection, "`with Session.begin() as session:`")
        case async_sessionmaker():
            raise _maker(connection, "`async with Session.begin() as session:`")
        case _:
            raise wrong_kind(connection)


def _maker(connection: object, instead: str) -> WrongConnection:
    return WrongConnection(f"connection= is SQLAlchemy's {type(connection).__name__}; pass what it makes: {instead}")


def _begun(mine: Session | Connection) -> PoolProxiedConnection:
    """The pool's connection, in a transaction that SQLAlchemy knows of."""
    _check_dialect(mine.get_bind().dialect if isinstance(mine, Session) else mine.dialect)
    live = mine.connection() if isinstance(mine, Session) else mine
    if live.closed:
        raise is_closed()
    if not live.in_transaction():
        live.begin()
    pooled = live.connection
    # Its asyncpg adapter begins for real with the first statement that passes through it, which ours do not.
    adapted: Any = pooled.dbapi_connection
    if (
        live.dialect.driver == "asyncpg"
        and not adapted.autocommit
        and not borrowed.in_transaction(adapted.driver_connection)
    ):
        live.exec_driver_sql("select")
    return pooled


def _check_dialect(dialect: Dialect) -> None:
    if dialect.name != "postgresql":
        raise WrongConnection(f"connection= speaks to {dialect.name}; pass one to the PostgreSQL that has the jobs")
    if dialect.driver not in {"psycopg", "asyncpg"}:
        raise WrongConnection(
            f"connection= reaches PostgreSQL through {dialect.driver}; use psycopg 3 or asyncpg: "
            "create_engine('postgresql+psycopg://…')"
        )


@contextmanager
def _explained() -> Iterator[None]:
    """SQLAlchemy's refusals as ours."""
    try:
        yield
    except PendingRollbackError as error:
        raise has_failed() from error
    except ResourceClosedError as error:
        raise is_closed() from error
    except MissingGreenlet as error:
        raise is_async() from error
    except InvalidRequestError as error:
        raise WrongConnection(f"connection= cannot be used now: {error}") from error
