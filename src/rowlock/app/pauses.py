"""Pause and resume: a queue, whose jobs then wait where they are, or a task, whose jobs are set aside when claimed."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import TypeVar

from rowlock.app.checks import check_actor, check_why
from rowlock.app.job import refuse_in_loop
from rowlock.db.database import Database
from rowlock.errors import InvalidOption, RowlockError
from rowlock.model.names import check_delay, check_moment, check_queue, check_task
from rowlock.model.pause import Pause
from rowlock.store import pauses as store
from rowlock.store.pauses import Kind
from rowlock.store.query import Conversation, Query
from rowlock.store.schema import make_partitions

T = TypeVar("T")


class Pauses:
    """The pauses of an app: rows, so they outlive every process, and hold for every worker from their commit on."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def pause(self, query: Query[Pause]) -> Pause:
        """Begin a pause."""
        refuse_in_loop("app.pause", "await app.apause(…)")
        return self._database.converse(_said(query))[0]

    async def apause(self, query: Query[Pause]) -> Pause:
        """Begin a pause."""
        return (await self._database.aconverse(_said(query)))[0]

    def resume(self, query: Query[str], *, task: str | None) -> bool:
        """End a pause; then release the jobs of its task, each chunk in a transaction of its own."""
        refuse_in_loop("app.resume", "await app.aresume(…)")
        ended = self._database.converse(_said(query))
        while task is not None and self._database.run(store.release(task)) != [0]:
            pass
        return bool(ended)

    async def aresume(self, query: Query[str], *, task: str | None) -> bool:
        """End a pause; then release the jobs of its task, each chunk in a transaction of its own."""
        ended = await self._database.aconverse(_said(query))
        while task is not None and await self._database.arun(store.release(task)) != [0]:
            pass
        return bool(ended)

    def all(self) -> list[Pause]:
        """The pauses that hold now."""
        refuse_in_loop("app.pauses", "await app.apauses()")
        return self._database.run(store.listed())

    async def aall(self) -> list[Pause]:
        """The pauses that hold now."""
        return await self._database.arun(store.listed())


def pausing(
    *,
    queue: str | None,
    task: str | None,
    until: datetime | None,
    duration: timedelta | None,
    why: str | None,
    by: str | None,
) -> Query[Pause]:
    """What to say for a pause, once everything about it is checked."""
    kind, name = _named(queue, task)
    check_end(until, duration)
    return store.pause(kind=kind, name=name, until=until, duration=duration, actor=check_actor(by), why=check_why(why))


def check_end(until: datetime | None, duration: timedelta | None) -> None:
    """When a pause ends by itself: at an instant, after so long, or not at all."""
    if until is not None and duration is not None:
        raise InvalidOption("give until= or duration=, not both")
    if until is not None:
        check_moment("until", until)
    if duration is not None and check_delay(duration) == timedelta(0):
        raise InvalidOption("duration=0 would pause nothing; leave it out to pause until somebody resumes")


def check_used(kind: Kind, name: str, known: Iterable[str], *, anyway: str) -> None:
    """Refuse a name that nobody uses: whoever mistypes one in a hurry believes that it has stopped.

    `anyway` says how to pause it all the same.
    """
    names = sorted(known)
    if name in names:
        return
    close = difflib.get_close_matches(name, names, n=1)
    meant = f"did you mean {close[0]}?" if close else f"`rowlock {kind}s list` shows those there are"
    raise RowlockError(f"no job and no worker knows a {kind} {name!r}: {meant} ({anyway} pauses it all the same)")


def resuming(*, queue: str | None, task: str | None, why: str | None, by: str | None) -> Query[str]:
    """What to say to end a pause."""
    kind, name = _named(queue, task)
    return store.resume(kind=kind, name=name, actor=check_actor(by), why=check_why(why))


def _named(queue: str | None, task: str | None) -> tuple[Kind, str]:
    if queue is not None and task is None:
        return "queue", check_queue(queue)
    if task is not None and queue is None:
        return "task", check_task(task)
    raise InvalidOption("give queue= or task=, one of them: a pause is of a queue or of a task")


def _said(query: Query[T]) -> Callable[[], Conversation[list[T]]]:
    """Run a query that writes an event; where no worker has run for a month, its partition is missing."""

    def begin() -> Conversation[list[T]]:
        yield from make_partitions()
        return (yield query)

    return begin
