"""Peeks: whom a claim that fails would have found, so that it can be made for one job at a time."""

from __future__ import annotations

from collections.abc import Iterable

from rowlock.store.query import Query, array, first


def suspects(*, queues: Iterable[str], limit: int) -> Query[str]:
    """The ids of the suspects that are due, in the order in which they would be claimed."""
    return Query("suspect_peek", {"queues": array(queues), "limit": str(limit)}, first)


def refused(*, queues: Iterable[str], tasks: Iterable[str], limit: int, worker: str) -> Query[str]:
    """The ids of the jobs that would be taken up."""
    return Query(
        "refused_peek",
        {"queues": array(queues), "tasks": array(tasks), "limit": str(limit), "worker": worker},
        first,
    )
