"""Resources: what the parts of an app share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rowlock.app.job import Job
from rowlock.app.registry import Tasks
from rowlock.app.tasks import Call, Task
from rowlock.db.database import Database
from rowlock.db.results import ResultWaiters
from rowlock.errors import UnknownTask
from rowlock.model.names import unversioned
from rowlock.model.payload.arguments import Result, encode_untyped
from rowlock.model.spec import AS_DECLARED, Handler, Keep, TaskSpec

if TYPE_CHECKING:
    from rowlock.app.app import Rowlock


@dataclass(frozen=True, slots=True)
class Resources:
    """The database, who waits there for results, the tasks of this process, and how long ended jobs are kept."""

    database: Database
    waiting_room: ResultWaiters
    tasks: Tasks
    keep: Keep

    def job(self, job_id: str, *, task: str, version: int | None, queue: str) -> Job[Any]:
        """The handle of a job that is in the database."""
        return Job(
            job_id,
            task=task,
            queue=queue,
            room=self.waiting_room,
            handler=self.handler(task, version),
            keep=self.keep,
        )

    def handler(self, name: str, version: int | None = None) -> Handler:
        """The code of a task; that of an unknown one where this process has none."""
        # SQL may enqueue a task under a name that no decorator would take.
        return (self.tasks.get(name, version) or unknown_task("unknown")).handler

    def encode(self, task: str, version: int | None, args: Mapping[str, object]) -> str:
        """Arguments as JSON, checked where this process knows the task."""
        declared = self.tasks.get(task, version)
        return encode_untyped(args) if declared is None else declared.arguments.encode_json(args)


def call_unknown(app: Rowlock, name: str, args: Sequence[object], kwargs: Mapping[str, object]) -> Call[Any]:
    """A call of a task, or NAME@VERSION a workflow, of which this process knows the name alone."""
    if args:
        raise UnknownTask(f"task {name!r} is not known here, so its arguments need names: app.enqueue({name!r}, x=…)")
    task = unknown_task(name)
    task.app = app
    return Call(task, encode_untyped(kwargs), AS_DECLARED)


def unknown_task(name: str) -> Task[..., Any]:
    """A task that refuses to run."""

    def unknown(**_kwargs: object) -> None:
        raise UnknownTask(f"task {name!r} is not known in this process")

    bare, version = unversioned(name)
    task: Task[..., Any] = Task(unknown, TaskSpec(name=bare, version=version))
    task.handler = replace(task.handler, result=Result.untyped(f"the result of {name}"))
    return task
