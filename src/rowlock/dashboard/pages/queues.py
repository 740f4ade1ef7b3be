"""The page /queues: depths, rates, workers and pauses of queues and tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from rowlock.dashboard.context import RequestContext
from rowlock.dashboard.page import DashboardPage, Params
from rowlock.model.pause import Breaker, Pause
from rowlock.model.stats.stats import Count, Glance, QueueStats, Rates, TaskStats
from rowlock.store.stats.series import Sparkline, collect_glance_with_sparklines

_MOST_SHOWN: Final = 200
_QUIET: Final = TaskStats(rates=Rates(), durations=None, waits=None, failed=Count(0), paused=False)


class QueuesParams(Params):
    """Queues and tasks whose names have this in them; all unless asked."""

    named: str = ""


@dataclass(frozen=True, slots=True)
class QueueShown:
    """A queue; `workers` are the live ones that look into it."""

    name: str
    stats: QueueStats
    workers: int | None
    pause: Pause | None
    pulse: Sparkline


@dataclass(frozen=True, slots=True)
class TaskShown:
    """A task; its breaker, if the code at hand gives it one."""

    name: str
    stats: TaskStats
    pause: Pause | None
    breaker: Breaker | None
    pulse: Sparkline


@dataclass(frozen=True, slots=True)
class QueuesShown:
    """Queues and tasks by name, and how many more there are."""

    at: datetime
    window: timedelta
    queues: tuple[QueueShown, ...]
    more_queues: int
    tasks: tuple[TaskShown, ...]
    more_tasks: int
    unknown: Mapping[str, str]


async def load(context: RequestContext, params: QueuesParams) -> QueuesShown:
    """Load queues and tasks at one moment."""
    glance, pulses = await context.reader.database.aconverse(collect_glance_with_sparklines)
    queues = _meant(glance.queues, params.named)
    tasks = _meant({*glance.tasks, *context.app.tasks.names()}, params.named)
    return QueuesShown(
        at=glance.at,
        window=glance.window,
        queues=tuple(_queue(name, glance, pulses.queues) for name in queues[:_MOST_SHOWN]),
        more_queues=len(queues[_MOST_SHOWN:]),
        tasks=tuple(_task(context, name, glance, pulses.tasks) for name in tasks[:_MOST_SHOWN]),
        more_tasks=len(tasks[_MOST_SHOWN:]),
        unknown=glance.unknown,
    )


def _meant(names: Iterable[str], part: str) -> list[str]:
    return sorted(name for name in names if part.casefold() in name.casefold())


def _queue(name: str, glance: Glance, pulses: Mapping[str, Sparkline]) -> QueueShown:
    live = None
    if glance.workers is not None:
        live = sum(name in worker.queues for worker in glance.workers if worker.lease_left > timedelta(0))
    pause = next((pause for pause in glance.pauses or () if pause.queue == name), None)
    return QueueShown(name, glance.queues[name], live, pause, pulses.get(name, ()))


def _task(context: RequestContext, name: str, glance: Glance, pulses: Mapping[str, Sparkline]) -> TaskShown:
    known = context.app.tasks.get(name)
    pause = next((pause for pause in glance.pauses or () if pause.task == name), None)
    breaker = None if known is None else known.spec.breaker
    return TaskShown(name, glance.tasks.get(name, _QUIET), pause, breaker, pulses.get(name, ()))


PAGE = DashboardPage(
    "queues",
    "/queues",
    QueuesParams,
    QueuesShown,
    load,
    says="Every queue and task: depths, rates, workers, pauses.",
    nav="queues",
    key="q",
)
