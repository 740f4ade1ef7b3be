"""The page /schedules-preview: what a rule would mean, before anybody saves it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from rowlock.dashboard.desk import Desk
from rowlock.dashboard.page import Asked, Page
from rowlock.dashboard.pages.slots import Foreseen, foresee
from rowlock.errors import InvalidOption
from rowlock.model.formatting import is_span, read_span
from rowlock.model.schedule.rule import check_rule
from rowlock.store import schema


class PreviewAsked(Asked):
    """A rule as it is typed: a cron expression in a time zone, or an interval such as 15min."""

    rule: str = ""
    tz: str | None = None


@dataclass(frozen=True, slots=True)
class PreviewShown:
    """What it means; None while nothing is asked."""

    at: datetime
    foreseen: Foreseen | None


async def look(desk: Desk, asked: PreviewAsked) -> PreviewShown:
    """Its words and its next slots, or what is wrong with it."""
    [at] = await desk.look.database.arun(schema.now())
    if not asked.rule:
        return PreviewShown(at, None)
    try:
        rule = typed_rule(asked.rule)
        known = check_rule(rule, asked.tz if isinstance(rule, str) else None)
    except InvalidOption as error:
        return PreviewShown(at, Foreseen(asked.rule, fault=str(error)))
    return PreviewShown(at, foresee(known, at))


def typed_rule(typed: str) -> str | timedelta:
    """A rule as people type it: `0 3 * * 1-5`, `15min`, `every 15min`."""
    text = typed.strip().removeprefix("every ")
    return read_span(text) if is_span(text) else typed.strip()


PAGE = Page(
    "schedules_preview",
    "/schedules-preview",
    PreviewAsked,
    PreviewShown,
    look,
    says="What a rule would mean: in words, and its next slots.",
    every=timedelta(seconds=30),
)
