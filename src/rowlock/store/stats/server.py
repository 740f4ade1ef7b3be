"""PostgreSQL's own statistics: sizes, vacuum, locks, snapshots, connections."""

from __future__ import annotations

from datetime import datetime, timedelta

from rowlock.model.stats.stats import Connections, LockWait, Sizes, Snapshot, Vacuum
from rowlock.store.query import Query, Row


def sizes() -> Query[Sizes]:
    """What our tables take on disk."""
    return Query("table_measure", {}, _sizes)


def vacuum() -> Query[Vacuum]:
    """The state of vacuum on the table of jobs."""
    return Query("vacuum_look", {}, _vacuum)


def lock_waits(most: int) -> Query[LockWait]:
    """Who works on our tables and waits for a lock, the longest wait first."""
    return Query("lock_list", {"most": str(most)}, _lock_wait)


def snapshots(most: int) -> Query[Snapshot]:
    """Who keeps vacuum from removing dead rows, the oldest first."""
    return Query("snapshot_list", {"most": str(most)}, _snapshot)


def connections() -> Query[Connections]:
    """How many connections the server has, and how many it takes."""
    return Query("connection_count", {}, lambda row: Connections(*row))


def _sizes(row: Row) -> Sizes:
    jobs, indexes, index_sizes, history, events, history_rows = row
    return Sizes(jobs, dict(zip(indexes, index_sizes, strict=True)), history, events, history_rows)


def _vacuum(row: Row) -> Vacuum:
    live, dead, last_vacuum, last_autovacuum = row
    return Vacuum(live, dead, _moment(last_vacuum), _moment(last_autovacuum))


def _lock_wait(row: Row) -> LockWait:
    pid, application, table, mode, seconds, blocked_by = row
    return LockWait(pid, application, table, mode, timedelta(seconds=seconds), tuple(blocked_by))


def _snapshot(row: Row) -> Snapshot:
    kind, name, pid, user, state, transactions, seconds, query_started = row
    held_for = None if seconds is None else timedelta(seconds=seconds)
    return Snapshot(kind, name, pid, user, state, transactions, held_for, _moment(query_started))


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
