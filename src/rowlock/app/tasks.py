"""Tasks: functions with their defaults, and the calls made of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Generic, ParamSpec

from typing_extensions import TypeVar  # typing's own has no default before Python 3.13

from rowlock.app.job import Job
from rowlock.app.verbs import Verb, verb
from rowlock.errors import TaskError
from rowlock.model.key import Key
from rowlock.model.names import check_tags
from rowlock.model.payload.arguments import Arguments, Result
from rowlock.model.row import NewJob
from rowlock.model.spec import AS_DECLARED, Handler, Options, TaskSpec

if TYPE_CHECKING:
    from rowlock.app.app import Rowlock
    from rowlock.app.registry import Tasks
    from rowlock.model.schedule.rule import CatchUp, Overlap
    from rowlock.model.schedule.schedule import ScheduleSpec

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)
Called_co = TypeVar("Called_co", covariant=True, default=Any)

NO_JITTER = timedelta(0)


class Task(Generic[P, R_co, Called_co]):
    """A function that can be enqueued. Calling it runs it here and now, as the plain function it is.

    `Task[[int], str]` is one whose jobs take an int and result in a str, be its function plain or async. A third
    parameter is what a call of it returns: of an async one, a coroutine.
    """

    # How many of the function's parameters, from the first on, the worker provides.
    provided: ClassVar[int] = 0

    def __init__(self, function: Callable[..., Any], spec: TaskSpec) -> None:
        self.function = function
        self.spec = spec
        self.arguments = Arguments.of(function, skip=self.provided)
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

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Called_co:
        called: Called_co = self.function(*args, **kwargs)
        return called

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
        """The same task with other options for the next call.

        They are its `queue` and `priority`; when it is due, at `run_at` or after a `delay`; the `key` under which there
        is one such job at most; `tags` to find it by; how many `attempts` it has; after how long it `expires` if nobody
        has started it; and the `connection` whose transaction it joins.
        """
        options = Options(
            queue=queue,
            priority=priority,
            run_at=run_at,
            delay=delay,
            key=key,
            tags=check_tags(tags),
            attempts=attempts,
            expires=expires,
            connection=connection,
        )
        return Using(self, self.spec.allowed(options))

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

    @property
    def result(self) -> Result:
        """The codec of its result."""
        return self.task.handler.result

    def to_job(self, job_id: str) -> NewJob:
        """The row of its job."""
        spec, options = self.task.spec, self.options
        if options is AS_DECLARED:  # the way of bulk: by position, a third of the time
            job = NewJob(
                job_id, spec.queue, spec.name, self.args, spec.priority, spec.attempts, None, None, spec.expires
            )
            return job if spec.version is None else job._replace(version=spec.version)
        key, meaning = (options.key.text, options.key) if isinstance(options.key, Key) else (options.key, None)
        return NewJob(
            id=job_id,
            queue=options.queue or spec.queue,
            task=spec.name,
            args=self.args,
            priority=spec.priority if options.priority is None else options.priority,
            attempts=options.attempts or spec.attempts,
            run_at=options.run_at,
            delay=options.delay,
            lifetime=options.expires or spec.expires,
            tags=options.tags or None,
            key=key,
            meaning=meaning,
            is_priority_named=options.priority is not None,
            version=spec.version,
        )

    @verb("enqueue", instead="await task.aenqueue(…)")
    def enqueue(self) -> Verb[Job[R_co]]:
        """Enqueue this call."""
        return (yield from self._app.enqueuer.many([self]))[0]

    async def aenqueue(self) -> Job[R_co]:
        """Enqueue this call."""
        return await self._app.enqueuer.aone(self)

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
    """The schedule of this call; its name is its task's unless given."""
    from rowlock.model.schedule.rule import check_catch_up, check_rule  # noqa: PLC0415  whoever only enqueues does without
    from rowlock.model.schedule.schedule import ScheduleSpec, check_scheduled, name_after  # noqa: PLC0415  as above

    spec, options = call.task.spec, call.options
    check_scheduled(options)
    return ScheduleSpec(
        name=name_after(spec.name) if name is None else name,
        rule=check_rule(rule, tz),
        task=spec.name,
        args=call.args,
        queue=options.queue or spec.queue,
        priority=spec.priority if options.priority is None else options.priority,
        attempts=options.attempts or spec.attempts,
        version=spec.version,
        expires=options.expires or spec.expires,
        tags=options.tags,
        jitter=jitter,
        overlap=overlap,
        catch_up=check_catch_up(catch_up),
        at_boot=at_boot,
    )
