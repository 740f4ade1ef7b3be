"""Verbs: a method and its async twin from one body.

A body checks its arguments, yields its exchanges with the database one after the other, and returns the result. `@verb`
makes the blocking method of it, and `averb` the coroutine:

    @verb("app.jobs")
    def edit(self, job_id: UUID | str) -> Verb[str]:
        return (yield from Exchange(self._database, partial(editing, check_id(job_id))))

    aedit = averb(edit)
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from rowlock.db.database import Database
from rowlock.errors import RowlockError
from rowlock.store.query import Conversation

F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Exchange(Generic[T]):
    """One conversation of a verb with the database, and the connection it is held on.

    Inside a transaction block that the app's framework has open, it joins that block, unless it stays apart.
    """

    database: Database
    begin: Callable[[], Conversation[T]]
    resend: Callable[[], Conversation[T]] | None = None  # begins it again after a broken connection, if that differs
    connection: object | None = None  # the caller's; None is the framework's in a block of it, else one of ours
    atomic: bool = True
    apart: bool = False  # on one of ours, even inside a transaction block of the app's framework

    def __iter__(self) -> Generator[Exchange[Any], T, T]:
        return (yield self)

    def hold(self) -> T:
        """Hold the conversation; blocks until it has ended."""
        connection = self.connection
        if connection is None and not self.apart:
            connection = self.database.within.block()
        return self.database.converse(self.begin, resend=self.resend, connection=connection, atomic=self.atomic)

    async def ahold(self) -> T:
        """Hold the conversation on the running loop."""
        connection = self.connection
        if connection is None and not self.apart:
            connection = await self.database.within.ablock()
        return await self.database.aconverse(self.begin, resend=self.resend, connection=connection, atomic=self.atomic)


Verb = Generator[Exchange[Any], Any, R]
"""The body of a verb, under way; it returns an R."""


def verb(
    path: str, *, instead: str | None = None
) -> Callable[[Callable[Concatenate[S, P], Verb[R]]], Callable[Concatenate[S, P], R]]:
    """Make a blocking method of a body. `path` is how users reach its object: `app.jobs`.

    On a running event loop it raises a RowlockError that names the async twin, unless the caller has lent a connection.
    With `instead`, what to write there, `path` is the name of the method itself.
    """

    def decorate(body: Callable[Concatenate[S, P], Verb[R]]) -> Callable[Concatenate[S, P], R]:
        name = f"{path}.{body.__name__}" if instead is None else path
        takes_arguments = body.__code__.co_argcount + body.__code__.co_kwonlyargcount > 1
        twin = instead or f"await {path}.a{body.__name__}({'…' if takes_arguments else ''})"
        # Users and the reference see what it returns; only type checkers see that this is a body.
        body.__annotations__["return"] = body.__annotations__["return"].removeprefix("Verb[").removesuffix("]")

        @wraps(body)
        def blocking(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
            steps = body(self, *args, **kwargs)
            try:
                exchange = next(steps)
                while True:
                    if exchange.connection is None:
                        refuse_in_loop(name, twin)
                    exchange = steps.send(exchange.hold())
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]  # a generator's is not typed

        return blocking

    return decorate


def averb(verb: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], Coroutine[Any, Any, R]]:
    """Make the async twin of a verb."""
    body: Callable[Concatenate[S, P], Verb[R]] = verb.__wrapped__  # type: ignore[attr-defined]  # see `verb`

    @wraps(body)
    async def waiting(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await ahold(body(self, *args, **kwargs))

    return _renamed(waiting)


def athread(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], Coroutine[Any, Any, R]]:
    """Make the async twin of a blocking method that is no verb: it runs in a thread."""

    @wraps(method)
    async def waiting(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await asyncio.to_thread(method, self, *args, **kwargs)

    return _renamed(waiting)


async def ahold(steps: Verb[R]) -> R:
    """Go through a verb's exchanges on the running loop."""
    try:
        exchange = next(steps)
        while True:
            exchange = steps.send(await exchange.ahold())
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]  # a generator's is not typed


def _renamed(twin: F) -> F:
    """Name a twin after its verb."""
    name = f"a{twin.__name__}"
    twin.__name__, twin.__qualname__ = name, f"{twin.__qualname__.removesuffix(name[1:])}{name}"
    return twin


def refuse_in_loop(name: str, instead: str) -> None:
    """Refuse a sync verb on an event loop: it waits for the database, or longer."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RowlockError(f"{name} would block the running event loop; use `{instead}`")
