"""The page /workflows."""

from __future__ import annotations

from dataclasses import dataclass

from rowlock.dashboard.desk import Desk
from rowlock.dashboard.page import Asked, Page
from rowlock.model.stats import Stats


class WorkflowsAsked(Asked):
    """What it may be asked."""


@dataclass(frozen=True, slots=True)
class WorkflowsShown:
    """What it shows."""

    stats: Stats


async def look(desk: Desk, _asked: WorkflowsAsked) -> WorkflowsShown:
    """Look."""
    return WorkflowsShown(stats=await desk.look.astats())


PAGE = Page("workflows", "/workflows", WorkflowsAsked, WorkflowsShown, look, says="The workflows.")
