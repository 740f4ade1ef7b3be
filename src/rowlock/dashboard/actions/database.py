"""What can be done on the pages of database."""

from __future__ import annotations

from typing import Any, Final

from rowlock.dashboard.action import Action

ACTIONS: Final[tuple[Action[Any], ...]] = ()
