"""Within: which of the caller's connections a call uses that names none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Protocol

from rowlock.errors import InvalidOption


class Framework(Protocol):
    """A framework that knows the app's connection: what it allows, and what it has open."""

    source: str  # what says where the app's database is

    def check(self) -> None:
        """Raise the framework's own error where it forbids to connect, as in its tests without a database."""

    def block(self) -> object | None:
        """The app's connection, if a transaction block is open on it in this thread."""

    async def ablock(self) -> object | None:
        """The same for async code."""


class Within:
    """The connections lent to one app: by `app.within` for a while, or by the app's own function at each call."""

    def __init__(self, connection: Callable[[], object | None] | None, framework: Framework | None = None) -> None:
        if connection is not None and not callable(connection):
            raise InvalidOption(
                "Rowlock(connection=…) takes a function that returns a connection, or None for one of ours, at each "
                "enqueue; to lend one for a while, use `with app.within(connection):`"
            )
        self._connection = connection
        self._framework = framework

    @contextmanager
    def lend(self, connection: object | None) -> Iterator[None]:
        """Use this connection for calls without one of their own; None is one of ours again."""
        before = _lent.get()
        _lent.set({**before, self: connection})
        try:
            yield
        finally:
            _lent.set(before)  # not `reset`, which fails in a generator that is ended elsewhere than it was begun

    def is_lent(self) -> bool:
        """Whether one is lent here: calls belong to a transaction that somebody else has open."""
        return _lent.get().get(self) is not None

    def choose(self, named: object | None) -> object | None:
        """The connection to use where a call has named this one; None is one of ours."""
        if named is not None:
            return named
        lent = _lent.get()
        if self in lent:
            return lent[self]
        return self.own()

    def own(self) -> object | None:
        """The connection that the app's own function returns, whatever is lent."""
        return None if self._connection is None else self._connection()

    def check_own(self) -> None:
        """Raise the framework's error where a connection of ours is forbidden."""
        if self._framework is not None:
            self._framework.check()

    @property
    def source(self) -> str | None:
        """What of a framework's says where the app's database is."""
        return None if self._framework is None else self._framework.source

    def block(self) -> object | None:
        """The app's connection, where its framework has a transaction block open; what is asked there belongs to it."""
        return self._framework.block() if self._framework is not None and self._joins() else None

    async def ablock(self) -> object | None:
        """The same for async code."""
        return await self._framework.ablock() if self._framework is not None and self._joins() else None

    def _joins(self) -> bool:
        """Whoever has lent None wants connections of ours."""
        lent = _lent.get()
        return self not in lent or lent[self] is not None


# The connections lent, by app. Never changed in place: what one context copies from another, they share.
_lent: ContextVar[Mapping[Within, object | None]] = ContextVar("rowlock within", default=MappingProxyType({}))
