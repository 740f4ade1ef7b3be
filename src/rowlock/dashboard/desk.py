"""What a page or an action has before it: the app, to look at and to change, and who asks."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from rowlock.app.app import Rowlock
from rowlock.dashboard.lately import Lately
from rowlock.dashboard.orders import Orders
from rowlock.dashboard.visitor import Visitor

LONGEST_LOOK: Final = timedelta(seconds=2)
"""A statement that takes longer is given up: nobody waits for it, and it would be in the way of the workers."""

LONGEST_SCAN: Final = timedelta(milliseconds=150)
"""A list that has not found enough by then is shown as far as it came, and says how far that was."""


@dataclass(frozen=True, slots=True)
class Desk:
    """`look` is for whatever only looks: PostgreSQL itself keeps it from writing. `app` is for actions alone.

    `orders` are those that were given on this dashboard, `lately` is what was seen on it.
    """

    app: Rowlock
    look: Rowlock
    visitor: Visitor
    read_only: bool
    orders: Orders = field(default_factory=Orders)
    lately: Lately = field(default_factory=Lately)

    @property
    def who(self) -> str:
        """Who the audit says did it."""
        return self.visitor.name
