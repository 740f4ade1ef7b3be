"""The page /workflows/{id}."""

from __future__ import annotations

from dataclasses import dataclass

from rowlock.dashboard.desk import Desk
from rowlock.dashboard.page import Asked, Page
from rowlock.model.stats import Stats


class WorkflowAsked(Asked):
    """What it may be asked."""


@dataclass(frozen=True, slots=True)
class WorkflowShown:
    """What it shows."""

    stats: Stats


async def look(desk: Desk, _asked: WorkflowAsked) -> WorkflowShown:
    """Look."""
    return WorkflowShown(stats=await desk.look.astats())


PAGE = Page("workflow", "/workflows/{id}", WorkflowAsked, WorkflowShown, look, says="The workflow.")
