"""Tasks as users hold them: a function with its defaults, and the calls made of it."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, TypeVar, overload

from rowlock.errors import TaskError
from rowlock.jobs import Job
from rowlock.model.handler import Handler
from rowlock.model.names import check_tags
from rowlock.model.payload import Arguments, Result
from rowlock.model.retry import Retry
from rowlock.model.spec import AS_DECLARED, DEFAULT_QUEUE, Keep, Options, TaskSpec

if TYPE_CHECKING:
    from rowlock.app import Rowlock

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


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
        key: str | None = None,
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

    @property
    def _app(self) -> Rowlock:
        if self.task.app is None:
            raise TaskError(f"task {self.task.name!r} belongs to no app; call app.include(…) with its Tasks()")
        return self.task.app


class TaskDecorator(Protocol):
    """What `@app.task(…)` returns."""

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]]) -> Task[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R]) -> Task[P, R]: ...


class Tasks:
    """A collection of tasks that belongs to no app yet: for libraries, and for apps made in a factory."""

    def __init__(self, app: Rowlock | None = None) -> None:
        self._app = app
        self._tasks: dict[str, Task[..., Any]] = {}

    @overload
    def task(self, function: Callable[P, Coroutine[Any, Any, R]]) -> Task[P, R]: ...
    @overload
    def task(self, function: Callable[P, R]) -> Task[P, R]: ...
    @overload
    def task(
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
    ) -> TaskDecorator: ...

    def task(self, function: Any = None, *, name: str | None = None, **options: Any) -> Any:
        """Declare a task. Its name is `module.function` unless given; `aliases` are names it had before."""
        if "retry" in options and options["retry"] is None:
            del options["retry"]
        options["aliases"] = tuple(options.get("aliases", ()))

        def declare(function: Callable[..., Any]) -> Task[..., Any]:
            task: Task[..., Any] = Task(
                function, TaskSpec(name=default_name(function) if name is None else name, **options)
            )
            self.add(task)
            return task

        return declare if function is None else declare(function)

    def add(self, task: Task[..., Any]) -> None:
        """Take in a task; its name and aliases must be free."""
        names = (task.name, *task.spec.aliases)
        for name in names:
            if self._tasks.get(name, task) is not task:
                raise TaskError(f"two tasks are named {name!r}; give one of them another name=")
        self._tasks.update(dict.fromkeys(names, task))
        task.app = self._app

    def get(self, name: str) -> Task[..., Any] | None:
        """The task of that name or alias."""
        return self._tasks.get(name)

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


def default_name(function: Callable[..., Any]) -> str:
    """`module.function`, with `__main__` as the module it would be if it were imported."""
    qualname = getattr(function, "__qualname__", None)
    module = getattr(function, "__module__", None)
    if not qualname or not module or "<lambda>" in qualname:
        raise TaskError(f"{function!r} has no name of its own; give it one with name=")
    if "<locals>" in qualname:
        raise TaskError(
            f"{qualname} is defined inside a function, where no worker can find it; move it out or give name="
        )
    if module == "__main__":
        spec = getattr(sys.modules["__main__"], "__spec__", None)
        file = getattr(sys.modules["__main__"], "__file__", None)
        if spec is not None:
            module = spec.name.removesuffix(".__main__")
        elif file is not None:
            module = file.rsplit("/", 1)[-1].removesuffix(".py")
    return f"{module}.{qualname}"
