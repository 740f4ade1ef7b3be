"""The page /workers: each worker, its slots and its lease, and what it holds."""

from __future__ import annotations

from datetime import timedelta

from rowlock.dashboard.desk import Desk
from rowlock.dashboard.page import Asked, Page
from rowlock.model.stats.worker_view import Fleet
from rowlock.store.stats.workers import watch


class WorkersAsked(Asked):
    """Workers whose HOST:PID has this in it; all unless asked."""

    named: str = ""


async def look(desk: Desk, asked: WorkersAsked) -> Fleet:
    """The workers at one moment."""
    return await desk.look.database.aconverse(lambda: watch(asked.named or None))


PAGE = Page(
    "workers",
    "/workers",
    WorkersAsked,
    Fleet,
    look,
    says="Every worker: its slots, its lease and the jobs that it holds.",
    every=timedelta(seconds=1),
)
