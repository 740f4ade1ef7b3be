"""Workflow records: workflows in a list, and whether code still fits what they remember."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from rowlock.model.plain import Plain, plain
from rowlock.model.record import State, read_moment, read_uuid

Verdict = Literal["fits", "differs", "no code"]


@dataclass(frozen=True, slots=True)
class WorkflowRecord(Plain):
    """A workflow in a list, live or ended, without its arguments and result.

    `state` is that of its job; `waits_for` is what it waits for, parked or waiting: signal, children, sleep,
    retry, code or pause. `current_step` is the key of the step that is open,
    else of the latest one; of a failed workflow, of the one that has failed.
    """

    id: UUID
    workflow: str
    version: int
    state: State
    cancelling: bool
    current_step: str | None
    waits_for: str | None
    reason: str | None
    key: str | None
    parent: UUID | None
    queue: str
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    updated_at: datetime

    @classmethod
    def read(cls, row: Sequence[Any]) -> WorkflowRecord:
        """A row whose columns are the fields of this class, in their order; ids and times as text."""
        stored = dict(zip((field.name for field in fields(cls)), row, strict=True))
        return cls(
            **stored
            | {name: read_uuid(stored[name]) for name in ("id", "parent")}
            | {name: read_moment(stored[name]) for name in ("created_at", "started_at", "ended_at", "updated_at")}
        )


@dataclass(frozen=True, slots=True)
class WorkflowPage:
    """Workflows, newest first; `next` is the `before` of the next page, None after the last.

    `looked` is how many workflows were looked at for it.
    """

    records: tuple[WorkflowRecord, ...]
    next: UUID | None
    looked: int = 0

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON values."""
        return {"records": [record.to_dict() for record in self.records], "next": plain(self.next)}


@dataclass(frozen=True, slots=True)
class CheckedWorkflow(Plain):
    """A workflow whose record was replayed: it fits the code, differs from it, or there is no code of its version."""

    id: UUID
    workflow: str
    version: int
    state: State
    key: str | None
    verdict: Verdict
    difference: str | None  # in a sentence, with what to do about it


@dataclass(frozen=True, slots=True)
class WorkflowCheck(Plain):
    """The records that were replayed, newest first; `is_whole` says whether these were all that there are."""

    workflows: tuple[CheckedWorkflow, ...]
    is_whole: bool

    def having(self, verdict: Verdict) -> tuple[CheckedWorkflow, ...]:
        """The workflows of one verdict."""
        return tuple(one for one in self.workflows if one.verdict == verdict)

    @property
    def all_fit(self) -> bool:
        """Whether every one of them can go on with this code."""
        return all(one.verdict == "fits" for one in self.workflows)
