"""Travel: moves the database's clock for a while, and fires the schedules that are due."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from types import TracebackType
from typing import Self

from rowlock.app.app import Rowlock
from rowlock.app.verbs import refuse_in_loop
from rowlock.errors import InvalidOption
from rowlock.model.names import check_moment
from rowlock.store import clock, schema
from rowlock.store.query import Conversation
from rowlock.store.schedules import declare
from rowlock.store.schedules import fire as firing
from rowlock.store.schedules.fire import DueRow
from rowlock.worker.schedule import Planned, decide
from rowlock.worker.settle import Retention

_SCHEDULES = 1_000


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


def fire(app: Rowlock, *, connection: object | None = None) -> list[str]:
    """Fire the schedules that are due; returns their names, once for each job that was made.

    First, as a worker that starts, it enters those that the app declares: their first slots come after that. With
    `connection` it all happens there, inside its open transaction.
    """
    if connection is None:
        refuse_in_loop("fire", "await afire(…)")
    return app.database.converse(partial(_fire, app), connection=connection or app.database.within.block())


async def afire(app: Rowlock, *, connection: object | None = None) -> list[str]:
    """Fire the schedules that are due; returns their names, once for each job that was made.

    First, as a worker that starts, it enters those that the app declares: their first slots come after that. With
    `connection` it all happens there, inside its open transaction.
    """
    found = connection or await app.database.within.ablock()
    return await app.database.aconverse(partial(_fire, app), connection=found)


def _fire(app: Rowlock) -> Conversation[list[str]]:
    app.load()
    now: datetime = (yield schema.now())[0]
    yield from declare.declare(app.tasks.schedules(), now=now, anew=True)
    made: list[str] = []
    while planned := (yield from _plan()):
        done: list[str] = yield firing.fire(one.firing for one in planned)
        if not done:
            break  # another process fires them
        for one in planned:
            if one.replaces and one.firing.name in done:
                yield firing.make_room(one.replaces, schedule=one.firing.name, keep=app.keep.cancelled)
        slots = [(slot.at, one.firing.name) for one in planned for slot in one.firing.slots if slot.job is not None]
        made += [name for _, name in sorted(slots) if name in done]
    return made


def _plan() -> Conversation[list[Planned]]:
    """The firings that are due; a faulty schedule raises here, where a worker would log it."""
    lines: list[DueRow] = yield firing.due(limit=_SCHEDULES)
    found = [line.schedule for line in lines if line.schedule is not None]
    return [planned for schedule in found if (planned := decide(schedule, lines[0].now)) is not None]
