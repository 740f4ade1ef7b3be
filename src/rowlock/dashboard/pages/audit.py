"""The page /audit: who did what, when and why."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Annotated, Final
from uuid import UUID

from pydantic import Field

from rowlock.dashboard.desk import Desk
from rowlock.dashboard.page import Asked, Page
from rowlock.model.answer import Event, EventPage, EventPlace
from rowlock.model.filter import check_id
from rowlock.store import events, schema
from rowlock.store.query import Conversation
from rowlock.store.roles import KINDS_OF_FUNCTIONS, ROLES

_LIMIT: Final = 50
_WINDOW: Final = events.WINDOW
KINDS: Final = tuple(sorted({kind for role in ROLES for kind in role.events} | set(KINDS_OF_FUNCTIONS)))
"""What can be done, as events name it."""


class AuditAsked(Asked):
    """Which events: of a kind, by whoever is named so, of a job; and before which place."""

    kind: Annotated[str, Field(max_length=100)] | None = None
    actor: Annotated[str, Field(max_length=200)] | None = None
    job: Annotated[str, Field(max_length=100)] | None = None
    before: Annotated[str, Field(max_length=100)] | None = None


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


async def look(desk: Desk, asked: AuditAsked) -> AuditShown:
    """Look for them, among so many at most."""
    job = None if asked.job is None else check_id(asked.job.strip())
    before = None if asked.before is None else EventPlace.read(asked.before)
    begin = partial(_found, asked.kind, asked.actor, job, before)
    at, found = await desk.look.database.aconverse(lambda _resend: begin(), atomic=False)
    cut_short = found.next is not None and len(found.events) < _LIMIT
    return AuditShown(
        at=at,
        events=found.events,
        looked=found.looked,
        next=None if found.next is None else str(found.next),
        back_to=found.next.at if found.next is not None and cut_short else None,
        kinds=KINDS,
    )


def _found(
    kind: str | None, actor: str | None, job: UUID | None, before: EventPlace | None
) -> Conversation[tuple[datetime, EventPage]]:
    [at] = yield schema.now()
    found = yield from events.page(kind=kind, actor=actor, job=job, before=before, limit=_LIMIT, window=_WINDOW)
    return at, found


PAGE = Page("audit", "/audit", AuditAsked, AuditShown, look, says="Who did what, when and why.")
