"""As much of PostgreSQL's protocol as it takes to know which statement of ours passes, and to forge an answer."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import resources

from rowlock.store.query import DEFAULT_SCHEMA, statement

# What a client may say before it says who it is, and before which the proxy must answer no: it does not speak TLS.
ENCRYPTION_REQUESTS = {80877103, 80877104}
CANCEL_REQUEST = 80877102

# Messages that PostgreSQL does not act upon before a Sync, or a Flush, comes.
_PARTS = frozenset(b"PBDECF")
# Errors after which PostgreSQL closes the connection.
_FATAL = {"57P01", "57P02", "57P03", "53300", "08006"}

_PARAMETER = re.compile(r"%\(\w+\)s|\$\d+")
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Message:
    """One message, whole; the first of a connection has no kind."""

    kind: bytes
    body: bytes

    @property
    def wire(self) -> bytes:
        return self.kind + struct.pack("!I", len(self.body) + 4) + self.body


class Reading:
    """Bytes in, whole messages out."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Message]:
        """The messages that are whole by now."""
        self._buffer += data
        while len(self._buffer) >= 5:
            size = 1 + struct.unpack_from("!I", self._buffer, 1)[0]
            if len(self._buffer) < size:
                return
            yield Message(bytes(self._buffer[:1]), bytes(self._buffer[5:size]))
            del self._buffer[:size]


@dataclass(slots=True)
class Request:
    """What the server answers in one go: a simple query, or everything up to a Sync."""

    wire: bytes
    names: tuple[str, ...]
    is_answered: bool  # with a ReadyForQuery at its end

    @property
    def ends_transaction(self) -> bool:
        return "transaction_commit" in self.names


@dataclass(slots=True)
class Requests:
    """What a client says, as requests. Prepared statements are known by the text that they were prepared with."""

    schema: str = DEFAULT_SCHEMA
    _reading: Reading = field(default_factory=Reading)
    _prepared: dict[bytes, str] = field(default_factory=dict)
    _wire: bytes = b""
    _names: tuple[str, ...] = ()

    def feed(self, data: bytes) -> Iterator[Request]:
        """The requests that are whole by now."""
        for message in self._reading.feed(data):
            self._wire += message.wire
            if message.kind == b"P":
                prepared, text, _ = message.body.split(b"\0", 2)
                self._prepared[prepared] = name_of(text.decode(), self.schema)
            elif message.kind == b"B":
                self._names += (self._prepared.get(message.body.split(b"\0", 2)[1], "unknown"),)
            elif message.kind == b"Q":
                self._names += (name_of(message.body.rstrip(b"\0").decode(), self.schema),)
            if message.kind[0] not in _PARTS:
                yield Request(self._wire, self._names, message.kind in {b"S", b"Q"})
                self._wire, self._names = b"", ()


def name_of(text: str, schema: str = DEFAULT_SCHEMA) -> str:
    """The name of a statement: that of our file, or else its first word."""
    return _names(schema).get(_normal(text)) or text.split(None, 1)[0].rstrip(";").lower()


@cache
def _names(schema: str) -> dict[str, str]:
    files = (resources.files("rowlock.store") / "sql").iterdir()
    names = [file.name.removesuffix(".sql") for file in files if file.name.endswith(".sql")]
    return {_normal(statement(name, schema).replace("%%", "%")): name for name in names}


def _normal(text: str) -> str:
    """A statement as it is compared: drivers number the parameters in ways of their own."""
    return _SPACE.sub(" ", _PARAMETER.sub("$", text)).strip(" ;").lower()


def application_name(startup: bytes) -> str:
    """What a client calls itself; `startup` is the body of its first message."""
    words = startup[4:].split(b"\0")
    return dict(zip(words[::2], words[1::2], strict=False)).get(b"application_name", b"").decode()


def is_fatal(sqlstate: str) -> bool:
    """Whether PostgreSQL closes the connection after this error."""
    return sqlstate in _FATAL


def forged(sqlstate: str, status: bytes) -> bytes:
    """An error as PostgreSQL sends it, and the end of the request; `status` is that of the transaction afterwards."""
    severity = b"FATAL" if is_fatal(sqlstate) else b"ERROR"
    fields = {b"S": severity, b"V": severity, b"C": sqlstate.encode(), b"M": b"forged by the test's proxy"}
    error = Message(b"E", b"".join(key + value + b"\0" for key, value in fields.items()) + b"\0").wire
    return error if is_fatal(sqlstate) else error + Message(b"Z", status).wire
