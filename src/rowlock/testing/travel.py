"""Travel: the database's clock is moved for a while, and goes on from there."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from types import TracebackType
from typing import Self

from rowlock.app.app import Rowlock
from rowlock.app.verbs import refuse_in_loop
from rowlock.errors import InvalidOption
from rowlock.model.names import check_moment
from rowlock.store import clock, schema
from rowlock.store.query import Conversation
from rowlock.worker.settle import Retention


class travel:  # noqa: N801  it is used as a verb: `with travel(app, timedelta(hours=1)):`
    """Move the database's clock on by a span, or to a moment: delays, retries, leases and expiry move with it.

    `with travel(app, timedelta(hours=1)):` or `async with`. The clock goes on from there and is put back at the end;
    travels inside each other add up. With `connection` it is moved inside that connection's transaction alone.
    """

    def __init__(
        self,
        app: Rowlock,
        delta: timedelta | None = None,
        *,
        to: datetime | None = None,
        connection: object | None = None,
    ) -> None:
        if (delta is None) == (to is None):
            raise InvalidOption("travel wants a timedelta to move on by, or to=, a moment; one of them")
        if to is not None:
            check_moment("to", to)
        self._app = app
        self._delta = delta
        self._to = to
        self._connection = connection
        self._before: list[str] = []  # one for each time it was entered

    def __enter__(self) -> Self:
        if self._connection is None:
            refuse_in_loop("travel", "async with travel(…)")
            self._connection = self._app.database.within.block()
        self._before.append(self._app.database.converse(self._leave, connection=self._connection))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._app.database.converse(self._returning(), connection=self._connection)
        except Exception:
            # In a transaction that has failed the clock cannot be put back, and need not be: its end does that.
            if error is None or self._connection is None:
                raise

    async def __aenter__(self) -> Self:
        if self._connection is None:
            self._connection = await self._app.database.within.ablock()
        self._before.append(await self._app.database.aconverse(self._leave, connection=self._connection))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._app.database.aconverse(self._returning(), connection=self._connection)
        except Exception:
            if error is None or self._connection is None:  # as above
                raise

    def _leave(self) -> Conversation[str]:
        before = yield from clock.move_clock_to(by=self._delta, to=self._to)
        # Whatever ends there is kept until a day for which nobody has made a partition yet.
        yield from schema.make_partitions(longest=Retention(self._app.tasks.handlers(), self._app.keep).longest)
        return before

    def _returning(self) -> Callable[[], Conversation[str]]:
        before = self._before.pop()
        return lambda: clock.move_clock_to(ahead=before)
