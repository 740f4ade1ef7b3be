"""The fleet as those see it who watch it: each worker, its lease, and what it holds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID

from rowlock.model.record import Progress
from rowlock.model.vitals import Vitals

Condition = Literal["live", "late", "blocked", "stopping", "dead"]


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
    blocked: timedelta | None  # for how long its event loop had stood still at its last renewal, and by what
    blocked_by: str | None
    started_at: datetime
    stopping: bool
    stuck: int  # attempts that timed out and go on all the same
    restarts: int  # in a row, because of a fault of its own: the last of those is `fault`
    fault: str | None
    failing: str | None  # a settle or claim that has been failing for half a minute or more
    failing_since: datetime | None
    claiming: Claiming | None
    claimed: float  # jobs a second, over the last minutes
    jobs: tuple[Underway, ...]

    @property
    def condition(self) -> Condition:
        """How it is."""
        health = self.vitals.health
        return "stopping" if self.stopping and health == "live" else health

    @property
    def vitals(self) -> Vitals:
        """Whether it renews its lease, and whether its event loop turns."""
        return Vitals(self.lease_left, self.lasts, self.blocked, self.blocked_by)


@dataclass(frozen=True, slots=True)
class Fleet:
    """The workers, those whose lease has run out first; with `more` there are others."""

    at: datetime
    workers: tuple[WatchedWorker, ...]
    more: bool
