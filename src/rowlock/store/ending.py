"""The end of one job as the last words of its handler's own transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from rowlock.errors import Cancel, LeaseLost
from rowlock.model.outcome import Succeeded
from rowlock.model.row import Claimed
from rowlock.store import endings, jobs
from rowlock.store.query import Conversation, Query, Row


def end(
    job: Claimed,
    outcome: Succeeded,
    *,
    keep: timedelta | None,
    said: Sequence[tuple[Claimed, float, str | None]] = (),
) -> Conversation[None]:
    """End a job that has succeeded; `said` is its last word of progress, if there is one that is not written yet.

    LeaseLost if the attempt does not own it any more, and Cancel if somebody has asked for that: the caller rolls back.
    """
    if said:
        yield jobs.progress(said)
    settle = _telling(
        jobs.settle([(job, outcome, keep)]) if job.parent is None else endings.settle([(job, outcome, keep)], told={})
    )
    ended = yield settle
    if not ended:
        # The settle passes over a row that is locked, as the write of its progress may have it: then wait for it. So it
        # does with a child whose parent somebody has, as another child's settle does.
        if job.parent is not None:
            yield jobs.lock(job.parent)
        ended = (yield jobs.lock(job.id)) and (yield settle)
    if not ended:
        raise LeaseLost(
            UUID(job.id),
            f"job {job.id} of {job.task} is not this attempt's any more: it was rescued or ended meanwhile, or the "
            "connection leads to another database; what the transaction wrote is rolled back",
        )
    if ended[0]:
        raise Cancel("asked")


def _telling(settle: Query[Any]) -> Query[bool]:
    """The same settle, which tells whether the job has ended as cancelled, and not by which token."""
    return replace(settle, read=_cancelled)


def _cancelled(row: Row) -> bool:
    _token, cancelled, *_ = row
    return bool(cancelled)
