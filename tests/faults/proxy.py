"""A network that goes wrong on demand: a TCP proxy in front of PostgreSQL that knows which statement of ours passes.

    with Proxy(url) as proxy, Rowlock(proxy.url) as app:
        fault = proxy.on("job_settle", Cut(after=True))  # committed, and the reply is lost
        ...
        until(fault.happened.is_set)

Whatever is held back in a black hole is passed on when it heals, as TCP does by sending again.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Coroutine
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeVar

import psycopg

from rowlock.store.query import DEFAULT_SCHEMA
from tests.faults.actions import Action, Call, Cut, Fault, Hole, Refuse
from tests.faults.relay import Relay

__all__ = ["Action", "Call", "Cut", "Fault", "Hole", "Passed", "Proxy", "Refuse"]

T = TypeVar("T")

_LOOPBACK = "127.0.0.1"
_LIMIT = 10.0


@dataclass(frozen=True, slots=True)
class Passed:
    """A statement that a client sent, and what the client calls itself."""

    name: str
    who: str


class Proxy:
    """One thread, with an event loop for all connections. Every method may be called from any thread."""

    def __init__(self, url: str, *, schema: str = DEFAULT_SCHEMA) -> None:
        self.schema = schema
        self.passed: list[Passed] = []
        self.opened = 0  # connections, ever
        self.errors: list[BaseException] = []
        self.latency = 0.0  # seconds that a request and its answer take together, beyond what they take
        self._target = _target(url)
        self._faults: list[Fault] = []
        self._relays: set[Relay] = set()
        self._is_flowing = True
        self._is_half_open = False
        self._place = socket.socket()  # holds the port while nobody listens on it: then a connection is refused
        self._place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._place.bind((_LOOPBACK, 0))
        self._port = self._place.getsockname()[1]
        self._listening: asyncio.Server | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fault-proxy", daemon=True)
        self.url = self.through(url)

    def through(self, url: str) -> str:
        """The address of a database of the same server, through the proxy."""
        facts: dict[str, Any] = dict(psycopg.conninfo.conninfo_to_dict(url))
        facts.pop("hostaddr", None)
        facts |= {"host": _LOOPBACK, "port": self._port, "sslmode": "disable", "gssencmode": "disable"}
        return psycopg.conninfo.make_conninfo(**facts)

    # What happens to statements

    def on(self, name: str, action: Action, *, nth: int = 1, who: str | None = None) -> Fault:
        """Do this to the nth statement of that name from now on, once; `who` is an application_name."""
        fault = Fault(name, action, nth, who)
        self._faults.append(fault)
        return fault

    @property
    def names(self) -> list[str]:
        """The statements that clients sent so far, in order."""
        return [one.name for one in list(self.passed)]

    def sent(self, name: str) -> int:
        """How often clients sent this statement."""
        return self.names.count(name)

    def forget(self) -> None:
        """Do nothing more to statements, and forget those that passed."""
        self._faults.clear()
        self.passed.clear()

    # What happens to the network

    def black_hole(self) -> None:
        """Nothing passes any more, in either direction; new connections are accepted, and nobody answers."""
        self._do(self._stop_flow())

    def half_open(self) -> None:
        """The server's sides are closed and the clients are not told; nothing that they send gets an answer."""
        self._do(self._lose_servers())

    def reset(self) -> None:
        """Every connection ends with a reset, in the middle of whatever it carries."""
        self._do(self._reset_all())

    def refuse(self) -> None:
        """New connections are refused; those that are open go on."""
        self._do(self._stop_listening())

    def heal(self) -> None:
        """All is well again, and what was held back is passed on; half-open connections stay as they are."""
        self._do(self._resume())

    @property
    def open(self) -> int:
        """How many connections are open."""
        return len(self._relays)

    # Life

    def __enter__(self) -> Self:
        self._thread.start()
        self._do(self._resume())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._do(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_LIMIT)
        self._loop.close()
        self._place.close()
        assert error is not None or self.errors == []

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_LIMIT)

    async def _resume(self) -> None:
        self._is_flowing, self._is_half_open = True, False
        for relay in self._relays:
            relay.flow()
        if self._listening is None:
            one = socket.socket()
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.bind((_LOOPBACK, self._port))
            self._listening = await asyncio.start_server(self._accept, sock=one, backlog=100)

    async def _stop_listening(self) -> None:
        if self._listening is not None:
            self._listening.close()
            self._listening = None

    async def _stop_flow(self) -> None:
        self.stop_flow()

    async def _lose_servers(self) -> None:
        self._is_half_open = True
        for relay in self._relays:
            relay.lose_server()

    async def _reset_all(self) -> None:
        relays = list(self._relays)
        self.cut_all()
        for relay in relays:
            await relay.gone.wait()

    async def _end(self) -> None:
        await self._stop_listening()
        self.cut_all()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._loop.shutdown_default_executor()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.opened += 1
        relay = Relay(self, reader, writer)
        self._relays.add(relay)
        if not self._is_flowing or self._is_half_open:
            relay.hold()
        try:
            await relay.live(self._target)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # cut from either side, or by the end of the proxy
        except Exception as error:
            self.errors.append(error)
            raise
        finally:
            relay.cut()
            relay.gone.set()
            self._relays.discard(relay)
            await relay.closed()

    def take(self, names: tuple[str, ...], who: str) -> Fault | None:
        """Note statements that come; answers the fault that is due, if any."""
        due = None
        for name in names:
            self.passed.append(Passed(name, who))
            for fault in list(self._faults):
                if fault.name == name and fault.who in {None, who}:
                    fault.nth -= 1
                    if fault.nth == 0:
                        self._faults.remove(fault)
                        due = due or fault
        return due

    def stop_flow(self) -> None:
        """As black_hole, from the proxy's own thread."""
        self._is_flowing = False
        for relay in self._relays:
            relay.hold()

    def cut_all(self) -> None:
        """As reset, from the proxy's own thread, and without waiting."""
        for relay in self._relays:
            relay.cut()


def _target(url: str) -> str | tuple[str, int]:
    facts = psycopg.conninfo.conninfo_to_dict(url)
    host, port = str(facts["host"]), int(facts.get("port") or 5432)
    return f"{host}/.s.PGSQL.{port}" if host.startswith("/") else (host, port)
