"""Operations: changes of many jobs, each of those that it can lock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from rowlock.model.filter import LIVE, Filter
from rowlock.model.record import State
from rowlock.model.results import Done
from rowlock.model.verb import BulkVerb
from rowlock.store import jobs
from rowlock.store.find.windows import WINDOW, Match, next_window
from rowlock.store.jobs import JobStatus, statuses
from rowlock.store.query import Conversation, Query, first, interval, plain_array

Act = Callable[..., Query[int]]


@dataclass(frozen=True, slots=True)
class BulkOperation:
    """A verb, the jobs it is for, and its statements for the live and the ended ones of a window."""

    verb: BulkVerb
    filter: Filter
    actor: str
    why: str | None
    on_live: Act | None = None
    on_ended: Act | None = None

    def window(self, done: Done) -> Conversation[Done]:
        """Change what matches in the next window. Held again after a lost reply, it does what is left to do."""
        states = self.verb.states(self.filter)
        window = yield from next_window(self.filter, states=states, before=done.before, limit=WINDOW, whole=False)
        targets = self.verb.targets(self.filter)
        changed = 0
        for act, live in ((self.on_live, True), (self.on_ended, False)):
            rows = [row for row in window.found if row.state in targets and (row.state in LIVE) == live]
            if act is not None and rows:
                changed += sum((yield act(rows, actor=self.actor, why=self.why)))
        passed_over = len(window.found) - changed
        return Done(self.verb.name, done.changed + changed, done.passed_over + passed_over, window.edge)


def retry(rows: Sequence[Match], *, actor: str, why: str | None) -> Query[int]:
    """Put ended jobs back among the live ones; returns how many."""
    return Query(
        "job_retry",
        {
            "ids": _ids(rows),
            "states": plain_array({row.state for row in rows}),
            "first_day": _day(min, rows),
            "last_day": _day(max, rows),
            "actor": actor,
            "why": why,
        },
        first,
    )


def cancel(
    rows: Sequence[Match], *, actor: str, why: str | None, states: Iterable[State], keep: timedelta
) -> Query[int]:
    """End ready and waiting jobs as cancelled, and mark running ones to end so; returns how many."""
    return _cancel(_ids(rows), actor=actor, why=why, states=states, keep=keep)


def cancel_unlocked(ids: Iterable[str], *, actor: str, why: str | None, keep: timedelta) -> Query[int]:
    """Cancel live jobs, but for those that somebody has locked; returns how many."""
    return _cancel(plain_array(ids), actor=actor, why=why, states=LIVE, keep=keep)


def cancel_one(job_id: str, *, actor: str, why: str | None, keep: timedelta) -> Conversation[bool | None]:
    """Cancel one job for certain: True when it ends as cancelled, False when it is too late, None if it is nowhere.

    Its row is locked by an earlier statement, which waits for whoever has it: nothing can happen to it in between.
    """
    while not (locked := (yield jobs.lock(job_id))):
        found: list[JobStatus] = yield statuses([job_id])
        if not found:
            return None
        if found[0].state not in LIVE:
            return found[0].state == "cancelled"
    [(_, cancelling)] = locked
    if not cancelling:
        yield _cancel(plain_array([job_id]), actor=actor, why=why, states=LIVE, keep=keep)
    return True


def _cancel(ids: str, *, actor: str, why: str | None, states: Iterable[State], keep: timedelta) -> Query[int]:
    return Query(
        "job_cancel",
        {
            "ids": ids,
            "states": plain_array(states),
            "keep": interval(keep),
            "actor": actor,
            "why": why,
        },
        first,
    )


def delete(rows: Sequence[Match], *, actor: str, why: str | None) -> Query[int]:
    """Remove ready and waiting jobs; returns how many."""
    return Query(
        "job_delete",
        {
            "ids": _ids(rows),
            "actor": actor,
            "why": why,
        },
        first,
    )


def delete_ended(rows: Sequence[Match], *, actor: str, why: str | None) -> Query[int]:
    """Remove ended jobs; returns how many."""
    return Query(
        "history_delete",
        {
            "ids": _ids(rows),
            "states": plain_array({row.state for row in rows}),
            "first_day": _day(min, rows),
            "last_day": _day(max, rows),
            "actor": actor,
            "why": why,
        },
        first,
    )


def move(rows: Sequence[Match], *, actor: str, why: str | None, queue: str) -> Query[int]:
    """Put ready and waiting jobs on another queue; returns how many."""
    return Query(
        "job_move",
        {
            "ids": _ids(rows),
            "queue": queue,
            "actor": actor,
            "why": why,
        },
        first,
    )


def reprioritise(rows: Sequence[Match], *, actor: str, why: str | None, priority: int) -> Query[int]:
    """Give ready and waiting jobs another priority; returns how many."""
    return Query(
        "job_reprioritise",
        {
            "ids": _ids(rows),
            "priority": str(priority),
            "actor": actor,
            "why": why,
        },
        first,
    )


def edit(job_id: str, *, args: str, actor: str, why: str | None) -> Query[list[str]]:
    """Give a ready or waiting job other arguments; returns the names of those, and no row if it is left alone."""
    return Query("job_edit", {"id": job_id, "args": args, "actor": actor, "why": why}, first)


def record_enqueued(
    job_id: str, *, task: str, queue: str, actor: str, why: str | None, like: str | None
) -> Query[None]:
    """Write down who has enqueued a job by hand, why, and after which other one."""
    return Query(
        "event_enqueued",
        {"id": job_id, "task": task, "queue": queue, "actor": actor, "why": why, "like": like},
        first,
    )


def run_next(rows: Sequence[Match], *, actor: str, why: str | None) -> Query[int]:
    """Put ready jobs before all others of their queues; returns how many."""
    return Query(
        "job_run_next",
        {
            "ids": _ids(rows),
            "actor": actor,
            "why": why,
        },
        first,
    )


def _ids(rows: Iterable[Match]) -> str:
    return plain_array(row.id for row in rows)


def _day(pick: Callable[[Iterable[date]], date], rows: Iterable[Match]) -> str:
    """The first or the last day on which any of these expires: no other partition is looked into."""
    return pick([row.expires_on for row in rows if row.expires_on is not None]).isoformat()
