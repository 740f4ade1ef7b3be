"""Retention: how long history keeps an ended job. The operator's row wins over the task, which wins over the app."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from datetime import timedelta

from rowlock.db.apart import apart
from rowlock.db.partitions import make_partitions
from rowlock.db.session import Server
from rowlock.db.steady import Steady
from rowlock.model.handler import Handler
from rowlock.model.outcome import Ended, Succeeded
from rowlock.model.row import Claimed
from rowlock.model.spec import Keep
from rowlock.store.queues import QueueSettings

log = logging.getLogger("rowlock.worker")


class Retention:
    """What the app and its tasks ask for, and what operators have set."""

    def __init__(self, handlers: Mapping[str, Handler], keep: Keep) -> None:
        self._handlers = handlers
        self._keep = keep
        self._settings: dict[str, QueueSettings] = {}

    @property
    def longest(self) -> timedelta:
        """The longest that the app or a task asks for."""
        return max([self._keep.longest, *(h.spec.keep.longest for h in self._handlers.values() if h.spec.keep)])

    def learn(self, settings: Sequence[QueueSettings]) -> None:
        """These are the operators' settings now."""
        self._settings = {queue.name: queue for queue in settings}

    def after(self, row: Claimed, outcome: Ended) -> timedelta | None:
        """How long to keep a job that ended so; None leaves no trace."""
        handler = self._handlers.get(row.code)
        if handler is not None and not handler.spec.history and isinstance(outcome, Succeeded):
            return None
        operator = self._settings.get(row.queue)
        asked = operator.keep_after(outcome) if operator is not None else None
        if asked is not None:
            return asked
        keep = handler.spec.keep if handler is not None else None
        return (keep or self._keep).after(outcome)

    async def make_partitions(self, server: Server, schema: str) -> None:
        """A settle found no partition for the day: upkeep has not run for long, or an operator raised a retention.

        On a connection of its own, for the renewing one must not wait. Trouble passes: the settle will ask again.
        """
        steady = Steady(server, schema, name="rowlock partitions")
        try:
            await apart(lambda: make_partitions(steady.open(), schema, longest=self.longest))
        except Exception:
            log.exception("partitions of history could not be made; trying again")
            await asyncio.sleep(1)
        finally:
            steady.close()
