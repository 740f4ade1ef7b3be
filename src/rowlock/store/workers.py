"""Statements about workers."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from rowlock.store.intervals import interval
from rowlock.store.query import Query, array, first


def register(
    *,
    worker: str,
    host: str,
    pid: int,
    queues: Iterable[str],
    slots: int,
    tasks: Iterable[str],
    version: str,
    lease: timedelta,
) -> Query[float]:
    """Enter a worker process, under a lease; answers the database's time in seconds since 1970."""
    return Query(
        "worker_register",
        {
            "worker": worker,
            "host": host,
            "pid": str(pid),
            "queues": array(queues),
            "slots": str(slots),
            "tasks": array(tasks),
            "version": version,
            "lease": interval(lease),
        },
        first,
    )


def renew(*, worker: str, lease: timedelta) -> Query[str]:
    """Renew a lease; no answer means it has run out."""
    return Query("worker_renew", {"worker": worker, "lease": interval(lease)}, first)


def leave(*, worker: str) -> Query[None]:
    """Take a worker off the books."""
    return Query("worker_leave", {"worker": worker}, _nothing)


def any_dead() -> Query[bool]:
    """Whether any worker's lease has run out."""
    return Query("worker_dead", {}, first)


def bury() -> Query[None]:
    """Remove workers that are dead and hold nothing."""
    return Query("worker_bury", {}, _nothing)


def park(*, worker: str, queues: Iterable[str]) -> Query[None]:
    """Ask to be notified of new jobs."""
    return Query("worker_park", {"worker": worker, "queues": array(queues)}, _nothing)


def unpark(*, worker: str) -> Query[None]:
    """Ask not to be notified any more."""
    return Query("worker_unpark", {"worker": worker}, _nothing)


def _nothing(_row: object) -> None:
    return None
