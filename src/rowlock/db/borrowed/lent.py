"""A connection lent across the line between sync and async code: both can enqueue in its one open transaction.

Elsewhere the wrong kind is refused, because waiting across that line may block for ever. Here somebody waits on the
other side: `rowlock.testing.drain`, which runs handlers of both kinds on one connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from importlib import import_module
from typing import Any, TypeVar

from rowlock.db import borrowed
from rowlock.store.query import Conversation

T = TypeVar("T")


class FromThread:
    """A sync connection whose thread runs what async code has to say on it."""

    def __init__(self, connection: object, run: Callable[[Callable[[], Any]], Awaitable[Any]]) -> None:
        self.connection = connection
        self.run = run


class FromLoop:
    """An async connection whose loop runs what the threads of sync code have to say on it."""

    def __init__(self, connection: object, loop: asyncio.AbstractEventLoop) -> None:
        self.connection = connection
        self.loop = loop


def from_loop(connection: Any, loop: asyncio.AbstractEventLoop) -> object:  # noqa: ANN401  of any library
    """Lend an async connection; Django's are not lent, for its async verbs find the right thread by themselves."""
    libraries = {parent.__module__.partition(".")[0] for parent in type(connection).__mro__}
    if "django" in libraries:
        utils: Any = import_module("django.utils.connection")
        return utils.ConnectionProxy(import_module("django.db").connections, connection.alias)  # each thread's own
    if "sqlalchemy" in libraries and hasattr(connection, "registry"):
        connection = connection.registry()  # each task has a session of its own there: meant is that of this one
    return FromLoop(connection, loop)


def converse(connection: FromThread | FromLoop, conversation: Conversation[T], schema: str, *, atomic: bool) -> T:
    """Hold a conversation, in the connection's thread or from another one than its loop's."""
    if isinstance(connection, FromThread):
        return borrowed.converse(connection.connection, conversation, schema, atomic=atomic)
    held = borrowed.aconverse(connection.connection, conversation, schema, atomic=atomic)
    return asyncio.run_coroutine_threadsafe(held, connection.loop).result()


async def aconverse(
    connection: FromThread | FromLoop, conversation: Conversation[T], schema: str, *, atomic: bool
) -> T:
    """Hold a conversation, on the connection's loop or by asking its thread."""
    if isinstance(connection, FromLoop):
        return await borrowed.aconverse(connection.connection, conversation, schema, atomic=atomic)
    answer: T = await connection.run(
        partial(borrowed.converse, connection.connection, conversation, schema, atomic=atomic)
    )
    return answer


def mark(connection: object) -> Callable[[], None] | None:
    """Mark the open transaction beneath, lent or not, in the thread to which it belongs."""
    return borrowed.mark(connection.connection if isinstance(connection, FromThread | FromLoop) else connection)


def physical(connection: FromThread | FromLoop) -> object | None:
    """The driver's own connection behind it; None while there is none."""
    return borrowed.physical(connection.connection)


def in_transaction(connection: FromThread | FromLoop) -> bool:
    """Whether the driver's own connection has a transaction open, be it a failed one."""
    return borrowed.in_transaction(connection.connection)
