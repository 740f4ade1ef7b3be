"""Work: whether jobs are done in time, by a worker, and without failures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Final

from rowlock.doctor.check import HealthCheck, by_bounds, several, why
from rowlock.model.checkup import Finding
from rowlock.model.formatting import span
from rowlock.model.stats.stats import QueueStats, Stats
from rowlock.store.doctor.checkup_facts import OVERDUE, Facts
from rowlock.store.doctor.queries import SLOTS_PASSED

_GROUP = "work"
# Ten times the target is no peak any more.
_TIMES_TARGET = 10
# One failure of three jobs says nothing. A tenth is more than bad luck, half of them is an outage.
_ENOUGH_JOBS = 20
_FAILED = (0.1, 0.5)
_FORGOTTEN = timedelta(days=1)
_OVERDUE_RED = timedelta(minutes=15)
WHY_PASSED: Final = {
    "overlap": "the job before them has not ended",
    "missed": "no worker fired them in time",
    "replaced": "each was replaced by the next before the job before it had ended",
}
"""Why a schedule has passed over its last slots, by the reason that its firings have."""


def judge_work(facts: Facts, *, target: timedelta) -> Iterator[Finding]:
    """All checks of jobs, pauses and schedules."""
    yield _oldest(facts, target)
    yield _unattended(facts, target)
    yield _code(facts)
    yield _failures(facts)
    yield _pauses(facts)
    yield _overdue(facts)
    yield _idle(facts)
    yield _orphans(facts)


def _queues(facts: Facts) -> Mapping[str, QueueStats] | None:
    """The queues, if their jobs could be counted."""
    stats = facts.stats
    return None if stats is None or "runnable" in stats.unknown else stats.queues


def _oldest(facts: Facts, target: timedelta) -> Finding:
    check = HealthCheck(_GROUP, "oldest job")
    queues = _queues(facts)
    if queues is None:
        return check.unknown(why(facts, "runnable"))
    due = {name: queue.oldest for name, queue in queues.items() if queue.oldest is not None and not queue.paused}
    paused = sorted(name for name, queue in queues.items() if queue.oldest is not None and queue.paused)
    aside = f"; paused, and not counted: {several(paused)}" if paused else ""
    if not due:
        return check.green("nothing due", f"no queue has a job that waits{aside}", value=0.0)
    name = max(due, key=lambda name: due[name])
    oldest = due[name]
    wanted = target.total_seconds()
    standing = {one: waited for one, waited in due.items() if waited >= target and _stands_still(facts, one)}
    if standing:
        longest = max(standing.values())
        return check.ill(
            "red",
            f"{span(longest)} in {several(sorted(standing))}",
            f"nothing moves there: jobs are due, a live worker has free slots, and none was claimed for minutes{aside}",
            do="see table locks, lock waits, leases and event loops; then the workers' logs, or restart them",
            value=longest.total_seconds(),
        )
    return check.judged(
        by_bounds(oldest.total_seconds(), amber=wanted, red=_TIMES_TARGET * wanted),
        f"{span(oldest)} in {name}",
        well=f"within the target of {span(target)}{aside}",
        ill=f"over the target of {span(target)}: the workers of {name} are too few or too slow{aside}",
        do=f"rowlock queues show {name}; more slots or workers, or a queue of its own for what is slow",
        value=oldest.total_seconds(),
    )


def _stands_still(facts: Facts, queue: str) -> bool:
    """Whether nothing is claimed from a queue with due jobs, though one of its workers has a free slot."""
    stats = facts.stats
    if stats is None or stats.fleet.workers is None or (rates := stats.queues[queue].rates) is None or rates.claimed:
        return False
    return any(
        worker.lease_left > timedelta(0)
        and worker.held < worker.slots
        and queue in worker.queues
        and stats.at - worker.started_at > 2 * stats.window
        for worker in stats.fleet.workers
    )


def _unattended(facts: Facts, target: timedelta) -> Finding:
    check = HealthCheck(_GROUP, "queues without a worker")
    queues = _queues(facts)
    if queues is None or facts.stats is None or facts.stats.fleet.workers is None:
        return check.unknown(why(facts, "workers") or why(facts, "runnable"))
    served = {
        queue for worker in facts.stats.fleet.workers if worker.lease_left > timedelta(0) for queue in worker.queues
    }
    alone = {
        name: queue.oldest or timedelta(0)
        for name, queue in queues.items()
        if queue.runnable and queue.runnable.value and not queue.paused and name not in served
    }
    if not alone:
        return check.green("none", "every queue with jobs has a live worker", value=0.0)
    return check.ill(
        "red" if max(alone.values()) >= target else "amber",
        several(sorted(alone)),
        "jobs are due there, and no live worker looks into it",
        do=f"rowlock worker --app MODULE --queues {','.join(sorted(alone)[:3])}, or move the jobs: rowlock jobs move",
        value=len(alone),
    )


def _code(facts: Facts) -> Finding:
    check = HealthCheck(_GROUP, "waiting for code")
    stats = facts.stats
    if stats is None or "waiting" in stats.unknown:
        return check.unknown(why(facts, "waiting"))
    waiting = {
        name: queue.waiting["code"] for name, queue in stats.queues.items() if queue.waiting and "code" in queue.waiting
    }
    if not waiting:
        return check.green("none", "every job's task is known to a worker", value=0.0)
    return check.ill(
        "amber",
        several([f"{jobs} in {name}" for name, jobs in waiting.items()]),
        "no worker that looked at these jobs knew their task, or their arguments did not fit it",
        do="rowlock jobs list --state waiting; deploy code that knows them, and they go on by themselves",
        value=sum(jobs.value for jobs in waiting.values()),
    )


def _failures(facts: Facts) -> Finding:
    check = HealthCheck(_GROUP, "failures")
    stats = facts.stats
    if stats is None or "rates" in stats.unknown:
        return check.unknown(why(facts, "rates"))
    completed, failed = (_in_window(stats, name) for name in ("completed", "failed"))
    share = failed / completed if completed else 0.0
    worst = max(stats.tasks, key=lambda name: _rate(stats, name, "failed"), default="")
    amber, red = _FAILED
    return check.judged(
        by_bounds(share, amber=amber, red=red) if completed >= _ENOUGH_JOBS else "green",
        f"{failed:.0f} of {completed:.0f}",
        well=f"jobs that ended in the last {span(stats.window)}",
        ill=f"of the jobs that ended in the last {span(stats.window)} have failed for good, most of {worst}",
        do=f"rowlock jobs list --state failed --task {worst}; then retry them: rowlock jobs retry",
        value=share,
    )


def _in_window(stats: Stats, name: str) -> float:
    return sum(_rate(stats, task, name) for task in stats.tasks) * stats.window.total_seconds()


def _rate(stats: Stats, task: str, name: str) -> float:
    rates = stats.tasks[task].rates
    return 0.0 if rates is None else float(getattr(rates, name))


def _pauses(facts: Facts) -> Finding:
    check = HealthCheck(_GROUP, "pauses")
    if facts.pauses is None or facts.stats is None:
        return check.unknown(why(facts, "pauses"))
    now = facts.stats.at
    old = [pause for pause in facts.pauses if pause.until is None and now - pause.at >= _FORGOTTEN]
    names = [f"queue {pause.queue}" if pause.queue else f"task {pause.task}" for pause in facts.pauses]
    if not old:
        return check.green(f"{len(names)}", several(names) or "nothing is paused", value=len(names))
    first = min(old, key=lambda pause: pause.at)
    kind, name = ("queues", first.queue) if first.queue else ("tasks", first.task)
    because = f": {first.why}" if first.why else ""
    return check.ill(
        "amber",
        f"{kind.removesuffix('s')} {name}, {span(now - first.at)}",
        f"paused by {first.by} over a day ago, with nothing said of the end{because}",
        do=f"rowlock {kind} resume {name}, or pause it again with --for",
        value=len(old),
    )


def _overdue(facts: Facts) -> Finding:
    check = HealthCheck(_GROUP, "schedules")
    found = facts.schedules
    if found is None:
        return check.unknown(why(facts, "schedules"))
    late = timedelta(seconds=max(0.0, found.late or 0.0))
    if found.overdue:
        return check.ill(
            "red" if late >= _OVERDUE_RED else "amber",
            several(found.overdue),
            f"a slot was due {span(late)} ago and no job was made: any live worker does that within seconds",
            do="start a worker; if one lives, see duty locks, table locks and event loops for what is in its way",
            value=late.total_seconds(),
        )
    if found.silent:
        longest = span(timedelta(seconds=found.silent_for or 0.0))
        return check.ill(
            "amber",
            several(found.silent),
            f"nothing is fired for up to {longest}: the database's clock was ahead when they last fired",
            do=f"give each another rule, and then its own again: rowlock schedules edit {found.silent[0]} --cron …",
            value=late.total_seconds(),
        )
    if found.missed:
        return check.ill(
            "amber",
            several(found.missed),
            "slots of the last hour were missed, though a worker lived that should have fired them",
            do="see duty locks, table locks and leases; the workers' logs of that time say what was in the way",
            value=late.total_seconds(),
        )
    if found.forgotten:
        return check.ill(
            "amber",
            several(found.forgotten),
            "paused over a day ago, with nothing said of the end",
            do=f"rowlock schedules resume {found.forgotten[0]}, or remove it",
            value=late.total_seconds(),
        )
    says = f"none overdue by {span(OVERDUE)} or more" if found.all else "there is none"
    return check.green(f"{found.all}", says, value=late.total_seconds())


def _idle(facts: Facts) -> Finding:
    check = HealthCheck(_GROUP, "idle schedules")
    found = facts.schedules
    if found is None:
        return check.unknown(why(facts, "schedules"))
    if not found.idle:
        return check.green("none", "every schedule has made a job recently, or is new", value=0.0)
    reasons = dict.fromkeys(WHY_PASSED.get(reason, reason) for reason in found.idle.values())
    return check.ill(
        "amber",
        several(list(found.idle)),
        f"their last {SLOTS_PASSED} slots or more were passed over: {'; '.join(reasons)}",
        do=f"rowlock schedules show {next(iter(found.idle))}; and rowlock explain JOB for the last job that it made",
        value=len(found.idle),
    )


def _orphans(facts: Facts) -> Finding:
    check = HealthCheck(_GROUP, "orphaned schedules")
    found = facts.schedules
    if found is None:
        return check.unknown(why(facts, "schedules"))
    if not found.orphans:
        return check.green("none", "every declared schedule is in a live worker's code", value=0.0)
    return check.ill(
        "amber",
        several(found.orphans),
        "declared by code that no live worker runs any more, and fired all the same",
        do=f"rowlock schedules remove {found.orphans[0]}, or start the workers that declare it",
        value=len(found.orphans),
    )
