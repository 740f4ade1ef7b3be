"""Doctor queries: settings, schema, rights, tables, sessions in the way, and costs of statements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from pydantic_core import from_json

from rowlock.store import claim as claim_store
from rowlock.store.claim import PRIORITIES, Lane
from rowlock.store.query import Explained, Query, Row, array, first, interval


class ServerSetting(NamedTuple):
    """A setting of the server: its value at the start of a session of this role, and its source."""

    name: str
    value: str
    source: str


class Override(NamedTuple):
    """A setting's value for one role, or for all roles of this database."""

    role: str | None
    name: str
    value: str


class ServerNow(NamedTuple):
    """The server: version, state, ages in transactions; `ahead` is by how many seconds our clock is ahead of its."""

    version: int
    recovering: bool
    age: int
    multixact_age: int
    oldest_table: int | None
    ahead: float


class InTransaction(NamedTuple):
    """A session that is in a transaction, for so many seconds."""

    pid: int
    application: str
    user: str | None
    database: str | None
    state: str | None
    seconds: float | None


def _session(pid: int, *words: str | None) -> str:
    """`pid 12 (psql, ann, idle in transaction)`."""
    who = ", ".join(word for word in words if word)
    return f"pid {pid} ({who})" if who else f"pid {pid}"


class LockHolder(NamedTuple):
    """A session that holds a lock on a table of ours which keeps others from writing to it, and how long at most."""

    pid: int
    application: str
    user: str | None
    state: str | None
    table: str  # or a part of one
    mode: str
    seconds: float | None
    whole: str  # the table; of a part, the one that it is a part of

    @property
    def stops_claims(self) -> bool:
        """Whether nobody can claim a job: a claim writes to jobs, and reads pauses and workers."""
        return self.whole == "jobs" or (self.stops_reads and self.whole in {"pauses", "workers"})

    @property
    def stops_reads(self) -> bool:
        """Whether nobody can even read the table."""
        return self.mode == "AccessExclusiveLock"

    @property
    def name(self) -> str:
        """The session, for people."""
        return _session(self.pid, self.application, self.user, self.state)


class DutyHolder(NamedTuple):
    """A session that has locked rows of `duties`, which of them as far as can be told, and for how long at most."""

    pid: int
    application: str
    user: str | None
    state: str | None
    seconds: float | None
    query_seconds: float | None  # since its last query began
    duties: list[str]

    @property
    def held(self) -> timedelta:
        """How long ago its transaction began."""
        return timedelta(seconds=self.seconds or 0.0)

    @property
    def last_query(self) -> timedelta:
        """How long ago its last query began."""
        return timedelta(seconds=self.query_seconds or 0.0)

    @property
    def name(self) -> str:
        """The session, for people."""
        return _session(self.pid, self.application, self.user, self.state)


class RowHolder(NamedTuple):
    """A session that has rows of due jobs locked: how many at least, in which queues, and for how long at most."""

    pid: int
    application: str
    user: str | None
    state: str | None
    seconds: float | None
    jobs: int
    queues: list[str]

    @property
    def held(self) -> timedelta:
        """How long ago its transaction began."""
        return timedelta(seconds=self.seconds or 0.0)

    @property
    def name(self) -> str:
        """The session, for people."""
        return _session(self.pid, self.application, self.user, self.state)


class Standby(NamedTuple):
    """A server that follows this one, and how commits wait for it; None is not this role's to see."""

    application: str
    waited_for: str | None


class Described(NamedTuple):
    """One thing in our schema, in PostgreSQL's words. `sound` is False of an index that is not used or kept up."""

    kind: str  # table, column, constraint, index, trigger, function
    home: str  # the table it belongs to, or itself
    name: str
    said: str
    sound: bool


class Right(NamedTuple):
    """A right of a role, other than the owner, on one of our objects. No grantee means PUBLIC, no part all of it."""

    grantee: str | None
    kind: str  # schema, table, function
    name: str
    part: str
    privilege: str


class TableNow(NamedTuple):
    """One table, or one part of history or events. Sizes are in bytes; `width` is what an average row is wide."""

    name: str
    is_part: bool
    is_default: bool
    unlogged: bool
    options: tuple[str, ...]
    live: int
    dead: int
    vacuumed_at: datetime | None
    size: int
    indexes_size: int
    width: int | None


class Peak(NamedTuple):
    """The busiest minute, and how many jobs were claimed in it."""

    minute: datetime
    claimed: int


class SchedulesNow(NamedTuple):
    """How many schedules there are, for how many seconds the latest one is overdue, and which of them are unwell."""

    all: int
    late: float | None
    overdue: list[str]
    orphans: list[str]
    forgotten: list[str]
    missed: list[str]  # slots of the last hour, though a worker lived
    silent: list[str]  # for the clock was ahead when they last fired
    silent_for: float | None  # seconds, at most
    idle: Mapping[str, str]  # no job came of their last slots; and why not of the latest


class Cost(NamedTuple):
    """The cost of a statement in a trial: time, pages, changed rows, and the indexes that it used."""

    took: timedelta
    buffers: int
    rows: int
    indexes: frozenset[str]


def settings(names: Iterable[str]) -> Query[ServerSetting]:
    """The server's settings of these names."""
    return Query("setting_list", {"names": array(names)}, ServerSetting._make)


