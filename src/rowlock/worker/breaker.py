"""Breaker: failed attempts of tasks that have one are counted, over all workers; too many, and the task is paused."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping

from rowlock.db.link import Link, Lost
from rowlock.model.handler import Handler
from rowlock.model.outcome import Failed, Retried, Unsettled
from rowlock.model.row import Claimed
from rowlock.store import breakers
from rowlock.store.breakers import Failures
from rowlock.store.query import Query

log = logging.getLogger("rowlock.worker")

_LONGEST_TYPE = 200


class Breakers:
    """The breakers of a worker's tasks, under every name that jobs may have them by."""

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self._by_task = {name: handler.spec.breaker for name, handler in handlers.items() if handler.spec.breaker}

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self._by_task)

    def counting(self, settled: Iterable[tuple[Claimed, Unsettled]]) -> Query[str] | None:
        """What to say of these attempts, if one has failed that counts; it answers the tasks that are paused by it."""
        counts: dict[str, int] = {}
        last: dict[str, str] = {}
        for row, outcome in settled:
            if isinstance(outcome, Failed | Retried) and not outcome.expected and row.task in self._by_task:
                counts[row.task] = counts.get(row.task, 0) + 1
                last[row.task] = outcome.failure
        if not counts:
            return None
        return breakers.count(
            [Failures(task, count, _type(last[task]), self._by_task[task]) for task, count in counts.items()]
        )

    async def count(self, link: Link, settled: Iterable[tuple[Claimed, Unsettled]]) -> None:
        """Count what has failed of what was just settled, once: better lost than counted twice."""
        query = self.counting(settled)
        if query is None:
            return
        try:
            for task in await link.once(query):
                log.error("task %s is paused by its breaker: it has failed too often", task)
        except Lost as error:
            log.warning("failures were not counted for their breakers (%s)", error)


def _type(failure: str) -> str:
    """The type of an error, and nothing else of it: messages may hold users' data."""
    name = str(json.loads(failure).get("type", "an error"))
    return "".join(letter if letter.isprintable() else "?" for letter in name)[:_LONGEST_TYPE]
