"""Claims: due jobs given to a worker, and looks at what would be claimed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple
from uuid import UUID

from rowlock.model.row import ClaimedJob
from rowlock.store.query import Query, Row, array, first, plain_array

PRIORITIES = (4, 3, 2, 1, 0, -1, -2, -3, -4)
# A job that so many workers died of is a suspect: it is set aside, and each worker runs one such job at a time, so that
# the next death is its own, and costs nobody else.
SUSPECT_FROM = 2


class Lane(NamedTuple):
    """One queue and priority, and the (run_at, id) after which to look."""

    queue: str
    priority: int
    run_at: str = "-infinity"
    id: str = "00000000-0000-0000-0000-000000000000"


def peek(*, lanes: Sequence[Lane], limit: int) -> Query[Lane]:
    """The due jobs of these lanes; returns for each of them a lane in which it is the first."""
    queues, priorities, run_ats, ids = zip(*lanes, strict=True)
    return Query(
        "lane_peek",
        {
            "queues": array(queues),
            "priorities": plain_array(map(str, priorities)),
            "floor_run_ats": array(run_ats),
            "floor_ids": plain_array(ids),
            "limit": str(limit),
        },
        _before,
    )


def _before(row: Row) -> Lane:
    queue, priority, run_at, job_id = row
    return Lane(queue, priority, run_at, str(UUID(int=max(0, UUID(job_id).int - 1))))


def set_aside(job_id: str, *, reason: str) -> Query[str]:
    """Take a ready job or a suspect out of its queue, for an operator to look at; returns its id."""
    return Query("job_set_aside", {"id": job_id, "reason": reason}, first)


def claim(*, lanes: Sequence[Lane], limit: int, worker: str, free: int | None = None) -> Query[ClaimedJob]:
    """Claim up to `limit` due jobs, looking into `lanes` in their order; the first `free`, or all, begin at once."""
    queues, priorities, run_ats, ids = zip(*lanes, strict=True)
    return Query(
        "job_claim",
        {
            "queues": array(queues),
            "priorities": plain_array(map(str, priorities)),
            "floor_run_ats": array(run_ats),
            "floor_ids": plain_array(ids),
            "limit": str(limit),
            "free": str(limit if free is None else free),
            "worker": worker,
        },
        _claimed,
    )


def claim_suspect(*, queues: Iterable[str], worker: str, only: str | None = None) -> Query[ClaimedJob]:
    """Claim the one suspect that has been due the longest, or `only` that one."""
    return Query("job_claim_suspect", {"queues": array(queues), "worker": worker, "only": only}, _claimed)


def begin(begun: Sequence[tuple[ClaimedJob, float]]) -> Query[str]:
    """Mark attempts that have begun, so many seconds ago; returns the tokens that were accepted."""
    rows = sorted((job.id, job.token, f"{age:.3f}") for job, age in begun)
    ids, tokens, ages = zip(*rows, strict=True)
    return Query(
        "job_begin", {"ids": plain_array(ids), "tokens": plain_array(tokens), "ages": plain_array(ages)}, first
    )


def lanes() -> Query[Lane]:
    """The lanes that hold a due job, in the order of their first jobs."""
    return Query("lane_list", {}, lambda row: Lane(*row))


def take_up(
    *, queues: Iterable[str], tasks: Iterable[str], limit: int, worker: str, only: str | None = None
) -> Query[ClaimedJob]:
    """Claim jobs that wait for code which this worker has, or `only` that one."""
    return Query(
        "job_take_up",
        {"queues": array(queues), "tasks": array(tasks), "limit": str(limit), "worker": worker, "only": only},
        _claimed,
    )


def _claimed(row: tuple[object, ...]) -> ClaimedJob:
    return ClaimedJob._make(row[:-1])  # `{claimed}` lists its fields; the last column is set_config's


def peek_suspects(*, queues: Iterable[str], limit: int) -> Query[str]:
    """The ids of the suspects that are due, in the order in which they would be claimed."""
    return Query("suspect_peek", {"queues": array(queues), "limit": str(limit)}, first)


def peek_refused(*, queues: Iterable[str], tasks: Iterable[str], limit: int, worker: str) -> Query[str]:
    """The ids of the jobs that would be taken up."""
    return Query(
        "refused_peek",
        {"queues": array(queues), "tasks": array(tasks), "limit": str(limit), "worker": worker},
        first,
    )
