"""Progress: which attempts have begun, and how far they are."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from rowlock.db.errors import Refused
from rowlock.db.safe_logger import SafeLogger
from rowlock.db.worker_connection import ReconnectingConnection
from rowlock.model.row import ClaimedJob
from rowlock.store import claim

log = SafeLogger("rowlock.worker")

# People watch progress; more often than this it would only wear out the rows.
_EVERY = 1.0

# Tries of a batch before it is halved.
_TRIES = 2

ProgressUpdate = tuple[ClaimedJob, float, str | None]


class ProgressBoard:
    """The latest progress of each attempt, from any thread; `due` is called on the loop, about once a second."""

    def __init__(self, due: Callable[[], None]) -> None:
        self.is_due = False
        self._due = due
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._latest: dict[str, ProgressUpdate] = {}
        self._expected = False  # a call of take() is on its way
        self._not_before = 0.0
        self.held: set[str] = set()  # the tokens of attempts of which nothing is written for now

    def update(self, row: ClaimedJob, share: float, note: str | None) -> None:
        """Keep this as the latest progress of an attempt."""
        with self._lock:
            self._latest[row.token] = (row, share, note)
            first, self._expected = not self._expected, True
        if first:
            with suppress(RuntimeError):  # a thread that its worker has left behind: the loop is closed
                self._loop.call_soon_threadsafe(self._expect)

    def take_last(self, row: ClaimedJob) -> list[ProgressUpdate]:
        """Take the latest progress of one attempt, when its job is ended without the settler."""
        with self._lock:
            latest = self._latest.pop(row.token, None)
        return [] if latest is None else [latest]

    def _expect(self) -> None:
        self._loop.call_later(max(0.0, self._not_before - self._loop.time()), self._become_due)

    def _become_due(self) -> None:
        self.is_due = True
        self._due()

    def take(self, finished: Iterable[ClaimedJob]) -> list[ProgressUpdate]:
        """What to write before these attempts are settled: their latest progress, and that of all when it is due."""
        if not self._latest and not self.is_due:
            return []
        with self._lock:
            if not self.is_due:
                return [self._latest.pop(row.token) for row in finished if row.token in self._latest]
            self.is_due = self._expected = False
            self._not_before = self._loop.time() + _EVERY
            latest = self._latest
            self._latest = {token: word for token, word in latest.items() if token in self.held}
            if self._latest:
                self._expected = True
                self._loop.call_later(_EVERY, self._become_due)
            return [word for token, word in latest.items() if token not in self._latest]


class StartMarker:
    """Marks attempts as begun, in the settler's loop, which `due` wakes: if their worker dies, they are to blame."""

    def __init__(self, *, due: Callable[[], None]) -> None:
        self._due = due
        self._begun: dict[str, tuple[ClaimedJob, float]] = {}
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def is_due(self) -> bool:
        """Whether there is anything to mark."""
        return bool(self._begun)

    def add(self, row: ClaimedJob, begun: float) -> None:
        """An attempt has begun at this moment, by time.perf_counter()."""
        self._begun[row.token] = (row, begun)
        self._due()

    async def before(self, row: ClaimedJob) -> None:
        """Return when the database knows that an attempt begins, or will not take it."""
        marked: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(marked)
        self.add(row, time.perf_counter())
        await marked

    async def run_due(self, link: ReconnectingConnection) -> None:
        """Write down which have begun. One that somebody has locked is passed over, and begins all the same."""
        begun, self._begun = self._begun, {}
        waiting, self._waiting = self._waiting, []
        try:
            await self._mark(link, list(begun.values()))
        finally:
            for marked in waiting:
                if not marked.done():
                    marked.set_result(None)

    async def _mark(self, link: ReconnectingConnection, begun: Sequence[tuple[ClaimedJob, float]]) -> None:
        """All but those that PostgreSQL refuses: what it cannot mark begins all the same, and others wait behind it."""
        now = time.perf_counter()
        try:
            await link.run(claim.begin([(row, max(0.0, now - since)) for row, since in begun]), tries=_TRIES)
        except Refused as error:
            if error.unclear or len(begun) == 1:
                ids = ", ".join(row.id for row, _ in begun)
                log.error("%s cannot be marked as begun: PostgreSQL refuses it (%s)", ids, error)  # noqa: TRY400
                return
            middle = len(begun) // 2
            await self._mark(link, begun[:middle])
            await self._mark(link, begun[middle:])
