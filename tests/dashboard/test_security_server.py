"""The dashboard on a port: clients that take too long, or too much, are hung up on; the others go on."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator

import httpx
import pytest

from rowlock import Rowlock
from rowlock.dashboard import Dashboard, Visitor
from rowlock.dashboard.access import guard
from rowlock.dashboard.http import serve
from tests.depth import deep
from tests.waiting import until


class Running:
    """A server in a thread of its own."""

    def __init__(self, dashboard: Dashboard) -> None:
        self.listening = serve.listen("127.0.0.1", 0)
        self.port = self.listening.getsockname()[1]
        self._loop: asyncio.AbstractEventLoop | None = None
        self._dashboard = dashboard
        self._server = serve.server(dashboard)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        until(lambda: self._server.started, what="the server")

    def _run(self) -> None:
        asyncio.run(self._server.serve(sockets=[self.listening]))

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(30)
        assert not self._thread.is_alive()

    def connect(self, text: str) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        connection.sendall(text.encode())
        return connection


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    monkeypatch.setattr(serve, "_HEADER_SECONDS", 0.2)
    monkeypatch.setattr(guard, "_BODY_SECONDS", 0.2)
    running = Running(Dashboard(Rowlock("postgresql://127.0.0.1:1/x"), auth=lambda _request: Visitor("ann", "admin")))
    yield running
    running.stop()


def told(connection: socket.socket) -> str:
    """All that is said until the other side hangs up."""
    with connection, contextlib.suppress(ConnectionResetError):
        said = b""
        while more := connection.recv(65536):
            said += more
    return said.decode()


def test_who_never_asks_is_hung_up_on(running: Running) -> None:
    silent, begun = running.connect(""), running.connect("GET /api/openapi.json HTTP/1.1\r\nhost: local")

    assert told(silent) == ""
    assert told(begun) == ""


def test_who_asks_a_letter_at_a_time_is_hung_up_on_also_the_second_time(running: Running) -> None:
    whole = "GET /api/openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n"
    connection = running.connect(whole)
    until(lambda: connection.recv(65536))
    with contextlib.suppress(OSError):
        for _ in range(100_000):
            connection.sendall(b"x")

    assert "HTTP/1.1 200" not in told(connection)


@deep
def test_who_does_not_send_the_body_that_was_promised_is_told(running: Running) -> None:
    head = "POST /api/queues/pause HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer x\r\ncontent-length: 9\r\n\r\n{"

    said = told(running.connect(head))

    assert said.startswith("HTTP/1.1 408 ")
    assert "the body took over" in said


def test_a_server_with_many_such_clients_goes_on_answering(running: Running) -> None:
    slow = [running.connect("GET / HTTP/1.1\r\nhost:") for _ in range(50)]

    answer = httpx.get(f"http://127.0.0.1:{running.port}/api/openapi.json", timeout=30)

    assert answer.status_code == 200
    for connection in slow:
        connection.close()


def test_idle_connections_leave_room_for_those_who_ask(monkeypatch: pytest.MonkeyPatch, running: Running) -> None:
    monkeypatch.setattr(serve, "_HEADER_SECONDS", 60)
    monkeypatch.setattr(serve, "_MOST_IDLE", 20)

    idle = [running.connect("") for _ in range(520)]

    assert_others_are_answered(running, idle)


def test_who_keeps_back_the_body_that_was_promised_leaves_room_too(
    monkeypatch: pytest.MonkeyPatch, running: Running
) -> None:
    monkeypatch.setattr(guard, "_BODY_SECONDS", 60)
    monkeypatch.setattr(serve, "_MOST_IDLE", 20)
    promise = (
        "POST /api/queues/pause HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer x\r\n"
        "content-length: 9\r\nexpect: 100-continue\r\n\r\n"
    )

    idle = []
    for _ in range(520):
        idle.append(running.connect(promise))
        idle[-1].recv(65536)  # the body is being waited for

    assert_others_are_answered(running, idle)


def assert_others_are_answered(running: Running, idle: list[socket.socket]) -> None:
    answers = [httpx.get(f"http://127.0.0.1:{running.port}/api/openapi.json", timeout=30).status_code for _ in range(5)]

    assert answers == [200] * 5
    assert told(idle[0]) == ""  # the oldest was hung up on
    for connection in idle:
        connection.close()


def test_headers_without_end_are_refused(running: Running) -> None:
    connection = running.connect("GET / HTTP/1.1\r\nhost: localhost\r\nx: ")
    with contextlib.suppress(OSError):
        for _ in range(30):
            connection.sendall(b"x" * 10_000)

    said = told(connection)  # a reset may have come before the words
    assert said == "" or said.startswith("HTTP/1.1 400 ")


def test_more_streams_than_there_may_be_are_refused(monkeypatch: pytest.MonkeyPatch, running: Running) -> None:
    monkeypatch.setattr("rowlock.dashboard.http.feed._MOST_WATCHED", 0)

    answer = httpx.get(f"http://127.0.0.1:{running.port}/workers", headers={"accept": "text/event-stream"}, timeout=30)

    assert answer.status_code == 503
    assert "pages are being watched" in answer.text
