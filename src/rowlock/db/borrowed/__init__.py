"""Borrowed connections: jobs join the transaction of a caller's connection, of any known library.

What goes wrong there is raised as the driver beneath says it: psycopg's or asyncpg's error, Django's for Django.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from importlib import import_module
from typing import Any, Protocol, TypeVar, cast

from rowlock.db.borrowed.joining import TransactionEnd, wrong_kind
from rowlock.store.query import Conversation

T = TypeVar("T")

# Each is the name of a library and of our module for its connections.
_KINDS = ("psycopg", "asyncpg", "sqlalchemy", "django")


class Kind(Protocol):
    """What is known about a library's connections; every verb refuses what is none by WrongConnection."""

    def converse(self, connection: object, conversation: Conversation[T], schema: str, *, atomic: bool) -> T:
        """Hold a conversation on a sync connection."""

    async def aconverse(self, connection: object, conversation: Conversation[T], schema: str, *, atomic: bool) -> T:
        """Hold a conversation on an async connection."""

    def physical(self, connection: object) -> object | None:
        """The driver's own connection behind it; None while there is none."""

    def in_transaction(self, connection: object) -> bool:
        """Whether the driver's own connection has a transaction open, be it a failed one."""

    def transaction(self, connection: object, last: TransactionEnd, schema: str) -> AbstractContextManager[None]:
        """A transaction on a sync connection, which the block commits."""

    def atransaction(self, connection: object, last: TransactionEnd, schema: str) -> AbstractAsyncContextManager[None]:
        """A transaction on an async connection, which the block commits."""

    def savepoint(self, connection: object) -> Any:  # noqa: ANN401  a context manager of the connection's own colour
        """A part of the open transaction that is undone alone when it fails."""


def converse(connection: object, conversation: Conversation[T], schema: str, *, atomic: bool) -> T:
    """Hold a conversation on a sync connection of the caller's, in the transaction that is open there.

    All of it or nothing if `atomic`: under a savepoint, or in a transaction of its own where the caller has none.
    """
    return _kind(connection).converse(connection, conversation, schema, atomic=atomic)


async def aconverse(connection: object, conversation: Conversation[T], schema: str, *, atomic: bool) -> T:
    """As `converse`, for async callers."""
    return await _kind(connection).aconverse(connection, conversation, schema, atomic=atomic)


def physical(connection: object) -> object | None:
    """The psycopg or asyncpg connection behind the caller's; None while there is none. Opens nothing."""
    return _kind(connection).physical(connection)


def in_transaction(connection: object) -> bool:
    """Whether PostgreSQL has a transaction open on the caller's connection. Opens nothing."""
    return _kind(connection).in_transaction(connection)


def transaction(connection: object, last: TransactionEnd, schema: str) -> AbstractContextManager[None]:
    """A transaction on a sync connection of the caller's, begun by the block unless it is open already.

    At its end the last words are said, and all is committed, by the means of the connection's library. An error rolls
    all of it back. Where that is not the block's to do, inside a transaction block of the caller's, it is refused.
    """
    return _kind(connection).transaction(connection, last, schema)


def atransaction(connection: object, last: TransactionEnd, schema: str) -> AbstractAsyncContextManager[None]:
    """As `transaction`, for async callers."""
    return _kind(connection).atransaction(connection, last, schema)


def savepoint(connection: object) -> Any:  # noqa: ANN401  a context manager of the connection's own colour
    """A part of the caller's open transaction, as the connection's library makes one, that is undone if it fails."""
    return _kind(connection).savepoint(connection)


def mark(connection: object) -> Callable[[], None] | None:
    """Mark the caller's open transaction: the function returned takes it back to there if it is broken by then.

    None for all but Django's, which alone breaks off a transaction block for the errors of its own verbs.
    """
    make: Callable[[object], Callable[[], None]] | None = getattr(_kind(connection), "mark", None)
    return None if make is None else make(connection)


def _kind(connection: object) -> Kind:
    """By the library that its class or a parent of that comes from; one that nobody has loaded is not loaded here."""
    for parent in type(connection).__mro__:
        library = parent.__module__.partition(".")[0]
        if library in _KINDS and library in sys.modules:
            return cast("Kind", import_module(f"{__name__}.{library}"))
        if parent.__module__ == f"{__name__}.lent":
            return cast("Kind", sys.modules[parent.__module__])
    raise wrong_kind(connection)
