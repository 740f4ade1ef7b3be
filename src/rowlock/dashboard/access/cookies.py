"""Cookies that scripts cannot read, that other sites' links do not carry, and that stay within the dashboard's path."""

from __future__ import annotations

from typing import Final

from starlette.requests import HTTPConnection
from starlette.responses import Response

SESSION: Final = "rowlock_session"
CSRF: Final = "rowlock_csrf"


def set_cookie(connection: HTTPConnection, answer: Response, name: str, value: str, *, age: int | None = None) -> None:
    """Give a cookie; over TLS, one that is never sent without."""
    answer.set_cookie(
        name,
        value,
        max_age=age,
        path=_path(connection),
        secure=_is_secure(connection),
        httponly=True,
        samesite="strict",
    )


def end_cookie(connection: HTTPConnection, answer: Response, name: str) -> None:
    """Take a cookie away."""
    answer.delete_cookie(name, path=_path(connection), secure=_is_secure(connection), httponly=True, samesite="strict")


def _path(connection: HTTPConnection) -> str:
    return connection.scope.get("root_path", "") or "/"


def _is_secure(connection: HTTPConnection) -> bool:
    return bool(connection.scope.get("scheme") == "https")
