"""Job record: a job as it is shown, live or ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, Final, Literal
from uuid import UUID

from pydantic_core import from_json

from rowlock.model.plain import Plain

State = Literal["waiting", "parked", "ready", "running", "succeeded", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class JobError:
    """The error of one attempt. `attempt` counts every start; a crash has a type and a message of our own."""

    type: str
    message: str
    traceback: str
    attempt: int
    worker: UUID | None
    started_at: datetime | None
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress that an attempt reported: `share` from 0 to 1, and a note for people."""

    share: float
    note: str | None
    at: datetime


@dataclass(frozen=True, slots=True)
class JobRecord(Plain):
    """A job's row as it was when it was read; for an ended job, the row that history keeps.

    A workflow that waits for a signal, a child or a time is `parked`.

    `failures` counts the attempts spent, of which there are `attempts`; `crashes` those whose worker died, `claims` all
    that were ever started. `started_at` and `worker` are those of the last one. `errors` are the last ten. `cancel_at`
    is when somebody asked to cancel it, while its attempt has not ended yet. For a role that may not read them,
    such as rowlock_viewer, `args` and `result` are None and `errors` are none; whoever may finds a dict in `args`.
    A workflow has a `version`, and a `workflow_state` that it says of itself; a child has a `parent`.
    """

    id: UUID
    task: str
    queue: str
    state: State
    priority: int
    failures: int
    crashes: int
    claims: int
    attempts: int
    run_at: datetime
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    expires_at: datetime | None
    cancel_at: datetime | None
    worker: UUID | None
    key: str | None
    tags: tuple[str, ...]
    waits_for: str | None
    reason: str | None
    args: Any
    result: Any
    errors: tuple[JobError, ...]
    progress: Progress | None
    version: int | None
    parent: UUID | None
    workflow_state: Any

    @property
    def ended(self) -> bool:
        """Whether it is in history, for good unless an operator retries it."""
        return self.ended_at is not None

    @property
    def begun(self) -> bool:
        """Whether it is a live workflow that was claimed, or a live child: then only a worker can end it."""
        return not self.ended and (self.parent is not None or (self.version is not None and self.claims > 0))

    @classmethod
    def read(cls, row: Sequence[Any]) -> JobRecord:
        """A row of `COLUMNS`; ids, times and JSON as text, errors too."""
        stored = dict(zip(COLUMNS, row, strict=True))
        return cls(
            **stored
            | {name: read_uuid(stored[name]) for name in ("id", "worker", "parent")}
            | {name: read_moment(stored[name]) for name in _MOMENTS}
            | {name: read_json(stored[name]) for name in ("args", "result", "workflow_state")}
            | {
                "tags": tuple(stored["tags"] or ()),
                "errors": tuple(map(_error, read_json(stored["errors"]) or ())),
                "progress": read_progress(stored["progress"]),
            }
        )


_MOMENTS: Final = ("run_at", "created_at", "started_at", "ended_at", "expires_at", "cancel_at")
DATA: Final = ("args", "result", "errors", "workflow_state")
"""Users' data: long, and not for every role. JSON cast to text, errors as one array of it."""
FACTS: Final = tuple(field.name for field in fields(JobRecord) if field.name not in DATA)
COLUMNS: Final = (*FACTS, *DATA)
"""The columns that a statement must select for `JobRecord.read`, in this order."""


def _error(stored: dict[str, Any]) -> JobError:
    return JobError(
        type=stored["type"],
        message=stored["message"],
        traceback=stored.get("traceback", ""),
        attempt=stored["attempt"],
        worker=read_uuid(stored["worker"]),
        started_at=read_moment(stored["started_at"]),
        ended_at=read_moment(stored["ended_at"]),
    )


def read_progress(text: str | None) -> Progress | None:
    """The progress that a job has reported, if any."""
    stored = read_json(text)
    return None if stored is None else Progress(stored["share"], stored["note"], known_moment(stored["at"]))


def read_uuid(text: str | None) -> UUID | None:
    """An id, if there is one."""
    return None if text is None else UUID(text)


def read_moment(text: str | None) -> datetime | None:
    """An instant as our sessions return it; the last instant there is for those after the year 9999."""
    return None if text is None else known_moment(text)


def known_moment(text: str) -> datetime:
    """As `read_moment`, for a column that is never null."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):  # PostgreSQL's years go on after ours, and then there is infinity
        return datetime.max.replace(tzinfo=UTC)


def read_json(text: str | None) -> Any:  # noqa: ANN401  whatever is stored
    """The value of a text; the text itself where Python cannot hold it, as a number of 5,000 digits from SQL."""
    try:
        return None if text is None else from_json(text)
    except ValueError:
        return text
