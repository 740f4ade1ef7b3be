"""Setup: what every incarnation of a worker has in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from rowlock.db.within import Within
from rowlock.model.handler import Handler
from rowlock.model.spec import Keep
from rowlock.worker.around import Around
from rowlock.worker.attempt import Speaks
from rowlock.worker.lanes import Queues
from rowlock.worker.schedule import Boot
from rowlock.worker.settings import Timing


@dataclass(frozen=True, slots=True)
class Setup:
    """What is the same for all incarnations of a worker."""

    handlers: Mapping[str, Handler]
    schema: str
    database: Speaks
    within: Within
    keep: Keep
    queues: Queues
    slots: int
    threads: int
    timing: Timing
    deadline: timedelta  # the app's: for the connections that handlers use
    arounds: Sequence[Around] = ()
    boot: Boot = field(default_factory=Boot)
    place: Callable[[], str] = lambda: "its database"  # the database, as people know it
