"""Tokens: kept as hashes, exchanged for signed session cookies that end when not used."""

from __future__ import annotations

import hmac
import logging
import re
import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from hashlib import sha256
from ipaddress import IPv6Address, ip_address
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection

from rowlock.dashboard.access.cookies import SESSION
from rowlock.dashboard.access.login_audit import LoginEvent, note_login
from rowlock.dashboard.access.visitor import Role, Visitor, check_role
from rowlock.errors import InvalidOption
from rowlock.model.names import shown

log = logging.getLogger("rowlock.dashboard")

IDLE: Final = 8 * 3600
"""Seconds without a request after which a session is over."""
LONGEST: Final = 7 * 24 * 3600
"""Seconds after which it is over in any case."""
_RENEW_AFTER: Final = 300
_LEAST_SECRET: Final = 16
_MOST_ADDRESSES: Final = 10_000  # whose wrong tokens are remembered
_LINE: Final = re.compile(r"(?P<name>[^:]+):(?P<role>[^:]+):(?P<digest>[0-9a-f]{64})")
_NAME: Final = re.compile(r"[^\s:#]{1,100}")
_BEARER: Final = "bearer "

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class LoginSession:
    """A session from a signed cookie: the token it was exchanged for, when, and when it was last used."""

    digest: str
    id: str
    begun: int
    seen: int
    needs_renewal: bool = False


class LoginLimiter:
    """Counts wrong tokens by address: after a few in a minute, the address must wait.

    A correct token passes all the same: one of 256 bits is not guessed, and behind a proxy many share an address.
    """

    def __init__(self, *, most: int = 10, span: float = 60.0, clock: Clock = time.monotonic) -> None:
        self._most, self._span, self._clock = most, span, clock
        self._failed: dict[str, list[float]] = {}

    def too_many(self, address: str) -> bool:
        """Whether this address must wait."""
        return len(self._recent(_network(address))) >= self._most

    def failed(self, address: str) -> int:
        """Count a wrong token; returns how many there were within the span, as far as they are counted."""
        known = _network(address)
        if known not in self._failed and len(self._failed) >= _MOST_ADDRESSES:
            self._failed = {one: times for one in self._failed if (times := self._recent(one))}
            while len(self._failed) >= _MOST_ADDRESSES:
                del self._failed[next(iter(self._failed))]
        self._failed[known] = [*self._recent(known), self._clock()][-self._most :]
        return len(self._failed[known])

    def _recent(self, address: str) -> list[float]:
        since = self._clock() - self._span
        return [at for at in self._failed.get(address, []) if at > since]


