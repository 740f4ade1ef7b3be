"""The page /workers: each worker, its slots and its lease, and what it holds."""

from __future__ import annotations

from datetime import timedelta

from rowlock.dashboard.context import RequestContext
from rowlock.dashboard.page import DashboardPage, Params
from rowlock.model.stats.worker_view import Fleet
from rowlock.store.stats.workers import watch


class WorkersParams(Params):
    """Workers whose HOST:PID has this in it; all unless asked."""

    named: str = ""


async def load(context: RequestContext, params: WorkersParams) -> Fleet:
    """Load the workers at one moment."""
    return await context.reader.database.aconverse(lambda: watch(params.named or None))


PAGE = DashboardPage(
    "workers",
    "/workers",
    WorkersParams,
    Fleet,
    load,
    says="Every worker: its slots, its lease and the jobs that it holds.",
    every=timedelta(seconds=1),
    nav="workers",
    key="w",
)
