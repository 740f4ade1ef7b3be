"""Borrowed connections of every kind: look for our schema, and refuse the wrong ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from rowlock.errors import SchemaMissing, WrongConnection
from rowlock.store import schema as schema_store
from rowlock.store.query import Conversation
from rowlock.store.transaction import all_or_nothing, is_safe_search_path, with_safe_search_path

T = TypeVar("T")


class TransactionEnd(NamedTuple):
    """What is said last in a transaction, made when its time has come; and who is told that it is committed."""

    say: Callable[[], Conversation[None]]
    committed: Callable[[], None]


# The schemas seen on each of the drivers' own connections, and whether our statements can be said there as they are.
_safe_schemas: WeakKeyDictionary[object, dict[str, bool]] = WeakKeyDictionary()


def joined(
    conversation: Conversation[T], *, physical: object, schema: str, atomic: bool, inside: bool
) -> Conversation[T]:
    """A conversation as it is held on somebody else's connection; `inside` a transaction of theirs or not.

    The schema is looked for once, and first: after a failed insert it would be too late for the caller's transaction.
    """
    seen = _safe_schemas.setdefault(physical, {})
    if schema not in seen:
        [(there, searched)] = yield schema_store.lookup(schema)
        if not there:
            raise SchemaMissing(f"the connection's database has no schema {schema!r}; run: rowlock migrate")
        seen[schema] = is_safe_search_path(searched)
    whole = all_or_nothing(conversation, inside=inside) if atomic else conversation
    return (yield from whole if seen[schema] else with_safe_search_path(whole, inside=inside))


def nothing() -> Conversation[None]:
    """Say nothing: of a conversation on somebody else's connection only the look for our schema is left."""
    yield from ()


def wrong_kind(connection: object) -> WrongConnection:
    """It is not a connection, or of a library that we do not know."""
    return WrongConnection(
        f"connection= is a {kind_name(connection)}; pass a psycopg 3 or asyncpg connection, a SQLAlchemy session or "
        "connection, or Django's"
    )


def kind_name(connection: object) -> str:
    """What a thing calls itself."""
    return f"{type(connection).__module__}.{type(connection).__qualname__}"


def is_async() -> WrongConnection:
    """It needs an await."""
    return WrongConnection(
        "enqueue, or signal, got an async connection; use `await task.using(connection=…).aenqueue(…)`, or "
        "`await app.asignal(…)`"
    )


def is_sync() -> WrongConnection:
    """It would block the event loop."""
    return WrongConnection(
        "aenqueue, or asignal, got a sync connection; use `task.using(connection=…).enqueue(…)`, or `app.signal(…)`"
    )


def needs_async_with() -> WrongConnection:
    """Its transaction cannot be ended without an await."""
    return WrongConnection(
        "`with` got an async connection; use `async with current_job().transaction(connection=…)` in an async handler"
    )


def needs_with() -> WrongConnection:
    """Its transaction would block the event loop."""
    return WrongConnection(
        "`async with` got a sync connection; use `with current_job().transaction(connection=…)` in a sync handler"
    )


def is_inside(block: str) -> WrongConnection:
    """Its transaction is somebody else's to commit."""
    return WrongConnection(
        f"connection= is inside {block}, which current_job().transaction() cannot commit; leave that block first, and "
        "let this one begin the transaction"
    )


def is_closed() -> WrongConnection:
    """Nothing can be said on it."""
    return WrongConnection("connection= is closed; pass an open one")


def in_pipeline() -> WrongConnection:
    """The replies to our statements would come only later, and those to others of the caller's first."""
    return WrongConnection(
        "connection= is in pipeline mode, where replies come later; leave its `with connection.pipeline():` block "
        "first, or pass another connection"
    )


def has_failed() -> WrongConnection:
    """Nothing can be said on it now."""
    return WrongConnection("connection= is in a failed transaction; roll it back first")
