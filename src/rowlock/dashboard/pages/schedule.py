"""The page /schedules/{name:path}."""

from __future__ import annotations

from dataclasses import dataclass

from rowlock.dashboard.desk import Desk
from rowlock.dashboard.page import Asked, Page
from rowlock.model.stats import Stats


class ScheduleAsked(Asked):
    """What it may be asked."""


@dataclass(frozen=True, slots=True)
class ScheduleShown:
    """What it shows."""

    stats: Stats


async def look(desk: Desk, _asked: ScheduleAsked) -> ScheduleShown:
    """Look."""
    return ScheduleShown(stats=await desk.look.astats())


PAGE = Page("schedule", "/schedules/{name:path}", ScheduleAsked, ScheduleShown, look, says="The schedule.")
