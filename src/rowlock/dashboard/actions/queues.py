"""What can be done about queues and tasks: pause them, and let them go on."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from rowlock.app.pauses import check_used
from rowlock.dashboard.action import Action, Did
from rowlock.dashboard.desk import Desk
from rowlock.dashboard.page import Asked
from rowlock.dashboard.pages.overview import in_time
from rowlock.model.filter import Filter
from rowlock.model.formatting import read_span, span
from rowlock.model.spec import DEFAULT_QUEUE
from rowlock.store import workers
from rowlock.store.pauses import Kind


class QueueAsked(Asked):
    """A queue, and why."""

    queue: str
    why: str | None = None


class PauseQueueAsked(QueueAsked):
    """For how long, as it is typed: 15min, 1h; until somebody resumes it unless said; also if nobody uses it yet."""

    duration: str | None = None
    anyway: bool = False


class TaskAsked(Asked):
    """A task, and why."""

    task: str
    why: str | None = None


class PauseTaskAsked(TaskAsked):
    """For how long, as it is typed: 15min, 1h; until somebody resumes it unless said; also if nobody uses it yet."""

    duration: str | None = None
    anyway: bool = False


async def pause_queue(desk: Desk, asked: PauseQueueAsked) -> Did:
    """None of its jobs is claimed from now on."""
    lasts = None if asked.duration is None else read_span(asked.duration)
    if not asked.anyway:
        await _check_used(desk, "queue", asked.queue, Filter(queue=asked.queue))
    pause = await desk.app.apause(queue=asked.queue, duration=lasts, why=asked.why, by=desk.who)
    return Did(f"Queue {asked.queue} is paused {until(lasts)}: what runs goes on, and nothing new starts.", facts=pause)


async def resume_queue(desk: Desk, asked: QueueAsked) -> Did:
    """Its jobs are claimed again."""
    resumed = await desk.app.aresume(queue=asked.queue, why=asked.why, by=desk.who)
    return Did(f"Queue {asked.queue} goes on." if resumed else f"Queue {asked.queue} was not paused.", facts=resumed)


async def pause_task(desk: Desk, asked: PauseTaskAsked) -> Did:
    """Its jobs are set aside when they are claimed."""
    lasts = None if asked.duration is None else read_span(asked.duration)
    if not asked.anyway:
        await _check_used(desk, "task", asked.task, Filter(task=asked.task))
    pause = await desk.app.apause(task=asked.task, duration=lasts, why=asked.why, by=desk.who)
    return Did(f"Task {asked.task} is paused {until(lasts)}: what runs goes on, and nothing new starts.", facts=pause)


async def resume_task(desk: Desk, asked: TaskAsked) -> Did:
    """The jobs that were set aside are ready again."""
    resumed = await desk.app.aresume(task=asked.task, why=asked.why, by=desk.who)
    return Did(f"Task {asked.task} goes on." if resumed else f"Task {asked.task} was not paused.", facts=resumed)


async def _check_used(desk: Desk, kind: Kind, name: str, jobs: Filter) -> None:
    """Refuse a name that nobody uses; where the database is too slow to tell, a pause is wanted all the more."""
    slow: dict[str, str] = {}
    page = await in_time("jobs", desk.look.jobs.alist(jobs, limit=1), slow)
    known = None if page is None or page.records else await in_time("names", _used(desk, kind), slow)
    if known is not None:
        check_used(kind, name, known, anyway="anyway=true")


async def _used(desk: Desk, kind: Kind) -> set[str]:
    stats = await desk.look.astats()
    if kind == "queue":
        return {DEFAULT_QUEUE, *(task.spec.queue for task in desk.app.tasks), *stats.queues}
    workers_know = await desk.look.database.arun(workers.known_tasks())
    return {*desk.app.tasks.names(), *workers_know, *stats.tasks}


def until(lasts: timedelta | None) -> str:
    """How long a pause holds."""
    return "until somebody resumes it" if lasts is None else f"for {span(lasts)}"


ACTIONS: Final[tuple[Action[Any], ...]] = (
    Action("/queues/pause", "operator", PauseQueueAsked, pause_queue, says="Start no more jobs of a queue."),
    Action("/queues/resume", "operator", QueueAsked, resume_queue, says="Let a queue go on."),
    Action("/tasks/pause", "operator", PauseTaskAsked, pause_task, says="Start no more jobs of a task."),
    Action("/tasks/resume", "operator", TaskAsked, resume_task, says="Let a task go on."),
)
