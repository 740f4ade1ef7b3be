"""Endpoints: pages as HTML, JSON or a stream, actions, and errors in words."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import parse_qsl, quote

from jinja2 import Environment
from pydantic import ValidationError
from pydantic_core import from_json, to_jsonable_python
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response

from rowlock.app.app import Rowlock
from rowlock.app.masking import mask
from rowlock.dashboard.access.cookies import CSRF, set_cookie
from rowlock.dashboard.access.guard import has_token, is_program
from rowlock.dashboard.access.visitor import Role, Visitor
from rowlock.dashboard.action import Action, ActionResult
from rowlock.dashboard.bulk_runs import BulkRuns
from rowlock.dashboard.cache import TtlCache
from rowlock.dashboard.context import RequestContext
from rowlock.dashboard.excerpt import ExcerptBudget
from rowlock.dashboard.http.address import path_of, root_of
from rowlock.dashboard.http.feed import Feed
from rowlock.dashboard.page import DashboardPage, Params, Redirect, check_fields, read_params
from rowlock.dashboard.render import RenderThreads, address, render_main, render_page
from rowlock.db.errors import is_transient
from rowlock.errors import InvalidArguments, InvalidOption, JobNotFound, RowlockError, ScheduleNotFound
from rowlock.model.names import shown as plainly
from rowlock.model.redact import redact_text

log = logging.getLogger("rowlock.dashboard")

Endpoint = Callable[[Request], Awaitable[Response]]

_STATUS: Final[dict[tuple[type[RowlockError], ...], int]] = {
    (JobNotFound, ScheduleNotFound): 404,
    (InvalidArguments, InvalidOption): 400,
    (RowlockError,): 409,
}
# Starlette's own words for what its router refuses, in ours.
_ROUTER_ERRORS: Final = {
    "Not Found": "there is no page at this address",
    "Method Not Allowed": "this address does not take that method",
}
# By the beginning of the SQLSTATE.
_DATABASE_ERRORS: Final = {
    "57014": (504, "the database took over two seconds; narrow the filter, or see Database health"),
    "25006": (403, "the database is read-only here"),
    "42501": (403, "the database user of the dashboard may not do this; see rowlock migrate --roles"),
}
_MAY_COME_BACK: Final = (503, 504)
"""A database that is away, or too slow, as behind a lock of a table: a page that fails so is loaded again."""
_UNREACHABLE: Final = (503, "the database cannot be reached")


class Endpoints:
    """The functions behind a dashboard's routes."""

    def __init__(
        self,
        app: Rowlock,
        reader: Rowlock,
        *,
        templates: Environment,
        read_only: bool,
        arguments: Role,
        pages: Sequence[DashboardPage[Any]],
        can_log_out: bool,
    ) -> None:
        self.feed = Feed()
        self._cache = TtlCache()
        self.bulk_runs = BulkRuns()
        self._threads = RenderThreads()
        self._app, self._reader = app, reader
        self._templates = templates
        self._read_only = read_only
        self._arguments: Role = arguments
        self._navigation = tuple(page for page in pages if page.nav == page.name)
        self._can_log_out = can_log_out

    async def aclose(self) -> None:
        """End streams, bulk runs and threads."""
        self.feed.end()
        await self.bulk_runs.aclose()
        self._threads.close()

    # Pages

    def page(self, page: DashboardPage[Any]) -> Endpoint:
        """A page as HTML; with `Accept: text/event-stream`, a stream of it as it changes."""

        async def endpoint(request: Request) -> Response:
            context = self._request_context(request)
            params = read_params(page.params, request.query_params, request.path_params)

            def render(value: object) -> Response:
                return self.html(request, page.name, self._shown(context, page, params, value, ExcerptBudget()))

            if not _wants_stream(request):
                return await self._threads.run(render, await self._load(context, page, params))
            if (refusal := self.feed.refusal(context.visitor.name)) is not None:
                raise HTTPException(503, refusal)

            def render_stream(value: object) -> str:
                shown = self._shown(context, page, params, value, ExcerptBudget())
                return render_main(self._templates, page.name, self._template_context(request, shown))

            async def load_main() -> str:
                return await self._threads.run(render_stream, await self._load(context, page, params))

            still = request.scope["rowlock.still"]
            return self.feed.stream(context.visitor.name, load_main, page.every, still=still, describe=_error_of)

        return endpoint

    def data(self, page: DashboardPage[Any]) -> Endpoint:
        """The page's data as JSON."""

        async def endpoint(request: Request) -> Response:
            params = read_params(page.params, request.query_params, request.path_params)
            context = self._request_context(request)

            def to_json(value: object) -> Response:
                return JSONResponse(to_json_value(self._shown(context, page, params, value, None)["it"]))

            return await self._threads.run(to_json, await self._load(context, page, params))

        return endpoint

    async def _load(self, context: RequestContext, page: DashboardPage[Any], params: Params) -> object:
        self._check_may_search(context.visitor, params)
        return await page.load(context, params)

    def _shown(
        self,
        context: RequestContext,
        page: DashboardPage[Any],
        params: Params,
        value: object,
        budget: ExcerptBudget | None,
    ) -> dict[str, Any]:
        value = mask(value, show_arguments=self._may_read(context.visitor), budget=budget)
        return {"it": value, "params": params, "nav": page.nav}

    def _may_read(self, visitor: Visitor | None) -> bool:
        """Whether they may see arguments and results."""
        return visitor is not None and visitor.may(self._arguments)

    def _check_may_search(self, visitor: Visitor, params: Params) -> None:
        """Refuse a search by argument to those who may not read arguments: it would read them, one guess at a time."""
        if getattr(params, "arg", None) and not self._may_read(visitor):
            raise HTTPException(403, f"to look for arguments needs the role {self._arguments}")

    # Actions

    def action(self, action: Action[Any]) -> Endpoint:
        """Do an action, and return its result."""

        async def endpoint(request: Request) -> Response:
            context = self._request_context(request)
            if self._read_only:
                raise HTTPException(403, "this dashboard is read-only; start it without --read-only to change things")
            if not context.visitor.may(action.role):
                raise HTTPException(403, f"this needs the role {action.role}; yours is {context.visitor.role}")
            fields = await _read_body(request)
            if not is_program(request) and not has_token(
                request, request.headers.get("x-csrf-token") or fields.get("csrf")
            ):
                raise HTTPException(403, "this form is not from this dashboard, or it is too old; load the page again")
            check_fields(action.params, fields)
            params = (
                read_params(action.params, fields, request.path_params)
                if isinstance(fields, QueryParams)
                else (action.params.model_validate({**fields, **request.path_params}))
            )
            self._check_may_search(context.visitor, params)
            result = await action.do(context, params)
            return self._done(request, mask(result, show_arguments=self._may_read(context.visitor)))

        return endpoint

    def _done(self, request: Request, result: ActionResult) -> Response:
        if _wants_json(request):
            to = None if result.to is None else root_of(request.scope) + result.to
            return JSONResponse({"says": result.says, "to": to, "facts": to_json_value(result.facts)})
        return self.html(request, "done", {"result": result})

    # What they have in common

    def _request_context(self, request: Request) -> RequestContext:
        visitor: Visitor | None = request.scope["rowlock.visitor"]
        if visitor is None:  # the guard lets nobody come here; if somebody does all the same, they see nothing
            raise HTTPException(401, "log in first")
        return RequestContext(self._app, self._reader, visitor, self._read_only, self.bulk_runs, self._cache)

    def _template_context(self, request: Request, shown: Mapping[str, Any]) -> dict[str, Any]:
        root = root_of(request.scope)
        return {
            "url": lambda path, params=None, **more: root + address(path, params, **more),
            "root": root,
            "visitor": request.scope["rowlock.visitor"],
            "shows_arguments": self._may_read(request.scope["rowlock.visitor"]),
            "csrf": request.scope["rowlock.csrf"],
            "read_only": self._read_only,
            "can_log_out": self._can_log_out,
            "navigation": self._navigation,
            "nav": None,
            **shown,
        }

    def html(self, request: Request, name: str, shown: Mapping[str, Any], status: int = 200) -> Response:
        """A whole page, and a cookie with the token that its forms carry."""
        response = HTMLResponse(render_page(self._templates, name, self._template_context(request, shown)), status)
        if request.cookies.get(CSRF) != request.scope["rowlock.csrf"]:
            set_cookie(request, response, CSRF, request.scope["rowlock.csrf"])
        return response

    async def failed(self, request: Request, error: Exception) -> Response:
        """The response to an error: a sentence, or a redirect."""
        if isinstance(error, Redirect):
            api = "/api" if path_of(request.scope).startswith("/api/") else ""
            return RedirectResponse(f"{root_of(request.scope)}{api}{error.to}", 303)
        status, says = _error_of(error)
        headers = error.headers if isinstance(error, HTTPException) else None
        if status == 500:
            log.error("%s %s failed", plainly(request.method), plainly(request.scope["path"]), exc_info=error)
        if _wants_json(request):
            return JSONResponse({"error": says}, status, headers)
        if status == 401 and self._can_log_out and request.method == "GET" and not _wants_stream(request):
            return RedirectResponse(f"{root_of(request.scope)}/login?next={quote(_requested(request), safe='')}", 303)
        if request.scope["rowlock.visitor"] is None and path_of(request.scope).startswith("/static/"):
            return PlainTextResponse(says, status, headers)
        retries = request.method == "GET" and status in _MAY_COME_BACK
        shown = {"status": status, "says": says, "retries": retries}
        response = self.html(request, "failed", shown, status)
        response.headers.update(headers or {})
        return response


