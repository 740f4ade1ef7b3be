"""The fleet as those see it who watch it: each worker, its lease, and what it holds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID

from rowlock.model.record import Progress

Condition = Literal["live", "late", "stopping", "dead"]


@dataclass(frozen=True, slots=True)
class Underway:
    """A job that a worker holds, claimed at `since`. One that has not begun, as far as is known, waits for a slot."""

    id: UUID
    task: str
    queue: str
    since: datetime | None
    progress: Progress | None
    cancelling: bool
    version: int | None
    begun: bool


@dataclass(frozen=True, slots=True)
class Claiming:
    """Claims that found jobs, in the last minute in which there were any."""

    mean: timedelta
    slowest: timedelta
    rows: float  # jobs per claim


@dataclass(frozen=True, slots=True)
class WatchedWorker:
    """One worker on the books, and the first of the jobs that it holds.

    `lease_left` is below zero when it has run out; `lasts` is how long the lease is from one renewal on.
    """

    id: UUID
    host: str
    pid: int
    version: str
    queues: tuple[str, ...]
    slots: int
    held: int
    lease_left: timedelta
    lasts: timedelta
    started_at: datetime
    stopping: bool
    stuck: int  # attempts that timed out and go on all the same
    restarts: int  # in a row, because of a fault of its own: the last of those is `fault`
    fault: str | None
    claiming: Claiming | None
    claimed: float  # jobs a second, over the last minutes
    jobs: tuple[Underway, ...]

    @property
    def condition(self) -> Condition:
        """How it is. Workers renew after a third of a lease: one with less than half of it left is late."""
        if self.lease_left <= timedelta(0):
            return "dead"
        if self.lease_left < self.lasts / 2:
            return "late"
        return "stopping" if self.stopping else "live"


@dataclass(frozen=True, slots=True)
class Fleet:
    """The workers, those whose lease has run out first; with `more` there are others."""

    at: datetime
    workers: tuple[WatchedWorker, ...]
    more: bool
