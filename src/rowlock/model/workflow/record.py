"""Whether code still fits what workflows remember, as people look at it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal
from uuid import UUID

from rowlock.model.record import plain

pass

Verdict = Literal["fits", "differs", "no code"]


@dataclass(frozen=True, slots=True)
class CheckedWorkflow:
    """A workflow whose record was replayed: it fits the code, differs from it, or there is no code of its version."""

    id: UUID
    workflow: str
    version: int
    status: WorkflowStatus
    key: str | None
    verdict: Verdict
    difference: str | None  # in a sentence, with what to do about it

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON knows it."""
        return {field.name: plain(getattr(self, field.name)) for field in fields(self)}


@dataclass(frozen=True, slots=True)
class WorkflowCheck:
    """The records that were replayed, newest first; `is_whole` says whether these were all that there are."""

    workflows: tuple[CheckedWorkflow, ...]
    is_whole: bool

    def having(self, verdict: Verdict) -> tuple[CheckedWorkflow, ...]:
        """Those of this verdict."""
        return tuple(one for one in self.workflows if one.verdict == verdict)

    @property
    def all_fit(self) -> bool:
        """Whether every one of them can go on with this code."""
        return all(one.verdict == "fits" for one in self.workflows)

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON knows it."""
        return {"workflows": [one.to_dict() for one in self.workflows], "is_whole": self.is_whole}
