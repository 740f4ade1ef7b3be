"""The page /schedules: every schedule, its rule in words, its next and last slots."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from rowlock.dashboard.context import RequestContext
from rowlock.dashboard.page import DashboardPage, Params
from rowlock.dashboard.pages.schedules_preview import LocalSlot, slot_of
from rowlock.errors import InvalidOption
from rowlock.model.results import Firing
from rowlock.model.schedule.rule_words import rule_in_words
from rowlock.model.schedule.schedule import Schedule
from rowlock.store import schema
from rowlock.store.query import Conversation
from rowlock.store.schedules import statements
from rowlock.store.schedules.statements import ScheduleFiring, ScheduleRow

FIRINGS: Final = 20
_MOST_SHOWN: Final = 40


class SchedulesParams(Params):
    """Schedules whose name or task has this in it, those whose names come after that one."""

    named: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True)
class ScheduleShown:
    """A schedule, its rule in words, its next slot, and what became of the last ones, newest first.

    `fault` is why this machine cannot read its rule.
    """

    schedule: Schedule
    words: str
    fault: str | None
    next: LocalSlot
    firings: tuple[Firing, ...]


@dataclass(frozen=True, slots=True)
class SchedulesShown:
    """Schedules by name, without arguments, declarations and edits, which are loaded for the page of one schedule.

    `after` is where the next page begins, None after the last. `tasks` are those known here.
    """

    at: datetime
    schedules: tuple[ScheduleShown, ...]
    total: int
    after: str | None
    tasks: tuple[str, ...]


async def load(context: RequestContext, params: SchedulesParams) -> SchedulesShown:
    """Load a page of schedules."""
    return await context.reader.database.aconverse(
        lambda: _page(params, tuple(context.app.tasks.names())), atomic=False
    )


def _page(params: SchedulesParams, tasks: tuple[str, ...]) -> Conversation[SchedulesShown]:
    [at] = yield schema.now()
    meant = _meant((yield statements.outlined(None)), params.named)
    start = bisect_right([one.name for one in meant], params.after) if params.after else 0
    page = meant[start : start + _MOST_SHOWN]
    fired: list[ScheduleFiring] = yield statements.recent([one.name for one in page], limit=FIRINGS)
    firings: dict[str, list[Firing]] = {}
    for one in fired:
        firings.setdefault(one.schedule, []).append(one.firing)
    return SchedulesShown(
        at=at,
        schedules=tuple(shown(one, firings.get(one.name, ())) for one in page),
        total=len(meant),
        after=page[-1].name if page and len(meant) > start + _MOST_SHOWN else None,
        tasks=tasks,
    )


def _meant(looked: Sequence[ScheduleRow], part: str) -> list[Schedule]:
    said = part.casefold()
    found = [
        one.schedule for one in looked if said in one.schedule.name.casefold() + "\n" + one.schedule.task.casefold()
    ]
    return sorted(found, key=lambda one: one.name)


def shown(schedule: Schedule, firings: Sequence[Firing]) -> ScheduleShown:
    """A schedule as its pages show it."""
    try:
        words, fault = rule_in_words(schedule.rule), None
    except InvalidOption as error:
        words, fault = schedule.cron or "?", str(error)
    return ScheduleShown(schedule, words, fault, slot_of(schedule.next_at, schedule.tz), tuple(firings))


PAGE = DashboardPage(
    "schedules",
    "/schedules",
    SchedulesParams,
    SchedulesShown,
    load,
    says="Every schedule: its rule in words, its next slot, what became of the last ones.",
    nav="schedules",
    key="s",
)
