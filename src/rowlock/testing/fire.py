"""Fire: due schedules make their jobs here and now, as in a worker."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from rowlock.app.app import Rowlock
from rowlock.app.verbs import refuse_in_loop
from rowlock.store import schema
from rowlock.store.query import Conversation
from rowlock.store.schedules import declare
from rowlock.store.schedules import fire as firing
from rowlock.store.schedules.fire import DueRow
from rowlock.worker.schedule import Planned, decide

_SCHEDULES = 1_000


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
