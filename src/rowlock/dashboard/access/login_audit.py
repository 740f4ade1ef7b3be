"""Login audit: logins, logouts and failed logins, written into the audit."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple

from starlette.requests import HTTPConnection

from rowlock.dashboard.access.visitor import Role
from rowlock.db.database import Database
from rowlock.store import events

log = logging.getLogger("rowlock.dashboard")

LOGIN_EVENTS: Final = "rowlock.logins"
"""The key in a request's scope of the events to write after its response."""
_NOBODY: Final = "unknown"
# Each address has ten wrong tokens a minute (`Attempts`); of many addresses together so many are written down.
_MOST_FAILURES: Final = 60
_MINUTE: Final = 60.0
_LONGEST: Final = 5.0

Kind = Literal["logged_in", "login_failed", "logged_out"]


class LoginEvent(NamedTuple):
    """A login, a logout or a failed login: who, as far as is known, and from which address."""

    kind: Kind
    address: str
    name: str | None = None
    role: Role | None = None


def note_login(connection: HTTPConnection, login: LoginEvent) -> None:
    """Have this event written after the response."""
    connection.scope.get(LOGIN_EVENTS, []).append(login)


class LoginAudit:
    """Writes login events into the audit. One that cannot be written is in the log alone, and keeps nobody out."""

    def __init__(self, database: Database | None, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Without a database, as in a read-only dashboard, nothing is written."""
        self._database = database
        self._clock = clock
        self._failures: deque[float] = deque(maxlen=_MOST_FAILURES)
        self._is_failing = False

    async def write(self, logins: Sequence[LoginEvent]) -> None:
        """Write the events."""
        for login in logins:
            if self._database is not None and not self._is_flood(login):
                await self._write(self._database, login)

    def _is_flood(self, login: LoginEvent) -> bool:
        """Whether so many have failed within a minute that this one is left to the log."""
        if login.kind != "login_failed":
            return False
        now, failures = self._clock(), self._failures
        if len(failures) == _MOST_FAILURES and now - failures[0] < _MINUTE:
            return True
        failures.append(now)
        return False

    async def _write(self, database: Database, login: LoginEvent) -> None:
        event = events.login(login.kind, actor=login.name or _NOBODY, address=login.address, role=login.role)
        try:
            async with asyncio.timeout(_LONGEST):
                await database.arun(event)
        except Exception as error:
            if not self._is_failing:
                log.warning("logins cannot be written into the audit, only into this log: %s", error)
            self._is_failing = True
        else:
            self._is_failing = False
