"""The page /database."""

from __future__ import annotations

from dataclasses import dataclass

from rowlock.dashboard.desk import Desk
from rowlock.dashboard.page import Asked, Page
from rowlock.model.stats import Stats


class DatabaseAsked(Asked):
    """What it may be asked."""


@dataclass(frozen=True, slots=True)
class DatabaseShown:
    """What it shows."""

    stats: Stats


async def look(desk: Desk, _asked: DatabaseAsked) -> DatabaseShown:
    """Look."""
    return DatabaseShown(stats=await desk.look.astats())


PAGE = Page("database", "/database", DatabaseAsked, DatabaseShown, look, says="The database.")
