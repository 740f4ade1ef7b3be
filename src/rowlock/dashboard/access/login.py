"""Login: the routes to log in and out."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from rowlock.dashboard.access.cookies import CSRF, SESSION, delete_cookie, set_cookie
from rowlock.dashboard.access.guard import has_token
from rowlock.dashboard.access.login_audit import LoginEvent, note_login
from rowlock.dashboard.access.tokens import IDLE, Tokens, address_of
from rowlock.dashboard.http.address import is_ours, root_of
from rowlock.dashboard.http.endpoints import Endpoints
from rowlock.model.names import shown

log = logging.getLogger("rowlock.dashboard")

LOGIN = "/login"
_STALE = "this form is not from this dashboard, or it is too old; load the page again"


class LoginRoutes:
    """Logging in with a token, and out."""

    def __init__(self, tokens: Tokens, endpoints: Endpoints) -> None:
        self._tokens = tokens
        self._endpoints = endpoints

    def routes(self) -> Iterable[Route]:
        """GET and POST /login, POST /logout."""
        yield Route(LOGIN, self._show, methods=["GET"])
        yield Route(LOGIN, self._enter, methods=["POST"])
        yield Route("/logout", self._leave, methods=["POST"])

    async def _show(self, request: Request) -> Response:
        return self._page(request, target=request.query_params.get("next", "/"))

    async def _enter(self, request: Request) -> Response:
        fields = await _fields(request)
        if not has_token(request, fields.get("csrf")):
            raise HTTPException(403, _STALE)
        token, target = fields.get("token", "").strip(), fields.get("next", "/")
        visitor = self._tokens.visitor(token, request)
        if visitor is None:
            wrong = "This token is not valid here. Check that you copied all of it."
            return self._page(request, target=target, wrong=wrong, status=401)
        note_login(request, LoginEvent("logged_in", address_of(request), visitor.name, visitor.role))
        log.info("%s logged in as %s from %s", shown(visitor.name), visitor.role, shown(address_of(request)))
        response = RedirectResponse(root_of(request.scope) + (target if is_ours(target) else "/"), 303)
        set_cookie(request, response, SESSION, self._tokens.begin(token), age=IDLE)
        delete_cookie(request, response, CSRF)  # a new session has a new one
        return response

    async def _leave(self, request: Request) -> Response:
        if not has_token(request, (await _fields(request)).get("csrf")):
            raise HTTPException(403, _STALE)
        session = self._tokens.session(request.cookies.get(SESSION, ""))
        if session is not None:
            visitor = self._tokens.whose(session)
            self._tokens.end(session)
            note_login(
                request, LoginEvent("logged_out", address_of(request), None if visitor is None else visitor.name)
            )
            log.info("a session was logged out from %s", shown(address_of(request)))
        response = RedirectResponse(f"{root_of(request.scope)}{LOGIN}", 303)
        delete_cookie(request, response, SESSION)
        delete_cookie(request, response, CSRF)
        return response

    def _page(self, request: Request, *, target: str, wrong: str | None = None, status: int = 200) -> Response:
        shown = {"wrong": wrong, "next": target if is_ours(target) else "/"}
        response = self._endpoints.html(request, "login", shown, status)
        # Without TLS, a browser that gives no referrer gives a form no origin either, and we would not believe it.
        response.headers["referrer-policy"] = "same-origin"
        return response


async def _fields(request: Request) -> dict[str, str]:
    """A form's fields; the last value of each."""
    try:
        return dict(parse_qsl((await request.body()).decode(), keep_blank_values=True, max_num_fields=20))
    except ValueError as error:
        raise HTTPException(400, "the form cannot be read; load the page again") from error
