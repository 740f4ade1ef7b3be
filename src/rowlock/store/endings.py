"""Statements that end attempts of workflows, and of their children."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from operator import itemgetter
from typing import assert_never

from rowlock.model.outcome import (
    Blocked,
    Ended,
    HandedBack,
    Parked,
    Restarted,
    Retried,
    Returned,
    Snoozed,
    Succeeded,
)
from rowlock.model.row import Claimed
from rowlock.model.spec import Keep
from rowlock.store.intervals import interval
from rowlock.store.jobs import ending
from rowlock.store.query import Query, array, first, plain_array

_KEEP_CANCELLED = Keep().cancelled


def settle(
    attempts: Sequence[tuple[Claimed, Ended, timedelta | None]],
    *,
    told: Mapping[str, str],
    cancelled: timedelta = _KEEP_CANCELLED,
) -> Query[str]:
    """End workflows and children for good, as `jobs.settle` does others; answers the tokens that were accepted.

    `told` is what workflows say of themselves at last, by token. One that somebody has asked to cancel and that has
    something to undo comes back instead.
    """
    rows = sorted(
        (
            (
                job.id,
                job.token,
                *ending(outcome),
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


def give_back(attempts: Sequence[tuple[Claimed, Returned]], *, told: Mapping[str, str]) -> Query[str]:
    """End attempts of workflows but not their jobs; answers the tokens that were accepted."""
    rows = sorted(
        ((job.id, job.token, *_return(outcome), told.get(job.token)) for job, outcome in attempts),
        key=itemgetter(0, 1),
    )
    ids, tokens, delays, waits_for, reasons, parked, wakes_at, since, undoing, said = zip(*rows, strict=True)
    return Query(
        "workflow_return",
        {
            "ids": plain_array(ids),
            "tokens": plain_array(tokens),
            "delays": array(delays),
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


def _return(outcome: Returned) -> tuple[str | None, str | None, str | None, str, str | None, str | None, str]:
    """Delay, what it waits for and why, whether it parks, until when, what it has seen, whether it is being undone."""
    match outcome:
        case Parked(wakes_at, waits_for, since, undoing):
            return None, waits_for, None, "true", None if wakes_at is None else str(wakes_at), since, str(undoing)
        case Snoozed(delay) | Retried(_, delay):
            return interval(delay), None, None, "false", None, None, "false"
        case HandedBack():
            return None, None, None, "false", None, None, "true"
        case Blocked(waits_for, reason):
            return None, waits_for, reason, "false", None, None, "true"
        case Restarted():
            raise TypeError("a restart is written by a statement of its own")
        case _:
            assert_never(outcome)


def abandon(children: Iterable[str], *, actor: str) -> Query[list[str]]:
    """Ask to cancel children whose workflow ends, or forgets them; answers which are to be asked for once more."""
    return Query("child_abandon", {"ids": plain_array(children), "actor": actor}, first)


def state(job: Claimed) -> Query[str | None]:
    """What a workflow has said of itself at last."""
    return Query("workflow_state", {"id": job.id}, first)


def restart(job: Claimed, outcome: Restarted) -> Query[str]:
    """Begin a workflow again with a fresh history; answers its token, if it is this attempt's still."""
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
