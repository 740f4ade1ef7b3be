"""One client of the proxy, and its connection to the server: what passes between them, and what does not."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from tests.faults import protocol
from tests.faults.actions import Call, Cut, Fault, Hole, Refuse
from tests.faults.protocol import Message, Reading, Request, Requests

if TYPE_CHECKING:
    from tests.faults.proxy import Proxy


class Relay:
    """One client, and its connection to the server."""

    def __init__(self, proxy: Proxy, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.gone = asyncio.Event()
        self._proxy = proxy
        self._client_reader, self._client = reader, writer
        self._server: asyncio.StreamWriter | None = None
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._is_half_open = False
        self._who = ""
        self._status = b"I"
        # For each answer that is to come, what to do when it is complete; the first is that to the start-up.
        self._awaited: deque[Fault | bool | None] = deque([None])
        self._quiet = asyncio.Event()

    # What the proxy says

    def hold(self) -> None:
        self._flowing.clear()

    def flow(self) -> None:
        if not self._is_half_open:
            self._flowing.set()

    def lose_server(self) -> None:
        self._is_half_open = True
        self.hold()
        if self._server is not None:
            self._server.transport.abort()

    def cut(self) -> None:
        for side in (self._client, self._server):
            if side is not None:
                with suppress(OSError):  # it is closed already
                    one = side.get_extra_info("socket")
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                side.transport.abort()
        self._flowing.set()  # whatever waits for the flow finds that there is nobody left

    async def closed(self) -> None:
        """Wait until both sides are, and hear how, whatever comes: else asyncio may complain that nobody did."""
        for side in (self._client, self._server):
            if side is not None:
                with suppress(OSError, asyncio.CancelledError):  # the proxy may end meanwhile
                    await side.wait_closed()

    # Its life

    async def live(self, target: str | tuple[str, int]) -> None:
        """Pass on, both ways, until one side ends."""
        startup = await self._startup()
        if isinstance(target, str):
            reader, self._server = await asyncio.open_unix_connection(target)
        else:
            reader, self._server = await asyncio.open_connection(*target)
        self._who = protocol.application_name(startup.body)
        self._server.write(startup.wire)
        ways = {asyncio.ensure_future(self._requests()), asyncio.ensure_future(self._answers(reader))}
        try:
            done, _ = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in done:
                way.result()
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _startup(self) -> Message:
        while True:
            size, code = struct.unpack("!II", await self._client_reader.readexactly(8))
            body = struct.pack("!I", code) + await self._client_reader.readexactly(size - 8)
            await self._flowing.wait()
            if code not in protocol.ENCRYPTION_REQUESTS:
                return Message(b"", body)
            self._client.write(b"N")

    async def _requests(self) -> None:
        assert self._server is not None
        requests = Requests(self._proxy.schema)
        while data := await self._client_reader.read(65536):
            for request in requests.feed(data):
                await self._flowing.wait()
                fault = self._proxy.take(request.names, self._who)
                if fault is not None and await self._do_before(fault, request):
                    continue
                await self._pause()
                await self._flowing.wait()
                self._pass_on(request, fault)
        await self._flowing.wait()
        self._server.close()  # after what was written

    def _pass_on(self, request: Request, fault: Fault | None) -> None:
        assert self._server is not None
        if request.is_answered:
            after = fault if fault is not None and getattr(fault.action, "after", False) else None
            self._awaited.append(after)
            self._quiet.clear()
        self._server.write(request.wire)

    async def _do_before(self, fault: Fault, request: Request) -> bool:
        """What comes before the server has heard of it; True if it never does."""
        match fault.action:
            case Cut(after=False, everywhere=everywhere):
                self._tear(everywhere=everywhere)
                fault.happened.set()
                raise ConnectionResetError
            case Call(callback, after=False):
                await asyncio.to_thread(_call, callback, fault)
            case Hole(everywhere, after=False):
                self._dig(everywhere=everywhere)
                fault.happened.set()
            case Refuse(sqlstate):
                fault.happened.set()
                await self._forge(sqlstate, request)
                return True
            case _:
                pass
        return False

    async def _forge(self, sqlstate: str, request: Request) -> None:
        assert self._server is not None
        await self._quiet.wait()  # answers that are under way come first
        was_open = self._status != b"I"
        if was_open and request.ends_transaction:  # a commit that fails has rolled back
            self._awaited.append(True)
            self._quiet.clear()
            self._server.write(Message(b"Q", b"rollback\0").wire)
        self._client.write(protocol.forged(sqlstate, b"E" if was_open and not request.ends_transaction else b"I"))
        if protocol.is_fatal(sqlstate):
            await self._client.drain()
            self._client.close()
            raise ConnectionResetError

    async def _answers(self, server: asyncio.StreamReader) -> None:
        reading, held = Reading(), b""
        while data := await server.read(65536):
            for message in reading.feed(data):
                held += message.wire
                if message.kind == b"Z":
                    held = await self._answered(message, held)
                elif message.kind == b"G":  # the server waits for a copy's data: the client must know
                    held = await self._deliver(held)
            if not (self._awaited and self._awaited[0]):
                held = await self._deliver(held)
        await self._deliver(held)
        self._client.close()

    async def _answered(self, ready: Message, held: bytes) -> bytes:
        """An answer is complete: do what comes before the client hears it; answers what it shall not hear yet."""
        self._status = ready.body
        fault = self._awaited.popleft()
        if not self._awaited:
            self._quiet.set()
        if fault is True:
            return b""
        match fault.action if fault else None:
            case Cut(everywhere=everywhere):
                assert fault
                self._tear(everywhere=everywhere)
                fault.happened.set()
                raise ConnectionResetError
            case Call(callback):
                assert fault
                await asyncio.to_thread(_call, callback, fault)
            case Hole(everywhere):
                assert fault
                self._dig(everywhere=everywhere)
                fault.happened.set()
            case _:
                pass
        return await self._deliver(held)

    async def _deliver(self, held: bytes) -> bytes:
        if held:
            await self._pause()
        await self._flowing.wait()
        self._client.write(held)
        await self._client.drain()
        return b""

    def _tear(self, *, everywhere: bool) -> None:
        if everywhere:
            self._proxy.cut_all()
        self.cut()

    def _dig(self, *, everywhere: bool) -> None:
        if everywhere:
            self._proxy.stop_flow()
        self.hold()

    async def _pause(self) -> None:
        if self._proxy.latency:
            loop, over = asyncio.get_running_loop(), asyncio.Event()
            loop.call_later(self._proxy.latency / 2, over.set)
            await over.wait()


def _call(callback: Callable[[], object], fault: Fault) -> None:
    """In a thread to its end: whoever is called may end the client, and with it the task that waits for this."""
    callback()
    fault.happened.set()
