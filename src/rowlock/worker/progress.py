"""Progress: what running attempts say of how far they are, the latest word of each, until the settler writes it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress

from rowlock.model.row import Claimed

# People watch progress; more often than this it would only wear out the rows.
_EVERY = 1.0

Said = tuple[Claimed, float, str | None]


class ProgressBoard:
    """The latest word of each attempt. It comes from any thread; `due` is called on the loop, about once a second."""

    def __init__(self, due: Callable[[], None]) -> None:
        self.is_due = False
        self._due = due
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._said: dict[str, Said] = {}
        self._expected = False  # somebody will take it all
        self._not_before = 0.0
        self.held: set[str] = set()  # the tokens of attempts of which nothing is written for now

    def say(self, row: Claimed, share: float, note: str | None) -> None:
        """Keep this as the latest word of an attempt."""
        with self._lock:
            self._said[row.token] = (row, share, note)
            first, self._expected = not self._expected, True
        if first:
            with suppress(RuntimeError):  # a thread that its worker has left behind: the loop is closed
                self._loop.call_soon_threadsafe(self._expect)

    def last_words(self, row: Claimed) -> list[Said]:
        """Take the latest word of one attempt, for whoever ends its job without the settler."""
        with self._lock:
            said = self._said.pop(row.token, None)
        return [] if said is None else [said]

    def _expect(self) -> None:
        self._loop.call_later(max(0.0, self._not_before - self._loop.time()), self._become_due)

    def _become_due(self) -> None:
        self.is_due = True
        self._due()

    def take(self, finished: Iterable[Claimed]) -> list[Said]:
        """What to write before these attempts are settled: their last words, and everybody's when that is due."""
        if not self._said and not self.is_due:
            return []
        with self._lock:
            if not self.is_due:
                return [self._said.pop(row.token) for row in finished if row.token in self._said]
            self.is_due = self._expected = False
            self._not_before = self._loop.time() + _EVERY
            said = self._said
            self._said = {token: word for token, word in said.items() if token in self.held}
            if self._said:
                self._expected = True
                self._loop.call_later(_EVERY, self._become_due)
            return [word for token, word in said.items() if token not in self._said]
