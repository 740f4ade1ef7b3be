"""Timeline rows: a workflow's steps, its branches below their heads, and folds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Literal

from rowlock.model.workflow.timeline import TimelineBranch, TimelineStep
from rowlock.store.workflows.timeline import Values, with_values

MOST_ROWS: Final = 300
"""Rows that are read and drawn at once."""
_FIRST_ROWS: Final = 40
NO_STEP: Final = frozenset(("failure", "undo", "start"))
"""Kinds of records that are no call of the code."""


@dataclass(frozen=True, slots=True)
class StepRow:
    """A step; `left_out` names values that are too large to be shown here."""

    depth: int
    step: TimelineStep
    left_out: tuple[str, ...] = ()
    kind: Literal["step"] = "step"

    @property
    def can_fork(self) -> bool:
        """Whether a new job can go on from here."""
        return self.step.kind not in NO_STEP


@dataclass(frozen=True, slots=True)
class BranchRow:
    """The head of a branch: what follows at a greater depth is its own."""

    depth: int
    key: str
    started_at: datetime
    ended_at: datetime | None
    kind: Literal["branch"] = "branch"


@dataclass(frozen=True, slots=True)
class FoldRow:
    """`count` rows from `first` on that are not shown."""

    first: int
    count: int
    kind: Literal["fold"] = "fold"


TimelineRow = StepRow | BranchRow | FoldRow


def rows_of(steps: Iterable[TimelineStep | TimelineBranch], depth: int = 0) -> Iterator[StepRow | BranchRow]:
    """All rows in the order in which they began, but for restarts, which are no steps of the code."""
    for step in steps:
        if isinstance(step, TimelineBranch):
            yield BranchRow(depth, step.key, step.started_at, step.ended_at)
            yield from rows_of(step.steps, depth + 1)
        elif step.kind != "start":
            yield StepRow(depth, step)


def fold(lines: Sequence[StepRow | BranchRow], skip: int | None) -> tuple[TimelineRow, ...]:
    """At most MOST_ROWS rows: those after the first `skip`, or without it the first and the last ones."""
    count = len(lines)
    if count <= MOST_ROWS and not skip:
        return tuple(lines)
    if skip is None:
        last = count - (MOST_ROWS - _FIRST_ROWS)
        return (*lines[:_FIRST_ROWS], FoldRow(_FIRST_ROWS, last - _FIRST_ROWS), *lines[last:])
    first = min(skip, max(count - 1, 0))
    after = min(first + MOST_ROWS, count)
    before = [FoldRow(max(first - MOST_ROWS, 0), first)] if first else []
    more = [FoldRow(after, count - after)] if after < count else []
    return (*before, *lines[first:after], *more)


def with_all_values(lines: Iterable[TimelineRow], known: Mapping[str, Values]) -> tuple[TimelineRow, ...]:
    """The rows, with the values that were read for their steps."""
    return tuple(_with_values(line, known) for line in lines)


def _with_values(line: TimelineRow, known: Mapping[str, Values]) -> TimelineRow:
    if not isinstance(line, StepRow) or line.step.key not in known:
        return line
    values = known[line.step.key]
    return replace(line, step=with_values(line.step, values), left_out=values.left_out)
