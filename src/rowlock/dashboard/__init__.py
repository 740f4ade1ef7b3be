"""The dashboard: an ASGI app to mount in yours, or to start with `rowlock dashboard`."""

from __future__ import annotations

try:
    from rowlock.dashboard.access.tokens import Tokens
    from rowlock.dashboard.access.visitor import Role, Visitor
    from rowlock.dashboard.app import Dashboard
except ModuleNotFoundError as _error:
    if (_error.name or "rowlock").partition(".")[0] == "rowlock":
        raise
    raise ModuleNotFoundError(
        f"the dashboard needs {_error.name}; run: pip install 'rowlock[dashboard]'", name=_error.name
    ) from _error

__all__ = ["Dashboard", "Role", "Tokens", "Visitor"]
