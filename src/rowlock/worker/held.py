"""Held: the jobs that a worker has in hand, from their claim until they are settled, and which of them is a suspect."""

from __future__ import annotations

from collections.abc import Callable, Collection

from rowlock.model.row import Claimed
from rowlock.store.jobs import SUSPECT_FROM


class Held:
    """Jobs by their tokens. Of suspects there is one at a time: if this worker dies, it is known whose fault it was."""

    def __init__(self) -> None:
        self.suspect_ended: Callable[[], object] = _nothing
        self.suspect_set_aside: Callable[[], object] = _nothing
        self._rows: dict[str, Claimed] = {}
        self._suspect: str | None = None  # its token

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def has_suspect(self) -> bool:
        """Whether there is a suspect in hand."""
        return self._suspect is not None

    def add(self, row: Claimed) -> bool:
        """A job was claimed; False for a second suspect, which has to go back."""
        self._rows[row.token] = row
        if row.crashes < SUSPECT_FROM:
            return True
        if self._suspect is not None:
            return False
        self._suspect = row.token
        return True

    def forget(self, row: Claimed) -> None:
        """A job is out of our hands."""
        self._rows.pop(row.token, None)
        if row.token == self._suspect:
            self._suspect = None
            self.suspect_ended()
        elif row.crashes >= SUSPECT_FROM:
            self.suspect_set_aside()

    def tokens(self) -> list[str]:
        """The tokens of all."""
        return list(self._rows)

    def rows(self) -> list[Claimed]:
        """All of them."""
        return list(self._rows.values())

    def without(self, *others: Collection[str]) -> list[Claimed]:
        """Those that none of these contain."""
        return [row for token, row in self._rows.items() if not any(token in tokens for tokens in others)]


def _nothing() -> None: ...
