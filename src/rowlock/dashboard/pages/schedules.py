"""The pages /schedules and /schedules-preview: schedules with their slots; a rule before it is saved."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from rowlock.dashboard.context import RequestContext
from rowlock.dashboard.page import DashboardPage, Params
from rowlock.errors import InvalidOption
from rowlock.model.formatting import is_span, read_span
from rowlock.model.results import Firing
from rowlock.model.schedule.cron import find_zone
from rowlock.model.schedule.rule import Rule, check_rule
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


MOST_SLOTS: Final = 5


@dataclass(frozen=True, slots=True)
class LocalSlot:
    """An instant, and the same in the time zone of its rule."""

    at: datetime
    local: datetime


@dataclass(frozen=True, slots=True)
class RuleForecast:
    """A rule in words and its next slots; or why it has none."""

    words: str
    slots: tuple[LocalSlot, ...] = ()
    fault: str | None = None


def forecast(rule: Rule, now: datetime, *, anchor: datetime | None = None) -> RuleForecast:
    """A rule in words and its slots after now."""
    words, slots = rule_in_words(rule), list[datetime]()
    try:
        while len(slots) < MOST_SLOTS:
            slots.append(rule.after(slots[-1] if slots else now, anchor or (slots[0] if slots else None)))
    except InvalidOption as error:
        return RuleForecast(words, fault=str(error))
    return RuleForecast(words, tuple(slot_of(slot, getattr(rule, "tz", None)) for slot in slots))


def slot_of(at: datetime, tz: str | None) -> LocalSlot:
    """An instant, on the clocks of that zone too; where this machine does not know it, on UTC's."""
    try:
        return LocalSlot(at, at.astimezone(find_zone(tz)))
    except InvalidOption:
        return LocalSlot(at, at)


class RulePreviewParams(Params):
    """A rule as it is typed: a cron expression in a time zone, or an interval such as 15min."""

    rule: str = ""
    tz: str | None = None


@dataclass(frozen=True, slots=True)
class RulePreviewShown:
    """The forecast; None without a rule."""

    at: datetime
    foreseen: RuleForecast | None


async def load_preview(context: RequestContext, params: RulePreviewParams) -> RulePreviewShown:
    """Load the rule's forecast, or what is wrong with the rule."""
    [at] = await context.reader.database.arun(schema.now())
    if not params.rule:
        return RulePreviewShown(at, None)
    try:
        rule = typed_rule(params.rule)
        known = check_rule(rule, params.tz if isinstance(rule, str) else None)
    except InvalidOption as error:
        return RulePreviewShown(at, RuleForecast(params.rule, fault=str(error)))
    return RulePreviewShown(at, forecast(known, at))


def typed_rule(typed: str) -> str | timedelta:
    """A rule as people type it: `0 3 * * 1-5`, `15min`, `every 15min`."""
    text = typed.strip().removeprefix("every ")
    return read_span(text) if is_span(text) else typed.strip()


PREVIEW = DashboardPage(
    "schedules_preview",
    "/schedules-preview",
    RulePreviewParams,
    RulePreviewShown,
    load_preview,
    says="What a rule would mean: in words, and its next slots.",
    every=timedelta(seconds=30),
    nav="schedules",
)
