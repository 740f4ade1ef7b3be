"""Explanation: why a job is not running, or what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from rowlock.model.plain import Plain
from rowlock.model.record import State

Code = Literal[
    "missing",
    "locked",
    "deleted",
    "uncommitted",
    "succeeded",
    "failed",
    "cancelled",
    "running",
    "claimed",
    "row_locked",
    "cancelling",
    "lease_lost",
    "expired",
    "delayed",
    "retrying",
    "snoozed",
    "queue_paused",
    "task_paused",
    "pause_over",
    "no_worker",
    "unknown_task",
    "unknown_version",
    "unversioned",
    "misfit",
    "changed",
    "fault",
    "code_is_there",
    "signal",
    "children",
    "sleeping",
    "undoing",
    "stopping",
    "workers_stand_still",
    "suspect",
    "turn",
    "next",
]


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause in a sentence, with the facts behind it and what to do about it."""

    code: Code
    says: str
    do: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation(Plain):
    """The result of `job.explain()`: why a job is not running, or what became of it, at one moment.

    `says` is one sentence and `code` its one word for programs; `facts` are the figures and names behind it, `do` is
    what to do, None where there is nothing to be done. `also` are sentences on what else is so: to fix only the first
    cause would not be enough. `state` is None when there is no such job. `unknown` names what this role may not see, or
    what took too long, and why.
    """

    job: UUID
    state: State | None
    code: Code
    says: str
    do: str | None
    facts: Mapping[str, Any]
    also: tuple[str, ...]
    unknown: Mapping[str, str]
    at: datetime

    def __str__(self) -> str:
        return self.says if self.do is None else f"{self.says} To do: {self.do}."
