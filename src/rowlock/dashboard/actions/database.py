"""What can be done on the page of the database."""

from __future__ import annotations

from typing import Any, Final

from rowlock.dashboard.action import Action, Did
from rowlock.dashboard.desk import Desk
from rowlock.dashboard.measured import remember
from rowlock.dashboard.page import Asked


class MeasureAsked(Asked):
    """It is asked nothing."""


async def measure(desk: Desk, _asked: MeasureAsked) -> Did:
    """Have a claim tried out, and a job's whole way, all of it undone; and say what it cost."""
    measured = remember(desk.app, await desk.app.adoctor(), by=desk.who)
    told = "; ".join(f"{finding.name}: {finding.figure}" for finding in measured.findings)
    return Did(f"Tried and undone. {told}.", to="/database", facts=measured)


ACTIONS: Final[tuple[Action[Any], ...]] = (
    Action(
        "/database/measure",
        "operator",
        MeasureAsked,
        measure,
        says="Try out a claim and a job's whole way, undo both, and answer what they cost.",
    ),
)
