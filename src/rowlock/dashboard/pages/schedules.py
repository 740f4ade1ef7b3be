"""The page /schedules."""

from __future__ import annotations

from dataclasses import dataclass

from rowlock.dashboard.desk import Desk
from rowlock.dashboard.page import Asked, Page
from rowlock.model.stats import Stats


class SchedulesAsked(Asked):
    """What it may be asked."""


@dataclass(frozen=True, slots=True)
class SchedulesShown:
    """What it shows."""

    stats: Stats


async def look(desk: Desk, _asked: SchedulesAsked) -> SchedulesShown:
    """Look."""
    return SchedulesShown(stats=await desk.look.astats())


PAGE = Page("schedules", "/schedules", SchedulesAsked, SchedulesShown, look, says="The schedules.")
