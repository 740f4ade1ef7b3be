"""What can be done on the page of the database."""

from __future__ import annotations

from typing import Any, Final

from rowlock.dashboard.action import Action, ActionResult
from rowlock.dashboard.context import RequestContext
from rowlock.dashboard.page import Params
from rowlock.dashboard.pages.database import remember_trial


class MeasureParams(Params):
    """It is asked nothing."""


async def measure(context: RequestContext, _params: MeasureParams) -> ActionResult:
    """Have a claim tried out, and a job's whole way, all of it undone; and say what it cost."""
    measured = remember_trial(context.app, await context.app.adoctor(), by=context.actor)
    told = "; ".join(f"{finding.name}: {finding.figure}" for finding in measured.findings)
    return ActionResult(f"Tried and undone. {told}.", to="/database", facts=measured)


ACTIONS: Final[tuple[Action[Any], ...]] = (
    Action(
        "/database/measure",
        "operator",
        MeasureParams,
        measure,
        says="Try out a claim and a job's whole way, undo both, and answer what they cost.",
    ),
)
