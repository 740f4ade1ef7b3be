"""Logging in with a token: kept only as a hash, exchanged for a signed cookie that ends when it is not used."""

from __future__ import annotations

import hmac
import re
import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from starlette.requests import HTTPConnection

from rowlock.dashboard.visitor import Role, Visitor, check_role
from rowlock.errors import InvalidOption

SESSION: Final = "rowlock_session"
IDLE: Final = 8 * 3600
"""Seconds without a request after which a session is over."""
_LONGEST: Final = 7 * 24 * 3600
_RENEW_AFTER: Final = 300
_LINE: Final = re.compile(r"(?P<name>[^:]+):(?P<role>[^:]+):(?P<digest>[0-9a-f]{64})")
_BEARER: Final = "bearer "


@dataclass(frozen=True, slots=True)
class Session:
    """A cookie that was signed by us: whose token it was exchanged for, when, and when it was last seen."""

    digest: str
    id: str
    begun: int
    seen: int

    @property
    def needs_renewal(self) -> bool:
        """Whether the cookie should be given anew, so that somebody who is here is not sent away."""
        return time.time() - self.seen > _RENEW_AFTER


class Tokens:
    """Login by token: `Tokens(["ann:operator:SHA256", …])`, each line as `rowlock dashboard token` prints it.

    Sessions are signed with `secret`; where several processes serve one dashboard they need the same one. Without one,
    sessions end with the process.
    """

    def __init__(self, lines: Iterable[str], *, secret: str | None = None) -> None:
        self._visitors = dict(map(_parsed, lines))
        self._key = secrets.token_bytes(32) if secret is None else sha256(secret.encode()).digest()
        self._ended: dict[str, float] = {}  # sessions that were logged out, until they would have ended anyway

    def __call__(self, connection: HTTPConnection) -> Visitor | None:
        """Who a request is from: by its bearer token, else by its session."""
        said = connection.headers.get("authorization", "")
        if said.lower().startswith(_BEARER):
            return self.visitor(said[len(_BEARER) :].strip())
        session = self.session(connection.cookies.get(SESSION, ""))
        return None if session is None else self._visitors.get(session.digest)

    def visitor(self, token: str) -> Visitor | None:
        """Whose token this is; every one is compared, however soon one fits."""
        digest = digest_of(token)
        found = [visitor for known, visitor in self._visitors.items() if hmac.compare_digest(known, digest)]
        return found[0] if found else None

    def begin(self, token: str) -> str:
        """The cookie of a new session, under an id that nobody has seen before."""
        now = int(time.time())
        return self.signed(Session(digest_of(token), secrets.token_hex(16), now, now))

    def renewed(self, session: Session) -> str:
        """The cookie of a session that was seen just now."""
        return self.signed(Session(session.digest, session.id, session.begun, int(time.time())))

    def signed(self, session: Session) -> str:
        """A session as its cookie says it."""
        said = f"{session.digest}.{session.id}.{session.begun}.{session.seen}"
        return f"{said}.{self._signature(said)}"

    def session(self, cookie: str) -> Session | None:
        """The session of a cookie, unless it is over, or not by us."""
        said, _, signature = cookie.rpartition(".")
        if not hmac.compare_digest(self._signature(said), signature):
            return None
        digest, session_id, begun, seen = said.split(".")
        session, now = Session(digest, session_id, int(begun), int(seen)), time.time()
        over = now - session.seen > IDLE or now - session.begun > _LONGEST or session.id in self._ended
        return None if over else session

    def end(self, session: Session) -> None:
        """Log out: its cookie is worth nothing from now on, wherever it is."""
        now = time.time()
        self._ended = {known: until for known, until in self._ended.items() if until > now}
        self._ended[session.id] = now + IDLE

    def _signature(self, said: str) -> str:
        return hmac.new(self._key, said.encode(), sha256).hexdigest()


def digest_of(token: str) -> str:
    """What is kept of a token."""
    return sha256(token.encode()).hexdigest()


def fresh_token(name: str, role: Role) -> tuple[str, str]:
    """A new token, to be shown once, and the line that stands for it from then on."""
    token = secrets.token_urlsafe(32)
    return token, f"{Visitor(name, role).name}:{role}:{digest_of(token)}"


def _parsed(line: str) -> tuple[str, Visitor]:
    match = _LINE.fullmatch(line.strip())
    if match is None:
        raise InvalidOption(
            "a token's line reads NAME:ROLE:SHA256; make one with: rowlock dashboard token NAME --role viewer"
        )
    return match["digest"], Visitor(match["name"], check_role(match["role"]))


class Attempts:
    """How often each address has just tried a wrong token: no more than a few a minute are heard."""

    def __init__(self, *, most: int = 10, span: float = 60.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._span, self._clock = most, span, clock
        self._failed: dict[str, list[float]] = {}

    def too_many(self, address: str) -> bool:
        """Whether this address must wait."""
        return len(self._recent(address)) >= self._most

    def failed(self, address: str) -> None:
        """It was wrong."""
        recent = {known: times for known in self._failed if (times := self._recent(known))}
        self._failed = recent | {address: [*recent.get(address, []), self._clock()]}

    def _recent(self, address: str) -> list[float]:
        since = self._clock() - self._span
        return [at for at in self._failed.get(address, []) if at > since]
