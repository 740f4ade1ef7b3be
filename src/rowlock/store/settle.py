"""Settle: the statements that end attempts, of jobs and of workflows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from operator import itemgetter
from typing import Any, Literal, assert_never
from uuid import UUID

from rowlock.errors import Cancel, LeaseLost
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
    Unsettled,
)
from rowlock.model.row import ClaimedJob
from rowlock.model.spec import Keep
from rowlock.store import jobs
from rowlock.store.query import Conversation, Query, Row, array, first, interval, plain_array

Statement = Literal["job_settle", "workflow_settle", "job_return", "workflow_return", "workflow_restart"]

_KEEP_CANCELLED = Keep().cancelled


def statement_for(job: ClaimedJob, outcome: Unsettled) -> Statement:
    """The statement that ends an attempt; attempts with the same one can be ended together, but not restarts."""
    if isinstance(outcome, Ended):
        return "workflow_settle" if job.belongs_to_workflow else "job_settle"
    if isinstance(outcome, Restarted):
        return "workflow_restart"
    return "job_return" if job.version is None else "workflow_return"


def settle_alike(
    attempts: Sequence[tuple[ClaimedJob, Any]],
    *,
    keep: Callable[[ClaimedJob, Ended], timedelta | None],
    told: Mapping[str, str],
    cancelled: timedelta = _KEEP_CANCELLED,
) -> Query[str]:
    """End attempts by the one statement that is for all of them; returns the tokens that were accepted.

    `keep` says how long history keeps a job that ends so; `told` and `cancelled` are as for `settle_workflows`.
    """
    kind = statement_for(*attempts[0])
    match kind:
        case "job_settle":
            return settle_jobs([(job, end, keep(job, end)) for job, end in attempts], cancelled=cancelled)
        case "workflow_settle":
            ended = [(job, end, keep(job, end)) for job, end in attempts]
            return settle_workflows(ended, told=told, cancelled=cancelled)
        case "job_return":
            return return_jobs(attempts)
        case "workflow_return":
            return return_workflows(attempts, told=told)
        case "workflow_restart":
            [(job, restarted)] = attempts  # seldom, and each with arguments of its own
            return restart_workflow(job, restarted)
        case _:
            assert_never(kind)


def settle_jobs(
    attempts: Sequence[tuple[ClaimedJob, Ended, timedelta | None]], *, cancelled: timedelta = _KEEP_CANCELLED
) -> Query[str]:
    """End jobs for good, each kept in history for its time (None: no trace); returns the tokens that were accepted.

    Those that somebody has asked to cancel end as cancelled, whatever their outcome, and are kept for `cancelled`.
    """
    rows = [
        (job.id, job.token, *end_columns(outcome), None if keep is None else interval(keep))
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


def end_columns(outcome: Ended) -> tuple[str, str | None, str | None, str | None]:
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


def return_jobs(attempts: Sequence[tuple[ClaimedJob, Returned]]) -> Query[str]:
    """End attempts but not their jobs; returns the tokens that were accepted."""
    rows = sorted(
        ((job.id, job.token, *_job_return_columns(outcome)) for job, outcome in attempts), key=itemgetter(0, 1)
    )
    ids, tokens, delays, failures, waits_for, reasons = zip(*rows, strict=True)
    return Query(
        "job_return",
        {
            "ids": plain_array(ids),
            "tokens": plain_array(tokens),
            "delays": _array_unless_empty(delays),
            "failures": _array_unless_empty(failures),
            "waits_for": _array_unless_empty(waits_for),
            "reasons": _array_unless_empty(reasons),
        },
        first,
    )


def _array_unless_empty(values: Sequence[str | None]) -> str | None:
    """An array, unless it says nothing at all: then it need not be read."""
    return array(values) if any(value is not None for value in values) else None


def _job_return_columns(outcome: Returned) -> tuple[str | None, str | None, str | None, str | None]:
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


def settle_workflows(
    attempts: Sequence[tuple[ClaimedJob, Ended, timedelta | None]],
    *,
    told: Mapping[str, str],
    cancelled: timedelta = _KEEP_CANCELLED,
) -> Query[str]:
    """End workflows and children for good, as `settle_jobs` does others; returns the tokens that were accepted.

    `told` is the last state of each workflow, by token. One that somebody has asked to cancel and that has
    something to undo comes back instead.
    """
    rows = sorted(
        (
            (
                job.id,
                job.token,
                *end_columns(outcome),
                None if keep is None else interval(keep),
                str(isinstance(outcome, Succeeded) and outcome.undoable),
                told.get(job.token),
            )
            for job, outcome, keep in attempts
        ),
        key=itemgetter(0, 1),
    )
    ids, tokens, outcomes, results, reasons, failures, keeps, undoable, said = zip(*rows, strict=True)
    return Query(
        "workflow_settle",
        {
            "ids": plain_array(ids),
            "tokens": plain_array(tokens),
            "outcomes": plain_array(outcomes),
            "results": array(results),
            "reasons": array(reasons),
            "failures": array(failures),
            "keeps": array(keeps),
            "undoable": plain_array(undoable),
            "told": array(said),
            "cancelled": interval(cancelled),
        },
        first,
    )


def return_workflows(attempts: Sequence[tuple[ClaimedJob, Returned]], *, told: Mapping[str, str]) -> Query[str]:
    """End attempts of workflows but not their jobs; returns the tokens that were accepted."""
    rows = sorted(
        ((job.id, job.token, *_workflow_return_columns(outcome), told.get(job.token)) for job, outcome in attempts),
        key=itemgetter(0, 1),
    )
    ids, tokens, delays, failures, waits_for, reasons, parked, wakes_at, since, undoing, said = zip(*rows, strict=True)
    return Query(
        "workflow_return",
        {
            "ids": plain_array(ids),
            "tokens": plain_array(tokens),
            "delays": array(delays),
            "failures": array(failures),
            "waits_for": array(waits_for),
            "reasons": array(reasons),
            "parked": plain_array(parked),
            "wakes_at": array(wakes_at),
            "since": array(since),
            "undoing": plain_array(undoing),
            "told": array(said),
        },
        first,
    )


def _workflow_return_columns(
    outcome: Returned,
) -> tuple[str | None, str | None, str | None, str | None, str, str | None, str | None, str]:
    """Delay, failure, what it waits for and why; whether it parks, until when, what it has seen; if it is undone."""
    match outcome:
        case Parked(wakes_at, waits_for, since, undoing):
            count = None if wakes_at is None else str(wakes_at)
            return None, None, waits_for, None, "true", count, since, str(undoing)
        case Snoozed(delay) | Retried(_, delay):
            return interval(delay), None, None, None, "false", None, None, "false"
        case HandedBack():
            return None, None, None, None, "false", None, None, "true"
        case Blocked(waits_for, reason, failure, delay):
            later = None if delay is None else interval(delay)
            return later, failure, waits_for, reason, "false", None, None, "true"
        case Restarted():
            raise TypeError("a restart is written by a statement of its own")
        case _:
            assert_never(outcome)


def abandon_children(children: Iterable[str], *, actor: str) -> Query[list[str]]:
    """Ask to cancel children whose workflow ends, or forgets them; returns which are to be asked for once more."""
    return Query("child_abandon", {"ids": plain_array(children), "actor": actor}, first)


def workflow_state(job: ClaimedJob) -> Query[str | None]:
    """The last state that a workflow has set."""
    return Query("workflow_state", {"id": job.id}, first)


def restart_workflow(job: ClaimedJob, outcome: Restarted) -> Query[str]:
    """Begin a workflow again with a fresh history; returns its token, if it is this attempt's still."""
    return Query(
        "workflow_restart",
        {
            "id": job.id,
            "token": job.token,
            "args": outcome.args,
            "version": str(outcome.version),
            "state": outcome.state,
        },
        first,
    )


def settle_in_transaction(
    job: ClaimedJob,
    outcome: Succeeded,
    *,
    keep: timedelta | None,
    said: Sequence[tuple[ClaimedJob, float, str | None]] = (),
) -> Conversation[None]:
    """End a job that has succeeded; `said` is its last word of progress, if there is one that is not written yet.

    LeaseLost if the attempt does not own it any more, and Cancel if somebody has asked for that: the caller rolls back.
    """
    if said:
        yield jobs.progress(said)
    settle = _telling_cancelled(settle_alike([(job, outcome)], keep=lambda _job, _end: keep, told={}))
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


def _telling_cancelled(settle: Query[Any]) -> Query[bool]:
    """The same settle, which tells whether the job has ended as cancelled, and not by which token."""
    return replace(settle, read=_cancelled)


def _cancelled(row: Row) -> bool:
    _token, cancelled, *_ = row
    return bool(cancelled)
