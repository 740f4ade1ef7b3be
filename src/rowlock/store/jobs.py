"""Jobs: statements about single jobs, attempts that run, and those who wait for an end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from operator import itemgetter
from typing import NamedTuple

from rowlock.model.record import JobRecord
from rowlock.model.row import ClaimedJob, Fence, JobEnd
from rowlock.store.query import Query, Row, array, first, interval, plain_array

# An id is looked for by its end among so many of the newest.
NEWEST = 100_000


def find(part: str, *, most: int) -> Query[str]:
    """The ids that begin or end with these hexadecimal digits, newest first; ends only among the newest jobs."""
    return Query(
        "job_find",
        {
            "low": part.ljust(32, "0"),
            "high": part.ljust(32, "f"),
            "ending": part,
            "newest": str(NEWEST),
            "most": str(most),
        },
        first,
    )


def held(attempts: Iterable[ClaimedJob]) -> Query[tuple[str, bool]]:
    """Which of these attempts still own their jobs; returns their tokens, and whether they are to be cancelled."""
    jobs = list(attempts)
    return Query(
        "job_held",
        {"ids": plain_array([job.id for job in jobs]), "tokens": plain_array([job.token for job in jobs])},
        _held,
    )


def _held(row: Row) -> tuple[str, bool]:
    token, cancelling = row
    return token, cancelling


def cancelling(*, worker: str) -> Query[str]:
    """The attempts of a worker whose jobs somebody has asked to cancel; returns their tokens."""
    return Query("job_cancelling", {"worker": worker}, first)


def lock(job_id: str) -> Query[tuple[str, bool]]:
    """Lock a live job; returns its state, and whether it is to be cancelled. No row means that it is not live."""
    return Query("job_lock", {"id": job_id}, _held)


def fence(job: ClaimedJob) -> Query[Fence]:
    """Make an attempt's claim durable and return its number; no row means that it has lost its job."""
    return Query("job_fence", {"id": job.id, "token": job.token}, lambda row: Fence(row[0], row[1]))


def progress(said: Sequence[tuple[ClaimedJob, float, str | None]]) -> Query[str]:
    """Write down how far attempts say they are; returns the tokens that were accepted."""
    rows = sorted(((job.id, job.token, repr(share), note) for job, share, note in said), key=itemgetter(0, 1))
    ids, tokens, shares, notes = zip(*rows, strict=True)
    return Query(
        "job_progress",
        {
            "ids": plain_array(ids),
            "tokens": plain_array(tokens),
            "shares": plain_array(shares),
            "notes": array(notes),
        },
        first,
    )


def show(job_id: str) -> Query[JobRecord]:
    """One job as it is now, live or ended."""
    return Query("job_show", {"id": job_id}, JobRecord.read)


def live() -> Query[JobRecord]:
    """Every job that has not ended, in the order in which they were made."""
    return Query("job_live", {}, JobRecord.read)


class JobStatus(NamedTuple):
    """Where a job is. `due_in` is the number of seconds until it may run; 0 once it may, or has ended."""

    id: str
    task: str
    state: str
    reason: str | None
    failures: int
    crashes: int
    attempts: int
    worker: str | None
    due_in: float


def statuses(ids: Iterable[str]) -> Query[JobStatus]:
    """Where these jobs are: one row for each, none for a job that nobody has, two for one that ended twice."""
    return Query("job_locate", {"ids": plain_array(ids)}, JobStatus._make)


def channel(listener: str) -> str:
    """Where a listener is notified; job_settle.sql says the same."""
    return f"rowlock:{listener}"


def add_waiters(*, listener: str, jobs: Iterable[str]) -> Query[None]:
    """Ask that a listener be notified when these jobs end."""
    return Query("waiter_enter", {"listener": listener, "ids": plain_array(jobs)}, first)


def remove_waiters(*, listener: str, jobs: Iterable[str]) -> Query[None]:
    """Take that back."""
    return Query("waiter_leave", {"listener": listener, "ids": plain_array(jobs)}, first)


def clear_waiters(*, age: timedelta) -> Query[None]:
    """Remove what listeners that died have left."""
    return Query("waiter_clear", {"age": interval(age)}, first)


def ends(jobs: Iterable[str]) -> Query[JobEnd]:
    """How these jobs ended; those that live are left out."""
    return Query("job_endings", {"ids": plain_array(jobs)}, lambda row: JobEnd(*row))
