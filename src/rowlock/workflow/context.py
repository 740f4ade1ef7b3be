"""Context: what a workflow's code calls to be remembered."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Concatenate, Literal, ParamSpec, Protocol, TypeVar, overload
from uuid import UUID

from rowlock.errors import ChildCancelled, ChildFailed, Interruption, WorkflowError
from rowlock.model.ids import new_ids
from rowlock.model.names import check_delay, check_run_at
from rowlock.model.payload.arguments import Result
from rowlock.model.retry import Retry
from rowlock.model.row import NewJob
from rowlock.model.workflow.step import NewChild, StepUpdate
from rowlock.workflow import branch as branches
from rowlock.workflow import step_run
from rowlock.workflow.branch import current_step
from rowlock.workflow.execution import Execution
from rowlock.workflow.signal_schema import schema_of
from rowlock.workflow.step_run import StepCall, check_name, function_of, info_of, input_of, name_of
from rowlock.workflow.waits import AllOf, ChildWait, First, FirstOf, SignalWait, Timer, Wait

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
T = TypeVar("T")


class ChildJob(Protocol[R_co]):
    """A job that a call makes, as far as it tells a type checker what the child returns."""

    def result(self, timeout: timedelta | None = None) -> R_co:
        """What its handler returns."""


class ChildCall(Protocol[R_co]):
    """A call of a task or of a workflow, as `task.bind(…)` makes it."""

    @property
    def result(self) -> Result:
        """The codec of its result."""

    def to_job(self, job_id: str) -> NewJob:
        """The job that it asks for."""

    def enqueue(self) -> ChildJob[R_co]:
        """Never called: shows a type checker what the child returns."""


class Restart(Interruption):
    """Raised by `ctx.restart(…)`: begin again with these arguments and a fresh history."""

    def __init__(self, arguments: str) -> None:
        super().__init__(arguments)
        self.arguments = arguments


class Steps:
    """The verbs that call a function, with what `using(…)` says of them."""

    __slots__ = ("_connection", "_execution", "_name", "_retry", "_timeout")

    def __init__(
        self,
        execution: Execution,
        *,
        name: str | None = None,
        retry: Retry | None = None,
        timeout: timedelta | None = None,
        connection: object | None = None,
    ) -> None:
        self._execution = execution
        self._name = name
        self._retry = retry
        self._timeout = timeout
        self._connection = connection

    @overload
    def step(
        self, function: Callable[P, Coroutine[Any, Any, R]], *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, R]: ...
    @overload
    def step(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]: ...

    def step(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Coroutine[Any, Any, Any]:
        """Call a function once: its result is remembered before anything after it runs, and is never computed again.

        Async functions run on the loop, others in a thread. An error is tried again by its retry policy, and raised as
        StepFailed when that gives up. If the worker dies while the function runs, or before its result is recorded, it
        runs again: give `ctx.idempotency_key` to what is outside, or use `ctx.transaction` for your own tables.
        """
        return self._work("step", function, args, kwargs)

    @overload
    def transaction(
        self, function: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]], *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, R]: ...
    @overload
    def transaction(
        self, function: Callable[Concatenate[Any, P], R], *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, R]: ...

    def transaction(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Coroutine[Any, Any, Any]:
        """Call a function of a connection: what it writes there and the record of it are committed together, once.

        The connection comes first: the one that `ctx.using(connection=…)` names; else the app's own, as for an enqueue;
        else a psycopg connection of the worker's, async for async functions.
        """
        return self._work("transaction", function, args, kwargs)

    def undo(self, function: Callable[P, Any], *args: P.args, **kwargs: P.kwargs) -> None:
        """Register what undoes the work done so far: it is called if the workflow fails or is cancelled, latest first.

        Each is a step of its own: recorded, and retried by its policy. Call `undo` before a step if undoing what may
        not have been done is harmless, and after it if not.
        """
        _refuse_inside("ctx.undo")
        called = function_of(function)
        name = check_name(name_of(called) if self._name is None else self._name)
        self._execution.undos.append(
            StepCall(
                place=branches.current().undo_place(name),
                kind="undo",
                function=called,
                info=info_of(called),
                args=args,
                kwargs=kwargs,
                given=input_of(args, kwargs),
                retry=self._retry or self._execution.handler.spec.retry,
                timeout=self._timeout,
            )
        )

    def _work(
        self,
        kind: Literal["step", "transaction"],
        function: Callable[..., Any],
        args: tuple[object, ...],
        kwargs: Mapping[str, object],
    ) -> Coroutine[Any, Any, Any]:
        _refuse_inside(f"ctx.{kind}")
        called = function_of(function)
        given = input_of(args, kwargs)
        place = self._execution.place(check_name(name_of(called) if self._name is None else self._name))
        step = self._execution.find(place, kind, given)
        work = StepCall(
            place=place,
            kind=kind,
            function=called,
            info=info_of(called),
            args=args,
            kwargs=kwargs,
            given=given,
            retry=self._retry or self._execution.handler.spec.retry,
            timeout=self._timeout,
            connection=self._connection,
        )
        return step_run.run(self._execution, work, step)


class Context(Steps):
    """The first argument of a workflow: its calls are recorded, such as `step`, `sleep` and `signal`."""

    __slots__ = ()

    def using(
        self,
        *,
        name: str | None = None,
        retry: Retry | None = None,
        timeout: timedelta | None = None,
        connection: object | None = None,
    ) -> Steps:
        """The same verbs, with another name, retry policy or time-out of each try, or on a connection of yours."""
        return Steps(self._execution, name=name, retry=retry, timeout=timeout, connection=connection)

    # Who it is

    @property
    def id(self) -> UUID:
        """The job's id."""
        return UUID(self._execution.held.row.id)

    @property
    def key(self) -> str | None:
        """The key that it was started by, if it has one."""
        return self._execution.held.row.key

    @property
    def version(self) -> int:
        """The version of its code."""
        return self._execution.handler.version or 1

    @property
    def state(self) -> dict[str, Any]:
        """The state of the workflow, for those who look from outside: plain JSON, written with the next step.

        The code rebuilds it in every attempt; after a restart, or in another version, it begins with what it was.
        """
        return self._execution.state.values

    @property
    def idempotency_key(self) -> str:
        """A text that is the same in every attempt of the same step: of the one running here, else of the next."""
        here = current_step()
        if here is not None:
            return here
        branch = branches.current()
        return self._execution.idempotency_key(branches.CallSite("", branch.path, branch.position + 1))

    # What it waits for

    def sleep(self, delay: timedelta) -> Wait[None]:
        """Sleep for `delay`, by the database's clock; nothing is held meanwhile."""
        check_delay(delay)
        return self._sleep(delay=delay)

    def sleep_until(self, moment: datetime) -> Wait[None]:
        """Sleep until `moment`, by the database's clock; nothing is held meanwhile."""
        return self._sleep(until=check_run_at(moment))

    def _sleep(self, *, delay: timedelta | None = None, until: datetime | None = None) -> Wait[None]:
        _refuse_inside("ctx.sleep")
        place = self._execution.place("sleep")
        given = json.dumps(str(delay if until is None else until))
        timer = Timer(place, self._execution.find(place, "sleep", given), given=given, delay=delay, until=until)
        return Wait(timer, self._execution.hold)

    @overload
    def signal(self, name: str, *, timeout: timedelta | None = None, schema: type[T]) -> Wait[T]: ...
    @overload
    def signal(
        self, name: str, *, timeout: timedelta | None = None, schema: Mapping[str, Any] | None = None
    ) -> Wait[Any]: ...

    def signal(self, name: str, *, timeout: timedelta | None = None, schema: object = None) -> Wait[Any]:
        """Wait for a signal: the payload of the first of that name that no wait has taken; nothing is held meanwhile.

        SignalTimeout if none has come in time. `schema` is a type, which the payload then becomes, or a JSON Schema: it
        is kept for those who make forms of it.
        """
        _refuse_inside("ctx.signal")
        if timeout is not None:
            check_delay(timeout)
        form = schema_of(schema)
        place = self._execution.place(check_name(name))
        step = self._execution.find(place, "signal")
        wait: SignalWait = SignalWait(
            place, step, name, inbox=self._execution.inbox, payload=form.payload, timeout=timeout, form=form.schema
        )
        return Wait(wait, self._execution.hold)

    def run(self, call: ChildCall[R]) -> Wait[R]:
        """Run a child for its result: a job of its own, with its own queue and retries; nothing is held meanwhile.

        ChildFailed or ChildCancelled if that is how it ends. A child that lives when its workflow ends is cancelled.
        """
        return Wait(self._child(call), self._execution.hold)

    @overload
    def map(
        self,
        calls: Iterable[ChildCall[R]],
        *,
        concurrency: int | None = None,
        return_exceptions: Literal[False] = False,
    ) -> Coroutine[Any, Any, list[R]]: ...
    @overload
    def map(
        self, calls: Iterable[ChildCall[R]], *, concurrency: int | None = None, return_exceptions: Literal[True]
    ) -> Coroutine[Any, Any, list[R | ChildFailed | ChildCancelled]]: ...

    def map(
        self, calls: Iterable[ChildCall[Any]], *, concurrency: int | None = None, return_exceptions: bool = False
    ) -> Coroutine[Any, Any, list[Any]]:
        """Run many children for their results, in their order; at most `concurrency` of them at once, if it is given.

        All are waited for. Then the first that failed or was cancelled is raised, or, with `return_exceptions`, each
        error stands in its place.
        """
        if concurrency is not None and (isinstance(concurrency, bool) or concurrency < 1):
            raise WorkflowError(f"concurrency={concurrency!r} must be 1 or more; leave it out for all at once")
        children = [self._child(call) for call in calls]
        return self._all(children, concurrency, return_exceptions=return_exceptions)

    async def _all(self, children: list[ChildWait], concurrency: int | None, *, return_exceptions: bool) -> list[Any]:
        answers = await self._execution.hold(AllOf(children, at_once=concurrency))
        if not return_exceptions:
            for answer in answers:
                if answer.error is not None:
                    raise answer.error
        return [answer.value if answer.error is None else answer.error for answer in answers]

    def _child(self, call: ChildCall[Any]) -> ChildWait:
        _refuse_inside("ctx.run")
        job = call.to_job(new_ids(1)[0])
        if job.key is not None:
            raise WorkflowError(
                f"the child {job.task!r} has a key; it is its workflow's step, and needs none: leave it out"
            )
        place = self._execution.place(check_name(job.task))
        step = self._execution.find(place, "child", job.args)
        key, _, position = place
        spawned = NewChild(key, position, job.args, job._replace(parent=self._execution.held.row.id))
        return ChildWait(step, spawned, call.result)

    def any(self, *waits: Wait[Any], **named: Wait[Any]) -> Wait[First]:
        """Wait for the first of several waits (signals, sleeps, children): `which` is its place or its name.

        Which it was is remembered. A signal that comes later is there for the next wait; a child goes on.
        """
        _refuse_inside("ctx.any")
        given = [*enumerate(waits), *named.items()]
        if not given or not all(isinstance(wait, Wait) for _, wait in given):
            raise WorkflowError("ctx.any takes ctx.signal(…), ctx.sleep(…) and ctx.run(…), before they are awaited")
        place = self._execution.place("any")
        step = self._execution.find(place, "any")
        return Wait(FirstOf(place, step, [(which, wait.pending) for which, wait in given]), self._execution.hold)

    # What would differ from attempt to attempt

    def now(self) -> datetime:
        """The time, by the database's clock: in every attempt the same."""
        _refuse_inside("ctx.now")
        place = self._execution.place("now")
        step = self._execution.find(place, "now")
        if step is not None:
            return datetime.fromisoformat(json.loads(step.value or "null"))
        now = self._execution.environment.store.now()
        self._execution.later(StepUpdate(place.key, place.position, "now", "done", value=json.dumps(now.isoformat())))
        return now

    def random(self) -> float:
        """A random number from 0 to 1: in every attempt the same."""
        _refuse_inside("ctx.random")
        return branches.current().random.random()

    def patched(self, name: str) -> bool:
        """Whether this workflow has the change of that name: not if it was past this place before the change came."""
        _refuse_inside("ctx.patched")
        branch = branches.current()
        marker = check_name(f"patched {name}")
        if not self._execution.history.has(branch, marker) and self._execution.history.goes_on(
            branch.path, branch.position + 1
        ):
            return False
        place = self._execution.place(marker)
        if self._execution.find(place, "patched") is None:
            self._execution.later(StepUpdate(place.key, place.position, "patched", "done"))
        return True

    def restart(self, *args: object, **kwargs: object) -> Any:  # noqa: ANN401  it never returns
        """Begin again with these arguments and a fresh history; `ctx.state` and signals that nobody took stay."""
        _refuse_inside("ctx.restart")
        if self._execution.undos:
            raise WorkflowError("ctx.restart(…) would forget what is to be undone; restart before ctx.undo(…) is said")
        raise Restart(self._execution.handler.arguments.encode(args, kwargs))


def _refuse_inside(verb: str) -> None:
    if current_step() is not None:
        raise WorkflowError(f"{verb}(…) inside of a step cannot be remembered; call it in the workflow's own code")
