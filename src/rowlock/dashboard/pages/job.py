"""The page /jobs/{id}."""

from __future__ import annotations

from dataclasses import dataclass

from rowlock.dashboard.desk import Desk
from rowlock.dashboard.page import Asked, Page
from rowlock.model.stats import Stats


class JobAsked(Asked):
    """What it may be asked."""


@dataclass(frozen=True, slots=True)
class JobShown:
    """What it shows."""

    stats: Stats


async def look(desk: Desk, _asked: JobAsked) -> JobShown:
    """Look."""
    return JobShown(stats=await desk.look.astats())


PAGE = Page("job", "/jobs/{id}", JobAsked, JobShown, look, says="The job.")
