"""Outcome: how an attempt ended, a closed set of values that settling matches exhaustively."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, NamedTuple


class Succeeded(NamedTuple):
    """The handler returned; `result` is JSON, or None for nothing to keep."""

    result: str | None
    undoable: bool = False  # a workflow that would have something to undo, had somebody asked to cancel it meanwhile


class Failed(NamedTuple):
    """The job has failed for good, because of `reason`: exhausted, refused, result."""

    failure: str
    reason: str
    expected: bool = False  # the handler said so itself, by RetryAfter: no breaker counts it


class Cancelled(NamedTuple):
    """The job ends as cancelled."""

    reason: str


class Retried(NamedTuple):
    """The attempt failed and is spent; the job runs again after `delay`."""

    failure: str
    delay: timedelta
    expected: bool = False  # as above


class Snoozed(NamedTuple):
    """The handler asked to run later; nothing is spent."""

    delay: timedelta


@dataclass(frozen=True, slots=True)
class HandedBack:
    """The worker could not keep the job; it is ready again where it stood.

    No tuple, for an empty one is false: `outcome or other` took the other, and a workflow ended with undos left.
    """


class Blocked(NamedTuple):
    """The job waits, visible: for `code`, as this worker's does not fit it, or for the end of a `pause` of its task.

    A `suspect` has stopped two workers, and waits for one that runs no other such job. A workflow whose attempt met a
    fault of its code or its surroundings, described in `failure`, is tried again after `delay` as well.
    """

    waits_for: Literal["code", "pause", "suspect"]
    reason: str
    failure: str | None = None
    delay: timedelta | None = None


class Parked(NamedTuple):
    """A workflow waits, and holds nothing: for so many wakes, or for the first of its steps that is due, or both."""

    wakes_at: int | None
    waits_for: Literal["signal", "children"] | None  # None: only for the time
    since: str | None = None  # what was due by then, the attempt has seen: the rest counts
    undoing: bool = False  # between two tries to undo


class Restarted(NamedTuple):
    """A workflow begins again with a fresh history: its arguments, its version, and the state that it carries over."""

    args: str
    version: int
    state: str


class Committed(NamedTuple):
    """The job has succeeded in a transaction of its handler's own: nothing is left to settle."""

    result: str | None


Ended = Succeeded | Failed | Cancelled
Returned = Retried | Snoozed | HandedBack | Blocked | Parked | Restarted
Unsettled = Ended | Returned
Outcome = Unsettled | Committed


def size_of(outcome: Unsettled) -> int:
    """About how many characters it takes to store an outcome."""
    if isinstance(outcome, Succeeded):
        return len(outcome.result) if outcome.result else 0
    if isinstance(outcome, Failed | Retried | Blocked):
        return len(outcome.failure or "")
    return len(outcome.args) + len(outcome.state) if isinstance(outcome, Restarted) else 0
