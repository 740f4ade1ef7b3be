"""Database actions: try out a claim, and show its cost."""

from __future__ import annotations

from typing import Any, Final

from rowlock.dashboard.action import Action, ActionResult
from rowlock.dashboard.context import RequestContext
from rowlock.dashboard.page import Params
from rowlock.dashboard.pages.database import remember_trial


class MeasureParams(Params):
    """No parameters."""


async def measure(context: RequestContext, _params: MeasureParams) -> ActionResult:
    """Try out a claim and a job's whole way, undo both, and return what they cost."""
    trial = remember_trial(context.app, await context.app.adoctor(), by=context.actor)
    figures = "; ".join(f"{finding.name}: {finding.figure}" for finding in trial.findings)
    return ActionResult(f"Tried and undone. {figures}.", to="/database", facts=trial)


ACTIONS: Final[tuple[Action[Any], ...]] = (
    Action(
        "/database/measure",
        "operator",
        MeasureParams,
        measure,
        says="Try out a claim and a job's whole way, undo both, and return what they cost.",
    ),
)
