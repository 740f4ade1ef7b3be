"""The dashboard: an ASGI app to mount in yours (`app.dashboard(…)`), or to start by itself (`rowlock dashboard`)."""

from __future__ import annotations

from rowlock.dashboard.app import Dashboard
from rowlock.dashboard.login import Tokens
from rowlock.dashboard.visitor import Role, Visitor

__all__ = ["Dashboard", "Role", "Tokens", "Visitor"]
