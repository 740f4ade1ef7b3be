"""The page /schedules/NAME: one schedule, its next slots and its last ones."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from rowlock.dashboard.context import RequestContext
from rowlock.dashboard.page import DashboardPage, Params
from rowlock.dashboard.pages.schedules import FIRINGS, RuleForecast, ScheduleShown, forecast, shown
from rowlock.errors import InvalidOption
from rowlock.model.names import MAX_SCHEDULE, check_text
from rowlock.model.results import Firing
from rowlock.model.schedule.schedule import Schedule
from rowlock.store.query import Conversation
from rowlock.store.schedules import change, statements


class ScheduleParams(Params):
    """A schedule by its name."""

    name: str


@dataclass(frozen=True, slots=True)
class ScheduleDetailsShown:
    """A schedule, its next slots, and the live workers whose code declares it."""

    at: datetime
    one: ScheduleShown
    foreseen: RuleForecast
    workers: tuple[str, ...]


async def load(context: RequestContext, params: ScheduleParams) -> ScheduleDetailsShown:
    """The schedule at one moment; ScheduleNotFound if there is none."""
    name = check_text("schedule name", params.name, limit=MAX_SCHEDULE)
    return await context.reader.database.aconverse(lambda: _shown(name), atomic=False)


def _shown(name: str) -> Conversation[ScheduleDetailsShown]:
    schedule, _args, workers, at = yield from change.show(name)
    firings: list[Firing] = yield statements.firings(name, limit=FIRINGS)
    return ScheduleDetailsShown(at, shown(schedule, firings), _foreseen(schedule, at), tuple(workers))


def _foreseen(schedule: Schedule, at: datetime) -> RuleForecast:
    try:
        return forecast(schedule.rule, at, anchor=schedule.next_at)
    except InvalidOption as error:
        return RuleForecast(schedule.cron or "?", fault=str(error))


PAGE = DashboardPage(
    "schedule",
    "/schedules/{name:path}",
    ScheduleParams,
    ScheduleDetailsShown,
    load,
    says="One schedule: its rule, its next slots, what became of the last ones.",
    nav="schedules",
)
