"""Upkeep: what any worker does for all, a sweep at a time. No leader: two that sweep at once only find less to do."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import timedelta

from rowlock.db import partitions
from rowlock.db.session import Steady
from rowlock.model.spec import Keep
from rowlock.store import jobs, queues, workers
from rowlock.store.queues import QueueSettings
from rowlock.worker.renew import Chore

log = logging.getLogger("rowlock.upkeep")

MOST_CRASHES = 3
_RESCUE_BATCH = 500


def chores(
    *,
    lease: timedelta,
    actor: str,
    keep: Keep,
    longest: timedelta,
    settings: Callable[[Sequence[QueueSettings]], None],
) -> list[Chore]:
    """The upkeep of a fleet."""
    sweep = min(timedelta(seconds=5), lease / 3)
    return [
        Chore("rescue", sweep, lambda connection: rescue(connection, keep=keep, actor=actor, lost=False)),
        Chore(
            "rescue of the lost", sweep * 12, lambda connection: rescue(connection, keep=keep, actor=actor, lost=True)
        ),
        Chore(
            "reading queue settings",
            timedelta(seconds=10),
            lambda connection: settings(connection.run(queues.settings())),
        ),
        Chore("retention", timedelta(hours=1), lambda connection: retain(connection, longest=longest)),
    ]


def rescue(connection: Steady, *, keep: Keep, actor: str, lost: bool) -> None:
    """Take jobs back from dead workers, then remove those workers.

    One sweeper at a time: the lock is an earlier statement of its transaction, so that it sees what the last one did.
    """
    if not lost and not connection.run(workers.any_dead())[0]:
        return
    query = jobs.rescue(limit=_RESCUE_BATCH, crashes=MOST_CRASHES, keep=keep.failed, lost=lost, actor=actor)
    with connection.sweep("rescue") as free:
        if not free:
            return
        rescued = connection.run(query)
        if len(rescued) < _RESCUE_BATCH:
            connection.run(workers.bury())
    for job in rescued:
        log.warning(
            "%s %s %s from worker %s (%s), crash %d",
            "failed as poison:" if job.poison else "rescued",
            job.task,
            job.id,
            job.owner,
            job.worker,
            job.crashes,
        )


def retain(connection: Steady, *, longest: timedelta) -> None:
    """Make partitions ahead of need and drop expired ones."""
    partitions.make_partitions(connection.open(), connection.schema, longest=longest)
    for name in partitions.drop_partitions(connection.open(), connection.schema):
        log.info("dropped %s: everything in it has expired", name)
