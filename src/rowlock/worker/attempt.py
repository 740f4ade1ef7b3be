"""The job that a handler is running, as the handler sees it."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from uuid import UUID

from rowlock.errors import RowlockError
from rowlock.model.names import check_note, check_share
from rowlock.model.row import Claimed

# Takes an attempt's word of how far it is: a share and a note.
Say = Callable[[Claimed, float, str | None], None]


def unheard(_row: Claimed, _share: float, _note: str | None) -> None:
    """For attempts that nobody watches."""


class CurrentJob:
    """The job that the running handler works on."""

    __slots__ = ("_row", "_say")

    def __init__(self, row: Claimed, say: Say) -> None:
        self._row = row
        self._say = say

    @property
    def id(self) -> UUID:
        """The job's id."""
        return UUID(self._row.id)

    @property
    def task(self) -> str:
        """The task's name, as the job has it."""
        return self._row.task

    @property
    def queue(self) -> str:
        """The queue it came from."""
        return self._row.queue

    @property
    def attempt(self) -> int:
        """Which attempt this is, from 1; snoozes, crashes and hand-backs are not counted."""
        return self._row.failures + 1

    @property
    def attempts(self) -> int:
        """How many attempts it has."""
        return self._row.attempts

    @property
    def crashes(self) -> int:
        """How many workers died while they ran it."""
        return self._row.crashes

    @property
    def key(self) -> str | None:
        """Its key, if it has one."""
        return self._row.key

    @property
    def tags(self) -> tuple[str, ...]:
        """Its tags."""
        return tuple(self._row.tags or ())

    def progress(self, share: float, note: str | None = None) -> None:
        """Say how far this attempt is, from 0 to 1, and what it does, for those who look at the job's record.

        It waits for nothing, in async and in sync handlers: the worker writes the latest word about once a second.
        """
        self._say(self._row, check_share(share), check_note(note))

    def __repr__(self) -> str:
        return f"<job {self._row.id} of {self._row.task}, attempt {self.attempt} of {self.attempts}>"


running: ContextVar[CurrentJob] = ContextVar("rowlock_current_job")


def current_job() -> CurrentJob:
    """The job that this handler is running."""
    try:
        return running.get()
    except LookupError:
        raise RowlockError("no job is running here; current_job() works inside a task that a worker runs") from None
