"""The dashboard with the demo's page in it."""

from __future__ import annotations

from rowlock.app.app import Rowlock
from rowlock.dashboard.app import Dashboard
from rowlock.dashboard.visitor import Auth
from rowlock.demo.page import actions_of, page_of
from rowlock.demo.sandbox import Sandbox


def dashboard_of(app: Rowlock, sandbox: Sandbox, *, auth: Auth) -> Dashboard:
    """Serve this."""
    return Dashboard(app, auth=auth, pages=[page_of(sandbox)], actions=actions_of(sandbox), packages=["rowlock.demo"])
