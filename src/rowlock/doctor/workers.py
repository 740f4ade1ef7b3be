"""Workers: whether there are any, whether they are healthy and of this version."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from rowlock.doctor.check import HealthCheck, several, why
from rowlock.model.checkup import Finding, Level
from rowlock.model.formatting import count, span
from rowlock.model.redact import redact_text
from rowlock.model.stats.stats import Recent, WorkerStats
from rowlock.store.doctor.checkup_facts import Facts

_GROUP = "workers"
# Rescue comes within seconds of the end of a lease.
_LONG_OVER = timedelta(minutes=1)
# No handler that is meant to be async computes for so long.
_LONG_BLOCKED = timedelta(seconds=30)
# A deployment that kills loses a few; a job that was poison has killed three workers, and ten of them are no accident.
_RESCUES = 10
_POISONS_RED = 10
# Its pauses are seconds by then: what it meets does not pass by itself.
_RESTARTS_RED = 3


def judge_fleet(facts: Facts, *, version: str) -> Iterator[Finding]:
    """All checks of workers."""
    workers = facts.stats.fleet.workers if facts.stats else None
    if workers is None:
        names = ("live workers", "leases", "event loops", "versions", "stuck attempts", "worker faults")
        for name in (*names, "failing statements"):
            yield HealthCheck(_GROUP, name).unknown(why(facts, "workers"))
    else:
        live = [worker for worker in workers if worker.lease_left > timedelta(0)]
        yield _alive(facts, live)
        yield _leases(workers, live)
        yield _loops(live)
        yield _versions(live, version)
        yield _stuck(live)
        yield _faults(live)
        yield _failing(facts, live)
    yield _rescues(facts)
    yield _suspects(facts)


def _alive(facts: Facts, live: list[WorkerStats]) -> Finding:
    check = HealthCheck(_GROUP, "live workers")
    if live:
        slots = sum(worker.slots for worker in live)
        return check.green(f"{len(live)}", f"with {count(slots, 'slot')} in all", value=len(live))
    queues = facts.stats.queues if facts.stats else {}
    due = sum(queue.runnable.value for queue in queues.values() if queue.runnable and not queue.paused)
    return check.ill(
        "red" if due else "amber",
        "0",
        f"nobody works: {count(due, 'job')} due, and no upkeep" if due else "nobody works, and nobody does the upkeep",
        do="rowlock worker --app MODULE",
        value=0,
    )


def _leases(workers: tuple[WorkerStats, ...], live: list[WorkerStats]) -> Finding:
    check = HealthCheck(_GROUP, "leases")
    stale = [worker for worker in workers if worker.lease_left <= timedelta(0)]
    late = [worker for worker in live if worker.vitals.health == "late"]
    if not stale and late:
        return _late(check, late, live)
    if not stale:
        return check.green("all fresh", "every worker on the books keeps its lease", value=0.0)
    held = sum(worker.held for worker in stale)
    longest = span(min(worker.lease_left for worker in stale))
    is_long = any(worker.lease_left <= -_LONG_OVER for worker in stale)
    level: Level = "amber" if live and not is_long else "red"
    do = "a live worker rescues their jobs within seconds"
    if not live:
        do = "start a worker: nobody is there to rescue"
    elif is_long:
        do = "nobody rescues their jobs: see table locks and lock waits, and the logs of the live workers"
    return check.ill(
        level,
        several([f"{worker.host}:{worker.pid}" for worker in stale]),
        f"over for {longest}, with {count(held, 'job')}: killed, or cut off from the database",
        do=do,
        value=len(stale),
    )


def _late(check: HealthCheck, late: list[WorkerStats], live: list[WorkerStats]) -> Finding:
    """The finding on workers that have missed a renewal; their jobs are untouchable until the leases end."""
    longest = max(late, key=lambda worker: worker.vitals.silent)
    return check.ill(
        "red" if len(late) == len(live) else "amber",
        several([f"{worker.host}:{worker.pid}" for worker in late]),
        f"{'the first of them ' if len(late) > 1 else ''}{longest.vitals.says}",
        do="look at that process: continue it, or end it; and at the network between it and the database",
        value=longest.vitals.silent.total_seconds(),
    )


def _loops(live: list[WorkerStats]) -> Finding:
    """A blocked event loop starts nothing, while the lease is renewed by a thread of its own."""
    check = HealthCheck(_GROUP, "event loops")
    blocked = [worker for worker in live if worker.vitals.health == "blocked"]
    if not blocked:
        return check.green("none blocked", "the event loop of every live worker turns", value=0.0)
    longest = max(blocked, key=lambda worker: worker.blocked or timedelta(0))
    length = longest.blocked or timedelta(0)
    return check.ill(
        "red" if length >= _LONG_BLOCKED or len(blocked) == len(live) else "amber",
        several([f"{worker.host}:{worker.pid}" for worker in blocked]),
        f"{'the first of them ' if len(blocked) > 1 else ''}{longest.vitals.says}",
        do="make that task a sync one, or call what blocks in asyncio.to_thread; more workers help meanwhile",
        value=length.total_seconds(),
    )


def _versions(live: list[WorkerStats], version: str) -> Finding:
    check = HealthCheck(_GROUP, "versions")
    others = sorted({worker.version for worker in live} - {version})
    if not others:
        return check.green(version, "workers and this client are of one version")
    which = [f"{worker.host}:{worker.pid} is {worker.version}" for worker in live if worker.version != version]
    return check.ill(
        "amber",
        several(which),
        f"this client is {version}: what one of them writes, the other may not know yet",
        do="finish the deployment: stop the old workers and start new ones",
        value=len(which),
    )


def _stuck(live: list[WorkerStats]) -> Finding:
    check = HealthCheck(_GROUP, "stuck attempts")
    stuck = [worker for worker in live if worker.stuck]
    if not stuck:
        return check.green("0", "every attempt that timed out has ended", value=0.0)
    full = [worker for worker in stuck if worker.stuck >= worker.slots]
    return check.ill(
        "red" if full else "amber",
        several([f"{worker.stuck} at {worker.host}:{worker.pid}" for worker in stuck]),
        "timed out and go on all the same, each in a slot: a thread cannot be stopped from outside"
        + ("; that worker has no slot left" if full else ""),
        do="restart these workers; have the handler look at current_job().cancelled, and give what it calls a time-out",
        value=sum(worker.stuck for worker in stuck),
    )


def _faults(live: list[WorkerStats]) -> Finding:
    check = HealthCheck(_GROUP, "worker faults")
    unfit = [worker for worker in live if worker.fault and not worker.restarts]
    if unfit:
        return check.ill(
            "red",
            several([f"{worker.host}:{worker.pid}" for worker in unfit]),
            f"claim no more jobs, because the schema has been migrated: {redact_text(unfit[0].fault or '')}",
            do="start workers of the new version, and stop these",
            value=float(len(unfit)),
        )
    faulty = sorted((worker for worker in live if worker.restarts), key=lambda worker: -worker.restarts)
    if not faulty:
        return check.green("none", "no worker restarted after an internal error", value=0.0)
    worst = faulty[0]
    return check.ill(
        "red" if worst.restarts >= _RESTARTS_RED else "amber",
        several([f"{worker.restarts} at {worker.host}:{worker.pid}" for worker in faulty]),
        f"restarted so often in a row, each time after a longer pause: {redact_text(worst.fault or 'unknown')}",
        do="the log of that worker has the traceback; update Rowlock, or report it",
        value=worst.restarts,
    )


def _failing(facts: Facts, live: list[WorkerStats]) -> Finding:
    check = HealthCheck(_GROUP, "failing statements")
    since = {worker.id: worker.failing_since for worker in live if worker.failing_since is not None}
    if not since or facts.stats is None:
        return check.green("none", "settles and claims work", value=0.0)
    failing = sorted((worker for worker in live if worker.id in since), key=lambda worker: since[worker.id])
    lasts = facts.stats.at - since[failing[0].id]
    return check.ill(
        "red",
        several([f"{worker.host}:{worker.pid}" for worker in failing]),
        f"tried again and again for {span(lasts)}: {redact_text(failing[0].failing or '')}",
        do="fix what PostgreSQL reports there; nothing is lost meanwhile, and it goes on by itself",
        value=lasts.total_seconds(),
    )


def _suspects(facts: Facts) -> Finding:
    check = HealthCheck(_GROUP, "suspects")
    suspects = facts.stats.fleet.suspects if facts.stats else None
    if suspects is None:
        return check.unknown(why(facts, "suspects"))
    if suspects.oldest is None:
        return check.green("none", "no job waits because workers died while they ran it", value=0.0)
    return check.ill(
        "amber",
        f"{suspects.waiting}, the first for {span(suspects.oldest)}",
        "workers died while they ran these jobs: each worker runs one of them at a time, beside others",
        do="rowlock jobs list --state waiting; find out what they do to their process, or start more workers",
        value=suspects.oldest.total_seconds(),
    )


def _rescues(facts: Facts) -> Finding:
    check = HealthCheck(_GROUP, "rescues")
    rescued, poisoned = (facts.stats.fleet.rescued, facts.stats.fleet.poisoned) if facts.stats else (None, None)
    if rescued is None or poisoned is None:
        return check.unknown(why(facts, "rescues"))
    level = _level(rescued, poisoned)
    return check.judged(
        level,
        f"{rescued.hour} in the last hour, {poisoned.hour} poison",
        well=f"{rescued.day} in the last day, {poisoned.day} poison",
        ill="workers die while they hold jobs: killed for memory, or by what a job does to them",
        do="rowlock jobs events; rowlock jobs list --reason poison; then the memory of the workers' machines",
        value=rescued.hour.value,
    )


def _level(rescued: Recent, poisoned: Recent) -> Level:
    if poisoned.hour.value >= _POISONS_RED:
        return "red"
    return "amber" if poisoned.hour.value or rescued.hour.value >= _RESCUES else "green"
