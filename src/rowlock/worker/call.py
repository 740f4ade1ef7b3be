"""Call: runs one attempt, from the claimed row to its outcome.

Whatever a handler does, its attempt ends in exactly one outcome.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from types import TracebackType
from typing import Any, Protocol

from rowlock.db.safe_logger import SafeLogger
from rowlock.errors import Cancel, Interruption, InvalidArguments, LeaseLost, RetryAfter, Snooze
from rowlock.model.failure import describe, reason_of
from rowlock.model.outcome import Blocked, Cancelled, Failed, HandedBack, Outcome, Retried, Snoozed, Succeeded
from rowlock.model.row import ClaimedJob
from rowlock.model.spec import Handler
from rowlock.worker import around
from rowlock.worker.around import Around
from rowlock.worker.attempt import CurrentJob, HandlerDatabase, OnProgress, RunningAttempt, ignore_progress, running
from rowlock.worker.threads import stack_below
from rowlock.worker.transaction import TransactionResources
from rowlock.workflow import attempt as workflow
from rowlock.workflow.attempt import MOST_CRASHES, poison
from rowlock.workflow.logs import log_fields
from rowlock.workflow.worker_interface import Environment, StepStore

log = SafeLogger("rowlock.worker")

# Runs a function that never raises in a thread, and returns what it returns.
Returned = tuple[object, BaseException | None]
InThread = Callable[[Callable[[], Returned]], Awaitable[Returned]]

# A coroutine that swallows the cancellation of its time-out is left behind after so many seconds.
_CANCEL_WITHIN = 2.0


class CallerStepStore(StepStore, Protocol):
    """Where the steps of workflows are kept, and the last state of each, by token, for the settle."""

    last_states: dict[str, str]


class Caller:
    """Calls handlers inside what is around them: async ones on the loop, sync ones where `in_thread` says."""

    def __init__(
        self,
        *,
        handlers: Mapping[str, Handler],
        in_thread: InThread,
        database: HandlerDatabase,
        resources: TransactionResources,
        memory: CallerStepStore,
        arounds: Sequence[Around] = (),
        progress: OnProgress = ignore_progress,
        on_error: Callable[[BaseException], object] | None = None,
        on_abandoned: Callable[[RunningAttempt, Outcome], None] | None = None,
    ) -> None:
        """`on_error` is shown every error as it was raised, before it becomes an outcome.

        `on_abandoned` is given the outcome of an attempt whose handler does not end when its time is over.
        """
        self._handlers = handlers
        self._on_error = on_error
        self._on_abandoned = on_abandoned
        self._arounds = arounds
        self._progress = progress
        self._database = database
        self._resources = resources
        self._run_in_thread = in_thread
        self.draining = False  # then a cancelled attempt is handed back, and has not failed
        self._memory = memory
        self._environment = Environment(
            store=memory,
            transactions=resources.transactions,
            in_thread=self._step_in_thread,
            is_draining=lambda: self.draining,
        )

    async def attempt(self, attempt: RunningAttempt) -> Outcome:
        """Run one attempt."""
        row = attempt.row
        if (ended := _unrun(row)) is not None:
            return ended
        if row.paused:
            return Blocked("pause", f"task {row.task!r} is paused")
        handler = self._handlers.get(row.code)
        if handler is None:
            return Blocked("code", unknown(row, self._handlers))
        try:
            args, kwargs = handler.arguments.decode(row.args)
        except InvalidArguments as error:
            return Blocked("code", reason_of(f"arguments do not fit {row.task!r}: {error}"))
        running.set(CurrentJob(attempt, self._progress, self._database, self._resources))
        if handler.is_workflow:
            return await self._workflow(attempt, handler, args, kwargs)
        outcome = await self._handled(attempt, handler, args, kwargs)
        return outcome if attempt.ending is None else attempt.ending.instead_of(outcome)

    async def _workflow(
        self, attempt: RunningAttempt, handler: Handler, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> Outcome:
        def call(code: Callable[..., Any]) -> Awaitable[object]:
            if self._arounds:
                return _raising(self._surrounded(attempt, partial(code, *args, **kwargs), is_async=True))
            return _raising(code(*args, **kwargs))

        try:
            outcome, state = await workflow.attempt(
                attempt, handler, self._environment, call, on_error=partial(self._show, attempt)
            )
        except (asyncio.CancelledError, LeaseLost):
            return HandedBack()  # its worker stops, or has lost it
        except BaseException as error:  # a fault of ours: it waits for code without it; failed, it would not be undone
            row = attempt.row
            log.exception("%s %s: its attempt could not be brought to an end", row.task, row.id, extra=log_fields(row))
            return workflow.fault(row, error, "its attempt could not be brought to an end: {}")
        if state is not None and attempt.lost is None:  # else nobody settles it, and takes it away
            self._memory.last_states[attempt.row.token] = state
        return outcome

    async def _handled(
        self, attempt: RunningAttempt, handler: Handler, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> Outcome:
        try:
            result = await self._call(attempt, handler, args, kwargs)
        except asyncio.CancelledError as error:
            if attempt.cancel_requested:
                return Cancelled("asked")
            return HandedBack() if self.draining or attempt.lost else self._failed(attempt, handler, error)
        except BaseException as error:  # SystemExit and the like end the attempt, not the worker
            return self._failed(attempt, handler, error)
        if isinstance(result, Interruption):  # `return Snooze(…)` is as good as to raise it
            return self._failed(attempt, handler, result)
        try:
            return Succeeded(handler.result.encode(result))
        except Exception as error:  # of a result that cannot be stored, or of its own serializer
            # The handler has done its work, so doing it again is not the cure.
            self._show(attempt, error)
            return Failed(describe(error).to_json(), "result")

    def _call(
        self, attempt: RunningAttempt, handler: Handler, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> Coroutine[object, None, object]:
        if self._arounds:
            function = partial(handler.function, *args, **kwargs)
            called: Coroutine[object, None, object] = self._surrounded(attempt, function, is_async=handler.is_async)
        elif handler.is_async:
            called = handler.function(*args, **kwargs)
        else:
            called = self._in_thread(attempt, partial(handler.function, *args, **kwargs))
        return called if handler.spec.timeout is None else self._limited(attempt, handler, called, handler.spec.timeout)

    async def _surrounded(self, attempt: RunningAttempt, function: Callable[[], Any], *, is_async: bool) -> object:
        """A plain context manager goes where the handler goes, so that what belongs to a thread is in the right one."""
        contexts = around.made(self._arounds, running.get())
        if is_async:
            return await around.on_loop(contexts, function)
        on_loop, in_thread = around.parted(contexts)
        call = partial(self._in_thread, attempt, partial(around.in_thread, in_thread, function))
        return await around.on_loop(on_loop, call)

    async def _step_in_thread(self, attempt: RunningAttempt, function: Callable[[], object]) -> object:
        """A workflow's function gets plain ones of its own: those of its attempt were entered in another thread."""
        if self._arounds:
            _, in_thread = around.parted(around.made(self._arounds, running.get()))
            function = partial(around.in_thread, in_thread, function)
        return await self._in_thread(attempt, function)

    # Time-outs

    async def _limited(
        self, attempt: RunningAttempt, handler: Handler, called: Coroutine[object, None, object], timeout: timedelta
    ) -> object:
        seconds = timeout.total_seconds()
        error = TimeoutError(f"the attempt took longer than its timeout of {seconds:g} s")
        limit = attempt.limit = asyncio.timeout(seconds)
        leaving = asyncio.get_running_loop().call_later(
            seconds + _CANCEL_WITHIN, self._leave_behind, attempt, handler, error
        )
        try:
            async with limit:
                return await called
        except TimeoutError as fault:
            if limit.expired():
                raise error.with_traceback(_where(attempt, fault)) from None
            raise
        finally:
            leaving.cancel()

    def _leave_behind(self, attempt: RunningAttempt, handler: Handler, error: TimeoutError) -> None:
        """It was cancelled a while ago and goes on: its outcome need not wait for it."""
        if self._on_abandoned is not None and attempt.limit is not None and attempt.limit.expired():
            outcome = self._failed(attempt, handler, error)
            self._on_abandoned(attempt, outcome if attempt.ending is None else attempt.ending.instead_of(outcome))

    # Threads

    async def _in_thread(self, attempt: RunningAttempt, function: Callable[[], object]) -> object:
        """Errors come back as values: a future cannot carry StopIteration, and would hang on it."""
        started = _stop_the_clock(attempt.limit)

        def call() -> Returned:
            if attempt.stopped or attempt.over or attempt.lost is not None:  # while it waited for a thread
                return None, asyncio.CancelledError()
            attempt.in_thread = True
            attempt.thread = threading.get_ident()
            if started is not None:
                started()
            try:
                return function(), None
            except BaseException as error:  # SystemExit ends the attempt, not the thread
                return None, error
            finally:
                attempt.in_thread = False

        result, error = await self._run_in_thread(call)
        if error is not None:
            raise error
        return result

    def _failed(self, attempt: RunningAttempt, handler: Handler, error: BaseException) -> Outcome:
        """What an error means for the job."""
        row, error = attempt.row, _meant(error)
        self._show(attempt, error)
        if (other := _no_failure(attempt, error)) is not None:
            return other
        if attempt.ending is not None and error is attempt.ending.misfit:
            return Failed(describe(error).to_json(), "result")
        asked = isinstance(error, RetryAfter)
        wanted = asked or handler.spec.retry.wants(error)  # may leave a note on the error
        failure = describe(error).to_json()
        if row.failures + 1 >= row.attempts:
            return Failed(failure, "exhausted", expected=asked)
        if isinstance(error, RetryAfter):
            return Retried(failure, error.delay, expected=True)
        if not wanted:
            return Failed(failure, "refused")
        return Retried(failure, handler.spec.retry.delay(row.failures + 1, random.random))

    def _show(self, attempt: RunningAttempt, error: BaseException) -> None:
        attempt.error = error
        if self._on_error is not None:
            self._on_error(error)


