"""Steps: a workflow's recorded history, as it is read and written."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from rowlock.model.row import NewJob

StepKind = Literal[
    "start", "step", "transaction", "sleep", "signal", "child", "any", "now", "patched", "undo", "failure"
]
# Closed: a sleep or a signal that the code waits for no more, as what lost in a `ctx.any`; it may wait for it again.
StepState = Literal["open", "retrying", "done", "failed", "closed"]

# One workflow may remember so many steps: each attempt that follows a wait reads them all.
MOST_STEPS = 10_000


class StoredStep(NamedTuple):
    """A step as the database has it. JSON stays text until it is needed; instants are seconds since 1970."""

    key: str
    position: int
    kind: StepKind
    state: StepState
    input: str | None
    value: str | None
    error: str | None
    attempts: int
    due: bool
    until: float | None
    ended_at: float | None
    child: str | None


class StepUpdate(NamedTuple):
    """A step to write. It is due after `delay`, or at `until` where the user named an instant; it began `ago` seconds.

    All else that is an instant is the database's to make.
    """

    key: str
    position: int
    kind: StepKind
    state: StepState
    input: str | None = None
    value: str | None = None
    error: str | None = None
    attempts: int = 0
    delay: timedelta | None = None
    until: datetime | None = None
    form: str | None = None
    ago: float = 0.0
    signal: str | None = None  # the one that it takes


class NewChild(NamedTuple):
    """A child to record and to enqueue."""

    key: str
    position: int
    input: str | None
    job: NewJob


class Signal(NamedTuple):
    """A signal that no wait has taken, and when it was sent, in seconds since 1970."""

    id: str
    name: str
    payload: str | None
    sent_at: float
