"""The routes by which one logs in and out."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import parse_qs

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from rowlock.dashboard.answer import Answers, set_cookie
from rowlock.dashboard.guard import CSRF, has_token
from rowlock.dashboard.login import IDLE, SESSION, Attempts, Tokens


class SignIn:
    """Logging in with a token."""

    def __init__(self, tokens: Tokens, answers: Answers) -> None:
        self._tokens = tokens
        self._answers = answers
        self._attempts = Attempts()

    def routes(self) -> Iterable[Route]:
        """GET and POST /login, POST /logout."""
        yield Route("/login", self._show, methods=["GET"])
        yield Route("/login", self._enter, methods=["POST"])
        yield Route("/logout", self._leave, methods=["POST"])

    async def _show(self, request: Request) -> Response:
        _let_through(request)
        shown = {"page": "login", "wrong": None, "next": request.query_params.get("next", "/")}
        return self._answers.html(request, "login", shown)

    async def _enter(self, request: Request) -> Response:
        _let_through(request)
        address = request.client.host if request.client else "?"
        if self._attempts.too_many(address):
            raise HTTPException(429, "too many wrong tokens; wait a minute")
        said = parse_qs((await request.body()).decode())
        token, wanted = said.get("token", [""])[0].strip(), said.get("next", ["/"])[0]
        if self._tokens.visitor(token) is None:
            self._attempts.failed(address)
            shown = {"page": "login", "wrong": "That is no token of this dashboard.", "next": wanted}
            return self._answers.html(request, "login", shown, 401)
        root = request.scope.get("root_path", "")
        answer = RedirectResponse(root + (wanted if _is_ours(wanted) else "/"), 303)
        set_cookie(request, answer, SESSION, self._tokens.begin(token), age=IDLE)
        answer.delete_cookie(CSRF, path=root or "/")  # a new session has a new one
        return answer

    async def _leave(self, request: Request) -> Response:
        _let_through(request)
        said = parse_qs((await request.body()).decode())
        if not has_token(request, said.get("csrf", [None])[0]):
            raise HTTPException(403, "this form is not from this dashboard; load the page again")
        session = self._tokens.session(request.cookies.get(SESSION, ""))
        if session is not None:
            self._tokens.end(session)
        root = request.scope.get("root_path", "")
        answer = RedirectResponse(f"{root}/login", 303)
        answer.delete_cookie(SESSION, path=root or "/")
        return answer


def _let_through(request: Request) -> None:
    if request.scope["rowlock.refused"] is not None:
        raise request.scope["rowlock.refused"]


def _is_ours(path: str) -> bool:
    """Whether it is a path of this dashboard, and no address of another site."""
    return path.startswith("/") and not path.startswith(("//", "/\\"))
