"""Cookies: HttpOnly, SameSite=Strict, and within the dashboard's path."""

from __future__ import annotations

from typing import Final

from starlette.requests import HTTPConnection
from starlette.responses import Response

SESSION: Final = "rowlock_session"
CSRF: Final = "rowlock_csrf"


def set_cookie(
    connection: HTTPConnection, response: Response, name: str, value: str, *, age: int | None = None
) -> None:
    """Set a cookie; over TLS, one that is never sent without TLS."""
    response.set_cookie(
        name,
        value,
        max_age=age,
        path=_path(connection),
        secure=_is_secure(connection),
        httponly=True,
        samesite="strict",
    )


def delete_cookie(connection: HTTPConnection, response: Response, name: str) -> None:
    """Delete a cookie."""
    response.delete_cookie(
        name, path=_path(connection), secure=_is_secure(connection), httponly=True, samesite="strict"
    )


def _path(connection: HTTPConnection) -> str:
    return connection.scope.get("root_path", "") or "/"


def _is_secure(connection: HTTPConnection) -> bool:
    return bool(connection.scope.get("scheme") == "https")
