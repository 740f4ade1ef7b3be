"""Workflow: a function that remembers, its version, and the migrations of older state."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from inspect import Parameter
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, Never, ParamSpec, Protocol, TypeVar, overload

from rowlock.app.tasks import Task
from rowlock.errors import TaskError
from rowlock.model.names import check_version
from rowlock.model.payload.signature import annotations_of, default_name, name_of
from rowlock.model.retry import Retry
from rowlock.model.spec import DEFAULT_QUEUE, Carry, Handler, Keep, TaskSpec

if TYPE_CHECKING:
    from rowlock.workflow.context import Context

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
CarryFunction = TypeVar("CarryFunction", bound=Carry)


class Workflow(Task[P, R_co, Never]):
    """A function that remembers what it has done: it is enqueued as a task is, and goes on where it was."""

    provided: ClassVar[int] = 1  # its Context

    def __init__(
        self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, R_co]], spec: TaskSpec, *, version: int
    ) -> None:
        _check_function(function)
        super().__init__(function, replace(spec, version=check_version(version)))
        self.version = version
        self.migrations: dict[int, Carry] = {}

    def prepare(self) -> None:
        """Resolve the annotations now, not at the first job; TaskError if one cannot be, or is not a workflow's."""
        super().prepare()
        _check_context(self.function, annotations_of(self.function))

    def __call__(self, *_args: P.args, **_kwargs: P.kwargs) -> Never:
        raise TaskError(
            f"workflow {self.name!r} runs in a worker, which gives it its context: enqueue it; to call the function "
            "itself, say .function(ctx, …)"
        )

    def __repr__(self) -> str:
        return f"<Workflow {self.name} version {self.version}>"

    def migration(self, version: int) -> Callable[[CarryFunction], CarryFunction]:
        """Declare how an earlier version's state becomes this one's: `@checkout.migration(1)` over a function of it.

        A worker that has no code of that version then goes on with this one.
        """
        if check_version(version) >= self.version:
            raise TaskError(
                f"migration({version}) leads to version {self.version} of workflow {self.name!r}: it must come from an "
                "earlier one"
            )

        def declare(carry: CarryFunction) -> CarryFunction:
            if version in self.migrations:
                raise TaskError(
                    f"workflow {self.name!r} has two migrations from version {version} to {self.version}; remove one"
                )
            if inspect.iscoroutinefunction(carry):
                raise TaskError(
                    f"a migration of workflow {self.name!r} is a plain function of the state: def carry(state): …"
                )
            self.migrations[version] = carry
            return carry

        return declare


def carried(versions: Mapping[int, Workflow[..., Any]]) -> dict[int, Handler]:
    """The newest code that the state of each older version can be migrated to."""
    ways: dict[int, Handler] = {}
    for source in sorted({source for workflow in versions.values() for source in workflow.migrations}, reverse=True):
        leads = [
            replace(onward, carries=(workflow.migrations[source], *onward.carries))
            for version, workflow in versions.items()
            if source in workflow.migrations
            for onward in (ways.get(version, workflow.handler),)
        ]
        ways[source] = max(leads, key=lambda handler: (handler.version or 0, -len(handler.carries)))
    return ways


class WorkflowDecorator(Protocol):
    """What `@app.workflow(…)` returns."""

    def __call__(self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]]) -> Workflow[P, R]: ...


class DeclaringWorkflows:
    """The decorator `app.workflow`: of async functions, with options or without."""

    def __init__(self, add: Callable[[Workflow[..., Any]], None]) -> None:
        self._add = add

    @overload
    def __call__(self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]]) -> Workflow[P, R]: ...
    @overload
    def __call__(
        self,
        *,
        version: int = 1,
        name: str | None = None,
        queue: str = DEFAULT_QUEUE,
        priority: int = 0,
        retry: Retry | None = None,
        aliases: Sequence[str] = (),
        keep: Keep | None = None,
        expires: timedelta | None = None,
        fails_on: type[BaseException] | Sequence[type[BaseException]] = (),
    ) -> WorkflowDecorator: ...

    def __call__(
        self,
        function: Any = None,
        *,
        version: int = 1,
        name: str | None = None,
        queue: str = DEFAULT_QUEUE,
        priority: int = 0,
        retry: Retry | None = None,
        aliases: Sequence[str] = (),
        keep: Keep | None = None,
        expires: timedelta | None = None,
        fails_on: type[BaseException] | Sequence[type[BaseException]] = (),
    ) -> Any:
        """Declare a workflow. Its name is `module.function` unless given; versions of one name live side by side.

        Code that calls other steps, or in another order, is the next `version`; keep the old one while its jobs live.
        `retry` is for its steps, unless they say otherwise. `aliases` are names it had before. A workflow fails, and is
        undone, when its code lets the failure of a step, a child or a signal's time-out pass, or an error named in
        `fails_on`. Any other error is a fault of the code: the workflow is blocked, and tried again.
        """

        def declare(function: Callable[..., Coroutine[Any, Any, Any]]) -> Workflow[..., Any]:
            spec = TaskSpec(
                name=default_name(function) if name is None else name,
                queue=queue,
                priority=priority,
                retry=retry or Retry(),
                aliases=tuple(aliases),
                keep=keep,
                expires=expires,
                fails_on=tuple(fails_on) if isinstance(fails_on, Sequence) else (fails_on,),
            )
            workflow: Workflow[..., Any] = Workflow(function, spec, version=version)
            self._add(workflow)
            return workflow

        return declare if function is None else declare(function)


def _check_function(function: Callable[..., object]) -> None:
    """Refuse a function that cannot be a workflow: it is async, and its first parameter is its context."""
    name = name_of(function)
    if not inspect.iscoroutinefunction(function):
        raise TaskError(
            f"{name} is not an async function, as a workflow must be: async def {name}(ctx: Context, …); what it "
            "calls in its steps may be sync"
        )
    first = next(iter(inspect.signature(function).parameters.values()), None)
    if first is None or first.kind not in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD):
        raise _without_context(name)
    try:
        hints = annotations_of(function)
    except TaskError:  # it uses names that are not there yet: `prepare` looks again
        return
    _check_context(function, hints)


def _check_context(function: Callable[..., object], hints: Mapping[str, Any]) -> None:
    """Refuse a first parameter that is annotated as something else."""
    from rowlock.workflow.context import Context  # noqa: PLC0415  whoever only enqueues does without

    annotated = hints.get(next(iter(inspect.signature(function).parameters)), Any)
    if annotated is not Any and not (isinstance(annotated, type) and issubclass(annotated, Context)):
        raise _without_context(name_of(function))


def _without_context(name: str) -> TaskError:
    return TaskError(f"{name} has no parameter for its context, which comes first: async def {name}(ctx: Context, …)")
