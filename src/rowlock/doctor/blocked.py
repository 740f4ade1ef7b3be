"""Has somebody locked our tables? Then that is the cause, and what could not be looked at is folded into its line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import timedelta

from rowlock.doctor.judging import Line
from rowlock.model.checkup import Finding
from rowlock.model.words import count, span
from rowlock.store.doctor import LockHolder
from rowlock.store.doctor_rounds import Facts
from rowlock.store.survey import LOCKED

# A worker's deadline: a lock that is held for longer makes workers and callers fail. Our own upkeep holds none so long.
_RED = timedelta(seconds=5)


def judge_locks(facts: Facts) -> Iterator[Finding]:
    """The line on tables that are locked, if any is: whoever holds one is the cause of much else."""
    line = Line("server", "table locks")
    if facts.lock_holders is None:
        yield line.unknown(facts.unknown.get("lock holders"))
    elif not facts.lock_holders:
        yield line.green("none", "nobody keeps others from writing to a table")
    else:
        yield _locked(line, facts.lock_holders[0])


def _locked(line: Line, holder: LockHolder) -> Finding:
    held = timedelta(seconds=holder.seconds or 0.0)
    done = "reads or writes it" if holder.stops_reads else "writes to it"
    meant = ": no job is enqueued, claimed or settled meanwhile" if holder.table == "jobs" else ""
    return line.ill(
        "red" if held >= _RED or holder.seconds is None else "amber",
        f"{holder.table}, by {holder.name}",
        f"it has held {holder.mode} on {holder.table} for up to {span(held)}, and nobody else {done}{meant}",
        do=f"end its transaction, or select pg_terminate_backend({holder.pid})",
        value=held.total_seconds(),
    )


def folded(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The same with the cause first, if a table is locked, and without the lines that only say that it is."""
    found = list(findings)
    cause = next((one for one in found if one.name == "table locks" and one.do is not None and one.figure != "?"), None)
    if cause is None:
        return tuple(found)
    blind = [one for one in found if one.figure == "?" and one.says.endswith((LOCKED, "took longer than 2 s"))]
    rest = [one for one in found if one is not cause and one not in blind]
    more = f"; {count(len(blind), 'check')} could not look because of it" if blind else ""
    return (replace(cause, says=cause.says + more), *rest)