class Tokens:
    """Login by token: `Tokens(["ann:operator:SHA256", …])`, each line as `rowlock dashboard token` prints it.

    Sessions are signed with `secret`; where several processes serve one dashboard they need the same one, and who logs
    out of one of them is logged out of that one. Without a secret, sessions end with the process.
    """

    def __init__(self, lines: Iterable[str], *, secret: str | None = None, clock: Clock = time.time) -> None:
        if isinstance(lines, str):
            raise InvalidOption("the tokens are one str; write a list of lines NAME:ROLE:SHA256")
        if secret is not None and len(secret) < _LEAST_SECRET:
            raise InvalidOption(f"the secret that signs sessions needs {_LEAST_SECRET} characters at least")
        self._visitors = dict(map(_parsed, lines))
        self._key = secrets.token_bytes(32) if secret is None else sha256(secret.encode()).digest()
        self._ended: dict[str, float] = {}  # sessions that were logged out, until they would have ended anyway
        self._clock = clock
        self._attempts = LoginLimiter()

    def __repr__(self) -> str:
        return f"<Tokens: {len(self._visitors)}>"

    def __call__(self, connection: HTTPConnection) -> Visitor | None:
        """Who a request is from: by its bearer token, else by its session."""
        header = connection.headers.get("authorization", "")
        if header.lower().startswith(_BEARER):
            return self.visitor(header[len(_BEARER) :].strip(), connection)
        session = self.session(connection.cookies.get(SESSION, ""))
        return None if session is None else self.whose(session)

    def whose(self, session: LoginSession) -> Visitor | None:
        """The visitor of a session; None once their token was removed."""
        return self._visitors.get(session.digest)

    def visitor(self, token: str, connection: HTTPConnection) -> Visitor | None:
        """The visitor of a token, compared with every known one, however soon one fits. Too many guesses get 429."""
        digest, address = digest_of(token).encode(), address_of(connection)
        found = [visitor for known, visitor in self._visitors.items() if hmac.compare_digest(known.encode(), digest)]
        if found:
            return found[0]
        if self._attempts.too_many(address):
            raise HTTPException(429, "too many wrong tokens; wait a minute", {"retry-after": "60"})
        # No more lines than guesses that are counted, so that nobody fills a disk with them.
        log.warning("a wrong token from %s, %d in the last minute", shown(address), self._attempts.failed(address))
        note_login(connection, LoginEvent("login_failed", address))
        return None

    def begin(self, token: str) -> str:
        """The cookie of a new session, under an id that nobody has seen before."""
        now = int(self._clock())
        return self._signed(LoginSession(digest_of(token), secrets.token_hex(16), now, now))

    def renewed(self, session: LoginSession) -> str:
        """The cookie of a session that was used just now."""
        return self._signed(replace(session, seen=int(self._clock())))

    def session(self, cookie: str) -> LoginSession | None:
        """The session of a cookie, unless it is over or not signed by us."""
        content, _, signature = cookie.rpartition(".")
        if not hmac.compare_digest(self._signature(content).encode(), signature.encode()):
            return None
        digest, session_id, begun, seen = content.split(".")
        now, began, last = self._clock(), int(begun), int(seen)
        over = now - last > IDLE or now - began > LONGEST or session_id in self._ended
        return None if over else LoginSession(digest, session_id, began, last, needs_renewal=now - last > _RENEW_AFTER)

    def end(self, session: LoginSession) -> None:
        """Log out: the session's cookie is worth nothing from now on, wherever it is."""
        now = self._clock()
        self._ended = {known: until for known, until in self._ended.items() if until > now}
        self._ended[session.id] = now + IDLE

    def _signed(self, session: LoginSession) -> str:
        content = f"{session.digest}.{session.id}.{session.begun}.{session.seen}"
        return f"{content}.{self._signature(content)}"

    def _signature(self, content: str) -> str:
        return hmac.new(self._key, content.encode(), sha256).hexdigest()


def digest_of(token: str) -> str:
    """The hash that is kept of a token."""
    return sha256(token.encode(errors="replace")).hexdigest()


def new_token(name: str, role: Role) -> tuple[str, str]:
    """A new token, to be shown once, and the line that stands for it from then on."""
    if not _NAME.fullmatch(name):
        raise InvalidOption(f"name {shown(name)} must be 1 to 100 characters, none of them ':', '#' or a space")
    token = secrets.token_urlsafe(32)
    return token, f"{Visitor(name, check_role(role)).name}:{role}:{digest_of(token)}"


def address_of(connection: HTTPConnection) -> str:
    """The address of a request; behind a trusted proxy, the one that it names."""
    return connection.client.host if connection.client else "?"


def _parsed(line: str) -> tuple[str, Visitor]:
    match = _LINE.fullmatch(line.strip())
    if match is None:
        raise InvalidOption(
            "a token's line reads NAME:ROLE:SHA256; make one with: rowlock dashboard token NAME --role viewer"
        )
    return match["digest"], Visitor(match["name"], check_role(match["role"]))


def _network(address: str) -> str:
    """An IPv4 address, or an IPv6 network: there everybody has 2 ** 64 addresses."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    return str(int(parsed) >> 64) if isinstance(parsed, IPv6Address) else address
