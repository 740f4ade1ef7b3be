"""Which of the caller's connections is meant where none is named."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

from rowlock.errors import InvalidOption


class Within:
    """The connections lent to one app: by `app.within` for a while, or by the app's own function at each call."""

    def __init__(self, connection: Callable[[], object | None] | None) -> None:
        if connection is not None and not callable(connection):
            raise InvalidOption(
                "Rowlock(connection=…) takes a function that answers a connection, or None for one of ours, at each "
                "enqueue; to lend one for a while, use `with app.within(connection):`"
            )
        self._connection = connection

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
        return None if self._connection is None else self._connection()


# The connections lent, by app. Never changed in place: what one context copies from another, they share.
_lent: ContextVar[Mapping[Within, object | None]] = ContextVar("rowlock within", default=MappingProxyType({}))
