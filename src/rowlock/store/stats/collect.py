"""Statistics collected: every statement that counts, one after the other, put together.

A part that takes too long, or that this role may not ask for, is left out with the reason; the others go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta
from typing import Any, TypeVar

from rowlock.model.pause import Pause
from rowlock.model.stats.histogram import Histogram
from rowlock.model.stats.stats import (
    ClaimCost,
    ClaimTimes,
    Cleanup,
    Count,
    DatabaseStats,
    Durations,
    FleetStats,
    Glance,
    QueueStats,
    Rates,
    Recent,
    Stats,
    Suspects,
    TaskStats,
    WorkerStats,
)
from rowlock.model.verb import PARKED_FOR
from rowlock.store import pauses, schema
from rowlock.store.query import Conversation, Query, alone
from rowlock.store.schema import PARTITIONED, Partition
from rowlock.store.stats import counts, minutes, server, workers
from rowlock.store.stats.counts import TIMEOUT
from rowlock.store.transaction import all_or_nothing

T = TypeVar("T")

LOCKED = "somebody holds a lock on it"
_WINDOW = timedelta(minutes=5)
_HOUR = timedelta(hours=1)
# Bounds: what is counted of one thing, what of history, and how many rows of durations are added up, each in 2 µs.
_MOST_JOBS = 100_000
_MOST_ENDED = 10_000
_MOST_MINUTES = 60_000
_MOST_NAMED = 5
# The same for a glance, which is taken every few seconds.
_MOST_READ = 10_000
_MOST_GLANCED = 20_000
# What a worker of 100 slots, the default, asks for.
_CLAIM = 100


@dataclass(slots=True)
class Findings:
    """What the parts have said, None where one could not be asked, and why not."""

    at: datetime
    ready: Sequence[counts.ReadyCount] | None = None
    running: Sequence[counts.RunningCount] | None = None
    waiting: Sequence[counts.WaitingCount] | None = None
    parked: Sequence[counts.ParkedCount] | None = None
    pauses: Sequence[Pause] | None = None
    rates: Sequence[minutes.DoneByTask] | None = None
    durations: Sequence[minutes.SumsByTask] | None = None
    failed: Sequence[counts.FailedCount] | None = None
    workers: Sequence[workers.WorkerRow] | None = None
    rescues: Sequence[counts.EventCount] | None = None
    suspects: Suspects | None = None
    unknown: dict[str, str] = field(default_factory=dict)


def collect_stats() -> Conversation[Stats]:
    """Learn everything that an operator may ask for."""
    found = yield from _collect(jobs=_MOST_JOBS, rows=_MOST_MINUTES)
    found.rescues = yield from try_query("rescues", counts.rescues(_MOST_ENDED), found.unknown)
    suspects = yield from try_query("suspects", counts.suspects(_MOST_ENDED), found.unknown)
    found.suspects = suspects[0] if suspects else None
    database = yield from _database(found)
    return Stats(
        at=found.at,
        window=_WINDOW,
        queues=_queues(found),
        tasks=_tasks(found),
        fleet=_fleet(found),
        database=database,
        unknown=found.unknown,
    )


def collect_glance() -> Conversation[Glance]:
    """Learn of queues and tasks what changes from moment to moment, and count no further than people read."""
    found = yield from _collect(jobs=_MOST_READ, rows=_MOST_GLANCED)
    return Glance(
        at=found.at,
        window=_WINDOW,
        queues=_queues(found),
        tasks=_tasks(found),
        pauses=None if found.pauses is None else tuple(found.pauses),
        workers=None if found.workers is None else tuple(map(_worker, found.workers)),
        unknown=found.unknown,
    )


def _collect(*, jobs: int, rows: int) -> Conversation[Findings]:
    yield counts.begin_reading(TIMEOUT)
    [at] = yield schema.now()
    found = Findings(at)
    found.ready = yield from try_query("runnable", counts.ready(jobs), found.unknown)
    found.running = yield from try_query("running", counts.running(jobs), found.unknown)
    found.waiting = yield from try_query("waiting", counts.waiting(jobs), found.unknown)
    found.parked = yield from try_query("parked", counts.parked(jobs), found.unknown)
    found.pauses = yield from try_query("paused", pauses.listed(), found.unknown)
    found.rates = yield from try_query("rates", minutes.done(_WINDOW), found.unknown)
    found.durations = yield from try_query("durations", minutes.breakdown(_HOUR, most=rows), found.unknown)
    found.failed = yield from try_query("failed", counts.failed(_MOST_ENDED), found.unknown)
    found.workers = yield from try_query("workers", workers.worker_rows(), found.unknown)
    return found


# Asking


def try_query(part: str, query: Query[T], unknown: dict[str, str]) -> Conversation[list[T] | None]:
    """Ask one thing; what is refused or takes too long is unknown, and leaves the transaction as it was."""
    try:
        return (yield from all_or_nothing(alone(query), inside=True))
    except Exception as error:
        state = getattr(error, "sqlstate", None)
        # Without a connection, or without our tables, there is nothing to look at.
        if state is None or state.startswith(("08", "57P", "3F", "42P01")):
            raise
        unknown[part] = why_unknown(state, error)
        return None


def why_unknown(state: str, error: Exception) -> str:
    """Why something could not be learned."""
    match state:
        case "57014":
            return f"took longer than {TIMEOUT.seconds} s"
        case "55P03":
            return LOCKED
        case _:
            return str(error).partition("\n")[0]


def _database(found: Findings) -> Conversation[DatabaseStats]:
    unknown = found.unknown
    sizes = yield from try_query("sizes", server.sizes(), unknown)
    vacuum = yield from try_query("vacuum", server.vacuum(), unknown)
    lock_waits = yield from try_query("lock_waits", server.lock_waits(_MOST_NAMED), unknown)
    snapshots = yield from try_query("snapshots", server.snapshots(_MOST_NAMED), unknown)
    parts = yield from try_query("cleanup", schema.partitions(PARTITIONED[0]), unknown)
    connections = yield from try_query("connections", server.connections(), unknown)
    claim = None
    if looked_into := _looked_into(found):
        claim = yield from try_query("claim", counts.probe(looked_into, limit=_CLAIM), unknown)
    if any(one.kind == "session" and one.state is None for one in snapshots or ()):
        unknown["snapshots"] = "the state and times of other users' sessions; grant pg_monitor to this role to see them"
    return DatabaseStats(
        sizes=sizes[0] if sizes else None,
        vacuum=vacuum[0] if vacuum else None,
        lock_waits=None if lock_waits is None else tuple(lock_waits),
        snapshots=None if snapshots is None else tuple(snapshots),
        claim=_claim_cost(claim[0][0]) if claim else None,
        cleanup=None if parts is None else _cleanup(parts, found.at),
        connections=connections[0] if connections else None,
    )


def _looked_into(found: Findings) -> list[str]:
    """The queues that live workers look into, in their order; without a worker, those that have jobs."""
    worked = [queue for worker in found.workers or () if worker.lease > 0 for queue in worker.queues]
    there = worked or [queue.queue for queue in found.ready or ()]
    paused = {pause.queue for pause in found.pauses or ()}
    return [queue for queue in dict.fromkeys(there) if queue not in paused]


# Putting together


def _queues(found: Findings) -> dict[str, QueueStats]:
    ready = _by_name(found.ready, lambda row: row.queue)
    running = _by_name(found.running, lambda row: row.queue)
    cut = Count(0, more=any(row.more for row in found.running or ()))
    waiting: dict[str, dict[str, Count]] = {}
    for row in found.waiting or ():
        if row.waits_for not in PARKED_FOR:
            waiting.setdefault(row.queue, {})[row.waits_for] = Count(row.jobs, row.more)
    parked = _by_name(found.parked, lambda row: row.queue)
    rates = _rates(found.rates, lambda row: row.queue)
    waits = _histograms((row.queue, row.sums.waits) for row in found.durations or ())
    paused = {pause.queue for pause in found.pauses or () if pause.queue is not None}
    worked = {queue for worker in found.workers or () for queue in worker.queues}
    nothing = counts.ReadyCount("", 0, False, 0, False, None)
    queues = {}
    for name in sorted({*ready, *running, *waiting, *parked, *rates, *waits, *paused, *worked}):
        here = ready.get(name, nothing)
        held = running.get(name)
        asleep = parked.get(name, counts.ParkedCount("", 0, False, 0))
        known = found.ready is not None
        queues[name] = QueueStats(
            runnable=Count(here.runnable, here.more_runnable) if known else None,
            delayed=Count(max(here.delayed - asleep.timed, 0), here.more_delayed) if known else None,
            running=None if found.running is None else Count(held.jobs, held.more) if held else cut,
            waiting=None if found.waiting is None else waiting.get(name, {}),
            parked=None if found.parked is None else Count(asleep.jobs, asleep.more),
            oldest=None if here.age is None else timedelta(seconds=here.age),
            paused=None if found.pauses is None else name in paused,
            rates=None if found.rates is None else rates.get(name, Rates()),
            waits=Durations.of(waits.get(name, Histogram())),
        )
    return queues


def _tasks(found: Findings) -> dict[str, TaskStats]:
    rates = _rates(found.rates, lambda row: row.task)
    durations = _histograms((row.task, row.sums.durations) for row in found.durations or ())
    waits = _histograms((row.task, row.sums.waits) for row in found.durations or ())
    failed = {row.task: Count(row.failed, row.more) for row in found.failed or ()}
    cut = Count(0, more=any(row.more for row in found.failed or ()))
    paused = {pause.task for pause in found.pauses or () if pause.task is not None}
    return {
        name: TaskStats(
            rates=None if found.rates is None else rates.get(name, Rates()),
            durations=Durations.of(durations.get(name, Histogram())),
            waits=Durations.of(waits.get(name, Histogram())),
            failed=None if found.failed is None else failed.get(name, cut),
            paused=None if found.pauses is None else name in paused,
        )
        for name in sorted({*rates, *durations, *failed, *paused})
    }


def _fleet(found: Findings) -> FleetStats:
    workers = None if found.workers is None else tuple(map(_worker, found.workers))
    rescues = None if found.rescues is None else {row.kind: row for row in found.rescues}
    return FleetStats(
        workers=workers,
        rescued=None if rescues is None else _recent(rescues.get("rescued")),
        poisoned=None if rescues is None else _recent(rescues.get("poisoned")),
        claims=_claim_times(found.workers or ()),
        suspects=found.suspects,
    )


def _worker(row: workers.WorkerRow) -> WorkerStats:
    return WorkerStats(
        id=row.id,
        host=row.host,
        pid=row.pid,
        queues=tuple(row.queues),
        slots=row.slots,
        held=row.held,
        lease_left=timedelta(seconds=row.lease),
        lasts=timedelta(seconds=row.lasts),
        blocked=None if row.blocked is None else timedelta(seconds=row.blocked),
        blocked_by=row.blocked_by,
        started_at=datetime.fromisoformat(row.started_at),
        version=row.version,
        stuck=row.stuck,
        restarts=row.restarts,
        fault=row.fault,
        failing=row.failing,
        failing_since=None if row.failing_since is None else datetime.fromisoformat(row.failing_since),
    )


def _recent(row: counts.EventCount | None) -> Recent:
    return Recent(Count(0), Count(0)) if row is None else Recent(Count(row.hour, row.more), Count(row.day, row.more))


def _claim_times(workers: Iterable[workers.WorkerRow]) -> ClaimTimes | None:
    claimed = [worker for worker in workers if worker.lease > 0 and worker.claims]
    if not claimed:
        return None
    claims = sum(worker.claims for worker in claimed)
    return ClaimTimes(
        mean=timedelta(seconds=sum(worker.claim_seconds for worker in claimed) / claims),
        max=timedelta(seconds=max(worker.claim_slowest for worker in claimed)),
        rows=sum(worker.claimed for worker in claimed) / claims,
    )


def _rates(done: Sequence[minutes.DoneByTask] | None, name: Callable[[minutes.DoneByTask], str]) -> dict[str, Rates]:
    sums: dict[str, list[int]] = {}
    for row in done or ():
        before = sums.get(name(row), [0, 0, 0, 0])
        sums[name(row)] = [a + b for a, b in zip(before, row[2:], strict=True)]
    seconds = _WINDOW.total_seconds()
    return {key: Rates(*(number / seconds for number in numbers)) for key, numbers in sums.items()}


def _histograms(parts: Iterable[tuple[str, Histogram]]) -> dict[str, Histogram]:
    """The sums of these by name."""
    sums: dict[str, Histogram] = {}
    for name, histogram in parts:
        sums[name] = sums.get(name, Histogram()) + histogram
    return sums


def _claim_cost(explained: Mapping[str, Any]) -> ClaimCost:
    plan = explained["Plan"]
    return ClaimCost(
        buffers=plan["Shared Hit Blocks"] + plan["Shared Read Blocks"],
        rows=round(sum(_rows_touched(plan))),
        took=timedelta(milliseconds=explained["Execution Time"]),
    )


def _rows_touched(node: Mapping[str, Any]) -> Iterable[float]:
    if "Relation Name" in node:
        yield node["Actual Loops"] * (node["Actual Rows"] + node.get("Rows Removed by Filter", 0))
    for child in node.get("Plans", ()):
        yield from _rows_touched(child)


def _cleanup(parts: Iterable[Partition], at: datetime) -> Cleanup:
    expired = [part.end for part in parts if part.end <= at.date()]
    if not expired:
        return Cleanup(0, timedelta(0))
    return Cleanup(len(expired), at - datetime.combine(min(expired), time(), UTC))


def _by_name(rows: Iterable[T] | None, name: Callable[[T], str]) -> dict[str, T]:
    return {name(row): row for row in rows or ()}
