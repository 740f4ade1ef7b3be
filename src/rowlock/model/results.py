"""Results of operator calls: pages of jobs and events, previews, counts of changed jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from rowlock.errors import InvalidOption
from rowlock.model.filter import Filter, check_id
from rowlock.model.names import shown
from rowlock.model.plain import Plain, plain
from rowlock.model.record import JobRecord, State
from rowlock.model.verb import VerbName


@dataclass(frozen=True, slots=True)
class Cursor:
    """A place in a list that is ordered by a time: earlier entries come after it."""

    at: datetime
    id: UUID

    def __str__(self) -> str:
        return f"{self.at.isoformat()}/{self.id}"

    @classmethod
    def read(cls, text: str) -> Cursor:
        """Parse a cursor; InvalidOption if the text is not one."""
        moment, _, event_id = text.partition("/")
        try:
            at = datetime.fromisoformat(moment)
            return cls(at if at.tzinfo else at.replace(tzinfo=UTC), UUID(event_id))
        except ValueError:
            raise InvalidOption(f"{shown(text)} is not a place in this list; take it from the page before") from None


# Where a page of jobs begins: after this id, or after this end.
Start = UUID | Cursor


def start_of(asked: Filter, before: Start | str | None) -> Start | None:
    """Where a page of these jobs begins, checked: an id, or a cursor if they are listed by when they ended."""
    if before is None:
        return None
    if asked.is_by_end:
        return before if isinstance(before, Cursor) else Cursor.read(str(before))
    return check_id(str(before))


@dataclass(frozen=True, slots=True)
class Page:
    """Jobs, newest first, without their results; `next` is the `before` of the next page, None after the last.

    If only ended jobs were asked for, the one that ended last comes first.
    `looked` is how many jobs were looked at for it.
    """

    records: tuple[JobRecord, ...]
    next: UUID | Cursor | None
    looked: int = 0

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON values."""
        return {"records": [record.to_dict() for record in self.records], "next": self.next and str(self.next)}


@dataclass(frozen=True, slots=True)
class Preview(Plain):
    """The preview of a verb: it would change `count` jobs, and pass over some that it looks at but cannot change.

    Counted up to 10,000 jobs; `capped` says that there are, or may be, more. `tasks` and `states` count those it would
    change.
    """

    verb: VerbName
    count: int
    passed_over: int
    capped: bool
    tasks: Mapping[str, int]
    states: Mapping[str, int]
    samples: tuple[JobRecord, ...]


@dataclass(frozen=True, slots=True)
class Done(Plain):
    """The work of a verb so far: jobs changed, and jobs passed over, as they run, lack their key or have changed.

    `before` is where it stands: pass it to the verb again to go on from there. None: it has come to the end.
    """

    verb: VerbName
    changed: int = 0
    passed_over: int = 0
    before: UUID | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """An action of an operator or of upkeep, on a job, a queue or a task: when, who (`actor`), and the `details`.

    `actor` is the name that the client gave, `login` the role that it was logged in as, which PostgreSQL recorded.
    """

    id: UUID
    at: datetime
    kind: str
    job: UUID | None
    actor: str
    details: Mapping[str, Any]
    login: str | None = None

    @property
    def worker(self) -> str | None:
        """The id of the worker that it is about, if it is about one."""
        return self.details.get("worker")

    @property
    def owner(self) -> str | None:
        """The host and process of that worker, if a job was taken back from it and it was on the books still."""
        owner = self.details.get("owner")
        return None if owner == "unknown" else owner

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON values."""
        return {
            "id": str(self.id),
            "at": plain(self.at),
            "kind": self.kind,
            "job": plain(self.job),
            "actor": self.actor,
            "login": self.login,
            "details": dict(self.details),
        }


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events, newest first, found among the `looked` newest; `next` is where to look further."""

    events: tuple[Event, ...]
    next: Cursor | None
    looked: int


@dataclass(frozen=True, slots=True)
class Firing(Plain):
    """The record of one slot of a schedule: fired, by the job `job`, or passed over, for `reason`; `at` is when.

    A job beside the slots has a reason too: "asked" by an operator, or "boot". `state` is its job's now, if there still
    is one.
    """

    slot: datetime
    job: UUID | None
    reason: str | None
    at: datetime
    state: State | None
