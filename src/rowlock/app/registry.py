"""Registry: the tasks and workflows that are declared, by name."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar, overload

from rowlock.app.tasks import NO_JITTER, Task
from rowlock.app.verbs import Verb, averb, verb
from rowlock.app.workflow import DeclaringWorkflows, Workflow, carried
from rowlock.db.database import Database
from rowlock.errors import TaskError
from rowlock.model.names import versioned
from rowlock.model.pause import Breaker, Pause
from rowlock.model.payload.signature import default_name
from rowlock.model.retry import Retry
from rowlock.model.spec import DEFAULT_QUEUE, Handler, Keep, TaskSpec

if TYPE_CHECKING:
    from rowlock.app.app import Rowlock
    from rowlock.model.schedule.rule import CatchUp, Overlap
    from rowlock.model.schedule.schedule import ScheduleSpec

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C")


class TaskDecorator(Protocol):
    """What `@app.task(…)` returns."""

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]]) -> Task[P, R, Coroutine[Any, Any, R]]: ...
    @overload
    def __call__(self, function: Callable[P, R]) -> Task[P, R, R]: ...


class EveryDecorator(Protocol):
    """What `@app.task.every(…)` returns: it takes a function, or a task that is declared below it."""

    @overload
    def __call__(self, task: Workflow[P, R]) -> Workflow[P, R]: ...
    @overload  # a task is called like a function, but it is taken as what it is
    def __call__(self, task: Task[P, R, C]) -> Task[P, R, C]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, task: Callable[P, Coroutine[Any, Any, R]]) -> Task[P, R, Coroutine[Any, Any, R]]: ...
    @overload
    def __call__(self, task: Callable[P, R]) -> Task[P, R, R]: ...


class Declaring:
    """The decorator `app.task`: of functions, with options or without."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]]) -> Task[P, R, Coroutine[Any, Any, R]]: ...
    @overload
    def __call__(self, function: Callable[P, R]) -> Task[P, R, R]: ...
    @overload
    def __call__(
        self,
        *,
        name: str | None = None,
        queue: str = DEFAULT_QUEUE,
        priority: int = 0,
        retry: Retry | None = None,
        timeout: timedelta | None = None,
        aliases: Sequence[str] = (),
        keep: Keep | None = None,
        history: bool = True,
        expires: timedelta | None = None,
        breaker: Breaker | None = None,
    ) -> TaskDecorator: ...

    def __call__(self, function: Any = None, *, name: str | None = None, **options: Any) -> Any:
        """Declare a task. Its name is `module.function` unless given; `aliases` are names it had before."""
        if "retry" in options and options["retry"] is None:
            del options["retry"]
        options["aliases"] = tuple(options.get("aliases", ()))

        def declare(function: Callable[..., Any]) -> Task[..., Any]:
            task: Task[..., Any] = Task(
                function, TaskSpec(name=default_name(function) if name is None else name, **options)
            )
            self._tasks.add(task)
            return task

        return declare if function is None else declare(function)

    def every(
        self,
        rule: str | timedelta,
        *,
        tz: str | None = None,
        name: str | None = None,
        jitter: timedelta = NO_JITTER,
        overlap: Overlap = "skip",
        catch_up: CatchUp = "last",
        at_boot: bool = False,
    ) -> EveryDecorator:
        """Declare a schedule of a task, or of a function, which becomes a task: a cron expression, or an interval.

        Its name is the task's unless given. A cron expression goes by the clocks of `tz`, or UTC. Each job starts up to
        `jitter` later. `overlap` is what becomes of a slot while the job before it lives: "skip" it, "allow" both,
        "queue" one slot, "replace" the job. `catch_up` is what becomes of slots that nobody fired in time: the "last"
        is made up for, "none", or the last so many. `at_boot` runs it when a worker starts, too.
        """
        from rowlock.model.schedule.rule import check_rule  # noqa: PLC0415  whoever only enqueues does without

        check_rule(rule, tz)

        def declare(task: Any) -> Any:  # noqa: ANN401  as the protocol says
            declared = task if isinstance(task, Task) else self(task)
            declared.every(rule, tz=tz, name=name, jitter=jitter, overlap=overlap, catch_up=catch_up, at_boot=at_boot)
            return declared

        return declare


