"""Pages: all of them, in the order of the navigation."""

from __future__ import annotations

from typing import Any, Final

from rowlock.dashboard.page import DashboardPage
from rowlock.dashboard.pages import (
    audit,
    database,
    job,
    jobs,
    licences,
    overview,
    queues,
    schedule,
    schedules,
    workers,
    workflow,
    workflows,
)

PAGES: Final[tuple[DashboardPage[Any], ...]] = (
    overview.PAGE,
    jobs.PAGE,
    jobs.PREVIEW,
    job.PAGE,
    queues.PAGE,
    workers.PAGE,
    schedules.PAGE,
    schedule.PAGE,
    schedules.PREVIEW,
    workflows.PAGE,
    workflow.PAGE,
    database.PAGE,
    audit.PAGE,
    licences.PAGE,
)
