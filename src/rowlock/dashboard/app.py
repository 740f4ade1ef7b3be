"""The dashboard as an ASGI app: its pages, its actions and its API, behind the guard."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from rowlock.app import Rowlock
from rowlock.dashboard.action import Action
from rowlock.dashboard.actions import ACTIONS
from rowlock.dashboard.answer import Answers
from rowlock.dashboard.desk import LONGEST_LOOK
from rowlock.dashboard.guard import Guard
from rowlock.dashboard.login import Tokens
from rowlock.dashboard.page import Page
from rowlock.dashboard.pages import PAGES
from rowlock.dashboard.render import VERSION, templates
from rowlock.dashboard.signin import SignIn
from rowlock.dashboard.visitor import Auth, Role, check_role

_STATIC: Final = Path(__file__).parent / "static"


class Dashboard:
    """What `app.dashboard(…)` answers: mount it, `Mount("/jobs", app.dashboard(auth=…))`, or serve it.

    `auth` says who a request is from: `Tokens([…])`, or a function of the request that answers a Visitor or None, plain
    or async. `hosts` are the names under which it is reached, beside the loopback's. With `read_only` nothing can be
    changed. `arguments` is the least role that sees what jobs were given and made of it. `pages` and `actions` are more
    of your own; their templates lie in the folder `templates` of `packages`.
    """

    def __init__(
        self,
        app: Rowlock,
        *,
        auth: Auth,
        hosts: Iterable[str] = (),
        read_only: bool = False,
        arguments: Role = "operator",
        pages: Sequence[Page[Any]] = (),
        actions: Sequence[Action[Any]] = (),
        packages: Sequence[str] = (),
    ) -> None:
        self.app = app
        self.look = app.looking(within=LONGEST_LOOK)
        self.answers = Answers(
            app,
            self.look,
            templates=templates(*packages),
            read_only=read_only,
            arguments=check_role(arguments),
            extra=tuple(pages),
            can_log_out=isinstance(auth, Tokens),
        )
        routes = [*self._routes((*PAGES, *pages), (*ACTIONS, *actions))]
        if isinstance(auth, Tokens):
            routes += SignIn(auth, self.answers).routes()
        self._asgi = Starlette(
            routes=[*routes, Mount(f"/static/{VERSION}", _Static(directory=_STATIC), name="static")],
            middleware=[Middleware(Guard, auth=auth, hosts=hosts)],
            exception_handlers={Exception: self.answers.failed, HTTPException: self.answers.failed},
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        await self._asgi(scope, receive, send)

    def end_streams(self) -> None:
        """End what browsers watch, so that a server can stop."""
        self.answers.feed.end()

    async def aclose(self) -> None:
        """Close the connections that the dashboard has opened; the app's own stay."""
        self.end_streams()
        await self.look.aclose()

    def _routes(self, pages: Sequence[Page[Any]], actions: Sequence[Action[Any]]) -> Iterable[BaseRoute]:
        for page in pages:
            yield Route(page.path, self.answers.page(page), methods=["GET"], name=page.name)
            yield Route(f"/api{page.path}", self.answers.data(page), methods=["GET"])
        for action in actions:
            yield Route(action.path, self.answers.action(action), methods=["POST"])
            yield Route(f"/api{action.path}", self.answers.action(action), methods=["POST"])


class _Static(StaticFiles):
    """Files that are asked for by their version, and so may be kept."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        answer = await super().get_response(path, scope)
        answer.headers["cache-control"] = "public, max-age=31536000, immutable"
        return answer
