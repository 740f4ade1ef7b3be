"""Answers to requests: a page as HTML, as JSON or as a stream; an action's sentence; and what went wrong, in words."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, quote

from jinja2 import Environment
from pydantic import ValidationError
from pydantic_core import to_jsonable_python
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from rowlock.app import Rowlock
from rowlock.dashboard.action import Action, Did
from rowlock.dashboard.conceal import conceal
from rowlock.dashboard.desk import Desk
from rowlock.dashboard.feed import Feed
from rowlock.dashboard.guard import CSRF, has_token, is_bearer
from rowlock.dashboard.page import Page, read_asked
from rowlock.dashboard.render import address, main_part, whole
from rowlock.dashboard.visitor import Role, Visitor
from rowlock.errors import InvalidArguments, InvalidOption, JobNotFound, RowlockError, ScheduleNotFound

log = logging.getLogger("rowlock.dashboard")

Endpoint = Callable[[Request], Awaitable[Response]]

_STATUS: Final[dict[tuple[type[RowlockError], ...], int]] = {
    (JobNotFound, ScheduleNotFound): 404,
    (InvalidArguments, InvalidOption): 400,
    (RowlockError,): 409,
}
# What PostgreSQL says, by the beginning of its code.
_TOLD: Final = {
    "57014": (503, "the database took over two seconds to answer; ask for less, or look at its health"),
    "25006": (403, "the database is read-only here"),
    "42501": (403, "the dashboard's database user has not the right to do this; see rowlock migrate --roles"),
    "08": (503, "the database cannot be reached; the page tries again"),
    "57P": (503, "the database cannot be reached; the page tries again"),
}


class Answers:
    """What the routes of a dashboard answer."""

    def __init__(
        self,
        app: Rowlock,
        look: Rowlock,
        *,
        templates: Environment,
        read_only: bool,
        arguments: Role,
        extra: tuple[Page[Any], ...],
        can_log_out: bool,
    ) -> None:
        self.feed = Feed()
        self._app, self._look = app, look
        self._templates = templates
        self._read_only = read_only
        self._arguments: Role = arguments
        self._extra = extra
        self._can_log_out = can_log_out

    # Pages

    def page(self, page: Page[Any]) -> Endpoint:
        """A page for people; for those who watch it, as it changes."""

        async def answer(request: Request) -> Response:
            desk = self._desk(request)
            asked = read_asked(page.asked, request.query_params, request.path_params)
            if "text/event-stream" not in request.headers.get("accept", ""):
                return self.html(request, page.name, await self._shown(desk, page, asked))
            if self.feed.is_full:
                raise HTTPException(503, "too many pages are being watched; close some")

            async def look() -> str:
                shown = await self._shown(desk, page, asked)
                return main_part(self._templates, page.name, self._context(request, shown))

            return self.feed.stream(look, page.every)

        return answer

    def data(self, page: Page[Any]) -> Endpoint:
        """The same for programs."""

        async def answer(request: Request) -> Response:
            asked = read_asked(page.asked, request.query_params, request.path_params)
            shown = await self._shown(self._desk(request), page, asked)
            return JSONResponse(plain(shown["it"]))

        return answer

    async def _shown(self, desk: Desk, page: Page[Any], asked: Any) -> dict[str, Any]:  # noqa: ANN401  as the page says
        it = conceal(await page.look(desk, asked), show_arguments=desk.visitor.may(self._arguments))
        return {"it": it, "asked": asked, "page": page.name}

    # Actions

    def action(self, action: Action[Any]) -> Endpoint:
        """What an action says it did."""

        async def answer(request: Request) -> Response:
            desk = self._desk(request)
            said = await _said(request)
            if not is_bearer(request) and not has_token(
                request, request.headers.get("x-csrf-token") or said.get("csrf")
            ):
                raise HTTPException(403, "this form is not from this dashboard, or it is too old; load the page again")
            if self._read_only:
                raise HTTPException(403, "this dashboard is read-only; start it without --read-only to change things")
            if not desk.visitor.may(action.role):
                raise HTTPException(403, f"this needs the role {action.role}, and you are a {desk.visitor.role}")
            asked = (
                read_asked(action.asked, said, request.path_params)
                if isinstance(said, QueryParams)
                else (action.asked.model_validate({**said, **request.path_params}))
            )
            did = await action.do(desk, asked)
            return self._done(request, did)

        return answer

    def _done(self, request: Request, did: Did) -> Response:
        if _wants_json(request):
            to = None if did.to is None else request.scope.get("root_path", "") + did.to
            return JSONResponse({"says": did.says, "to": to, "facts": plain(did.facts)})
        return self.html(request, "done", {"did": did, "page": "done"})

    # What they have in common

    def _desk(self, request: Request) -> Desk:
        refused: HTTPException | None = request.scope["rowlock.refused"]
        if refused is not None:
            raise refused
        visitor: Visitor = request.scope["rowlock.visitor"]
        return Desk(self._app, self._look, visitor, self._read_only)

    def _context(self, request: Request, shown: Mapping[str, Any]) -> dict[str, Any]:
        root = request.scope.get("root_path", "")
        return {
            "url": lambda path, asked=None, **more: root + address(path, asked, **more),
            "root": root,
            "visitor": request.scope.get("rowlock.visitor"),
            "csrf": request.state.csrf,
            "read_only": self._read_only,
            "can_log_out": self._can_log_out,
            "extra": self._extra,
            **shown,
        }

    def html(self, request: Request, name: str, shown: Mapping[str, Any], status: int = 200) -> Response:
        """A whole page, and the token that its forms carry."""
        answer = HTMLResponse(whole(self._templates, name, self._context(request, shown)), status)
        if request.cookies.get(CSRF) != request.state.csrf:
            set_cookie(request, answer, CSRF, request.state.csrf)
        return answer

    async def failed(self, request: Request, error: Exception) -> Response:
        """What went wrong, in a sentence."""
        status, says = _in_words(error)
        if status == 401 and self._can_log_out and not _wants_json(request):
            root, path = request.scope.get("root_path", ""), request.url.path
            wanted = path.removeprefix(root) + (f"?{request.url.query}" if request.url.query else "")
            return RedirectResponse(f"{root}/login?next={quote(wanted)}", 303)
        if status >= 500:
            log.error("%s %s failed", request.method, request.url.path, exc_info=error)
        if _wants_json(request):
            return JSONResponse({"error": says}, status)
        return self.html(request, "failed", {"status": status, "says": says, "page": "failed"}, status)


def plain(value: object) -> Any:  # noqa: ANN401  whatever JSON can hold
    """A value as JSON has it: durations are seconds."""
    return to_jsonable_python(value, timedelta_mode="float", serialize_unknown=True)


def set_cookie(request: Request, answer: Response, name: str, value: str, *, age: int | None = None) -> None:
    """A cookie that scripts cannot read, and that other sites' links do not carry."""
    path = request.scope.get("root_path", "") or "/"
    secure = request.url.scheme == "https"
    answer.set_cookie(name, value, max_age=age, path=path, secure=secure, httponly=True, samesite="strict")


async def _said(request: Request) -> QueryParams | dict[str, Any]:
    """What a request's body says: a form's fields, or a JSON object."""
    body = await request.body()
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    try:
        if kind == "application/x-www-form-urlencoded":
            return QueryParams(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=2_000))
        said = json.loads(body or b"{}")
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, f"the body cannot be read: {error}") from error
    if kind not in ("application/json", "") or not isinstance(said, dict):
        raise HTTPException(415, "send a JSON object as application/json, or a form")
    return said


def _wants_json(request: Request) -> bool:
    path = request.url.path.removeprefix(request.scope.get("root_path", ""))
    return path.startswith("/api/") or "application/json" in request.headers.get("accept", "")


def _in_words(error: Exception) -> tuple[int, str]:
    if isinstance(error, HTTPException):
        return error.status_code, error.detail
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return 400, f"{'.'.join(map(str, first['loc'])) or 'it'}: {first['msg'].removeprefix('Value error, ')}"
    for kinds, status in _STATUS.items():
        if isinstance(error, kinds):
            return status, str(error)
    state = getattr(error, "sqlstate", None) or "?"
    for start, told in _TOLD.items():
        if state.startswith(start):
            return told
    return 500, "something went wrong; the log of the dashboard says what"
