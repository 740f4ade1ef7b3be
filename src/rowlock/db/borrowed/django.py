"""Django: a borrowed `django.db.connection`, or one of `django.db.connections`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, TypeVar

import psycopg
from asgiref.sync import sync_to_async
from django.core.exceptions import SynchronousOnlyOperation
from django.db import DatabaseError, connections
from django.db import transaction as transactions
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.connection import ConnectionProxy
from psycopg.pq import TransactionStatus

from rowlock.db.borrowed import psycopg as on_psycopg
from rowlock.db.borrowed.joining import TransactionEnd, is_inside, nothing, wrong_kind
from rowlock.errors import WrongConnection
from rowlock.store.query import Conversation

T = TypeVar("T")


def converse(connection: object, conversation: Conversation[T], schema: str, *, atomic: bool) -> T:
    """Hold a conversation in the caller's thread."""
    mine = _opened(
        connection, "enqueue would block the running event loop on Django's connection; use `await task.aenqueue(…)`"
    )
    with mine.wrap_database_errors:
        return on_psycopg.converse(mine.connection, conversation, schema, atomic=atomic)


async def aconverse(connection: object, conversation: Conversation[T], schema: str, *, atomic: bool) -> T:
    """Hold a conversation in the thread in which Django's own async verbs speak to the database."""
    mine = _wrapper(connection)
    # One connection for each thread: this thread's, which may not be used in a loop, stands for its alias.
    alias = mine.alias if connections[mine.alias] is mine else None

    def there() -> T:
        return converse(mine if alias is None else connections[alias], conversation, schema, atomic=atomic)

    return await sync_to_async(there, thread_sensitive=True)()


def physical(connection: object) -> object | None:
    """The psycopg connection of this thread, if it is open."""
    driver: object | None = _wrapper(connection).connection
    return driver


def in_transaction(connection: object) -> bool:
    """Whether this thread's psycopg connection has a transaction open."""
    driver = physical(connection)
    return driver is not None and on_psycopg.in_transaction(driver)


@contextmanager
def transaction(connection: object, last: TransactionEnd, schema: str) -> Iterator[None]:
    """An atomic block in the caller's thread."""
    mine = _opened(connection, _NEEDS_SYNC)
    if mine.in_atomic_block:
        raise is_inside("an atomic block")
    if not mine.get_autocommit():
        raise WrongConnection(
            "connection= has its autocommit off; turn it on, and let this block begin the transaction"
        )
    with transactions.atomic(using=mine.alias):
        # Before the caller's own hooks: when one of those fails, the transaction is committed all the same.
        mine.on_commit(last.committed)
        converse(mine, nothing(), schema, atomic=False)
        yield
        converse(mine, last.say(), schema, atomic=False)


def atransaction(connection: object, last: TransactionEnd, schema: str) -> AbstractAsyncContextManager[None]:  # noqa: ARG001
    """Refuse: Django has no async transactions. The thread of its async verbs is everybody's, with one connection."""
    _wrapper(connection)
    raise WrongConnection(_NEEDS_SYNC)


def savepoint(connection: object) -> Any:  # noqa: ANN401  Django has no types
    """The library's own."""
    return transactions.atomic(using=_wrapper(connection).alias)


def mark(connection: object) -> Callable[[], None]:
    """Mark the open transaction, and return what takes it back to there if it is broken by then, as a request's is.

    Without a block: `atomic(durable=True)` is refused in one that is not TestCase's own.
    """
    mine = _wrapper(connection)
    savepoint = mine.savepoint() if mine.in_atomic_block else None

    def restore() -> None:
        if savepoint is None:
            return
        if mine.needs_rollback or mine.connection.pgconn.transaction_status == TransactionStatus.INERROR:
            mine.needs_rollback = False
            mine.savepoint_rollback(savepoint)
        else:
            mine.savepoint_commit(savepoint)

    return restore


_NEEDS_SYNC = (
    "Django's transactions are for sync code; use `with current_job().transaction():` in a sync handler, or, for a "
    "psycopg connection, `with app.within(None):` around it"
)


def _opened(connection: object, in_loop: str) -> Any:  # noqa: ANN401  Django has no types
    """The connection itself, usable and open; `in_loop` is what to say where that would block an event loop."""
    mine = _wrapper(connection)
    _check_usable(mine)
    try:
        mine.ensure_connection()
    except SynchronousOnlyOperation as error:
        raise WrongConnection(in_loop) from error
    return mine


def _wrapper(connection: object) -> Any:  # noqa: ANN401  Django has no types
    """The connection itself, for the proxy this thread's."""
    if isinstance(connection, ConnectionProxy):
        connection = connections[connection.alias]
    if not isinstance(connection, BaseDatabaseWrapper):
        raise wrong_kind(connection)
    if connection.vendor != "postgresql":
        raise WrongConnection(
            f"connection= is Django's {connection.alias!r}, which speaks to {connection.vendor}; pass one to the "
            "PostgreSQL that has the jobs"
        )
    if connection.Database is not psycopg:
        raise WrongConnection(
            f"connection= is Django's {connection.alias!r}, which reaches PostgreSQL through "
            f"{connection.Database.__name__}; install psycopg 3, which Django prefers"
        )
    return connection


def _check_usable(connection: Any) -> None:  # noqa: ANN401  Django has no types
    try:
        connection.validate_thread_sharing()
    except DatabaseError as error:
        raise WrongConnection(
            f"connection= is Django's {connection.alias!r} of another thread; pass django.db.connection, or look it up "
            "in django.db.connections in the thread that enqueues"
        ) from error
    if connection.in_atomic_block and connection.needs_rollback:
        raise WrongConnection("connection= is in an atomic block that will be rolled back; leave the block first")
