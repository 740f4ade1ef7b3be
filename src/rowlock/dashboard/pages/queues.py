"""The page /queues."""

from __future__ import annotations

from dataclasses import dataclass

from rowlock.dashboard.desk import Desk
from rowlock.dashboard.page import Asked, Page
from rowlock.model.stats import Stats


class QueuesAsked(Asked):
    """What it may be asked."""


@dataclass(frozen=True, slots=True)
class QueuesShown:
    """What it shows."""

    stats: Stats


async def look(desk: Desk, _asked: QueuesAsked) -> QueuesShown:
    """Look."""
    return QueuesShown(stats=await desk.look.astats())


PAGE = Page("queues", "/queues", QueuesAsked, QueuesShown, look, says="The queues.")
