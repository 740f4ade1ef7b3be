"""Tasks as users hold them: a function with its defaults, and the calls made of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, TypeVar, overload

from rowlock.errors import TaskError
from rowlock.jobs import Job
from rowlock.model.breaker import Breaker
from rowlock.model.handler import Handler
from rowlock.model.key import Key
from rowlock.model.names import check_tags
from rowlock.model.payload import Arguments, Result
from rowlock.model.retry import Retry
from rowlock.model.schedule import (
    CatchUp,
    Overlap,
    ScheduleSpec,
    check_catch_up,
    check_rule,
    check_scheduled,
    name_after,
)
from rowlock.model.signature import default_name
from rowlock.model.spec import AS_DECLARED, DEFAULT_QUEUE, Keep, Options, TaskSpec

if TYPE_CHECKING:
    from rowlock.app import Rowlock

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

NO_JITTER = timedelta(0)


class Task(Generic[P, R_co]):
    """A function that can be enqueued. Calling it runs it here and now, as the plain function it is."""

    def __init__(self, function: Callable[P, Any], spec: TaskSpec) -> None:
        self.function = function
        self.spec = spec
        self.arguments = Arguments.of(function)
        self.handler = Handler(
            spec=spec,
            function=function,
            is_async=inspect.iscoroutinefunction(function),
            arguments=self.arguments,
            result=Result.of(function),
        )
        self.app: Rowlock | None = None
        self.homes: list[Tasks] = []
        self.schedules: dict[str, ScheduleSpec] = {}
        self.__doc__ = function.__doc__
        self.__name__ = getattr(function, "__name__", spec.name)
        self.__wrapped__ = function

    def prepare(self) -> None:
        """Resolve the annotations now, not at the first job; TaskError if one cannot be."""
        self.handler.arguments.prepare()
        self.handler.result.prepare()

    @property
    def name(self) -> str:
        """The name under which its jobs are stored."""
        return self.spec.name

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Any:  # noqa: ANN401  R, or a coroutine of R
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<Task {self.name}>"

    def using(
        self,
        *,
        queue: str | None = None,
        priority: int | None = None,
        run_at: datetime | None = None,
        delay: timedelta | None = None,
        key: str | Key | None = None,
        tags: Sequence[str] = (),
        attempts: int | None = None,
        expires: timedelta | None = None,
        connection: object | None = None,
    ) -> Using[P, R_co]:
        """The same task with other options for the next call."""
        return Using(
            self,
            Options(
                queue=queue,
                priority=priority,
                run_at=run_at,
                delay=delay,
                key=key,
                tags=check_tags(tags),
                attempts=attempts,
                expires=expires,
                connection=connection,
            ),
        )

    def bind(self, *args: P.args, **kwargs: P.kwargs) -> Call[R_co]:
        """A call as a value, its arguments checked: what `enqueue_many` takes."""
        return Call(self, self.arguments.encode(args, kwargs), AS_DECLARED)

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Job[R_co]:
        """Enqueue a job; it exists when this returns."""
        return self.bind(*args, **kwargs).enqueue()

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> Job[R_co]:
        """Enqueue a job; it exists when this returns."""
        return await self.bind(*args, **kwargs).aenqueue()

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
    ) -> None:
        """Declare a schedule of this task, without arguments; see `app.task.every`."""
        call = Call(self, self.arguments.encode((), {}), AS_DECLARED)
        call.every(rule, tz=tz, name=name, jitter=jitter, overlap=overlap, catch_up=catch_up, at_boot=at_boot)


@dataclass(frozen=True, slots=True)
class Using(Generic[P, R_co]):
    """A task with options, waiting for its arguments."""

    task: Task[P, R_co]
    options: Options

    def bind(self, *args: P.args, **kwargs: P.kwargs) -> Call[R_co]:
        """A call as a value, its arguments checked: what `enqueue_many` takes."""
        return Call(self.task, self.task.arguments.encode(args, kwargs), self.options)

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Job[R_co]:
        """Enqueue a job; inside `connection`'s transaction if there is one."""
        return self.bind(*args, **kwargs).enqueue()

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> Job[R_co]:
        """Enqueue a job; inside `connection`'s transaction if there is one."""
        return await self.bind(*args, **kwargs).aenqueue()


