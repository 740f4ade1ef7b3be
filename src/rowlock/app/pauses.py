"""Pauses: of queues, whose jobs wait, or of tasks, whose jobs are set aside."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from rowlock.app.checks import check_actor, check_why
from rowlock.app.verbs import Exchange, Verb
from rowlock.db.database import Database
from rowlock.errors import InvalidOption, RowlockError
from rowlock.model.names import check_delay, check_moment, check_queue, check_task
from rowlock.model.pause import Pause
from rowlock.store import pauses as store
from rowlock.store.pauses import Kind
from rowlock.store.query import Conversation, Query, alone
from rowlock.store.schema import make_partitions

T = TypeVar("T")


def pause(
    database: Database,
    kind: Kind,
    name: str,
    *,
    until: datetime | None,
    duration: timedelta | None,
    why: str | None,
    by: str | None,
) -> Verb[Pause]:
    """Begin a pause: a row, so it outlives every process, and holds for every worker from its commit on."""
    name = _checked(kind, name)
    check_end(until, duration)
    query = store.pause(kind=kind, name=name, until=until, duration=duration, actor=check_actor(by), why=check_why(why))
    return (yield from Exchange(database, partial(_with_event, query)))[0]


def resume(database: Database, kind: Kind, name: str, *, why: str | None, by: str | None) -> Verb[bool]:
    """End a pause; then release the jobs of its task, each chunk in a transaction of its own."""
    name = _checked(kind, name)
    query = store.resume(kind=kind, name=name, actor=check_actor(by), why=check_why(why))
    ended = yield from Exchange(database, partial(_with_event, query))
    while kind == "task" and (yield from Exchange(database, partial(alone, store.release(name)))) != [0]:
        pass
    return bool(ended)


def _checked(kind: Kind, name: str) -> str:
    return check_queue(name) if kind == "queue" else check_task(name)


def _with_event(query: Query[T]) -> Conversation[list[T]]:
    """Run a query that writes an event; where no worker has run for a month, its partition is missing."""
    yield from make_partitions()
    return (yield query)


def listed(database: Database, kind: Kind) -> Verb[tuple[Pause, ...]]:
    """List the pauses of queues, or of tasks, that hold now."""
    found = yield from Exchange(database, partial(alone, store.listed()), atomic=False)
    return tuple(one for one in found if getattr(one, kind) is not None)


def check_end(until: datetime | None, duration: timedelta | None) -> None:
    """Check when a pause ends by itself: at an instant, after so long, or not at all."""
    if until is not None and duration is not None:
        raise InvalidOption("give until= or duration=, not both")
    if until is not None:
        check_moment("until", until)
    if duration is not None and check_delay(duration) == timedelta(0):
        raise InvalidOption("duration=0 would pause nothing; leave it out to pause until somebody resumes")


def check_used(kind: Kind, name: str, known: Iterable[str], *, anyway: str) -> None:
    """Refuse a name that nobody uses: a mistyped one would pause nothing, and nobody would notice.

    `anyway` says how to pause it all the same.
    """
    names = sorted(known)
    if name in names:
        return
    close = difflib.get_close_matches(name, names, n=1)
    meant = f"did you mean {close[0]}?" if close else f"`rowlock {kind}s list` shows those there are"
    raise RowlockError(f"no job and no worker knows a {kind} {name!r}: {meant} ({anyway} pauses it all the same)")
