"""Upkeep of jobs: rescue those of dead workers, end the expired, try blocked workflows again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta

from rowlock.model.row import Orphan, Rescued
from rowlock.model.spec import Keep
from rowlock.store.claim import SUSPECT_FROM
from rowlock.store.query import Query, first, interval, plain_array

# Jobs that one statement ends, and workflows that one makes ready again.
EXPIRED_AT_ONCE = 1_000
UNBLOCKED_AT_ONCE = 500


def orphans(
    *, limit: int, lost: bool, without: Iterable[str] = (), suspect: int = SUSPECT_FROM, worker: str | None = None
) -> Query[Orphan]:
    """Running jobs of workers without a fresh lease, but for the attempts `without`; `lost` also of unknown workers.

    None for a `worker` whose own lease is over.
    """
    return Query(
        "job_orphans",
        {
            "limit": str(limit),
            "lost": str(lost),
            "without": plain_array(without),
            "suspect": str(suspect),
            "worker": worker,
        },
        lambda row: Orphan(*row),
    )


def rescue(
    orphans: Sequence[Orphan],
    *,
    crashes: int,
    keep: Keep,
    actor: str,
    suspect: int = SUSPECT_FROM,
    worker: str | None = None,
) -> Query[Rescued]:
    """Take these jobs back, if their workers still have no fresh lease, and `worker`, who rescues them, has."""
    return Query(
        "job_rescue",
        {
            "ids": plain_array(orphan.id for orphan in orphans),
            "tokens": plain_array(orphan.token for orphan in orphans),
            "crashes": str(crashes),
            "suspect": str(suspect),
            "worker": worker,
            "keep_failed": interval(keep.failed),
            "keep_cancelled": interval(keep.cancelled),
            "actor": actor,
        },
        lambda row: Rescued._make(row[: len(Rescued._fields)]),
    )


def pardon(*, worker: str, since: timedelta) -> Query[str]:
    """Take back the crash of jobs just rescued from a worker that lives after all; returns their ids."""
    return Query("job_pardon", {"worker": worker, "since": interval(since), "suspect": str(SUSPECT_FROM)}, first)


def expire(*, keep: timedelta, limit: int = EXPIRED_AT_ONCE, without: Iterable[str] = ()) -> Query[int]:
    """End a chunk of the jobs that have expired and do not run, kept in history for `keep`; returns how many."""
    return Query("job_expire", {"limit": str(limit), "keep": interval(keep), "without": plain_array(without)}, first)


def peek_expired(*, without: Iterable[str] = ()) -> Query[str]:
    """The id of the job that would be ended first, if there is one."""
    return Query("expired_peek", {"without": plain_array(without)}, first)


def unblock(*, limit: int = UNBLOCKED_AT_ONCE, without: Iterable[str] = ()) -> Query[int]:
    """Make ready again a chunk of the workflows that met a fault, and are due to be tried again; returns how many."""
    return Query("workflow_unblock", {"limit": str(limit), "without": plain_array(without)}, first)


def peek_blocked(*, without: Iterable[str] = ()) -> Query[str]:
    """The id of the workflow that would be released first, if there is one."""
    return Query("blocked_peek", {"without": plain_array(without)}, first)
