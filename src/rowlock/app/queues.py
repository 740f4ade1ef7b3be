"""Queues: what operators read of them, and their pauses."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from rowlock.app import pauses
from rowlock.app.resources import Resources
from rowlock.app.verbs import Exchange, Verb, averb, verb
from rowlock.model.pause import Pause
from rowlock.model.stats.stats import QueueStats
from rowlock.store.stats.collect import collect_glance

__all__ = ["AppQueues", "Pause", "QueueStats"]


class AppQueues:
    """The queues of an app, for operators: `app.queues.pause("mail", duration=timedelta(hours=1), why="moving")`."""

    def __init__(self, resources: Resources) -> None:
        self._database = resources.database

    @verb("app.queues")
    def list(self) -> Verb[Mapping[str, QueueStats]]:
        """The queues by name: those that a job, a worker, a pause or the work of the last hour names.

        They are as in `app.stats()`, but counted to ten thousand at most; what this role may not see is None.
        """
        return (yield from Exchange(self._database, collect_glance, apart=True)).queues

    alist = averb(list)  # noqa: A003  the verb above

    @verb("app.queues")
    def pause(
        self,
        queue: str,
        *,
        until: datetime | None = None,
        duration: timedelta | None = None,
        why: str | None = None,
        by: str | None = None,
    ) -> Verb[Pause]:
        """Start no more jobs of a queue: until then, for so long, or until somebody resumes it.

        A name that nobody uses yet is taken as it is, as `enqueue` takes it; those that people type are checked by
        `rowlock queues pause` and by the dashboard.
        """
        return pauses.pause(self._database, "queue", queue, until=until, duration=duration, why=why, by=by)

    apause = averb(pause)

    @verb("app.queues")
    def resume(self, queue: str, *, why: str | None = None, by: str | None = None) -> Verb[bool]:
        """Let a queue go on; returns whether it was paused."""
        return pauses.resume(self._database, "queue", queue, why=why, by=by)

    aresume = averb(resume)

    @verb("app.queues")
    def pauses(self) -> Verb[tuple[Pause, ...]]:
        """The pauses of queues that hold now."""
        return pauses.listed(self._database, "queue")

    apauses = averb(pauses)
