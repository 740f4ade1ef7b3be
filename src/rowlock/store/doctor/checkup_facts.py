"""The doctor's rounds: everything that is asked of a database, and what jobs cost that are made there and undone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import TypeVar

from rowlock.model.ids import new_id, new_ids
from rowlock.model.outcome import Succeeded
from rowlock.model.pause import Pause
from rowlock.model.row import ClaimedJob, NewJob
from rowlock.model.stats.stats import Stats
from rowlock.store import enqueue as enqueue_store
from rowlock.store import pauses, schema, workers
from rowlock.store import settle as settle_store
from rowlock.store.doctor import queries
from rowlock.store.query import Conversation, Query
from rowlock.store.schema import PARTITIONED, Partition
from rowlock.store.stats.collect import collect_stats, try_query, why_unknown
from rowlock.store.stats.counts import TIMEOUT
from rowlock.store.transaction import undone

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

# What is tried out: so many queues, so many jobs of each; then a batch such as a worker of 100 slots asks for, several
# times, because the first one also pays for what PostgreSQL looks up once in a session.
_QUEUES_TRIED = 20
_JOBS_TRIED = 10
BATCH = 100
_ROUNDS = 2
_ALONE = 3


@dataclass(slots=True)
class Facts:
    """What the database says, None where it could not be asked, and why not."""

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


@dataclass(frozen=True, slots=True)
class JobCost:
    """What one job cost the server when it was tried: to enqueue it alone, to claim and to settle it with others."""

    enqueue: timedelta
    claim: timedelta
    settle: timedelta

    @property
    def whole(self) -> timedelta:
        """All three."""
        return self.enqueue + self.claim + self.settle


@dataclass(slots=True)
class Trial:
    """What was tried out: a claim from each queue, and a job's whole way."""

    claims: dict[str, queries.Cost] = field(default_factory=dict)
    job: JobCost | None = None
    unknown: dict[str, str] = field(default_factory=dict)


def gather(schema_name: str, *, longest: timedelta = schema.LONGEST_RETENTION) -> Conversation[Facts]:
    """Ask everything that can be asked without changing anything; `longest` is for how long jobs are kept at most."""
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
    """Who has jobs locked that should be claimed, in the queues that have any."""
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
    """Ask one thing; what is refused, takes too long or is about a table that is not there is unknown."""
    try:
        return (yield from try_query(part, query, unknown))
    except Exception as error:
        unknown[part] = _missing(error)
        return None


def _missing(error: Exception) -> str:
    """What PostgreSQL says of a table that is not there; any other error is the caller's."""
    if getattr(error, "sqlstate", None) != "42P01":
        raise error
    return str(error).partition("\n")[0]


def _only(rows: list[T] | None) -> T | None:
    return rows[0] if rows else None


# Trying out


def try_out(queues: Iterable[str], *, version: str) -> Conversation[Trial]:
    """Claim from queues, and lead jobs of our own from enqueue to end, with the statements that workers say.

    All of it is undone, nothing is committed, and nobody else sees any of it. Jobs of others are held for a
    few milliseconds; whoever claims meanwhile passes over them, and finds them at its next look.
    """
    trial = Trial()
    yield queries.begin_trial(TIMEOUT)
    for queue in list(queues)[:_QUEUES_TRIED]:
        cost = yield from _try("claim", _claim_some(queue, version=version), trial.unknown)
        if cost is None:
            break
        trial.claims[queue] = cost
    trial.job = yield from _try("job", _whole_way(version=version), trial.unknown)
    return trial


def _try(part: str, conversation: Conversation[T], unknown: dict[str, str]) -> Conversation[T | None]:
    try:
        return (yield from undone(conversation))
    except Exception as error:
        state = getattr(error, "sqlstate", None)
        if state is None or state.startswith(("08", "57P")):
            raise
        unknown[part] = why_unknown(state, error)
        return None


def _claim_some(queue: str, *, version: str) -> Conversation[queries.Cost]:
    worker = yield from _enter(version=version)
    costs: list[queries.Cost] = yield queries.claim(queue, limit=_JOBS_TRIED, worker=worker)
    return costs[0]


def _whole_way(*, version: str) -> Conversation[JobCost]:
    worker = yield from _enter(version=version)
    queue = f"rowlock doctor {worker}"  # nobody listens there
    rounds = []
    for _ in range(_ROUNDS):
        new = [NewJob(job_id, queue, "rowlock doctor", "{}", 0, 1) for job_id in new_ids(BATCH)]
        enqueued = []
        for job in new[:_ALONE]:
            enqueued += yield queries.cost_of(enqueue_store.insert_one(job))
        yield enqueue_store.insert(new[_ALONE:])
        [claimed] = yield queries.claim(queue, limit=BATCH, worker=worker)
        held: list[tuple[str, str]] = yield queries.attempts(worker=worker)
        done = [(_attempt(*pair), Succeeded(None), timedelta(days=1)) for pair in held]
        [settled] = yield queries.cost_of(settle_store.settle_jobs(done))
        rounds.append((min(cost.took for cost in enqueued), claimed.took / BATCH, settled.took / BATCH))
    return JobCost(*map(min, zip(*rounds, strict=True)))


def _enter(*, version: str) -> Conversation[str]:
    worker = new_id()
    yield workers.register(
        worker=worker,
        host="rowlock doctor",
        pid=0,
        queues=(),
        slots=1,
        tasks=(),
        schedules=(),
        version=version,
        lease=timedelta(minutes=1),
    )
    return worker


def _attempt(job_id: str, token: str) -> ClaimedJob:
    """As much of an attempt as its settle asks for."""
    return ClaimedJob(job_id, token, "", "{}", "", 0, "", 0, 0, 1, 1, None, False, None, None)
