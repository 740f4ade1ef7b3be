"""Guard: checks each request's host, size, visitor and origin; adds security headers to responses."""

from __future__ import annotations

import asyncio
import hmac
import inspect
import logging
import re
import secrets
from collections.abc import Awaitable, Callable, Iterable
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rowlock.dashboard.access.cookies import CSRF, SESSION, set_cookie
from rowlock.dashboard.access.tokens import IDLE, Tokens
from rowlock.dashboard.access.visitor import Auth, Visitor
from rowlock.dashboard.http.address import check_hosts, host_of, is_mount, path_of, root_of

log = logging.getLogger("rowlock.dashboard")

MOST_BYTES: Final = 1_000_000
_MOST_QUERY: Final = 16_384
_BODY_SECONDS: Final = 10.0
_SAFE: Final = ("GET", "HEAD", "OPTIONS")
_LENGTH: Final = re.compile(r"[0-9]{1,12}")
_VISITOR_TOKEN: Final = re.compile(r"[\w-]{20,100}", re.ASCII)
_TOO_LARGE: Final = f"more than {MOST_BYTES:,} bytes; send less"
_HEADERS: Final = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}

Failed = Callable[[Request, Exception], Awaitable[Response]]


class Guard:
    """Lets permitted requests through, with their visitor in the scope; refuses all others.

    `open_paths` need no visitor: the login, and requests that are signed; nor do files below /static/.
    """

    def __init__(
        self, app: ASGIApp, *, auth: Auth, hosts: Iterable[str], open_paths: Iterable[str], failed: Failed
    ) -> None:
        self._app = app
        self._auth = auth
        self._hosts = check_hosts(hosts)
        self._open = frozenset(open_paths)
        self._failed = failed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            # Only with an app in it does the router raise what it refuses, so that it is said in our words.
            await self._guarded({"app": self, **scope, "rowlock.visitor": None}, receive, send)

    async def _guarded(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        wrong = self._wrong_form(request)
        if wrong is not None:
            answer = PlainTextResponse(wrong.detail, wrong.status_code)
            await answer(scope, receive, _headed(send, request, None))
            return
        known = request.cookies.get(CSRF, "")
        request.scope["rowlock.begun"] = False
        request.scope["rowlock.csrf"] = known if _VISITOR_TOKEN.fullmatch(known) else secrets.token_urlsafe(32)
        refused = await self._refusal(request)
        headed = _headed(send, request, self._auth)
        if refused is not None:
            await (await self._failed(request, refused))(scope, receive, headed)
            return
        try:
            await self._app(scope, _limited(receive), headed)
        except Exception:  # whatever serves us might show it to the world
            log.exception("a request has failed")
            if not request.scope["rowlock.begun"]:
                await PlainTextResponse("something went wrong", 500)(scope, receive, headed)

    # Form, before the visitor is known

    def _wrong_form(self, request: Request) -> HTTPException | None:
        """The error of a request that no browser and no honest program sends; it gets a line and no other check."""
        if not is_mount(root_of(request.scope)):
            return HTTPException(400, "this is not where the dashboard is mounted")
        if host_of(request) not in self._hosts:
            return HTTPException(421, "this dashboard does not serve that host; add it with hosts= or --allow-host")
        if len(request.scope["query_string"]) > _MOST_QUERY:
            return HTTPException(414, f"the address asks for more than {_MOST_QUERY:,} bytes; ask for less")
        if "\x00" in request.scope["path"] or b"%00" in request.scope["query_string"]:
            return HTTPException(400, "the address contains NUL, which PostgreSQL cannot store; remove it")
        return _wrong_length(request)

    # Visitor and origin

    async def _refusal(self, request: Request) -> Exception | None:
        """Why this request must not pass; None if it may, with its visitor in the scope."""
        path = path_of(request.scope)
        if path in self._open or path.startswith("/static/"):
            # A signed request need not be a browser's. Another site must not log anybody in.
            foreign = path == "/login" and not _is_same_site(request)
            return _FOREIGN if foreign else None
        try:
            visitor = await self._visitor(request)
        except HTTPException as refused:
            return refused
        except Exception as error:  # nobody passes, whatever it is
            log.exception("auth has failed; nobody passes until it works")
            return error
        if visitor is None:
            return HTTPException(401, "log in first", {"www-authenticate": "Bearer"})
        request.scope["rowlock.visitor"] = visitor
        request.scope["rowlock.still"] = lambda: self._is_still(request, visitor)
        return None if _is_same_site(request) else _FOREIGN

    async def _visitor(self, connection: HTTPConnection) -> Visitor | None:
        found = self._auth(connection)
        visitor = await found if inspect.isawaitable(found) else found
        if visitor is not None and not isinstance(visitor, Visitor):
            raise TypeError(f"auth returned a {type(visitor).__name__}; return a Visitor, or None for nobody")
        return visitor

    async def _is_still(self, connection: HTTPConnection, visitor: Visitor) -> bool:
        """Whether a watching visitor is still the same: they may have logged out, or lost their role."""
        try:
            return await self._visitor(connection) == visitor
        except Exception:
            log.exception("auth has failed; a page is not watched any more")
            return False


_FOREIGN: Final = HTTPException(403, "this request comes from another site; open the dashboard itself and try again")


def is_program(request: HTTPConnection) -> bool:
    """Whether the request is from a program: no page of another site can make a browser send such a request."""
    headers = request.headers
    is_bearer = headers.get("authorization", "").lower().startswith("bearer ")
    return is_bearer and "sec-fetch-site" not in headers and "origin" not in headers


def has_token(request: HTTPConnection, given: object) -> bool:
    """Whether a form, or a script of ours, carries the CSRF token, which only our own pages know."""
    known = request.cookies.get(CSRF, "")
    if not isinstance(given, str) or not _VISITOR_TOKEN.fullmatch(known):
        return False
    return hmac.compare_digest(known.encode(), given.encode(errors="replace"))


def _is_same_site(request: HTTPConnection) -> bool:
    """Whether it only reads, or comes from a program or a page of ours; a browser must say that it is the same site.

    Sec-Fetch-Site comes first: a form of a page that sends no referrer, as ours, has the origin "null".
    """
    if request.scope["method"] in _SAFE or is_program(request):
        return True
    site = request.headers.getlist("sec-fetch-site")
    if site:
        return site == ["same-origin"]
    origins = request.headers.getlist("origin")
    return len(origins) == 1 and urlsplit(origins[0]).netloc.lower() == request.headers.get("host", "").lower()


# Bodies and headers


def _wrong_length(request: Request) -> HTTPException | None:
    lengths = request.headers.getlist("content-length")
    is_chunked = "transfer-encoding" in request.headers
    if len(lengths) > 1 or (lengths and (is_chunked or not _LENGTH.fullmatch(lengths[0]))):
        return HTTPException(400, "the length of the body is unclear; send one content-length")
    length = int(lengths[0]) if lengths else 0
    if request.method in _SAFE and (length or is_chunked):
        return HTTPException(400, "who only looks has nothing to send; leave the body out")
    return HTTPException(413, _TOO_LARGE) if length > MOST_BYTES else None


def _limited(receive: Receive) -> Receive:
    """Limit a body in time and size."""
    seen, ended = 0, False
    until = asyncio.get_running_loop().time() + _BODY_SECONDS

    async def limited() -> Message:
        nonlocal seen, ended
        if ended:  # from now on there is only the end of the connection to hear of
            return await receive()
        try:
            async with asyncio.timeout_at(until):
                message = await receive()
        except TimeoutError:
            raise HTTPException(408, f"the body took over {_BODY_SECONDS:.0f} seconds; send it at once") from None
        seen += len(message.get("body", b""))
        ended = not message.get("more_body", False)
        if seen > MOST_BYTES:
            raise HTTPException(413, _TOO_LARGE)
        return message

    return limited


def _headed(send: Send, request: Request, auth: Auth | None) -> Send:
    async def headed(message: Message) -> None:
        if message["type"] == "http.response.start":
            request.scope["rowlock.begun"] = True
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
            if request.scope.get("scheme") == "https":
                headers.setdefault("strict-transport-security", "max-age=31536000")
            if isinstance(auth, Tokens) and request.scope["rowlock.visitor"] is not None and request.method == "GET":
                _renew(auth, request, headers)
        await send(message)

    return headed


def _renew(tokens: Tokens, request: Request, headers: MutableHeaders) -> None:
    """Renew the session of an active visitor. Watching a page does not renew it: they may be gone."""
    session = tokens.session(request.cookies.get(SESSION, ""))
    if session is not None and session.needs_renewal and "event-stream" not in headers.get("content-type", ""):
        answer = Response()
        set_cookie(request, answer, SESSION, tokens.renewed(session), age=IDLE)
        headers.append("set-cookie", answer.headers["set-cookie"])
