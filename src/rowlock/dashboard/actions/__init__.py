"""Actions: all of them, by the page that they are on."""

from __future__ import annotations

from typing import Any, Final

from rowlock.dashboard.action import Action
from rowlock.dashboard.actions import database, jobs, queues, schedules, workflows

ACTIONS: Final[tuple[Action[Any], ...]] = (
    *jobs.ACTIONS,
    *queues.ACTIONS,
    *schedules.ACTIONS,
    *workflows.ACTIONS,
    *database.ACTIONS,
)
