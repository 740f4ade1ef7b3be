"""Notices: what needs attention, from failures, pauses, approvals and the doctor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Final, Literal

from rowlock.doctor.locks import CAUSES
from rowlock.model.checkup import Checkup, Finding
from rowlock.model.formatting import count, span
from rowlock.model.pause import Pause
from rowlock.model.schedule.schedule import Schedule
from rowlock.model.stats.stats import Count, Stats
from rowlock.store.stats.counts import ApprovalsCount

Urgency = Literal["red", "amber", "approval", "paused"]

URGENCIES: Final[tuple[Urgency, ...]] = ("red", "amber", "approval", "paused")
"""The most urgent first."""

# Where to look at what a finding is about; all others stand on the page of the database.
_PLACES: Final = {
    "oldest job": "/queues",
    "queues without a worker": "/queues",
    "schedules": "/schedules",
    "orphaned schedules": "/schedules",
    "live workers": "/workers",
    "leases": "/workers",
    "event loops": "/workers",
    "versions": "/workers",
    "stuck attempts": "/workers",
    "worker faults": "/workers",
    "failing statements": "/workers",
}
# What stands here in other words. Failures are part of the line on failed jobs.
_SAID_OTHERWISE: Final = {"waiting for code", "pauses", "rescues", "failures", "suspects", "idle schedules"}
_NONE_PASSING: Final[Mapping[str, str]] = MappingProxyType({})
_MOST_NAMED: Final = 5
_MOST_REASONS: Final = 2


@dataclass(frozen=True, slots=True)
class Notice:
    """One thing that needs attention: how urgent, what, how many, why, and the page with the filter that shows it.

    `until` is when it passes by itself, if it does. `count` stands in `what` too.
    """

    name: str
    urgency: Urgency
    what: str
    says: str
    path: str
    asked: Mapping[str, str] = field(default_factory=dict)
    count: Count | None = None
    until: datetime | None = None


def notices(
    stats: Stats | None,
    checkup: Checkup,
    *,
    pauses: Sequence[Pause],
    schedules: Sequence[Schedule],
    recent_failures: Mapping[str, int],
    window: str,
    approvals: Sequence[ApprovalsCount] = (),
    passing: Mapping[str, str] = _NONE_PASSING,
) -> tuple[Notice, ...]:
    """Everything, the most urgent first. `recent_failures` counts by task what failed in the `window`.

    `passing` are the schedules that have passed over their last slots, and why they did.
    """
    found: list[Notice] = []
    if stats is not None:
        found += [*_failed(stats, checkup, recent_failures, window), *_poison(stats), *_rescued(stats)]
        found += [*_code(stats), *_suspects(stats)]
    found += [*_findings(checkup), *_passing(passing), *_approvals(approvals)]
    found += [*_pauses(pauses), *_paused_schedules(schedules)]
    # The most urgent first, and of these what is the cause of others.
    return tuple(sorted(found, key=lambda notice: (URGENCIES.index(notice.urgency), notice.name not in CAUSES)))


def _counted(number: Count, noun: str) -> str:
    """`1 job`, `10,000+ jobs`."""
    return f"{number.value:,}+ {noun}s" if number.more else count(number.value, noun)


def _failed(stats: Stats, checkup: Checkup, recent_failures: Mapping[str, int], window: str) -> Iterator[Notice]:
    """One line for all that failed: how many jobs, how many recent ones, and the share that the doctor names."""
    kept = {name: task.failed for name, task in stats.tasks.items() if task.failed is not None and task.failed.value}
    share = next((one for one in checkup.findings if one.name == "failures" and one.level != "green"), None)
    if not kept:
        if share is not None and share.figure != "?":
            yield _finding(share)
        return
    in_all = Count(sum(one.value for one in kept.values()), more=any(one.more for one in kept.values()))
    fresh = sum(recent_failures.values())
    by_task = recent_failures if fresh else {name: one.value for name, one in kept.items()}
    most = max(by_task, key=lambda name: by_task[name])
    of_which = f"most of {most}" if len(by_task) > 1 else f"of {most}"
    when = f"{count(fresh, 'job')} in the last {window}" if fresh else f"none in the last {window}"
    now = (
        "" if share is None or share.figure == "?" else f"; {share.figure} that ended in the last {span(stats.window)}"
    )
    yield Notice(
        "failed",
        "red" if fresh or (share is not None and share.level == "red") else "amber",
        _counted(in_all, "failed job"),
        f"{when}, {of_which}{now}",
        "/jobs",
        {"state": "failed"},
        in_all,
    )


def _poison(stats: Stats) -> Iterator[Notice]:
    poisoned = stats.fleet.poisoned
    if poisoned is not None and poisoned.day.value:
        says = "each was running when its worker died, three times; they are not retried by themselves"
        asked = {"state": "failed", "reason": "poison"}
        what = f"{_counted(poisoned.day, 'poison job')} in the last day"
        yield Notice("poison", "red", what, says, "/jobs", asked, poisoned.day)


def _rescued(stats: Stats) -> Iterator[Notice]:
    rescued = stats.fleet.rescued
    if rescued is not None and rescued.hour.value:
        says = "workers have died while they held these: killed, or cut off from the database"
        what = f"{_counted(rescued.hour, 'job')} rescued in the last hour"
        yield Notice("rescued", "amber", what, says, "/audit", {"kind": "rescued"}, rescued.hour)


def _code(stats: Stats) -> Iterator[Notice]:
    for name, queue in stats.queues.items():
        blocked = (queue.waiting or {}).get("code")
        if blocked is not None and blocked.value:
            says = "no live worker has the task or version, or the arguments do not fit it"
            asked = {"state": "waiting", "queue": name}
            what = f"{_counted(blocked, 'job')} in {name} waiting for code"
            yield Notice(f"code {name}", "amber", what, says, "/jobs", asked, blocked)


def _suspects(stats: Stats) -> Iterator[Notice]:
    for name, queue in stats.queues.items():
        suspects = (queue.waiting or {}).get("suspect")
        if suspects is not None and suspects.value:
            says = "each was running when its worker died, twice; they run one at a time, in their turn"
            asked = {"state": "waiting", "queue": name}
            what = f"{_counted(suspects, 'job')} in {name} may have killed a worker"
            yield Notice(f"suspects {name}", "amber", what, says, "/jobs", asked, suspects)


def _approvals(approvals: Sequence[ApprovalsCount]) -> Iterator[Notice]:
    for one in approvals:
        waiting = Count(one.jobs, more=one.more)
        says = "somebody has to fill in a form before they go on"
        path, asked = "/workflows", {"workflow": one.workflow, "status": "parked"}
        if one.jobs == 1 and not one.more:
            says, path, asked = "somebody has to fill in a form before it goes on", f"/workflows/{one.first}", {}
        what = f"{_counted(waiting, 'approval')} of {one.workflow}"
        yield Notice(f"approval {one.workflow}", "approval", what, says, path, asked, waiting)


def _passing(passing: Mapping[str, str]) -> Iterator[Notice]:
    for name, why in passing.items():
        what = f"schedule {name} starts no jobs"
        yield Notice(f"passing {name}", "amber", what, f"its last slots were passed over: {why}", f"/schedules/{name}")


def _findings(checkup: Checkup) -> Iterator[Notice]:
    ill = [finding for finding in checkup.findings if finding.level != "green" and finding.name not in _SAID_OTHERWISE]
    unknown = [finding for finding in ill if finding.figure == "?"]
    yield from (_finding(finding) for finding in ill if finding.figure != "?")
    if unknown:
        names = ", ".join(finding.name for finding in unknown[:_MOST_NAMED])
        reasons = list(dict.fromkeys(finding.says.removeprefix("unknown: ") for finding in unknown))
        says = f"{names}{' …' if len(unknown) > _MOST_NAMED else ''}: {'; '.join(reasons[:_MOST_REASONS])}"
        what = f"{count(len(unknown), 'thing')} unknown about the database"
        yield Notice("unknown", "amber", what, says, "/database", count=Count(len(unknown)))


def _finding(finding: Finding) -> Notice:
    urgency: Urgency = "red" if finding.level == "red" else "amber"
    what = f"{finding.name}: {finding.figure}"
    if finding.name == "failures":
        return Notice(finding.name, urgency, what, finding.says, "/jobs", {"state": "failed"})
    return Notice(finding.name, urgency, what, finding.says, _PLACES.get(finding.name, "/database"))


def _pauses(pauses: Sequence[Pause]) -> Iterator[Notice]:
    for pause in pauses:
        kind, name = ("queue", pause.queue) if pause.queue is not None else ("task", pause.task)
        yield Notice(
            f"pause {kind} {name}",
            "paused",
            f"{kind} {name} is paused",
            _paused_by(pause.by, pause.why),
            "/queues",
            until=pause.until,
        )


def _paused_by(by: str, why: str | None) -> str:
    """`by ann: the host moves`; a breaker says itself who it is."""
    return f"by {by}: {why.removeprefix(f'{by}: ')}" if why else f"by {by}"


def _paused_schedules(schedules: Sequence[Schedule]) -> Iterator[Notice]:
    for schedule in schedules:
        if schedule.is_paused:
            yield Notice(
                f"pause schedule {schedule.name}",
                "paused",
                f"schedule {schedule.name} is paused",
                _paused_by(schedule.paused_by or "somebody", schedule.paused_why),
                f"/schedules/{schedule.name}",
                until=schedule.paused_until,
            )
