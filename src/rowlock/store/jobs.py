"""Statements about jobs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from operator import itemgetter
from typing import NamedTuple, assert_never
from uuid import UUID

from rowlock.model.fence import Fence
from rowlock.model.outcome import (
    Blocked,
    Cancelled,
    Ended,
    Failed,
    HandedBack,
    Parked,
    Restarted,
    Retried,
    Returned,
    Snoozed,
    Succeeded,
)
from rowlock.model.record import JobRecord
from rowlock.model.row import Claimed, NewJob, Orphan, Rescued
from rowlock.model.spec import Keep
from rowlock.store.intervals import instant, interval
from rowlock.store.query import LARGEST_STATEMENT, Query, Row, array, first, numbers, plain_array

PRIORITIES = (4, 3, 2, 1, 0, -1, -2, -3, -4)

# Rows per statement of a bulk enqueue: large enough that the round trip vanishes, small enough to keep messages short.
CHUNK = 2_000
# An id is looked for by its end among so many of the newest.
NEWEST = 100_000
_KEEP_CANCELLED = Keep().cancelled

# A job that so many workers died of is a suspect: it is set aside, and each worker runs one such job at a time, so that
# the next death is its own, and costs nobody else.
SUSPECT_FROM = 2


class Lane(NamedTuple):
    """One queue and priority, and the (run_at, id) after which to look."""

    queue: str
    priority: int
    run_at: str = "-infinity"
    id: str = "00000000-0000-0000-0000-000000000000"


def enqueue(jobs: Sequence[NewJob]) -> Query[str]:
    """Insert jobs; answers the ids that were inserted."""
    ids, queues, tasks, args, priorities, attempts, run_ats, delays, lifetimes, tags, keys, *_ = zip(*jobs, strict=True)
    return Query(
        "job_enqueue",
        {
            "ids": plain_array(ids),
            "queues": array(queues),
            "tasks": array(tasks),
            "args": array(args),
            "priorities": plain_array(map(str, priorities)),
            "attempts": plain_array(map(str, attempts)),
            "run_ats": array(moment and instant(moment) for moment in run_ats),
            "delays": array(map(span_of, delays)),
            "lifetimes": array(map(span_of, lifetimes)),
            "tags": array(some and array(some) for some in tags),
            "keys": array(keys),
            "versions": numbers(job.version for job in jobs),
            "parents": array(job.parent for job in jobs),
        },
        first,
    )


def span_of(span: timedelta | None) -> str | None:
    """A span, if there is one, as the database reads it."""
    return None if span is None else interval(span)


def put(job: NewJob) -> Query[str]:
    """Insert one job without a key; answers its id, unless it was there before."""
    return Query(
        "job_put",
        {
            "id": job.id,
            "queue": job.queue,
            "task": job.task,
            "args": job.args,
            "priority": str(job.priority),
            "attempts": str(job.attempts),
            "run_at": None if job.run_at is None else instant(job.run_at),
            "delay": span_of(job.delay),
            "lifetime": span_of(job.lifetime),
            "tags": None if job.tags is None else array(job.tags),
            "version": None if job.version is None else str(job.version),
        },
        first,
    )


def chunks(jobs: Iterable[NewJob]) -> Iterator[Sequence[NewJob]]:
    """Statement-sized pieces, by rows and by characters."""
    chunk: list[NewJob] = []
    size = 0
    for job in jobs:
        size += len(job.args)
        if chunk and (len(chunk) == CHUNK or size > LARGEST_STATEMENT):
            yield chunk
            chunk, size = [], len(job.args)
        chunk.append(job)
    if chunk:
        yield chunk


def peek(*, lanes: Sequence[Lane], limit: int) -> Query[Lane]:
    """The due jobs of these lanes; answers for each of them a lane in which it is the first."""
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
    """Take a ready job or a suspect out of its queue, for an operator to look at; answers its id."""
    return Query("job_set_aside", {"id": job_id, "reason": reason}, first)


def claim(*, lanes: Sequence[Lane], limit: int, worker: str, free: int | None = None) -> Query[Claimed]:
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


def claim_suspect(*, queues: Iterable[str], worker: str, only: str | None = None) -> Query[Claimed]:
    """Claim the one suspect that has been due the longest, or `only` that one."""
    return Query("job_claim_suspect", {"queues": array(queues), "worker": worker, "only": only}, _claimed)


def begin(begun: Sequence[tuple[Claimed, float]]) -> Query[str]:
    """Mark attempts that have begun, so many seconds ago; answers the tokens that were accepted."""
    rows = sorted((job.id, job.token, f"{age:.3f}") for job, age in begun)
    ids, tokens, ages = zip(*rows, strict=True)
    return Query(
        "job_begin", {"ids": plain_array(ids), "tokens": plain_array(tokens), "ages": plain_array(ages)}, first
    )


def lanes() -> Query[Lane]:
    """The lanes that hold a due job, in the order of their first jobs."""
    return Query("lane_list", {}, lambda row: Lane(*row))


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


def take_up(
    *, queues: Iterable[str], tasks: Iterable[str], limit: int, worker: str, only: str | None = None
) -> Query[Claimed]:
    """Claim jobs that wait for code which this worker has, or `only` that one."""
    return Query(
        "job_take_up",
        {"queues": array(queues), "tasks": array(tasks), "limit": str(limit), "worker": worker, "only": only},
        _claimed,
    )


def _claimed(row: tuple[object, ...]) -> Claimed:
    return Claimed._make(row[:-1])  # the last column is set_config's


def settle(
    attempts: Sequence[tuple[Claimed, Ended, timedelta | None]], *, cancelled: timedelta = _KEEP_CANCELLED
) -> Query[str]:
    """End jobs for good, each kept in history for its time (None: no trace); answers the tokens that were accepted.

    Those that somebody has asked to cancel end as cancelled, whatever their outcome, and are kept for `cancelled`.
    """
    rows = [
        (job.id, job.token, *ending(outcome), None if keep is None else interval(keep))
        for job, outcome, keep in attempts
    ]
    rows.sort(key=itemgetter(0, 1))
    ids, tokens, outcomes, results, reasons, failures, keeps = zip(*rows, strict=True)
    return Query(
        "job_settle",
        {
            "ids": plain_array(ids),
            "tokens": plain_array(tokens),
            "outcomes": plain_array(outcomes),
            "results": array(results),
            "reasons": array(reasons),
            "failures": array(failures),
            "keeps": array(keeps),
            "cancelled": interval(cancelled),
        },
        first,
    )


def ending(outcome: Ended) -> tuple[str, str | None, str | None, str | None]:
    """State, result, reason and failure."""
    match outcome:
        case Succeeded(result):
            return "succeeded", result, None, None
        case Failed(failure, reason):
            return "failed", None, reason, failure
        case Cancelled(reason):
            return "cancelled", None, reason, None
        case _:
            assert_never(outcome)


def give_back(attempts: Sequence[tuple[Claimed, Returned]]) -> Query[str]:
    """End attempts but not their jobs; answers the tokens that were accepted."""
    rows = sorted(((job.id, job.token, *_return(outcome)) for job, outcome in attempts), key=itemgetter(0, 1))
    ids, tokens, delays, failures, waits_for, reasons = zip(*rows, strict=True)
    return Query(
        "job_return",
        {
            "ids": plain_array(ids),
            "tokens": plain_array(tokens),
            "delays": _some(delays),
            "failures": _some(failures),
            "waits_for": _some(waits_for),
            "reasons": _some(reasons),
        },
        first,
    )


def _some(values: Sequence[str | None]) -> str | None:
    """An array, unless it says nothing at all: then it need not be read."""
    return array(values) if any(value is not None for value in values) else None


def _return(outcome: Returned) -> tuple[str | None, str | None, str | None, str | None]:
    """Delay, failure, what it waits for and why."""
    match outcome:
        case Retried(failure, delay):
            return interval(delay), failure, None, None
        case Snoozed(delay):
            return interval(delay), None, None, None
        case HandedBack():
            return None, None, None, None
        case Blocked(waits_for, reason):
            return None, None, waits_for, reason
        case Parked() | Restarted():
            raise TypeError("only a workflow parks or restarts, and it is settled as such")
        case _:
            assert_never(outcome)


def held(attempts: Iterable[Claimed]) -> Query[tuple[str, bool]]:
    """Which of these attempts still own their jobs; answers their tokens, and whether they are to be cancelled."""
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
    """The attempts of a worker whose jobs somebody has asked to cancel; answers their tokens."""
    return Query("job_cancelling", {"worker": worker}, first)


def lock(job_id: str) -> Query[tuple[str, bool]]:
    """Lock a live job; answers its state, and whether it is to be cancelled. No answer means that it is not live."""
    return Query("job_lock", {"id": job_id}, _held)


def fence(job: Claimed) -> Query[Fence]:
    """Make an attempt's claim durable and answer its number; no answer means that it has lost its job."""
    return Query("job_fence", {"id": job.id, "token": job.token}, lambda row: Fence(row[0], row[1]))


def progress(said: Sequence[tuple[Claimed, float, str | None]]) -> Query[str]:
    """Write down how far attempts say they are; answers the tokens that were accepted."""
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
    """Take back the crash of jobs that were rescued so lately from a worker that lives after all; answers their ids."""
    return Query("job_pardon", {"worker": worker, "since": interval(since), "suspect": str(SUSPECT_FROM)}, first)
