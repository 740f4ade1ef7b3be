"""A wire between a client and PostgreSQL that can be cut at the worst moment: after the commit, before the reply."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import psycopg


class Wire:
    """Listens on a Unix socket and passes everything on, both ways, until it is told to lose a reply."""

    def __init__(self, url: str, folder: Path) -> None:
        facts = psycopg.conninfo.conninfo_to_dict(url)
        self._server = f"{facts['host']}/.s.PGSQL.{facts['port']}"
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / ".s.PGSQL.1"))
        self._listener.listen()
        self._open: list[socket.socket] = []
        self._losing: Callable[[], None] | None = None
        self._cutting: tuple[bytes, bool] | None = None
        self.lost = 0
        self.url = psycopg.conninfo.make_conninfo(url, host=str(folder), port=1)

    def lose_next_reply(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Swallow the next reply and cut that connection; `meanwhile` happens before the client notices."""
        self._losing = meanwhile

    def cut_at(self, request: bytes, *, arrives: bool) -> None:
        """Cut the connection on which this is asked next: when the server has answered it, or before it gets there."""
        self._cutting = (request, arrives)

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for one in [self._listener, *self._open]:
            _cut(one)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._server)
            self._open += [client, server]
            threading.Thread(target=self._requests, args=(client, server), daemon=True).start()
            threading.Thread(target=self._replies, args=(client, server), daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):  # cut from the other side
            while sent := _received(client):
                if self._cutting is not None and self._cutting[0] in sent:
                    (_, arrives), self._cutting = self._cutting, None
                    if not arrives:
                        self.lost += 1
                        _cut(client)
                        break
                    self.lose_next_reply()
                server.sendall(sent)
        _cut(server)

    def _replies(self, client: socket.socket, server: socket.socket) -> None:
        try:
            while reply := _received(server):
                meanwhile, self._losing = self._losing, None
                if meanwhile is not None:
                    self.lost += 1
                    meanwhile()
                    break
                client.sendall(reply)
        finally:  # if the meanwhile fails, the client must not wait for ever
            _cut(client)
            _cut(server)


def _received(one: socket.socket) -> bytes:
    try:
        return one.recv(65536)
    except OSError:
        return b""


def _cut(one: socket.socket) -> None:
    with suppress(OSError):  # the other side was faster
        one.shutdown(socket.SHUT_RDWR)
    one.close()
