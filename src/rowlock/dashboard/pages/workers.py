"""The page /workers."""

from __future__ import annotations

from dataclasses import dataclass

from rowlock.dashboard.desk import Desk
from rowlock.dashboard.page import Asked, Page
from rowlock.model.stats import Stats


class WorkersAsked(Asked):
    """What it may be asked."""


@dataclass(frozen=True, slots=True)
class WorkersShown:
    """What it shows."""

    stats: Stats


async def look(desk: Desk, _asked: WorkersAsked) -> WorkersShown:
    """Look."""
    return WorkersShown(stats=await desk.look.astats())


PAGE = Page("workers", "/workers", WorkersAsked, WorkersShown, look, says="The workers.")