class Call(Generic[R_co]):
    """A task, the JSON of its arguments, and the options of this call."""

    __slots__ = ("args", "options", "task")

    def __init__(self, task: Task[..., R_co], args: str, options: Options) -> None:
        self.task = task
        self.args = args
        self.options = options

    def enqueue(self) -> Job[R_co]:
        """Enqueue this call."""
        return self._app.enqueue_call(self)

    async def aenqueue(self) -> Job[R_co]:
        """Enqueue this call."""
        return await self._app.aenqueue_call(self)

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
    ) -> None:
        """Declare a schedule of this call, with its arguments and options; see `app.task.every`."""
        spec = schedule_spec(
            self, rule=rule, tz=tz, name=name, jitter=jitter, overlap=overlap, catch_up=catch_up, at_boot=at_boot
        )
        if not self.task.homes:
            raise TaskError(
                f"task {self.task.name!r} is not declared here, so nor can its schedule {spec.name!r} be; declare both "
                "where its code is, or use app.schedules.add(…)"
            )
        for home in self.task.homes:
            home.check_schedule(spec)
        self.task.schedules[spec.name] = spec

    @property
    def _app(self) -> Rowlock:
        if self.task.app is None:
            raise TaskError(f"task {self.task.name!r} belongs to no app; call app.include(…) with its Tasks()")
        return self.task.app


def schedule_spec(
    call: Call[Any],
    *,
    rule: str | timedelta,
    tz: str | None = None,
    name: str | None = None,
    jitter: timedelta = NO_JITTER,
    overlap: Overlap = "skip",
    catch_up: CatchUp = "last",
    at_boot: bool = False,
) -> ScheduleSpec:
    """What a schedule of this call asks for; its name is its task's unless given."""
    spec, options = call.task.spec, call.options
    check_scheduled(options)
    return ScheduleSpec(
        name=name_after(spec.name) if name is None else name,
        rule=check_rule(rule, tz),
        task=spec.name,
        args=call.args,
        queue=options.queue or spec.queue,
        priority=spec.priority if options.priority is None else options.priority,
        attempts=options.attempts or spec.retry.attempts,
        expires=options.expires or spec.expires,
        tags=options.tags,
        jitter=jitter,
        overlap=overlap,
        catch_up=check_catch_up(catch_up),
        at_boot=at_boot,
    )


class TaskDecorator(Protocol):
    """What `@app.task(…)` returns."""

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]]) -> Task[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R]) -> Task[P, R]: ...


class EveryDecorator(Protocol):
    """What `@app.task.every(…)` returns: it takes a function, or a task that is declared below it."""

    @overload
    def __call__(self, task: Task[P, R]) -> Task[P, R]: ...
    @overload
    def __call__(self, task: Callable[P, Coroutine[Any, Any, R]]) -> Task[P, R]: ...
    @overload
    def __call__(self, task: Callable[P, R]) -> Task[P, R]: ...


class Declaring:
    """What `app.task` is: a decorator of functions, with options or without."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]]) -> Task[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R]) -> Task[P, R]: ...
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
        self._declaring = Declaring(self)

    @property
    def task(self) -> Declaring:
        """The decorator of tasks: `@tasks.task`, `@tasks.task(queue="mail")`, `@tasks.task.every("0 9 * * *")`."""
        return self._declaring

    def add(self, task: Task[..., Any]) -> None:
        """Take in a task; its name and aliases must be free."""
        names = (task.name, *task.spec.aliases)
        for name in names:
            if self._tasks.get(name, task) is not task:
                raise TaskError(f"two tasks are named {name!r}; give one of them another name=")
        for spec in task.schedules.values():
            self.check_schedule(spec)
        self._tasks.update(dict.fromkeys(names, task))
        task.app = self._app
        if self not in task.homes:
            task.homes.append(self)

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

    def get(self, name: str) -> Task[..., Any] | None:
        """The task of that name or alias."""
        return self._tasks.get(name)

    def handler(self, name: str) -> Handler | None:
        """What it takes to run the task of that name or alias."""
        task = self._tasks.get(name)
        return None if task is None else task.handler

    def names(self) -> list[str]:
        """Every name and alias."""
        return sorted(self._tasks)

    def handlers(self) -> dict[str, Handler]:
        """What a worker needs, by name and alias."""
        return {name: task.handler for name, task in self._tasks.items()}

    def __iter__(self) -> Iterator[Task[..., Any]]:
        return iter({id(task): task for task in self._tasks.values()}.values())

    def __len__(self) -> int:
        return len({id(task) for task in self._tasks.values()})
