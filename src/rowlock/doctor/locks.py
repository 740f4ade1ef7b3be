"""Locks: on our tables, on duties of the fleet and on rows of due jobs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

from rowlock.doctor.check import HealthCheck, several, why
from rowlock.model.checkup import Finding
from rowlock.model.formatting import count, span
from rowlock.store.doctor.checkup_facts import Facts
from rowlock.store.doctor.queries import LockHolder
from rowlock.store.stats.collect import LOCKED

_GROUP = "locks"
CAUSES: Final = ("table locks", "duty locks", "job locks")
"""The checks whose findings cause others: they come first."""

# A worker's deadline: a lock that is held for longer makes workers and callers fail. Our own upkeep holds none so long.
_RED = timedelta(seconds=5)
# A worker's own sweep is over within seconds, and is given up when a renewal would have to wait for it.
_DUTY = (timedelta(seconds=5), timedelta(seconds=30))
_ROWS_RED = timedelta(seconds=30)
# Without these two a killed worker's jobs stay where they are, and slots of schedules pass.
_VITAL_DUTIES = {"rescue", "schedules"}


def judge_locks(facts: Facts) -> Iterator[Finding]:
    """Check for locked tables: such a lock causes much else."""
    check = HealthCheck(_GROUP, "table locks")
    if facts.lock_holders is None:
        yield check.unknown(facts.unknown.get("lock holders"))
    elif not facts.lock_holders:
        yield check.green("none", "nobody keeps others from writing to a table")
    else:
        yield _locked(check, facts.lock_holders[0])


def judge_duties(facts: Facts) -> Iterator[Finding]:
    """Check for locked duties of the fleet: no worker does one until that transaction ends."""
    check = HealthCheck(_GROUP, "duty locks")
    if facts.duty_holders is None:
        yield check.unknown(facts.unknown.get("duty holders"))
        return
    amber, red = _DUTY
    long = [one for one in facts.duty_holders if one.held >= amber]
    if not long:
        yield check.green("none", "nobody keeps the workers from what one of them does for all", value=0.0)
        return
    holder = long[0]
    vital = not holder.duties or not _VITAL_DUTIES.isdisjoint(holder.duties)
    rows = "row of duty" if len(holder.duties) == 1 else "rows of duties"
    what = f"the {rows} {several(holder.duties)}" if holder.duties else "rows of the table duties"
    query = "" if holder.query_seconds is None else f", its last query began {span(holder.last_query)} ago"
    yield check.ill(
        "red" if vital and holder.held >= red else "amber",
        f"{several(holder.duties) or 'duties'}, by {holder.name}",
        f"it has {what} locked, in a transaction that began {span(holder.held)} ago{query}: no worker does that "
        f"meanwhile{_missed(holder.duties)}",
        do=f"end its transaction, or select pg_terminate_backend({holder.pid})",
        value=holder.held.total_seconds(),
    )


def judge_rows(facts: Facts) -> Iterator[Finding]:
    """Check for locked rows of due jobs: workers pass over them until that transaction ends."""
    check = HealthCheck(_GROUP, "job locks")
    if facts.row_holders is None:
        yield check.unknown(why(facts, "row holders") or why(facts, "runnable"))
        return
    if not facts.row_holders:
        yield check.green("none", "nobody keeps due jobs from the workers", value=0.0)
        return
    holder = facts.row_holders[0]
    jobs = f"{count(holder.jobs, 'due job')} in {several(holder.queues)}"
    yield check.ill(
        "red" if holder.held >= _ROWS_RED else "amber",
        f"{jobs}, by {holder.name}",
        f"it has had their rows locked for up to {span(holder.held)}, and workers pass over what is locked",
        do=f"end its transaction, or select pg_terminate_backend({holder.pid})",
        value=float(holder.jobs),
    )


def _missed(duties: Sequence[str]) -> str:
    """The consequences, for the duties that matter most."""
    lost = []
    if "rescue" in duties:
        lost.append("jobs of dead workers stay where they are")
    if "schedules" in duties:
        lost.append("no schedule fires")
    return f"; {' and '.join(lost)}" if lost else ""


def _locked(check: HealthCheck, holder: LockHolder) -> Finding:
    held = timedelta(seconds=holder.seconds or 0.0)
    done = "reads or writes it" if holder.stops_reads else "writes to it"
    if holder.whole == "jobs":
        meant = ": no job is enqueued, claimed or settled meanwhile"
    elif holder.stops_claims:
        meant = ": no job is claimed meanwhile"
    elif holder.whole == "history":
        meant = ": no job is settled that is kept there"
    else:
        meant = ""
    return check.ill(
        "red" if held >= _RED or holder.seconds is None else "amber",
        f"{holder.table}, by {holder.name}",
        f"it has held {holder.mode} on {holder.table} for up to {span(held)}, and nobody else {done}{meant}",
        do=f"end its transaction, or select pg_terminate_backend({holder.pid})",
        value=held.total_seconds(),
    )


def folded(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings with causes first; if a table is locked, without those that only repeat this."""
    found = sorted(findings, key=lambda one: one.name not in CAUSES or one.level == "green" or one.figure == "?")
    cause = next((one for one in found if one.name == "table locks" and one.do is not None and one.figure != "?"), None)
    if cause is None:
        return tuple(found)
    blind = [one for one in found if one.figure == "?" and one.says.endswith((LOCKED, "took longer than 2 s"))]
    rest = [one for one in found if one is not cause and one not in blind]
    more = f"; {count(len(blind), 'check')} could not look because of it" if blind else ""
    return (replace(cause, says=cause.says + more), *rest)
