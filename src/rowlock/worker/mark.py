"""Mark: which attempts have begun, of those claimed ahead that last: if their worker dies, they are blamed."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence

from rowlock.db.link import Link, Refused
from rowlock.model.row import Claimed
from rowlock.store import jobs

log = logging.getLogger("rowlock.worker")


# Tries of a batch before it is halved.
_TRIES = 2


class Marker:
    """Marks when it is due, as a part of the settler's loop: `due` wakes it."""

    def __init__(self, *, due: Callable[[], None]) -> None:
        self._due = due
        self._begun: dict[str, tuple[Claimed, float]] = {}
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def is_due(self) -> bool:
        """Whether there is anything to mark."""
        return bool(self._begun)

    def add(self, row: Claimed, begun: float) -> None:
        """An attempt has begun at this moment, by time.perf_counter()."""
        self._begun[row.token] = (row, begun)
        self._due()

    async def before(self, row: Claimed) -> None:
        """Return when the database knows that an attempt begins, or will not take it."""
        marked: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(marked)
        self.add(row, time.perf_counter())
        await marked

    async def look(self, link: Link) -> None:
        """Write down which have begun. One that somebody has locked is passed over, and begins all the same."""
        begun, self._begun = self._begun, {}
        waiting, self._waiting = self._waiting, []
        try:
            await self._mark(link, list(begun.values()))
        finally:
            for marked in waiting:
                if not marked.done():
                    marked.set_result(None)

    async def _mark(self, link: Link, begun: Sequence[tuple[Claimed, float]]) -> None:
        """All but those that PostgreSQL refuses: what it cannot mark begins all the same, and others wait behind it."""
        now = time.perf_counter()
        try:
            await link.run(jobs.begin([(row, max(0.0, now - since)) for row, since in begun]), tries=_TRIES)
        except Refused as error:
            if error.unclear or len(begun) == 1:
                ids = ", ".join(row.id for row, _ in begun)
                log.error("%s cannot be marked as begun: PostgreSQL refuses it (%s)", ids, error)  # noqa: TRY400
                return
            middle = len(begun) // 2
            await self._mark(link, begun[:middle])
            await self._mark(link, begun[middle:])
