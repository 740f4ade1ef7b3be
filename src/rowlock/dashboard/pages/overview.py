"""The page /."""

from __future__ import annotations

from dataclasses import dataclass

from rowlock.dashboard.desk import Desk
from rowlock.dashboard.page import Asked, Page
from rowlock.model.stats import Stats


class OverviewAsked(Asked):
    """What it may be asked."""


@dataclass(frozen=True, slots=True)
class OverviewShown:
    """What it shows."""

    stats: Stats


async def look(desk: Desk, _asked: OverviewAsked) -> OverviewShown:
    """Look."""
    return OverviewShown(stats=await desk.look.astats())


PAGE = Page("overview", "/", OverviewAsked, OverviewShown, look, says="The overview.")
