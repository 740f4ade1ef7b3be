"""Statements that read workflows and what they remember, for replays that only look."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rowlock.model.step import Step
from rowlock.model.timeline import WorkflowStatus
from rowlock.store.query import Query, plain_array


class Recalled(NamedTuple):
    """A workflow as a replay needs it. The id and JSON stay text."""

    id: str
    workflow: str
    version: int
    status: WorkflowStatus
    key: str | None
    queue: str
    args: str
    state: str | None


def workflows(ids: Iterable[str]) -> Query[Recalled]:
    """These workflows, as far as there are any."""
    return Query("workflow_recall", {"ids": plain_array(ids)}, Recalled._make)


def steps(ids: Iterable[str]) -> Query[tuple[str, Step]]:
    """What these workflows remember, with the id of each."""
    return Query("step_recall", {"ids": plain_array(ids)}, lambda row: (row[0], Step._make(row[1:])))
