"""App: the dashboard as an ASGI app, its routes behind the guard."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from starlette.exceptions import HTTPException
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route, Router
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from rowlock.app.app import Rowlock
from rowlock.dashboard.access.guard import Guard
from rowlock.dashboard.access.login import LOGIN, LoginRoutes
from rowlock.dashboard.access.login_audit import LOGIN_EVENTS, LoginAudit, LoginEvent
from rowlock.dashboard.access.tokens import Tokens
from rowlock.dashboard.access.visitor import Auth, Role, check_role
from rowlock.dashboard.action import Action
from rowlock.dashboard.actions import ACTIONS
from rowlock.dashboard.context import STATEMENT_TIMEOUT
from rowlock.dashboard.http.address import root_of
from rowlock.dashboard.http.endpoints import Endpoint, Endpoints
from rowlock.dashboard.http.openapi import SIGNALS, description
from rowlock.dashboard.http.webhook import Webhooks, receive
from rowlock.dashboard.page import DashboardPage
from rowlock.dashboard.pages import PAGES
from rowlock.dashboard.render import STATIC, assets, templates


class Dashboard:
    """What `app.dashboard(…)` returns: mount it, `Mount("/jobs", app.dashboard(auth=…))`, or serve it.

    `auth` says who a request is from: `Tokens([…])`, or a function of the request that returns a Visitor or None, plain
    or async. `hosts` are the names under which it is reached, beside the loopback's. With `read_only` nothing can be
    changed. `arguments` is the least role that sees what jobs were given and made of it. `webhooks` are the secrets of
    those who may send signals to POST /webhooks/signals, else those in $ROWLOCK_WEBHOOK_SECRETS. `pages` and `actions`
    are more of your own; `packages` hold their files, in folders `templates` and `static`.
    """

    def __init__(
        self,
        app: Rowlock,
        *,
        auth: Auth,
        hosts: Iterable[str] = (),
        read_only: bool = False,
        arguments: Role = "operator",
        pages: Sequence[DashboardPage[Any]] = (),
        actions: Sequence[Action[Any]] = (),
        packages: Sequence[str] = (),
        webhooks: Sequence[str] | None = None,
    ) -> None:
        self.app = app
        self.reader = app.read_only(timeout=STATEMENT_TIMEOUT)
        self.endpoints = Endpoints(
            self.reader if read_only else app,  # so that PostgreSQL itself refuses, whatever gets that far
            self.reader,
            templates=templates(*packages),
            read_only=read_only,
            arguments=check_role(arguments),
            pages=(*pages, *PAGES),
            can_log_out=isinstance(auth, Tokens),
        )
        self.pages, self.actions = (*PAGES, *pages), (*ACTIONS, *actions)
        self._logins = LoginAudit(None if read_only else app.database)
        self.webhooks = None if read_only else Webhooks.find(webhooks)
        files = _Static(directory=STATIC, packages=[(package, "static") for package in packages])
        self.routes = [*self._routes(auth), Mount(f"/static/{assets()}", files, name="static")]
        router = Router(self.routes, redirect_slashes=False, lifespan=self._lifespan)
        failed = self.endpoints.failed
        self._asgi = Guard(
            ExceptionMiddleware(router, handlers={Exception: failed, HTTPException: failed}),
            auth=auth,
            hosts=hosts,
            open_paths=[*([LOGIN] if isinstance(auth, Tokens) else []), *([SIGNALS] if self.webhooks else [])],
            failed=failed,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; then write its logins, logouts and failed logins into the audit."""
        events: list[LoginEvent] = []
        await self._asgi({**scope, LOGIN_EVENTS: events}, receive, send)
        await self._logins.write(events)

    def end_streams(self) -> None:
        """End the streams of watching browsers, so that a server can stop."""
        self.endpoints.feed.end()

    async def aclose(self) -> None:
        """Close the connections that the dashboard has opened; the app's own stay."""
        await self.endpoints.aclose()
        await self.reader.aclose()

    @asynccontextmanager
    async def _lifespan(self, _app: object) -> AsyncIterator[None]:
        yield
        await self.aclose()

    def _routes(self, auth: Auth) -> Iterable[BaseRoute]:
        for page in self.pages:
            yield Route(page.path, self.endpoints.page(page), methods=["GET"], name=page.name)
            yield Route(f"/api{page.path}", self.endpoints.data(page), methods=["GET"])
        for action in self.actions:
            yield Route(action.path, self.endpoints.action(action), methods=["POST"])
            yield Route(f"/api{action.path}", self.endpoints.action(action), methods=["POST"])
        yield Route("/api/openapi.json", self._describe, methods=["GET"])
        if self.webhooks:
            yield Route(SIGNALS, _receiving(self.app, self.webhooks), methods=["POST"])
        if isinstance(auth, Tokens):
            yield from LoginRoutes(auth, self.endpoints).routes()

    async def _describe(self, request: Request) -> Response:
        return JSONResponse(description(self.pages, self.actions, root=root_of(request.scope)))


def _receiving(app: Rowlock, webhooks: Webhooks) -> Endpoint:
    """The endpoint for signals by webhook; the signature shows whom one is from."""

    async def endpoint(request: Request) -> Response:
        body, now = await request.body(), datetime.now(UTC)
        response = await receive(app, webhooks, headers=request.headers, body=body, now=now)
        return JSONResponse({"says" if response.status < 300 else "error": response.says}, response.status)

    return endpoint


class _Static(StaticFiles):
    """Static files, whose addresses change with their content: browsers may keep them."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["cache-control"] = "public, max-age=31536000, immutable"
        return response
