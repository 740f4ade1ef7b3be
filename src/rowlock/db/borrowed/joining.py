"""What every kind of borrowed connection has in common: the look for our schema, and the sentences of refusal."""

from __future__ import annotations

from typing import TypeVar
from weakref import WeakKeyDictionary

from rowlock.errors import SchemaMissing, WrongConnection
from rowlock.store import schema as schema_store
from rowlock.store.atomic import all_or_nothing
from rowlock.store.query import Conversation

T = TypeVar("T")

# The schemas seen on each of the drivers' own connections.
_seen: WeakKeyDictionary[object, set[str]] = WeakKeyDictionary()


def joined(
    conversation: Conversation[T], *, physical: object, schema: str, atomic: bool, inside: bool
) -> Conversation[T]:
    """A conversation as it is held on somebody else's connection; `inside` a transaction of theirs or not.

    The schema is looked for once, and first: after a failed insert it would be too late for the caller's transaction.
    """
    seen = _seen.setdefault(physical, set())
    if schema not in seen:
        if not (yield schema_store.look(schema))[0]:
            raise SchemaMissing(f"the connection's database has no schema {schema!r}; run: rowlock migrate")
        seen.add(schema)
    return (yield from all_or_nothing(conversation, inside=inside) if atomic else conversation)


def wrong_kind(connection: object) -> WrongConnection:
    """It is no connection, or of a library that we do not know."""
    return WrongConnection(
        f"connection= is a {kind_name(connection)}; pass a psycopg 3 or asyncpg connection, a SQLAlchemy session or "
        "connection, or Django's"
    )


def kind_name(connection: object) -> str:
    """What a thing calls itself."""
    return f"{type(connection).__module__}.{type(connection).__qualname__}"


def is_async() -> WrongConnection:
    """It needs an await."""
    return WrongConnection("enqueue got an async connection; use `await task.using(connection=…).aenqueue(…)`")


def is_sync() -> WrongConnection:
    """It would block the event loop."""
    return WrongConnection("aenqueue got a sync connection; use `task.using(connection=…).enqueue(…)`")


def is_closed() -> WrongConnection:
    """Nothing can be said on it."""
    return WrongConnection("connection= is closed; pass an open one")


def has_failed() -> WrongConnection:
    """Nothing can be said on it now."""
    return WrongConnection("connection= is in a failed transaction; roll it back first")
