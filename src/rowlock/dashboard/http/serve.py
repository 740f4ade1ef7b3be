"""Serve: the dashboard on its own port, with limits for clients and a quick stop."""

from __future__ import annotations

import asyncio
import errno
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from signal import SIGINT, SIGTERM
from typing import Final

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from rowlock.dashboard.app import Dashboard
from rowlock.errors import RowlockError
from rowlock.model.names import shown

_HEADER_SECONDS: Final = 10.0
_MOST_CONNECTIONS: Final = 500
_MOST_IDLE: Final = 100  # connections on which nobody asks anything: they leave room for those who do
_GRACE_SECONDS: Final = 3


@dataclass(frozen=True, slots=True)
class Tls:
    """A certificate and its key."""

    certificate: Path
    key: Path


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server that listens there."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; a sentence if it cannot."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_MOST_CONNECTIONS)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise RowlockError(f"port {port} of {host} is taken; give another with --port, or 0 for any") from error
        if error.errno == errno.EACCES:
            raise RowlockError(f"port {port} needs rights that this user has not; give one from 1024 on") from error
        raise RowlockError(f"cannot listen on {shown(host)}: {error.strerror or error}; check --host") from error
    except OverflowError as error:
        raise RowlockError(f"port {port} is out of range; give 0 to 65535") from error


def serve(
    dashboard: Dashboard,
    listening: socket.socket,
    *,
    proxies: Sequence[str] = (),
    tls: Tls | None = None,
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Serve until Ctrl-C or SIGTERM. What `proxies` say of a client, and of TLS, is believed; nobody else's word is."""
    with listening:
        one = server(dashboard, proxies=proxies, tls=tls, ready=ready)
        asyncio.run(one.serve(sockets=[listening]))


def server(
    dashboard: Dashboard,
    *,
    proxies: Sequence[str] = (),
    tls: Tls | None = None,
    ready: Callable[[], None] = lambda: None,
) -> uvicorn.Server:
    """The uvicorn server for a dashboard."""
    config = uvicorn.Config(
        dashboard,
        http=_protocol(),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=list(proxies),
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        ssl_certfile=None if tls is None else tls.certificate,
        ssl_keyfile=None if tls is None else tls.key,
    )
    try:
        config.load()
    except OSError as error:  # also what TLS finds wrong with the files
        raise RowlockError(f"the certificate and its key cannot be used: {error}; check both files") from error
    return _Server(config, dashboard, ready)


class _Server(uvicorn.Server):
    """Ends the streams of watching browsers as soon as it stops: otherwise it would wait for them."""

    def __init__(self, config: uvicorn.Config, dashboard: Dashboard, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._dashboard = dashboard
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._dashboard.end_streams()
        await super().shutdown(sockets)
        await self._dashboard.aclose()
        await self._dashboard.app.aclose()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """A signal is how this ends, and no error: uvicorn would raise it again at the end."""
        if threading.current_thread() is not threading.main_thread():  # signals are not ours to hear there
            yield
            return
        loop = asyncio.get_running_loop()
        for number in (SIGINT, SIGTERM):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in (SIGINT, SIGTERM):
                loop.remove_signal_handler(number)


class _Protocol(H11Protocol):
    """Hangs up on a client that is too slow to ask: uvicorn would wait for its headers forever.

    It also closes the connection that has been idle for longest, as soon as too many are idle: they would take the room
    of all others. A client that keeps back the body of its request is idle too; `guard` limits how long that may take.
    """

    idle: dict[_Protocol, None]  # of one server, the oldest first
    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.transport.is_closing() and not _is_asked(self.cycle):
            self._rest()

    def connection_lost(self, exc: Exception | None) -> None:
        self._calm()
        super().connection_lost(exc)

    def _rest(self) -> None:
        self.idle.setdefault(self)
        if len(self.idle) > _MOST_IDLE:
            oldest = next(iter(self.idle))
            del self.idle[oldest]
            oldest.transport.close()

    def _watch(self) -> None:
        """One span for all the headers of a request, however often a little of them comes."""
        is_asked = _is_asked(self.cycle)
        if is_asked:
            self._calm()
        if not is_asked or self.conn.their_state is h11.SEND_BODY:
            self._rest()
        if not is_asked and self._patience is None:
            self._patience = self.loop.call_later(_HEADER_SECONDS, self._hang_up)

    def _calm(self) -> None:
        self.idle.pop(self, None)
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _hang_up(self) -> None:
        self._patience = None
        if not _is_asked(self.cycle):
            self.transport.close()


def _protocol() -> type[_Protocol]:
    """The protocol of one server: each counts its own connections."""
    return type("_Protocol", (_Protocol,), {"idle": {}})


def _is_asked(cycle: RequestResponseCycle | None) -> bool:
    """Whether there is a request that is being answered; before the first there is no cycle, whatever its type says."""
    return cycle is not None and not cycle.response_complete
