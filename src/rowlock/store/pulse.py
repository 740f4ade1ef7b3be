"""The pulse of queues and tasks: what ended in them, from minute to minute."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from rowlock.model.pulse import Minute, Pulse
from rowlock.model.stats import Glance
from rowlock.store.intervals import instant
from rowlock.store.query import Conversation, Query, Row
from rowlock.store.survey import ask, glance

MINUTES: Final = 30
# Half an hour of thirty pairs of queue and task, of the latest minutes each of twenty workers: 5 ms.
_MOST_ROWS: Final = 20_000
_MINUTE: Final = timedelta(minutes=1)


class Counted(NamedTuple):
    """What ended in a minute: of a queue, or of a task."""

    queue: str | None
    task: str | None
    at: datetime
    minute: Minute


class Pulses(NamedTuple):
    """The pulse of each queue and of each task in which anything has ended lately."""

    queues: Mapping[str, Pulse]
    tasks: Mapping[str, Pulse]


def glance_with_pulse() -> Conversation[tuple[Glance, Pulses]]:
    """Queues and tasks as they are now, and how they have been."""
    seen = yield from glance()
    first = seen.at.replace(second=0, microsecond=0) - (MINUTES - 1) * _MINUTE
    unknown = dict(seen.unknown)
    rows = yield from ask("pulse", counted(since=first, most=_MOST_ROWS), unknown)
    return replace(seen, unknown=unknown), _pulses(rows or [], first)


def counted(*, since: datetime, most: int) -> Query[Counted]:
    """What ended since then, minute by minute, of each queue and of each task, from the newest rows at most."""
    return Query("minute_pulse", {"since": instant(since), "most": str(most)}, _counted)


def _counted(row: Row) -> Counted:
    queue, task, at, ended, failed = row
    return Counted(queue, task, datetime.fromisoformat(at), Minute(ended, failed))


def _pulses(rows: list[Counted], first: datetime) -> Pulses:
    queues: dict[str, list[Minute]] = {}
    tasks: dict[str, list[Minute]] = {}
    for row in rows:
        place = (row.at - first) // _MINUTE
        named, of = (row.queue, queues) if row.queue is not None else (row.task, tasks)
        if named is not None and 0 <= place < MINUTES:
            of.setdefault(named, [Minute()] * MINUTES)[place] = row.minute
    return Pulses(
        {name: tuple(minutes) for name, minutes in queues.items()},
        {name: tuple(minutes) for name, minutes in tasks.items()},
    )
