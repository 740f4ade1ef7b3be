"""A browser for tests over HTTP: it keeps cookies, says where a form comes from, and carries the form's token."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
from starlette.types import ASGIApp, Message, Scope

from rowlock.dashboard import Dashboard
from rowlock.dashboard.access.cookies import CSRF

OURS = {"sec-fetch-site": "same-origin"}


class Browser:
    """One tab, on a loop of its own; its verbs are httpx's."""

    def __init__(self, runner: asyncio.Runner, http: httpx.AsyncClient) -> None:
        self.http = http
        self._runner = runner

    @property
    def csrf(self) -> str:
        """What only our own pages know."""
        if CSRF not in self.http.cookies:
            self.get("/")
        return self.http.cookies[CSRF]

    def get(self, path: str | httpx.URL, **options: Any) -> httpx.Response:  # noqa: ANN401  httpx's own
        return self.request("GET", path, **options)

    def post(self, path: str, **options: Any) -> httpx.Response:  # noqa: ANN401  httpx's own
        return self.request("POST", path, **options)

    def request(self, method: str, path: str | httpx.URL, **options: Any) -> httpx.Response:  # noqa: ANN401  httpx's own
        return self._runner.run(self.http.request(method, path, **options))

    def send(self, method: str, path: str, **options: Any) -> httpx.Response:  # noqa: ANN401  httpx's own
        """A request just as it is written, with no headers that httpx would add."""
        return self._runner.run(self.http.send(httpx.Request(method, f"http://localhost{path}", **options)))

    def act(self, path: str, /, **fields: Any) -> httpx.Response:  # noqa: ANN401  whatever a form holds
        """Send a form of ours, as our scripts do; answered in JSON."""
        said = {name: value for name, value in fields.items() if value is not None}
        return self.post(path, data={**said, "csrf": self.csrf}, headers={**OURS, "accept": "application/json"})

    def watch(self, dashboard: ASGIApp, path: str) -> str:
        """What a page that is watched is sent first; then the tab is closed."""
        return self._runner.run(_watched(dashboard, path))


async def _watched(dashboard: ASGIApp, path: str) -> str:
    seen, closed = "", asyncio.Event()
    url = httpx.URL(f"http://localhost{path}")
    scope: Scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "method": "GET",
        "scheme": "http",
        "path": url.path,
        "raw_path": url.raw_path,
        "query_string": url.query,
        "root_path": "",
        "headers": [(b"host", b"localhost"), (b"accept", b"text/event-stream")],
        "client": ("127.0.0.1", 1),
        "server": ("localhost", 80),
    }
    sent = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> Message:
        message = next(sent, None)
        if message is None:
            await closed.wait()
        return message or {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        nonlocal seen
        seen += message.get("body", b"").decode()
        if "event:" in seen or not message.get("more_body", True):
            closed.set()

    async with asyncio.timeout(60):
        await dashboard(scope, receive, send)
    return seen


@contextmanager
def browsing(
    dashboard: Dashboard, *, served: ASGIApp | None = None, base_url: str = "http://localhost", root_path: str = ""
) -> Iterator[Browser]:
    """A browser at a dashboard, which is closed at the end; `served` is the app that it is mounted in, if it is."""
    transport = httpx.ASGITransport(served or dashboard, root_path=root_path)
    with asyncio.Runner() as runner:
        try:
            yield Browser(runner, httpx.AsyncClient(transport=transport, base_url=base_url))
        finally:
            runner.run(_closed(dashboard))


async def _closed(dashboard: Dashboard) -> None:
    await dashboard.aclose()
    await dashboard.app.aclose()
