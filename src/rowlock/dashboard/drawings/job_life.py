"""Job life: a job's waits and attempts, one after the other, as a drawing.

Lengths are logarithmic: a wait of three days and an attempt of two milliseconds are both visible.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal
from uuid import UUID

from rowlock.model.record import JobRecord

Kind = Literal["delayed", "waiting", "between", "succeeded", "failed", "crashed", "cancelled", "running", "returned"]

WIDTH: Final = 1000.0
_LEAST: Final = 26.0
_NOTED: Final = timedelta(milliseconds=50)
# The error types of attempts whose worker died, or was taken for dead.
_CRASHES: Final = ("WorkerLost", "WorkerCutOff")
# The end of a last attempt without an error; one that was snoozed, handed back or parked goes on later.
_LAST: Final[dict[str, Kind]] = {
    "running": "running",
    "succeeded": "succeeded",
    "cancelled": "cancelled",
    "failed": "failed",
}


@dataclass(frozen=True, slots=True)
class Period:
    """A period: an attempt if it has a `number`, else a wait. Without an end it goes on."""

    kind: Kind
    started_at: datetime
    ended_at: datetime | None
    number: int | None = None
    worker: UUID | None = None
    error: str | None = None

    def length(self, now: datetime) -> timedelta:
        """Its length, so far if it goes on."""
        return max((self.ended_at or now) - self.started_at, timedelta(0))


@dataclass(frozen=True, slots=True)
class PlacedPeriod:
    """A period and its place in the drawing."""

    piece: Period
    x: float
    width: float


def periods(job: JobRecord, now: datetime) -> tuple[Period, ...]:
    """The known periods of a job's life, in order; of many failed attempts, the last ten."""
    found: list[Period] = []
    here = job.created_at
    # Its run_at is that of the latest attempt, or of the next: when an earlier one was due is not recorded.
    due = job.run_at if job.claims <= 1 and (job.ended or job.state == "running") else None
    for attempt in _attempts(job):
        # After an attempt come its backoff and, if it was retried by hand, its time in history. Which of them, and
        # when it was its turn, is not recorded.
        found += [Period("between", here, attempt.started_at)] if found else _wait(here, attempt.started_at, due, now)
        found.append(attempt)
        here = attempt.ended_at or now
    if job.ended_at is not None:
        found += _wait(here, job.ended_at, due if not found else None, now)
    elif job.state != "running":
        found += _wait(here, None, job.run_at, now)
    return tuple(found)


def placed_periods(periods: Sequence[Period], now: datetime) -> tuple[PlacedPeriod, ...]:
    """The periods side by side, over the whole width."""
    sizes = [_LEAST + 18 * math.log10(1 + 1000 * piece.length(now).total_seconds()) for piece in periods]
    scale, x, placed = WIDTH / max(sum(sizes), 1.0), 0.0, list[PlacedPeriod]()
    for piece, size in zip(periods, sizes, strict=True):
        placed.append(PlacedPeriod(piece, round(x, 1), round(size * scale, 1)))
        x += size * scale
    return tuple(placed)


def _attempts(job: JobRecord) -> Iterator[Period]:
    last = 0
    for error in job.errors:
        if error.started_at is not None:
            last = error.attempt
            kind: Kind = "crashed" if error.type in _CRASHES else "failed"
            yield Period(kind, error.started_at, error.ended_at, error.attempt, error.worker, error.type)
    if job.started_at is not None and job.claims > last:
        # The end of an attempt that goes on later is not recorded.
        end = job.ended_at if job.ended or job.state == "running" else job.started_at
        yield Period(_LAST.get(job.state, "returned"), job.started_at, end, job.claims, job.worker)


def _wait(since: datetime, until: datetime | None, due: datetime | None, now: datetime) -> Iterator[Period]:
    """A wait: delayed until it was due, if that is known, and then waiting for its turn."""
    if due is not None and due > since + _NOTED:
        if until is None and due > now:
            yield Period("delayed", since, None)
            return
        since, before = min(due, until or due), since
        yield Period("delayed", before, since)
    if until is None or until > since:
        yield Period("waiting", since, until)
