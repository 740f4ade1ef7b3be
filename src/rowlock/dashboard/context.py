"""What a page or an action has before it: the app, to look at and to change, and who asks."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from rowlock.app.app import Rowlock
from rowlock.dashboard.access.visitor import Visitor
from rowlock.dashboard.bulk_runs import BulkRuns
from rowlock.dashboard.cache import TtlCache

STATEMENT_TIMEOUT: Final = timedelta(seconds=2)
"""A statement that takes longer is given up: nobody waits for it, and it would be in the way of the workers."""

SCAN_TIMEOUT: Final = timedelta(milliseconds=150)
"""A list that has not found enough by then is shown as far as it came, and says how far that was."""


@dataclass(frozen=True, slots=True)
class RequestContext:
    """`look` is for whatever only looks: PostgreSQL itself keeps it from writing. `app` is for actions alone.

    `orders` are those that were given on this dashboard, `lately` is what was seen on it.
    """

    app: Rowlock
    reader: Rowlock
    visitor: Visitor
    read_only: bool
    bulk_runs: BulkRuns = field(default_factory=BulkRuns)
    cache: TtlCache = field(default_factory=TtlCache)

    @property
    def actor(self) -> str:
        """Who the audit says did it."""
        return self.visitor.name
