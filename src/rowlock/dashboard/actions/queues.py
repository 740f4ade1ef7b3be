"""Actions on queues and tasks: pause and resume."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from rowlock.app.pauses import check_used
from rowlock.dashboard.action import Action, ActionResult
from rowlock.dashboard.context import RequestContext
from rowlock.dashboard.page import Params
from rowlock.dashboard.pages.overview import in_time
from rowlock.model.filter import Filter
from rowlock.model.formatting import read_span, span
from rowlock.model.spec import DEFAULT_QUEUE
from rowlock.store import workers
from rowlock.store.pauses import Kind


class QueueParams(Params):
    """A queue, and why."""

    queue: str
    why: str | None = None


class PauseQueueParams(QueueParams):
    """For how long, as it is typed: 15min, 1h; until somebody resumes it unless said; also if nobody uses it yet."""

    duration: str | None = None
    anyway: bool = False


class TaskParams(Params):
    """A task, and why."""

    task: str
    why: str | None = None


class PauseTaskParams(TaskParams):
    """For how long, as it is typed: 15min, 1h; until somebody resumes it unless said; also if nobody uses it yet."""

    duration: str | None = None
    anyway: bool = False


async def pause_queue(context: RequestContext, params: PauseQueueParams) -> ActionResult:
    """Pause a queue: none of its jobs is claimed from now on."""
    lasts = None if params.duration is None else read_span(params.duration)
    if not params.anyway:
        await _check_used(context, "queue", params.queue, Filter(queue=params.queue))
    pause = await context.app.queues.apause(params.queue, duration=lasts, why=params.why, by=context.actor)
    return ActionResult(
        f"Queue {params.queue} is paused {until(lasts)}: what runs goes on, and nothing new starts.", facts=pause
    )


async def resume_queue(context: RequestContext, params: QueueParams) -> ActionResult:
    """Resume a queue: its jobs are claimed again."""
    resumed = await context.app.queues.aresume(params.queue, why=params.why, by=context.actor)
    return ActionResult(
        f"Queue {params.queue} goes on." if resumed else f"Queue {params.queue} was not paused.", facts=resumed
    )


async def pause_task(context: RequestContext, params: PauseTaskParams) -> ActionResult:
    """Pause a task: its jobs are set aside when they are claimed."""
    lasts = None if params.duration is None else read_span(params.duration)
    if not params.anyway:
        await _check_used(context, "task", params.task, Filter(task=params.task))
    pause = await context.app.tasks.apause(params.task, duration=lasts, why=params.why, by=context.actor)
    return ActionResult(
        f"Task {params.task} is paused {until(lasts)}: what runs goes on, and nothing new starts.", facts=pause
    )


async def resume_task(context: RequestContext, params: TaskParams) -> ActionResult:
    """Resume a task: its jobs that were set aside are ready again."""
    resumed = await context.app.tasks.aresume(params.task, why=params.why, by=context.actor)
    return ActionResult(
        f"Task {params.task} goes on." if resumed else f"Task {params.task} was not paused.", facts=resumed
    )


async def _check_used(context: RequestContext, kind: Kind, name: str, jobs: Filter) -> None:
    """Refuse a name that nobody uses; if the database is too slow to tell, a pause is needed all the more."""
    slow: dict[str, str] = {}
    page = await in_time("jobs", context.reader.jobs.alist(jobs, limit=1), slow)
    known = None if page is None or page.records else await in_time("names", _used(context, kind), slow)
    if known is not None:
        check_used(kind, name, known, anyway="anyway=true")


async def _used(context: RequestContext, kind: Kind) -> set[str]:
    stats = await context.reader.astats()
    if kind == "queue":
        return {DEFAULT_QUEUE, *(task.spec.queue for task in context.app.tasks), *stats.queues}
    workers_know = await context.reader.database.arun(workers.known_tasks())
    return {*context.app.tasks.names(), *workers_know, *stats.tasks}


def until(lasts: timedelta | None) -> str:
    """How long a pause holds."""
    return "until somebody resumes it" if lasts is None else f"for {span(lasts)}"


ACTIONS: Final[tuple[Action[Any], ...]] = (
    Action("/queues/pause", "operator", PauseQueueParams, pause_queue, says="Start no more jobs of a queue."),
    Action("/queues/resume", "operator", QueueParams, resume_queue, says="Let a queue go on."),
    Action("/tasks/pause", "operator", PauseTaskParams, pause_task, says="Start no more jobs of a task."),
    Action("/tasks/resume", "operator", TaskParams, resume_task, says="Let a task go on."),
)
