"""A relay between a worker and PostgreSQL that counts what passes: no guess about what the worker does inside."""

from __future__ import annotations

import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingUnixStreamServer
from tempfile import TemporaryDirectory

from psycopg.conninfo import make_conninfo

from benchmarks.arena import Arena
from benchmarks.measure import Broken

# A simple query, and the execution of a prepared statement: each makes PostgreSQL do something once.
_STATEMENTS = (b"Q", b"E")
_PORT = 5432


class Wire:
    """What has passed so far."""

    def __init__(self, conninfo: str, server: tuple[str, int]) -> None:
        self.conninfo = conninfo
        self._server = server
        self._lock = threading.Lock()
        self._kinds: Counter[bytes] = Counter()
        self._open = 0

    @property
    def statements(self) -> int:
        """How many statements were sent."""
        with self._lock:
            return sum(self._kinds[kind] for kind in _STATEMENTS)

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return self._open

    def relay(self, client: socket.socket) -> None:
        """Pass on everything in both directions until either side ends."""
        with _connected(*self._server) as server:
            with self._lock:
                self._open += 1
            answers = threading.Thread(target=_pump, args=(server, client), daemon=True)
            answers.start()
            messages = _Messages()
            with suppress(OSError):
                while data := client.recv(65536):
                    with self._lock:
                        self._kinds.update(messages.cut(data))
                    server.sendall(data)
            with self._lock:
                self._open -= 1


class _Messages:
    """Cuts what a client sends into messages: a type, a length that counts itself, a body. The first has no type."""

    def __init__(self) -> None:
        self._rest = b""
        self._header = 4

    def cut(self, data: bytes) -> Iterator[bytes]:
        """The types of the messages that are complete by now."""
        self._rest += data
        while len(self._rest) >= self._header:
            length = self._header - 4 + int.from_bytes(self._rest[self._header - 4 : self._header])
            if len(self._rest) < length:
                return
            yield self._rest[: self._header - 4]
            self._rest, self._header = self._rest[length:], 5


@contextmanager
def tapped(arena: Arena) -> Iterator[Wire]:
    """The way to the arena's database through a relay."""
    host, port = _server(arena)
    with TemporaryDirectory(prefix="rowlock-bench-") as folder:
        plain = {"host": folder, "hostaddr": None, "port": _PORT, "sslmode": "disable", "gssencmode": "disable"}
        wire = Wire(make_conninfo(arena.conninfo, **plain), (host, port))

        class Relay(BaseRequestHandler):
            def handle(self) -> None:
                wire.relay(self.request)

        with ThreadingUnixStreamServer(str(Path(folder) / f".s.PGSQL.{_PORT}"), Relay) as relay:
            relay.daemon_threads = True
            threading.Thread(target=relay.serve_forever, daemon=True).start()
            try:
                yield wire
            finally:
                relay.shutdown()


def _server(arena: Arena) -> tuple[str, int]:
    if arena.connection.pgconn.ssl_in_use:
        raise Broken(
            "statements are counted on the wire, and this one is encrypted; use an address with sslmode=disable, "
            "or unset ROWLOCK_URL to use an embedded server"
        )
    return arena.connection.info.host, arena.connection.info.port


def _connected(host: str, port: int) -> socket.socket:
    if not host.startswith("/"):
        return socket.create_connection((host, port))
    server = socket.socket(socket.AF_UNIX)
    server.connect(str(Path(host) / f".s.PGSQL.{port}"))
    return server


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)  # asyncpg closes only when the server has
