"""Halver: takes a refused batch apart, and leaves out what PostgreSQL refuses alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from math import inf
from typing import Generic, TypeVar

from rowlock.db.errors import Refused
from rowlock.db.partitions import make_partitions
from rowlock.db.safe_logger import SafeLogger
from rowlock.db.thread_connection import ReconnectingSyncConnection
from rowlock.store.query import Query

log = SafeLogger("rowlock.upkeep")

T = TypeVar("T")

# What stands alone and may be the server's fault is tried again after so many seconds.
_LATER = 60.0
# After so many of those in a row, with nothing done in between, it is the server that is ill: the others wait, too.
_MOST_DOUBTS = 3
# A chunk that is refused is made so many times smaller, and larger again.
_LESS = 8


class LeftOut:
    """What PostgreSQL refuses when it stands alone: left out from now on, or for a while where that is not certain."""

    def __init__(self, what: str, cannot: str) -> None:
        """For the log: `what` they are, and what they `cannot` be."""
        self._what = what
        self._cannot = cannot
        self._until: dict[str, float] = {}
        self._doubts = 0

    def marks(self) -> list[str]:
        """Who is left out now."""
        now = time.monotonic()
        self._until = {mark: until for mark, until in self._until.items() if until > now}
        return list(self._until)

    def worked(self) -> None:
        """Something could be done."""
        self._doubts = 0

    def leave(self, mark: str, error: Refused, *, name: str) -> None:
        """Leave this one out. Raises the error when the server rather than any of these seems to be its reason.

        One that lacks its partition comes back, too: somebody may make it.
        """
        log.error("%s %s cannot be %s: PostgreSQL refuses it (%s)", self._what, name, self._cannot, error)
        is_certain = not (error.unclear or error.lacks_partition)
        self._until[mark] = inf if is_certain else time.monotonic() + _LATER
        self._doubts += not is_certain
        if self._doubts >= _MOST_DOUBTS:
            self._doubts = 0
            raise error


def make_missing(connection: ReconnectingSyncConnection, error: Refused, *, longest: timedelta) -> bool:
    """Make the partitions that somebody seems to miss; whether that is worth another try.

    A trigger's refusal may look the same, so it is worth one.
    """
    if error.lacks_partition:
        log.warning("the missing partitions are being made (%s)", error)
        make_partitions(connection.open(), connection.schema, longest=longest)
    return error.lacks_partition


def in_chunks(
    connection: ReconnectingSyncConnection,
    *,
    do: Callable[[int, Sequence[str]], Query[int]],
    peek: Callable[[Sequence[str]], Query[str]],
    size: int,
    most: int,
    left_out: LeftOut,
    longest: timedelta | None = None,
) -> int:
    """Run a statement over chunks of rows until none are left, or `most` times; returns how many rows were done.

    `do` builds it for so many rows, without those that are left out. A chunk that is refused is made smaller, down to
    the one row that `peek` finds, which is left out. With `longest`, missing partitions are made once.
    """
    done, now, made = 0, size, longest is None
    for _ in range(most):
        try:
            with connection.blaming():
                [chunk] = connection.run(do(now, left_out.marks()))
        except Refused as error:
            if not made and longest is not None and make_missing(connection, error, longest=longest):
                made = True
            elif now > 1:
                now = max(1, now // _LESS)
            else:
                for mark in connection.run(peek(left_out.marks())):
                    left_out.leave(mark, error, name=mark)
                now = size
            continue
        left_out.worked()
        done += chunk
        if chunk < now:
            break
        now = min(size, now * _LESS)
    return done


class Halver(Generic[T]):
    """Takes batches apart."""

    def __init__(
        self,
        *,
        write: Callable[[ReconnectingSyncConnection, Sequence[T]], object],
        left_out: LeftOut,
        marked: Callable[[T], tuple[str, str]],
        longest: timedelta,
    ) -> None:
        """`write` does a batch or raises Refused; `marked` gives the mark by which one is left out, and its name."""
        self._write = write
        self._left_out = left_out
        self._marked = marked
        self._longest = longest

    def take_apart(self, connection: ReconnectingSyncConnection, batch: Sequence[T], error: Refused) -> None:
        """This batch was refused: do all of it but for what cannot be done."""
        if make_missing(connection, error, longest=self._longest):
            self._try(connection, batch)
        else:
            self._halve(connection, batch, error)

    def _try(self, connection: ReconnectingSyncConnection, batch: Sequence[T]) -> None:
        try:
            self._write(connection, batch)
        except Refused as error:
            self._halve(connection, batch, error)
        else:
            self._left_out.worked()

    def _halve(self, connection: ReconnectingSyncConnection, batch: Sequence[T], error: Refused) -> None:
        if len(batch) == 1:
            mark, name = self._marked(batch[0])
            self._left_out.leave(mark, error, name=name)
            return
        middle = len(batch) // 2
        for half in (batch[:middle], batch[middle:]):
            self._try(connection, half)