def _where(attempt: RunningAttempt, fault: TimeoutError) -> TracebackType | None:
    """Where the handler was when its time was over: what it does in its thread, or where it was cancelled."""
    if attempt.in_thread and attempt.thread is not None:
        return stack_below(attempt.thread, __file__)
    return None if fault.__cause__ is None else fault.__cause__.__traceback__


def _unrun(row: ClaimedJob) -> Outcome | None:
    """How a job ends that is not worth running any more. A workflow that has begun is looked at: it may be undone."""
    if row.version is not None and (row.claims > 1 or row.wakes):  # a fork remembers what another one did
        return None
    if row.cancelling:
        return Cancelled("asked")
    if row.expired:
        return Cancelled("expired")
    # The last rescue fails other jobs; but a child has a parent that must learn of it.
    return Failed(poison(), "poison") if row.crashes >= MOST_CRASHES else None


def unknown(row: ClaimedJob, handlers: Mapping[str, Handler]) -> str:
    """Why a job cannot be run by a worker that has only these; a worker takes up the "unknown" whose code it has."""
    versions = sorted(int(name[len(row.task) + 1 :]) for name in handlers if name.startswith(f"{row.task}@"))
    if row.version is None and versions:
        return f"a workflow needs a version: rowlock.enqueue({row.task!r}, version => {versions[-1]})"
    if row.version is None:
        return f"unknown task {row.task!r}: no worker that saw this job has its code; deploy it"
    *others, last = [str(version) for version in versions] or ["none of it"]
    has = f"{', '.join(others)} and {last}" if others else last
    return f"unknown version {row.version} of workflow {row.task!r}: this worker has {has}; deploy it"


