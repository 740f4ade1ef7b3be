"""The names that a search may mean: of queues and tasks, as code declares them and as workers have met them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final
from weakref import WeakKeyDictionary

from rowlock.app.app import Rowlock
from rowlock.dashboard.search import Known
from rowlock.store.stats.collect import collect_glance

_KEPT: Final = 30.0  # seconds: a page is looked at every two, and names seldom come
_MOST: Final = 500


@dataclass(frozen=True, slots=True)
class _Looked:
    known: Known
    at: float


_looked: WeakKeyDictionary[Rowlock, _Looked] = WeakKeyDictionary()


async def known_names(look: Rowlock) -> Known:
    """The names, not older than half a minute."""
    before = _looked.get(look)
    if before is not None and time.monotonic() - before.at < _KEPT:
        return before.known
    seen = await look.database.aconverse(collect_glance)
    declared = {task.spec.queue for task in look.tasks}
    known = Known(
        tasks=tuple(sorted({*look.tasks.names(), *seen.tasks}))[:_MOST],
        queues=tuple(sorted({*declared, *seen.queues}))[:_MOST],
    )
    _looked[look] = _Looked(known, time.monotonic())
    return known
