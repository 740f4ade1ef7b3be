"""How an attempt ended: a closed set of values, matched exhaustively where it is written down."""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple


class Succeeded(NamedTuple):
    """The handler returned; `result` is JSON, or None for nothing to keep."""

    result: str | None


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


class HandedBack(NamedTuple):
    """The worker could not keep the job; it is ready again where it stood."""


class Blocked(NamedTuple):
    """The job waits, visible: for `code`, as this worker's does not fit it, or for the end of a `pause` of its task."""

    waits_for: str
    reason: str


class Committed(NamedTuple):
    """The job has succeeded in a transaction of its handler's own: nothing is left to settle."""

    result: str | None


Ended = Succeeded | Failed | Cancelled
Returned = Retried | Snoozed | HandedBack | Blocked
Unsettled = Ended | Returned
Outcome = Unsettled | Committed
