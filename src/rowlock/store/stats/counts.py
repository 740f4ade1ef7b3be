"""Counts: each up to a bound, however many jobs there are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from itertools import product
from typing import NamedTuple

from pydantic_core import from_json

from rowlock.model.stats.stats import Count, Suspects
from rowlock.store.claim import PRIORITIES
from rowlock.store.query import Query, Row, array, plain_array

# How long one of these statements may take.
TIMEOUT = timedelta(seconds=2)


class ReadyCount(NamedTuple):
    """The ready jobs of a queue, and for how many seconds the oldest of those that are due has been so."""

    queue: str
    runnable: int
    more_runnable: bool
    delayed: int
    more_delayed: bool
    age: float | None


class RunningCount(NamedTuple):
    """The running jobs of a queue."""

    queue: str
    jobs: int
    more: bool


class WaitingCount(NamedTuple):
    """The jobs of a queue that wait for the same."""

    queue: str
    waits_for: str
    jobs: int
    more: bool


class ParkedCount(NamedTuple):
    """The parked workflows of a queue; `timed` are those that a time wakes, which are stored as ready."""

    queue: str
    jobs: int
    more: bool
    timed: int


class ApprovalsCount(NamedTuple):
    """How many workflows of a name wait for somebody to fill in a form, and the id of the first."""

    workflow: str
    jobs: int
    first: str
    more: bool


class FailedCount(NamedTuple):
    """The jobs of a task that have failed."""

    task: str
    failed: int
    more: bool


class EventCount(NamedTuple):
    """How many events of a kind there were within the last hour and day."""

    kind: str
    hour: int
    day: int
    more: bool


def begin_reading(timeout: timedelta) -> Query[None]:
    """Make this transaction one that only looks, and for no longer at anything than this."""
    return Query("survey_begin", {"timeout": str(int(timeout.total_seconds() * 1000))}, _nothing)


def ready(most: int) -> Query[ReadyCount]:
    """The ready jobs of every queue that has any, each lane counted up to `most`."""
    return Query("lane_count", {"most": str(most)}, ReadyCount._make)


def running(most: int) -> Query[RunningCount]:
    """The running jobs of every queue that has any, `most` in all."""
    return Query("running_count", {"most": str(most)}, RunningCount._make)


def waiting(most: int) -> Query[WaitingCount]:
    """The waiting jobs of every queue that has any, those of each task counted up to `most`."""
    return Query("waiting_count", {"most": str(most)}, WaitingCount._make)


def parked(most: int) -> Query[ParkedCount]:
    """The parked workflows of every queue that has any, each counted up to `most`."""
    return Query("parked_count", {"most": str(most)}, ParkedCount._make)


def approvals(most: int) -> Query[ApprovalsCount]:
    """The workflows that wait for somebody to fill in a form, by name, `most` in all."""
    return Query("approval_count", {"most": str(most)}, ApprovalsCount._make)


def failed(most: int) -> Query[FailedCount]:
    """The failed jobs of every task that has any, among the `most` newest that did not succeed."""
    return Query("trouble_count", {"most": str(most)}, FailedCount._make)


def rescues(most: int) -> Query[EventCount]:
    """What upkeep had to do for dead workers, `most` events in all."""
    return Query("rescue_count", {"most": str(most)}, EventCount._make)


def suspects(most: int) -> Query[Suspects]:
    """How many suspects wait, and for how long; they are counted up to `most`."""
    return Query("suspect_wait", {"most": str(most)}, lambda row: _suspects(row, most))


def _suspects(row: Row, most: int) -> Suspects:
    waiting, oldest = row
    return Suspects(Count(waiting, more=waiting >= most), None if oldest is None else timedelta(seconds=oldest))


def probe(queues: Iterable[str], *, limit: int) -> Query[Sequence[dict[str, object]]]:
    """What a claim that looks into these queues from the bottom would do; returns PostgreSQL's explanation."""
    names, priorities = zip(*product(queues, PRIORITIES), strict=True)
    return Query(
        "claim_probe",
        {"queues": array(names), "priorities": plain_array(map(str, priorities)), "limit": str(limit)},
        _explained,
    )


def _explained(row: Row) -> Sequence[dict[str, object]]:
    explained: Sequence[dict[str, object]] = from_json(row[0])
    return explained


def _nothing(_row: Row) -> None:
    return None
