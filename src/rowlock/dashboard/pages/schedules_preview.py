"""The page /schedules-preview: a rule in words and its next slots, before it is saved."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from rowlock.dashboard.context import RequestContext
from rowlock.dashboard.page import DashboardPage, Params
from rowlock.errors import InvalidOption
from rowlock.model.formatting import is_span, read_span
from rowlock.model.schedule.cron import find_zone
from rowlock.model.schedule.rule import Rule, check_rule
from rowlock.model.schedule.rule_words import rule_in_words
from rowlock.store import schema

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


async def load(context: RequestContext, params: RulePreviewParams) -> RulePreviewShown:
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


PAGE = DashboardPage(
    "schedules_preview",
    "/schedules-preview",
    RulePreviewParams,
    RulePreviewShown,
    load,
    says="What a rule would mean: in words, and its next slots.",
    every=timedelta(seconds=30),
    nav="schedules",
)
