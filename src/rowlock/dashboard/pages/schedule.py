"""The page /schedules/NAME: one schedule, what it will do and what it has done."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from rowlock.dashboard.desk import Desk
from rowlock.dashboard.page import Asked, Page
from rowlock.dashboard.pages.schedules import FIRINGS, ScheduleShown, shown
from rowlock.dashboard.pages.slots import Foreseen, foresee
from rowlock.errors import InvalidOption
from rowlock.model.names import MAX_SCHEDULE, check_text
from rowlock.model.results import Firing
from rowlock.model.schedule.schedule import Schedule
from rowlock.store.query import Conversation
from rowlock.store.schedules import change, statements


class ScheduleAsked(Asked):
    """A schedule by its name."""

    name: str


@dataclass(frozen=True, slots=True)
class OneShown:
    """A schedule, its next slots, and the live workers whose code declares it."""

    at: datetime
    one: ScheduleShown
    foreseen: Foreseen
    workers: tuple[str, ...]


async def look(desk: Desk, asked: ScheduleAsked) -> OneShown:
    """The schedule at one moment; ScheduleNotFound if there is none."""
    name = check_text("schedule name", asked.name, limit=MAX_SCHEDULE)
    return await desk.look.database.aconverse(lambda: _shown(name), atomic=False)


def _shown(name: str) -> Conversation[OneShown]:
    schedule, _args, workers, at = yield from change.show(name)
    firings: list[Firing] = yield statements.firings(name, limit=FIRINGS)
    return OneShown(at, shown(schedule, firings), _foreseen(schedule, at), tuple(workers))


def _foreseen(schedule: Schedule, at: datetime) -> Foreseen:
    try:
        return foresee(schedule.rule, at, anchor=schedule.next_at)
    except InvalidOption as error:
        return Foreseen(schedule.cron or "?", fault=str(error))


PAGE = Page(
    "schedule",
    "/schedules/{name:path}",
    ScheduleAsked,
    OneShown,
    look,
    says="One schedule: its rule, its next slots, what became of the last ones.",
)
