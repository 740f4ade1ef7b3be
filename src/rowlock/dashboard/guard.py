"""Before any page: from which host, how large, who, and by whose hand. After it: what a browser must not do."""

from __future__ import annotations

import hmac
import inspect
import secrets
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rowlock.dashboard.visitor import Auth, Visitor

CSRF: Final = "rowlock_csrf"
LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")
MOST_BYTES: Final = 1_000_000
OPEN: Final = ("/login", "/static/", "/webhooks/")
"""What needs no visitor: where one logs in, files without a secret, and what is signed itself."""
_SAFE: Final = ("GET", "HEAD", "OPTIONS")
_HEADERS: Final = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


class Guard:
    """Lets through what may pass, and tells what is behind it who it is from."""

    def __init__(self, app: ASGIApp, *, auth: Auth, hosts: Iterable[str]) -> None:
        self._app = app
        self._auth = auth
        self._hosts = {*LOOPBACK, *(host.lower() for host in hosts)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        scope["state"] = scope.get("state", {}) | {"csrf": request.cookies.get(CSRF) or secrets.token_urlsafe(32)}
        scope["rowlock.refused"] = await self._refusal(request)
        await self._app(scope, _limited(receive), _headed(send))

    async def _refusal(self, request: Request) -> HTTPException | None:
        """Why this request must not pass, if it must not; else the visitor stands in its scope."""
        if not self._is_ours(request):
            return HTTPException(
                421, "this dashboard does not answer for that host; add it with hosts= or --allow-host"
            )
        if _is_too_large(request):
            return HTTPException(413, f"more than {MOST_BYTES:,} bytes; send less")
        path = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
        if path.startswith(OPEN):
            return None if path != "/login" or request.method in _SAFE or _same_origin(request) else _FOREIGN
        visitor = await self._visitor(request)
        if visitor is None:
            return HTTPException(401, "log in first")
        request.scope["rowlock.visitor"] = visitor
        if request.method not in _SAFE and not is_bearer(request) and not _same_origin(request):
            return _FOREIGN
        return None

    def _is_ours(self, request: HTTPConnection) -> bool:
        host = request.headers.get("host", "").lower()
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        return name in self._hosts

    async def _visitor(self, connection: HTTPConnection) -> Visitor | None:
        found = self._auth(connection)
        return await found if inspect.isawaitable(found) else found


_FOREIGN: Final = HTTPException(403, "this request comes from another site; open the dashboard itself and try again")


def is_bearer(request: HTTPConnection) -> bool:
    """Whether a program asks: a browser sends such a header for nobody."""
    return request.headers.get("authorization", "").lower().startswith("bearer ")


def has_token(request: HTTPConnection, said: str | None) -> bool:
    """Whether a form, or a script of ours, carries what only our own pages know."""
    known = request.cookies.get(CSRF)
    return known is not None and said is not None and hmac.compare_digest(known, said)


def _same_origin(request: HTTPConnection) -> bool:
    """Whether the browser says that a page of ours sends this; one that says nothing of it is not believed.

    Its word on the site comes first: a form of a page that gives no referrer, as ours, has the origin "null".
    """
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    origin = request.headers.get("origin", "")
    return urlsplit(origin).netloc.lower() == request.headers.get("host", "").lower()


def _is_too_large(request: HTTPConnection) -> bool:
    length = request.headers.get("content-length", "0")
    return not length.isdigit() or int(length) > MOST_BYTES


def _limited(receive: Receive) -> Receive:
    seen = 0

    async def limited() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > MOST_BYTES:
            raise HTTPException(413, f"more than {MOST_BYTES:,} bytes; send less")
        return message

    return limited


def _headed(send: Send) -> Send:
    async def headed(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.update(_HEADERS)
            if "cache-control" not in headers:
                headers["cache-control"] = "no-store"
        await send(message)

    return headed
