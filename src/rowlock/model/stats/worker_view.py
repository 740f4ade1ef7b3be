"""Worker view: each worker, its lease, its health and the jobs that it holds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, NamedTuple
from uuid import UUID

from rowlock.model.formatting import span
from rowlock.model.record import Progress

Health = Literal["live", "late", "blocked", "dead"]


class Vitals(NamedTuple):
    """What is left of a worker's lease, how long one is, and for how long its event loop was blocked, by what."""

    lease_left: timedelta
    lasts: timedelta
    blocked: timedelta | None
    blocked_by: str | None

    @property
    def silent(self) -> timedelta:
        """How long ago it last renewed its lease."""
        return self.lasts - self.lease_left

    @property
    def health(self) -> Health:
        """Workers renew after a third of a lease: with less than half of it left, one has missed a renewal."""
        if self.lease_left <= timedelta(0):
            return "dead"
        if self.lease_left < self.lasts / 2:
            return "late"
        return "live" if self.blocked is None else "blocked"

    @property
    def says(self) -> str | None:
        """What is wrong with one whose lease still runs, in words that go on after its name."""
        match self.health:
            case "late":
                return (
                    f"has not renewed its lease for {span(self.silent)}: its process is stopped, its machine sleeps, "
                    f"or it cannot reach the database; if it stays so, its jobs are rescued in {span(self.lease_left)}"
                )
            case "blocked":
                by = self.blocked_by or "something that is not a job"
                length = span(self.blocked or timedelta(0))
                return (
                    f"had its event loop blocked for {length} by {by} when it last renewed its lease, "
                    f"{span(self.silent)} ago: until the loop is free, nothing else of it runs and it claims nothing"
                )
            case _:
                return None


Condition = Literal["live", "late", "blocked", "stopping", "dead"]


@dataclass(frozen=True, slots=True)
class HeldJob:
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
class WorkerView:
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
    jobs: tuple[HeldJob, ...]

    @property
    def condition(self) -> Condition:
        """Its health, or that it is stopping."""
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
    workers: tuple[WorkerView, ...]
    more: bool
