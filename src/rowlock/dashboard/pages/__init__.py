"""The pages, in the order in which the navigation shows them."""

from __future__ import annotations

from typing import Any, Final

from rowlock.dashboard.page import Page
from rowlock.dashboard.pages import (
    audit,
    database,
    job,
    jobs,
    overview,
    queues,
    schedule,
    schedules,
    workers,
    workflow,
    workflows,
)

PAGES: Final[tuple[Page[Any], ...]] = (
    overview.PAGE,
    jobs.PAGE,
    job.PAGE,
    queues.PAGE,
    workers.PAGE,
    schedules.PAGE,
    schedule.PAGE,
    workflows.PAGE,
    workflow.PAGE,
    database.PAGE,
    audit.PAGE,
)
