"""Request context: the app, the visitor, and what all requests share."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from rowlock.app.app import Rowlock
from rowlock.dashboard.access.visitor import Visitor
from rowlock.dashboard.bulk_runs import BulkRuns
from rowlock.dashboard.cache import TtlCache

STATEMENT_TIMEOUT: Final = timedelta(seconds=2)
"""Statements that take longer are cancelled: nobody waits for them, and they would be in the way of the workers."""

SCAN_TIMEOUT: Final = timedelta(milliseconds=150)
"""A list that has not found enough by then is shown as far as it came, and tells how far that was."""


@dataclass(frozen=True, slots=True)
class RequestContext:
    """The context of one request: `reader` is the app on connections that cannot write, `app` is for actions alone.

    `bulk_runs` and `cache` are those of this dashboard.
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
