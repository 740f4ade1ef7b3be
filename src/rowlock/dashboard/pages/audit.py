"""The page /audit: who did what, when and why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Final
from uuid import UUID

from pydantic import Field

from rowlock.dashboard.context import RequestContext
from rowlock.dashboard.page import DashboardPage, Params
from rowlock.model.filter import check_id
from rowlock.model.results import Cursor, Event, EventPage
from rowlock.store import events, schema
from rowlock.store.query import Conversation
from rowlock.store.roles import KINDS_OF_FUNCTIONS, ROLES

_LIMIT: Final = 50
"""Lines of a page."""
_MOST_EVENTS: Final = 500
# Events that bulk runs make, in chunks; those of one run are no further apart than _APART.
_IN_BULK: Final = frozenset(
    ("retried", "cancelled", "deleted", "moved", "reprioritised", "run_next", "rescued", "poisoned", "abandoned")
)
_APART: Final = timedelta(seconds=10)
_WINDOW: Final = events.WINDOW
KINDS: Final = tuple(sorted({kind for role in ROLES for kind in role.events} | set(KINDS_OF_FUNCTIONS)))
"""All kinds of events."""


class AuditParams(Params):
    """Which events: of a kind, of an actor, of a job; and before which place."""

    kind: Annotated[str, Field(max_length=100)] | None = None
    actor: Annotated[str, Field(max_length=200)] | None = None
    job: Annotated[str, Field(max_length=100)] | None = None
    before: Annotated[str, Field(max_length=100)] | None = None


@dataclass(frozen=True, slots=True)
class AuditLine:
    """One event, or many that one bulk run made: of one kind, by one actor, for one reason, newest first."""

    events: tuple[Event, ...]

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks of its jobs."""
        return tuple(sorted({str(event.details["task"]) for event in self.events if event.details.get("task")}))


@dataclass(frozen=True, slots=True)
class AuditShown:
    """Events, newest first, found among the `looked` newest. `next` is the `before` of the next page.

    `back_to` is when the oldest of those happened that were looked at, if a filter has passed over some of them.
    """

    at: datetime
    events: tuple[Event, ...]
    looked: int
    next: str | None
    back_to: datetime | None
    kinds: tuple[str, ...]

    @property
    def lines(self) -> tuple[AuditLine, ...]:
        """The events, those of one bulk run as one line."""
        return lines_of(self.events)


def lines_of(events: Iterable[Event]) -> tuple[AuditLine, ...]:
    """Events, newest first; those of one bulk run together."""
    lines: list[list[Event]] = []
    for event in events:
        if lines and _is_same_run(lines[-1][-1], event):
            lines[-1].append(event)
        else:
            lines.append([event])
    return tuple(AuditLine(tuple(line)) for line in lines)


def _is_same_run(later: Event, event: Event) -> bool:
    if event.kind not in _IN_BULK or event.job is None or later.job is None:
        return False
    said, meant = ((one.kind, one.actor, one.login, one.details.get("why")) for one in (later, event))
    return said == meant and later.at - event.at <= _APART


async def load(context: RequestContext, params: AuditParams) -> AuditShown:
    """Load a page of events."""
    job = None if params.job is None else check_id(params.job.strip())
    before = None if params.before is None else Cursor.read(params.before)
    begin = partial(_load_events, params.kind, params.actor, job, before)
    at, found = await context.reader.database.aconverse(begin, atomic=False)
    shown = tuple(event for line in lines_of(found.events)[:_LIMIT] for event in line.events)
    following = found.next if len(shown) == len(found.events) else Cursor(shown[-1].at, shown[-1].id)
    cut_short = found.next is not None and len(found.events) < _MOST_EVENTS and following == found.next
    return AuditShown(
        at=at,
        events=shown,
        looked=found.looked,
        next=None if following is None else str(following),
        back_to=found.next.at if found.next is not None and cut_short else None,
        kinds=KINDS,
    )


def _load_events(
    kind: str | None, actor: str | None, job: UUID | None, before: Cursor | None
) -> Conversation[tuple[datetime, EventPage]]:
    [at] = yield schema.now()
    found = yield from events.page(kind=kind, actor=actor, job=job, before=before, limit=_MOST_EVENTS, window=_WINDOW)
    return at, found


PAGE = DashboardPage(
    "audit",
    "/audit",
    AuditParams,
    AuditShown,
    load,
    says="Who did what, when and why.",
    nav="audit",
    key="a",
)