def to_json_value(value: object) -> Any:  # noqa: ANN401  whatever JSON can hold
    """A value as JSON; durations are seconds.

    Not by model/plain: pages of the app that mounts the dashboard may hold sets, enums or models of pydantic's, which
    also takes a fifth of the time.
    """
    return to_jsonable_python(value, timedelta_mode="float", serialize_unknown=True)


async def _read_body(request: Request) -> QueryParams | dict[str, Any]:
    """A request's body: a form's fields, or a JSON object."""
    body = await request.body()
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    try:
        if kind == "application/x-www-form-urlencoded":
            return QueryParams(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=2_000))
        parsed = from_json(body or b"{}", allow_inf_nan=False) if kind in ("application/json", "") else None
    except ValueError as error:
        raise HTTPException(400, f"the body cannot be read: {error}") from error
    if not isinstance(parsed, dict):
        raise HTTPException(415, "send a JSON object as application/json, or a form")
    return parsed


def _wants_json(request: Request) -> bool:
    return path_of(request.scope).startswith("/api/") or "application/json" in request.headers.get("accept", "")


def _wants_stream(request: Request) -> bool:
    return request.method == "GET" and "text/event-stream" in request.headers.get("accept", "")


def _requested(request: Request) -> str:
    """The requested path, to come back to after the login."""
    query = request.scope["query_string"].decode("latin-1")
    return quote(path_of(request.scope)) + (f"?{query}" if query else "")


def _error_of(error: Exception) -> tuple[int, str]:
    """An error's status and its sentence, without secrets."""
    status, says = _describe(error)
    return status, redact_text(says)


def _describe(error: Exception) -> tuple[int, str]:
    if isinstance(error, HTTPException):
        return error.status_code, _ROUTER_ERRORS.get(error.detail, error.detail)
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        return 400, f"{'.'.join(map(str, first['loc'])) or 'it'}: {first['msg'].removeprefix('Value error, ')}"
    if isinstance(error, ClientDisconnect):
        return 400, "the body has no end"
    for kinds, status in _STATUS.items():
        if isinstance(error, kinds):
            return status, str(error)
    state = getattr(error, "sqlstate", None) or "?"
    for start, response in _DATABASE_ERRORS.items():
        if state.startswith(start):
            return response
    return _UNREACHABLE if is_transient(error) else (500, "something went wrong; the log of the dashboard says what")
