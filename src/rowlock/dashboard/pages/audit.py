"""The page /audit."""

from __future__ import annotations

from dataclasses import dataclass

from rowlock.dashboard.desk import Desk
from rowlock.dashboard.page import Asked, Page
from rowlock.model.stats import Stats


class AuditAsked(Asked):
    """What it may be asked."""


@dataclass(frozen=True, slots=True)
class AuditShown:
    """What it shows."""

    stats: Stats


async def look(desk: Desk, _asked: AuditAsked) -> AuditShown:
    """Look."""
    return AuditShown(stats=await desk.look.astats())


PAGE = Page("audit", "/audit", AuditAsked, AuditShown, look, says="The audit.")
