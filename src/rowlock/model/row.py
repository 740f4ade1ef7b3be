"""Rows: jobs as the engine claims, inserts, rescues and reports them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from rowlock.model.key import Key
from rowlock.model.names import versioned


class ClaimedJob(NamedTuple):
    """A job that this worker holds. Ids, tokens, times and JSON stay text: nothing on the hot path looks inside."""

    id: str
    token: str
    task: str
    args: str
    queue: str
    priority: int
    run_at: str
    failures: int
    crashes: int
    claims: int
    attempts: int
    expired: bool | None
    paused: bool
    key: str | None
    tags: list[str] | None
    version: int | None = None  # of a workflow's code
    parent: str | None = None
    wakes: int | None = None  # so many, when it was claimed; None for none
    cancelling: bool = False  # a workflow that somebody has asked to cancel: it is claimed to be undone
    waited: float = 0.0  # for so many seconds it had been due when it was claimed
    # Whether the database knows that it begins; if not, it is claimed ahead. None: it is to know before it begins.
    begun: bool | None = True

    @property
    def code(self) -> str:
        """The name by which a worker knows its code."""
        return versioned(self.task, self.version)

    @property
    def belongs_to_workflow(self) -> bool:
        """Whether it is a workflow or the child of one, and ends as such."""
        return self.version is not None or self.parent is not None


class NewJob(NamedTuple):
    """A job to insert. `delay`, and `lifetime` from run_at on, are durations: instants are the database's to make."""

    id: str
    queue: str
    task: str
    args: str
    priority: int
    attempts: int
    run_at: datetime | None = None
    delay: timedelta | None = None
    lifetime: timedelta | None = None
    tags: tuple[str, ...] | None = None
    key: str | None = None
    meaning: Key | None = None  # of its key, where that is more than a text
    is_priority_named: bool = False  # by the call, and not only by its task
    version: int | None = None  # of a workflow
    parent: str | None = None  # the workflow whose child it is


class Orphan(NamedTuple):
    """A running job whose worker has no fresh lease, and the token of the attempt that was cut short."""

    id: str
    token: str


class Rescued(NamedTuple):
    """A job taken back from a worker that died."""

    id: str
    token: str
    task: str
    queue: str
    failures: int
    worker: str
    owner: str
    crashes: int
    has_crashed: bool  # and this was one of them
    becomes: str  # ready, waiting (set aside as a suspect), failed (as poison) or cancelled


class JobEnd(NamedTuple):
    """How a job ended, for callers that wait for it. Without a state it is neither live nor in history."""

    id: str
    state: str | None
    reason: str | None
    failures: int | None
    result: str | None
    error: str | None
    seen: bool = False  # whether an earlier query found it live


class Fence(NamedTuple):
    """A number that grows with every attempt of a job: a resource that has seen a greater one refuses this one.

    `attempt` counts every start of the job, and `timeline` every failover, after which starts may be counted again.
    """

    timeline: int
    attempt: int
