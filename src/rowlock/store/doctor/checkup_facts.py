"""Checkup facts: everything that the doctor reads from a database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import TypeVar

from rowlock.model.pause import Pause
from rowlock.model.stats.stats import Stats
from rowlock.store import pauses, schema
from rowlock.store.doctor import queries
from rowlock.store.query import Conversation, Query
from rowlock.store.schema import PARTITIONED, Partition
from rowlock.store.stats.collect import collect_stats, try_query

T = TypeVar("T")

SETTINGS = (
    *("fsync", "full_page_writes", "synchronous_commit", "synchronous_standby_names", "autovacuum", "track_counts"),
    *("default_transaction_isolation", "default_transaction_read_only", "idle_in_transaction_session_timeout"),
    *("autovacuum_freeze_max_age", "autovacuum_multixact_freeze_max_age", "autovacuum_vacuum_threshold"),
    *("autovacuum_vacuum_scale_factor", "max_connections", "superuser_reserved_connections", "reserved_connections"),
)
_MOST_NAMED = 5
_MOST_MINUTES = 200_000
_MOST_QUEUES = 50
_MOST_LOCKED = 100  # of each lane
# A verb of operators keeps the jobs that it changes locked for a moment.
ROWS_LOCKED = timedelta(seconds=5)
# A slot that was due so long ago is overdue: a worker looks for slots every few seconds.
OVERDUE = timedelta(minutes=2)


@dataclass(slots=True)
class Facts:
    """The facts, None where one could not be read, and the reasons in `unknown`."""

    schema: str
    version: tuple[int, int]
    stats: Stats | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    overrides: Sequence[queries.Override] | None = None
    server: queries.ServerNow | None = None
    notifications: float | None = None
    transactions: Sequence[queries.InTransaction] | None = None
    lock_holders: Sequence[queries.LockHolder] | None = None
    duty_holders: Sequence[queries.DutyHolder] | None = None
    row_holders: Sequence[queries.RowHolder] | None = None
    standbys: Sequence[queries.Standby] | None = None
    described: Sequence[queries.Described] | None = None
    rights: Sequence[queries.Right] | None = None
    policies: Sequence[str] | None = None
    tables: Sequence[queries.TableNow] | None = None
    parts: Mapping[str, Sequence[Partition]] | None = None
    today: date | None = None
    longest: timedelta | None = None
    pauses: Sequence[Pause] | None = None
    peak: queries.Peak | None = None
    schedules: queries.SchedulesNow | None = None
    unknown: dict[str, str] = field(default_factory=dict)


def gather(schema_name: str, *, longest: timedelta = schema.LONGEST_RETENTION) -> Conversation[Facts]:
    """Read all facts, without changing anything; `longest` is for how long jobs are kept at most."""
    [version] = (yield schema.version()) or [(0, 0)]
    facts = Facts(schema_name, version)
    facts.lock_holders = yield from _learn("lock holders", queries.lock_holders(_MOST_NAMED), facts.unknown)
    facts.duty_holders = yield from _learn("duty holders", queries.duty_holders(_MOST_NAMED), facts.unknown)
    try:
        facts.stats = yield from collect_stats()
    except Exception as error:
        facts.unknown["stats"] = _missing(error)
    unknown = facts.unknown
    facts.row_holders = yield from _row_holders(facts)
    settings = yield from _learn("settings", queries.settings(SETTINGS), unknown)
    facts.settings = {setting.name: setting.value for setting in settings or ()}
    facts.overrides = yield from _learn("overrides", queries.overrides(SETTINGS), unknown)
    facts.server = _only((yield from _learn("server", queries.server(), unknown)))
    facts.notifications = _only((yield from _learn("notifications", queries.notifications(), unknown)))
    facts.transactions = yield from _learn("transactions", queries.transactions(_MOST_NAMED), unknown)
    facts.standbys = yield from _learn("standbys", queries.standbys(), unknown)
    facts.described = yield from _learn("schema", queries.described(), unknown)
    facts.rights = yield from _learn("rights", queries.rights(), unknown)
    facts.policies = yield from _learn("policies", queries.policies(), unknown)
    facts.tables = yield from _learn("tables", queries.tables(), unknown)
    facts.pauses = yield from _learn("pauses", pauses.listed(), unknown)
    facts.peak = _only((yield from _learn("peak", queries.peak(_MOST_MINUTES), unknown)))
    facts.schedules = _only(
        (yield from _learn("schedules", queries.schedules(late=OVERDUE, most=_MOST_NAMED), unknown))
    )
    yield from _look_at_parts(facts, longest=longest)
    return facts


def _row_holders(facts: Facts) -> Conversation[list[queries.RowHolder] | None]:
    """The sessions that have due jobs locked, in the queues that have any."""
    if facts.stats is None or "runnable" in facts.stats.unknown:
        return None
    due = [name for name, queue in facts.stats.queues.items() if queue.runnable is not None and queue.runnable.value]
    asked = queries.row_holders(due[:_MOST_QUEUES], held=ROWS_LOCKED, most=_MOST_LOCKED)
    return (yield from _learn("row holders", asked, facts.unknown))


def _look_at_parts(facts: Facts, *, longest: timedelta) -> Conversation[None]:
    facts.today = _only((yield from _learn("today", schema.today(), facts.unknown)))
    asked = _only((yield from _learn("retention", schema.longest_retention(), facts.unknown)))
    facts.longest = max(longest, timedelta(days=asked or 0))
    parts = {}
    for partitioned in PARTITIONED:
        found = yield from _learn("partitions", schema.partitions(partitioned), facts.unknown)
        if found is None:
            return
        parts[partitioned.table] = found
    facts.parts = parts


def _learn(part: str, query: Query[T], unknown: dict[str, str]) -> Conversation[list[T] | None]:
    """Read one fact; it is unknown if the query is refused, takes too long or needs a table that is missing."""
    try:
        return (yield from try_query(part, query, unknown))
    except Exception as error:
        unknown[part] = _missing(error)
        return None


def _missing(error: Exception) -> str:
    """PostgreSQL's message about a missing table; any other error is raised again."""
    if getattr(error, "sqlstate", None) != "42P01":
        raise error
    return str(error).partition("\n")[0]


def _only(rows: list[T] | None) -> T | None:
    return rows[0] if rows else None
