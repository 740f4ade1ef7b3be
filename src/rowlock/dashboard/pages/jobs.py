"""The page /jobs."""

from __future__ import annotations

from dataclasses import dataclass

from rowlock.dashboard.desk import Desk
from rowlock.dashboard.page import Asked, Page
from rowlock.model.stats import Stats


class JobsAsked(Asked):
    """What it may be asked."""


@dataclass(frozen=True, slots=True)
class JobsShown:
    """What it shows."""

    stats: Stats


async def look(desk: Desk, _asked: JobsAsked) -> JobsShown:
    """Look."""
    return JobsShown(stats=await desk.look.astats())


PAGE = Page("jobs", "/jobs", JobsAsked, JobsShown, look, says="The jobs.")