class Tasks:
    """A collection of tasks that belongs to no app yet: for libraries, and for apps made in a factory."""

    def __init__(self, app: Rowlock | None = None) -> None:
        self._app = app
        self._tasks: dict[str, Task[..., Any]] = {}
        self._workflows: dict[str, dict[int, Workflow[..., Any]]] = {}
        self._declaring = Declaring(self)
        self._declaring_workflows = DeclaringWorkflows(self.add)

    @property
    def task(self) -> Declaring:
        """The decorator of tasks: `@tasks.task`, `@tasks.task(queue="mail")`, `@tasks.task.every("0 9 * * *")`."""
        return self._declaring

    @property
    def workflow(self) -> DeclaringWorkflows:
        """The decorator of workflows: `@tasks.workflow`, `@tasks.workflow(version=2)`."""
        return self._declaring_workflows

    def add(self, task: Task[..., Any]) -> None:
        """Add a task or a workflow; its names, or those and its version, must be free."""
        names = (task.name, *task.spec.aliases)
        for name in names:
            self._check_name(name, task)
        for spec in task.schedules.values():
            self.check_schedule(spec)
        for name in names:
            if isinstance(task, Workflow):
                self._workflows.setdefault(name, {})[task.version] = task
            else:
                self._tasks[name] = task
        task.app = self._app
        if self not in task.homes:
            task.homes.append(self)

    def _check_name(self, name: str, task: Task[..., Any]) -> None:
        """Refuse a name that another one has; the versions of a workflow share theirs."""
        if name in (self._tasks if isinstance(task, Workflow) else self._workflows):
            raise TaskError(f"a task and a workflow are named {name!r}; give one of them another name=")
        if self.get(name, task.spec.version) not in (None, task):
            if isinstance(task, Workflow):
                raise TaskError(
                    f"two workflows are named {name!r} and of version {task.version}; give the newer one the next "
                    "version=, or another name="
                )
            raise TaskError(f"two tasks are named {name!r}; give one of them another name=")

    def check_schedule(self, spec: ScheduleSpec) -> None:
        """Refuse a schedule whose name another one has."""
        for task in self:
            other = task.schedules.get(spec.name)
            if other is not None and other is not spec:
                raise TaskError(
                    f"two schedules are named {spec.name!r}, of task {other.task!r} ({other.rule}) and of task "
                    f"{spec.task!r} ({spec.rule}); give one of them another name="
                )

    def schedules(self) -> list[ScheduleSpec]:
        """The schedules that are declared here, by name."""
        return sorted((spec for task in self for spec in task.schedules.values()), key=lambda spec: spec.name)

    def get(self, name: str, version: int | None = None) -> Task[..., Any] | None:
        """The task or workflow of that name or alias; of a workflow the highest version, or the one asked for."""
        versions = self._workflows.get(name)
        if versions is None:
            return self._tasks.get(name) if version is None else None
        return versions.get(max(versions) if version is None else version)

    def handler(self, name: str, version: int | None = None) -> Handler | None:
        """The code of the task or workflow of that name or alias."""
        task = self.get(name, version)
        return None if task is None else task.handler

    def names(self) -> list[str]:
        """Every name and alias."""
        return sorted({*self._tasks, *self._workflows})

    def handlers(self) -> dict[str, Handler]:
        """The code of all of them, by NAME of tasks and NAME@VERSION of workflows, aliases too.

        A version of a workflow is also there if its state can be carried to one whose code is.
        """
        found = {name: task.handler for name, task in self._tasks.items()}
        for name, versions in self._workflows.items():
            known = {version: workflow.handler for version, workflow in versions.items()}
            found |= {versioned(name, version): handler for version, handler in (carried(versions) | known).items()}
        return found

    def __iter__(self) -> Iterator[Task[..., Any]]:
        tasks = [*self._tasks.values(), *(one for versions in self._workflows.values() for one in versions.values())]
        return iter({id(task): task for task in tasks}.values())

    def __len__(self) -> int:
        return len(list(iter(self)))


class AppTasks(Tasks):
    """The tasks of an app: those that this process declares, by name, and the pauses of tasks, declared here or not."""

    database: Database  # the app's

    @verb("app.tasks")
    def pause(
        self,
        task: str,
        *,
        until: datetime | None = None,
        duration: timedelta | None = None,
        why: str | None = None,
        by: str | None = None,
    ) -> Verb[Pause]:
        """Start no more jobs of a task, whatever their queue: until then, for so long, or until somebody resumes it.

        A name that nobody uses yet is taken as it is; those that people type are checked by `rowlock tasks pause` and
        by the dashboard.
        """
        from rowlock.app import pauses  # noqa: PLC0415  whoever only enqueues does without

        return pauses.pause(self.database, "task", task, until=until, duration=duration, why=why, by=by)

    apause = averb(pause)

    @verb("app.tasks")
    def resume(self, task: str, *, why: str | None = None, by: str | None = None) -> Verb[bool]:
        """Let a task go on; returns whether it was paused."""
        from rowlock.app import pauses  # noqa: PLC0415  whoever only enqueues does without

        return pauses.resume(self.database, "task", task, why=why, by=by)

    aresume = averb(resume)

    @verb("app.tasks")
    def pauses(self) -> Verb[tuple[Pause, ...]]:
        """The pauses of tasks that hold now."""
        from rowlock.app import pauses  # noqa: PLC0415  whoever only enqueues does without

        return pauses.listed(self.database, "task")

    apauses = averb(pauses)