async def _raising(called: Awaitable[object]) -> object:
    """The result of a workflow's code; an interruption that it returns is raised."""
    result = await called
    if isinstance(result, Interruption):
        raise result
    return result


def _meant(error: BaseException) -> BaseException:
    """What an exception group stands for, such as a TaskGroup's: its errors, or the first interruption if it has none.

    One task may snooze the job while another one fails: then the job has failed.
    """
    if not isinstance(error, BaseExceptionGroup):
        return error
    interruptions, errors = error.split(Interruption)
    if errors is not None or interruptions is None:
        return error if errors is None else errors
    first: BaseException = interruptions
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    return first


def _no_failure(attempt: RunningAttempt, error: BaseException) -> Outcome | None:
    """What an error means that is none, but a way to say something else."""
    match error:
        case Snooze():
            return Snoozed(error.delay)
        case Cancel():
            return Cancelled(reason_of(error.reason))
        case LeaseLost() if attempt.ending is None or error is not attempt.ending.doubted:
            return HandedBack()  # if it is there to be handed back
    return None


def _stop_the_clock(limit: asyncio.Timeout | None) -> Callable[[], None] | None:
    """Stop an attempt's clock while it waits for a thread; the thread calls the returned function to restart it."""
    if limit is None or (when := limit.when()) is None:
        return None
    loop = asyncio.get_running_loop()
    left = when - loop.time()
    limit.reschedule(None)

    def go_on() -> None:
        with suppress(RuntimeError):  # the attempt is over
            limit.reschedule(loop.time() + left)

    def started() -> None:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(go_on)

    return started
