"""Statements about jobs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from itertools import islice
from typing import NamedTuple, assert_never

from rowlock.errors import KeyTaken
from rowlock.model.outcome import Blocked, Cancelled, Ended, Failed, HandedBack, Retried, Returned, Snoozed, Succeeded
from rowlock.model.row import Claimed, NewJob, Rescued
from rowlock.store.intervals import interval
from rowlock.store.query import Conversation, Query, array, first, plain_array

PRIORITIES = (4, 3, 2, 1, 0, -1, -2, -3, -4)

# Rows per statement of a bulk enqueue: large enough that the round trip vanishes, small enough to keep messages short.
CHUNK = 2_000


class Lane(NamedTuple):
    """One queue and priority, and the (run_at, id) after which to look."""

    queue: str
    priority: int
    run_at: str = "-infinity"
    id: str = "00000000-0000-0000-0000-000000000000"


def enqueue(jobs: Sequence[NewJob]) -> Query[str]:
    """Insert jobs; answers the ids that were inserted."""
    ids, queues, tasks, args, priorities, attempts, run_ats, delays, lifetimes, tags, keys = zip(*jobs, strict=True)
    return Query(
        "job_enqueue",
        {
            "ids": plain_array(ids),
            "queues": array(queues),
            "tasks": array(tasks),
            "args": array(args),
            "priorities": plain_array(map(str, priorities)),
            "attempts": plain_array(map(str, attempts)),
            "run_ats": array(run_ats),
            "delays": array(delays),
            "lifetimes": array(lifetimes),
            "tags": array(tags),
            "keys": array(keys),
        },
        first,
    )


def enqueue_all(jobs: Iterable[NewJob], *, resend: bool = False) -> Conversation[dict[str, str]]:
    """Insert jobs, chunk by chunk; answers, for each whose key was held, the id of the job that holds it.

    A resend leaves out the jobs that an earlier try inserted and that have ended since. They are looked for in the
    statement after the insert: in one statement, a job that ends meanwhile would run twice.
    """
    existing: dict[str, str] = {}
    # By key, so that two callers take shared keys in the same order; jobs without one need no order.
    for chunk in chunks(sorted(jobs, key=lambda job: job.key or "")):
        inserted = yield enqueue(chunk)
        if resend and inserted:
            ended = yield Query("job_ended", {"ids": plain_array(inserted)}, first)
            yield Query("job_drop", {"ids": plain_array(ended)}, first)
        if len(inserted) < len(chunk):
            refused = [job for job in chunk if job.key is not None and job.id not in set(inserted)]
            existing |= yield from _holders(refused)
    return existing


def _holders(refused: Sequence[NewJob]) -> Conversation[dict[str, str]]:
    """Who holds the keys of these jobs. A holder that has ended meanwhile has freed the key: then it is tried again."""
    existing: dict[str, str] = {}
    while refused:
        found = yield Query("key_find", {"keys": array([job.key for job in refused])}, tuple)
        holders = {key: (task, holder) for key, task, holder in found}
        for job in refused:
            task, holder = holders.get(job.key, (job.task, job.id))
            if task != job.task:
                raise KeyTaken(f"key {job.key!r} belongs to job {holder} of task {task}; use another key for {job.task}")
            if holder != job.id:
                existing[job.id] = holder
        refused = [job for job in refused if job.key not in holders]
        if refused:
            inserted = set((yield enqueue(refused)))
            refused = [job for job in refused if job.id not in inserted]
    return existing


def chunks(jobs: Iterable[NewJob]) -> Iterator[Sequence[NewJob]]:
    """Statement-sized pieces."""
    rest = iter(jobs)
    while chunk := list(islice(rest, CHUNK)):
        yield chunk


def claim(*, lanes: Sequence[Lane], limit: int, worker: str) -> Query[Claimed]:
    """Claim up to `limit` due jobs, looking into `lanes` in their order."""
    queues, priorities, run_ats, ids = zip(*lanes, strict=True)
    return Query(
        "job_claim",
        {
            "queues": array(queues),
            "priorities": plain_array(map(str, priorities)),
            "floor_run_ats": array(run_ats),
            "floor_ids": plain_array(ids),
            "limit": str(limit),
            "worker": worker,
        },
        _claimed,
    )


def take_up(*, queues: Iterable[str], tasks: Iterable[str], limit: int, worker: str) -> Query[Claimed]:
    """Claim jobs that wait for code which this worker has."""
    return Query(
        "job_take_up",
        {"queues": array(queues), "tasks": array(tasks), "limit": str(limit), "worker": worker},
        _claimed,
    )


def _claimed(row: tuple[object, ...]) -> Claimed:
    return Claimed._make(row[:-1])  # the last column is set_config's


def settle(attempts: Sequence[tuple[Claimed, Ended, timedelta | None]]) -> Query[str]:
    """End jobs for good, keeping each in history for its time (None: no trace); answers the tokens that were accepted."""
    ids, tokens, outcomes, results, reasons, failures, keeps = [], [], [], [], [], [], []
    for job, outcome, keep in sorted(attempts, key=_by_id):
        result = reason = failure = None
        match outcome:
            case Succeeded(result):
                state = "succeeded"
            case Failed(failure, reason):
                state = "failed"
            case Cancelled(reason):
                state = "cancelled"
            case _:
                assert_never(outcome)
        ids.append(job.id)
        tokens.append(job.token)
        outcomes.append(state)
        results.append(result)
        reasons.append(reason)
        failures.append(failure)
        keeps.append(None if keep is None else interval(keep))
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
        },
        first,
    )


def give_back(attempts: Sequence[tuple[Claimed, Returned]]) -> Query[str]:
    """End attempts but not their jobs; answers the tokens that were accepted."""
    ids, tokens, delays, failures, waits_for, reasons = [], [], [], [], [], []
    for job, outcome in sorted(attempts, key=_by_id):
        delay = failure = waits = reason = None
        match outcome:
            case Retried(failure, after):
                delay = interval(after)
            case Snoozed(after):
                delay = interval(after)
            case HandedBack():
                pass
            case Blocked(reason):
                waits = "code"
            case _:
                assert_never(outcome)
        ids.append(job.id)
        tokens.append(job.token)
        delays.append(delay)
        failures.append(failure)
        waits_for.append(waits)
        reasons.append(reason)
    return Query(
        "job_return",
        {
            "ids": plain_array(ids),
            "tokens": plain_array(tokens),
            "delays": array(delays),
            "failures": array(failures),
            "waits_for": array(waits_for),
            "reasons": array(reasons),
        },
        first,
    )


def _by_id(attempt: tuple[Claimed, ...]) -> str:
    return attempt[0].id


def held(attempts: Iterable[Claimed]) -> Query[str]:
    """Which of these attempts still own their jobs; answers their tokens."""
    jobs = list(attempts)
    return Query(
        "job_held",
        {"ids": plain_array([job.id for job in jobs]), "tokens": plain_array([job.token for job in jobs])},
        first,
    )


def rescue(*, limit: int, crashes: int, keep: timedelta, lost: bool, actor: str) -> Query[Rescued]:
    """Take jobs back from workers without a fresh lease."""
    return Query(
        "job_rescue",
        {"limit": str(limit), "crashes": str(crashes), "keep": interval(keep), "lost": str(lost), "actor": actor},
        lambda row: Rescued._make(row[:-1]),
    )


def hand_back(*, worker: str, known: Iterable[str] = ()) -> Query[str]:
    """Give back every job that the database says a worker holds, but for those it knows of."""
    return Query("job_hand_back", {"worker": worker, "known": plain_array(known)}, first)