def overrides(names: Iterable[str]) -> Query[Override]:
    """Values of these settings for single roles or for this database."""
    return Query("setting_override", {"names": array(names)}, Override._make)


def server() -> Query[ServerNow]:
    """The server's version and state."""
    return Query("server_look", {}, ServerNow._make)


def clock() -> Query[float]:
    """The server's own clock, in seconds since 1970."""
    return Query("server_clock", {}, first)


SLOTS_PASSED = 3
"""One slot that is passed over is what `overlap` is for; so many in a row are a schedule that stands still."""
_MOST_IDLE = 1_000

NOTIFIES_UNTIL = 0.5
"""The share from which on nobody is notified, as in rowlock.notifies()."""


def notifications() -> Query[float]:
    """How full the queue of notifications is, as a share."""
    return Query("notification_measure", {}, first)


def transactions(most: int) -> Query[InTransaction]:
    """Sessions that are in a transaction, the oldest first."""
    return Query("transaction_list", {"most": str(most)}, InTransaction._make)


def lock_holders(most: int) -> Query[LockHolder]:
    """Sessions that keep everybody else from writing to a table of ours."""
    return Query("lock_holders", {"most": str(most)}, LockHolder._make)


def duty_holders(most: int) -> Query[DutyHolder]:
    """Sessions that have locked duties of the fleet, those that began first."""
    return Query("duty_holders", {"most": str(most)}, DutyHolder._make)


def row_holders(queues: Iterable[str], *, held: timedelta, most: int) -> Query[RowHolder]:
    """Sessions that have kept due jobs of these queues locked for so long; `most` of each lane are looked at."""
    return Query("row_holders", {"queues": array(queues), "held": interval(held), "most": str(most)}, RowHolder._make)


def standbys() -> Query[Standby]:
    """The servers that follow this one."""
    return Query("standby_list", {}, Standby._make)


def described() -> Query[Described]:
    """Everything in our schema but parts of history and events."""
    return Query("schema_describe", {}, Described._make)


def rights() -> Query[Right]:
    """The rights of roles that do not own our schema."""
    return Query("right_list", {}, Right._make)


def policies() -> Query[str]:
    """The policies on events that are in force."""
    return Query("policy_list", {}, first)


def tables() -> Query[TableNow]:
    """Our tables and parts."""
    return Query("table_list", {}, _table)


def _table(row: Row) -> TableNow:
    name, is_part, is_default, unlogged, options, live, dead, vacuumed_at, size, indexes_size, width = row
    last = None if vacuumed_at is None else datetime.fromisoformat(vacuumed_at)
    return TableNow(name, is_part, is_default, unlogged, tuple(options), live, dead, last, size, indexes_size, width)


def peak(most: int) -> Query[Peak]:
    """The busiest minute of the last day, among the last rows, so many of them."""
    return Query("minute_peak", {"most": str(most)}, lambda row: Peak(datetime.fromisoformat(row[0]), row[1]))


def schedules(*, late: timedelta, most: int) -> Query[SchedulesNow]:
    """Which schedules are unwell; overdue are those whose slot was due so long ago and that nobody has fired."""
    return Query(
        "schedule_check",
        {
            "late": str(late.total_seconds()),
            "most": str(most),
            "most_idle": str(_MOST_IDLE),
            "slots": str(SLOTS_PASSED),
        },
        _schedules,
    )


def _schedules(row: Row) -> SchedulesNow:
    *others, idle, reasons = row
    return SchedulesNow._make((*others, dict(zip(idle, reasons, strict=True))))


def begin_trial(timeout: timedelta) -> Query[None]:
    """Let no statement of this transaction take longer than this."""
    return Query("trial_begin", {"timeout": str(int(timeout.total_seconds() * 1000))}, _nothing)


def attempts(*, worker: str) -> Query[tuple[str, str]]:
    """The jobs that a worker holds, with their tokens."""
    return Query("attempt_list", {"worker": worker}, lambda row: (row[0], row[1]))


def claim(queue: str, *, limit: int, worker: str) -> Query[Cost]:
    """Claim jobs of a queue from the bottom, as workers do; returns the cost in place of the jobs."""
    lanes = [Lane(queue, priority) for priority in PRIORITIES]
    return cost_of(claim_store.claim(lanes=lanes, limit=limit, worker=worker))


def cost_of(query: Query[Any]) -> Query[Cost]:
    """The same statement, which does run, but returns its cost in place of its rows."""
    return Explained(query.name, query.params, _cost)


def _cost(row: Row) -> Cost:
    [explained] = from_json(row[0]) if isinstance(row[0], str) else row[0]
    plan = explained["Plan"]
    nodes = list(_nodes(plan))
    changed = [node for node in nodes if node["Node Type"] == "ModifyTable"]
    return Cost(
        took=timedelta(milliseconds=explained["Execution Time"]),
        buffers=plan["Shared Hit Blocks"] + plan["Shared Read Blocks"],
        rows=max((round(node["Actual Rows"] * node["Actual Loops"]) for node in changed), default=0),
        indexes=frozenset(node["Index Name"] for node in nodes if "Index Name" in node),
    )


def _nodes(node: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from _nodes(child)


def _nothing(_row: Row) -> None:
    return None
