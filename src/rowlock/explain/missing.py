"""Missing jobs: what the id and the events still show without a row."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from rowlock.explain.phrases import because, command, instant_of
from rowlock.model import ids
from rowlock.model.explain_facts import Situation, TableLock
from rowlock.model.explanation import Cause
from rowlock.model.formatting import span
from rowlock.model.spec import Keep

# Ids are made by clients' clocks.
_SKEW: Final = timedelta(minutes=5)


def why_nobody_can_look(locked: TableLock) -> Cause:
    """The table is locked: no job can be read, and none moves."""
    says = (
        f"Nobody can read the table of {locked.table}, workers neither: {locked.name} has held an exclusive lock on it "
        f"for up to {span(locked.held)}. No job moves meanwhile, whatever this one waits for."
    )
    return _locked(locked, says)


def why_nobody_can_claim(locked: TableLock) -> Cause:
    """A table is locked that every claim needs: no job starts."""
    says = (
        f"No worker can claim a job: {locked.name} has held {locked.mode} on the table of {locked.table}, which every "
        f"claim needs, for up to {span(locked.held)}."
    )
    return _locked(locked, says)


def _locked(locked: TableLock, says: str) -> Cause:
    do = f"end its transaction, or select pg_terminate_backend({locked.pid})"
    return Cause("locked", says, do, {"pid": locked.pid, "table": locked.table, "held": locked.held})


def why_it_is_not_there(situation: Situation, keep: Keep, *, uncommitted: bool) -> Cause:
    """Why there is no row: deleted, not committed, expired from history, or never there."""
    if uncommitted:
        return Cause(
            "uncommitted",
            "It cannot be seen from outside: the transaction that enqueued it is still open, or was rolled back.",
            "commit that transaction",
        )
    deleted = situation.event("deleted")
    if deleted is not None:
        when, why = instant_of(deleted.at, situation.at), deleted.details.get("why")
        facts = {"deleted_at": deleted.at, "deleted_by": deleted.actor, "why": why}
        return Cause("deleted", f"It was deleted by {deleted.actor} at {when}{because(why)}.", facts=facts)
    made_at = ids.made_at(situation.job)
    if made_at is None:
        return Cause(
            "missing",
            "There never was such a job: this id is not one of Rowlock's, which are UUIDs of version 7.",
            f"find it by something else: {command('jobs', 'list', '--help')}",
        )
    return _expired_or_never(situation, keep, made_at)


def _expired_or_never(situation: Situation, keep: Keep, made_at: datetime) -> Cause:
    spans = [keep.succeeded, keep.failed, keep.cancelled, *(situation.keeps or ())]
    old = situation.at - made_at
    facts = {
        "made_at": made_at,
        "kept_if_succeeded": keep.succeeded,
        "kept_if_failed": keep.failed,
        "kept_if_cancelled": keep.cancelled,
    }
    made = f"its id was made at {instant_of(made_at, situation.at)}"
    kept = (
        f"history keeps succeeded jobs for {span(keep.succeeded)}, failed ones for {span(keep.failed)} "
        f"and cancelled ones for {span(keep.cancelled)}"
    )
    if situation.events:
        latest = situation.events[0]
        last = f"the last that was heard of it is that it was {latest.kind} at {instant_of(latest.at, situation.at)}"
        return Cause("missing", f"It has left history: {last}, and {kept}.", facts=facts)
    if old < -_SKEW:
        guess = "which is yet to come: no job of this database has it"
    elif old <= min(spans):
        guess = (
            "too late to have left history: its transaction is still open, or was rolled back, "
            "or its task keeps no history"
        )
    elif old <= max(spans):
        guess = "so it has left history, or was never committed"
    else:
        guess = "so long ago that it has left history, if it ever was there"
    return Cause("missing", f"There is no such job: {made}, {guess}; {kept}.", facts=facts)
