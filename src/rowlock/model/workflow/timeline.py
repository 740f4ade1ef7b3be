"""Timeline: what one workflow has done, step by step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from rowlock.model.plain import Plain, plain, plain_fields
from rowlock.model.record import JobRecord, State, known_moment, read_json, read_moment, read_uuid
from rowlock.model.workflow.step import StepKind, StepState


@dataclass(frozen=True, slots=True)
class TimelineStep:
    """A step as it is remembered; `key` is its name and occurrence, after its branch: charge, charge#2, 1/charge.

    `attempts` counts the tries that have failed. `until` is the end of a sleep, the time-out of a signal, or the next
    try of a step that is retrying. `form` is the JSON Schema of the signal that it waits for.
    """

    key: str
    name: str
    kind: StepKind
    state: StepState
    attempts: int
    until: datetime | None
    child: UUID | None
    started_at: datetime
    ended_at: datetime | None
    position: int
    input: Any
    result: Any
    error: Any
    form: Any

    @classmethod
    def read(cls, row: Sequence[Any]) -> TimelineStep:
        """A row whose columns are the fields of this class, in their order; ids, times and JSON as text."""
        stored = dict(zip((field.name for field in fields(cls)), row, strict=True))
        return cls(
            **stored
            | {name: read_moment(stored[name]) for name in ("until", "started_at", "ended_at")}
            | {name: read_json(stored[name]) for name in ("input", "result", "error", "form")}
            | {"child": read_uuid(stored["child"])}
        )

    @property
    def branch(self) -> str:
        """Its branch of the code: `1/` for the first task that the function began, "" for the function itself."""
        head, slash, _ = self.key.rpartition("/")
        return "" if self.kind == "undo" else head + slash

    @property
    def duration(self) -> timedelta | None:
        """Its duration, with all tries; None while it has not ended."""
        return None if self.ended_at is None else self.ended_at - self.started_at

    @property
    def is_open(self) -> bool:
        """Whether it waits: for a signal, a time, a child, or its next try."""
        return self.state in {"open", "retrying"}

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON values."""
        return plain_fields(self) | {"duration": plain(self.duration)}


@dataclass(frozen=True, slots=True)
class TimelineBranch:
    """The steps of one asyncio task of a workflow, such as one of a gather; `key` is `1/`, or `1/2/` inside of it."""

    key: str
    steps: tuple[TimelineStep | TimelineBranch, ...]

    @property
    def started_at(self) -> datetime:
        """The start of the first of them."""
        return min(step.started_at for step in self.steps)

    @property
    def ended_at(self) -> datetime | None:
        """The end of the last of them; None while one is open."""
        ends = [step.ended_at for step in self.steps]
        known = [moment for moment in ends if moment is not None]
        return max(known) if len(known) == len(ends) else None

    @property
    def duration(self) -> timedelta | None:
        """The time from the first to the last; None while one is open."""
        return None if self.ended_at is None else self.ended_at - self.started_at

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON values."""
        return {
            "key": self.key,
            "kind": "branch",
            "started_at": plain(self.started_at),
            "ended_at": plain(self.ended_at),
            "duration": plain(self.duration),
            "steps": [step.to_dict() for step in self.steps],
        }


@dataclass(frozen=True, slots=True)
class TimelineSignal(Plain):
    """A signal that was sent to a workflow and that no wait has taken."""

    name: str
    key: str | None
    sent_at: datetime
    payload: Any

    @classmethod
    def read(cls, row: Sequence[Any]) -> TimelineSignal:
        """A row of these columns; times and JSON as text."""
        name, key, sent_at, payload = row
        return cls(name, key, known_moment(sent_at), read_json(payload))


@dataclass(frozen=True, slots=True)
class TimelineChild(Plain):
    """A child of a workflow that has not ended."""

    id: UUID
    task: str
    version: int | None
    queue: str
    state: State
    waits_for: str | None

    @classmethod
    def read(cls, row: Sequence[Any]) -> TimelineChild:
        """A row of these columns; the id as text."""
        job_id, *rest = row
        return cls(UUID(job_id), *rest)


@dataclass(frozen=True, slots=True)
class Timeline:
    """The timeline of a workflow at one moment: its job, its steps, and what it waits for.

    `steps` are in the order in which they were started, those of each branch in one place. `signals` are those that
    nobody has taken, `children` those that have not ended. Who may not read arguments and results sees no `input`,
    `result`, `error`, `form` and `payload` either.
    """

    job: JobRecord
    steps: tuple[TimelineStep | TimelineBranch, ...]
    signals: tuple[TimelineSignal, ...]
    children: Mapping[UUID, TimelineChild]

    @classmethod
    def of(
        cls,
        job: JobRecord,
        steps: Iterable[TimelineStep],
        signals: Iterable[TimelineSignal],
        children: Iterable[TimelineChild],
    ) -> Timeline:
        """Build the tree of steps and branches."""
        return cls(job, _tree(steps), tuple(signals), {child.id: child for child in children})

    def __iter__(self) -> Iterator[TimelineStep]:
        """Every step, in the order in which they were started."""
        return iter(sorted(_flat(self.steps), key=_order))

    @property
    def waits(self) -> tuple[TimelineStep, ...]:
        """The open steps: signals, times, children and next tries that it waits for."""
        return tuple(step for step in self if step.is_open)

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON values."""
        return {
            "job": self.job.to_dict(),
            "steps": [step.to_dict() for step in self.steps],
            "signals": [signal.to_dict() for signal in self.signals],
            "children": [child.to_dict() for child in self.children.values()],
        }


def _tree(steps: Iterable[TimelineStep]) -> tuple[TimelineStep | TimelineBranch, ...]:
    inside: dict[str, list[TimelineStep]] = {"": []}
    below: dict[str, list[str]] = {}
    for step in steps:
        path = step.branch
        # A branch that has called nothing itself, but has begun others, is there all the same.
        while path not in inside:
            inside[path] = []
            below.setdefault(_above(path), []).append(path)
            path = _above(path)
        inside[step.branch].append(step)
    return _grown("", inside, below)


def _grown(
    path: str, inside: Mapping[str, list[TimelineStep]], below: Mapping[str, list[str]]
) -> tuple[TimelineStep | TimelineBranch, ...]:
    branches = [TimelineBranch(other, _grown(other, inside, below)) for other in below.get(path, ())]
    return tuple(sorted([*inside[path], *branches], key=_order))


def _above(path: str) -> str:
    head, slash, _ = path[:-1].rpartition("/")
    return head + slash


def _flat(steps: Iterable[TimelineStep | TimelineBranch]) -> Iterator[TimelineStep]:
    for step in steps:
        if isinstance(step, TimelineBranch):
            yield from _flat(step.steps)
        else:
            yield step


def _order(step: TimelineStep | TimelineBranch) -> tuple[datetime, int, str]:
    """By time; what was written down together, by its place in the code."""
    return step.started_at, step.position if isinstance(step, TimelineStep) else 0, step.key
