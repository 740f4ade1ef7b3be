"""Call: one attempt, from the claimed row to its outcome.

Whatever a handler does, its attempt ends in exactly one outcome.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from rowlock.errors import Cancel, InvalidArguments, RetryAfter, Snooze
from rowlock.model.failure import describe
from rowlock.model.handler import Handler
from rowlock.model.outcome import Blocked, Cancelled, Failed, HandedBack, Outcome, Retried, Snoozed, Succeeded
from rowlock.model.row import Claimed
from rowlock.worker import around
from rowlock.worker.around import Around
from rowlock.worker.attempt import CurrentJob, Say, running, unheard

# Where a sync handler runs: given a function that never raises, answers what it answers.
Returned = tuple[object, BaseException | None]
InThread = Callable[[Callable[[], Returned]], Awaitable[Returned]]


class Caller:
    """Calls handlers inside what is around them: async ones on the loop, sync ones where `in_thread` says."""

    def __init__(
        self,
        *,
        handlers: Mapping[str, Handler],
        in_thread: InThread,
        arounds: Sequence[Around] = (),
        progress: Say = unheard,
        seen: Callable[[BaseException], object] | None = None,
    ) -> None:
        """`seen` is shown every error as it was raised, before it becomes an outcome."""
        self._handlers = handlers
        self._seen = seen
        self._arounds = arounds
        self._progress = progress
        self._run_in_thread = in_thread
        self.draining = False  # then a cancelled attempt is handed back, and has not failed

    async def attempt(self, row: Claimed) -> Outcome:
        """Run one attempt."""
        if row.expired:
            return Cancelled("expired")
        if row.paused:
            return Blocked("pause", f"task {row.task!r} is paused")
        handler = self._handlers.get(row.task)
        if handler is None:
            return Blocked("code", f"unknown task {row.task!r}: no worker that saw this job has its code; deploy it")
        try:
            args, kwargs = handler.arguments.decode(row.args)
        except InvalidArguments as error:
            return Blocked("code", f"arguments do not fit {row.task!r}: {error}")
        running.set(CurrentJob(row, self._progress))
        return await self._handled(row, handler, args, kwargs)

    async def _handled(
        self, row: Claimed, handler: Handler, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> Outcome:
        try:
            result = await self._call(handler, args, kwargs)
        except asyncio.CancelledError as error:
            return HandedBack() if self.draining else self._failed(row, handler, error)
        except BaseException as error:  # SystemExit and the like end the attempt, not the worker
            return self._failed(row, handler, error)
        try:
            return Succeeded(handler.result.encode(result))
        except Exception as error:  # of a result that cannot be stored, or of its own serializer
            # The handler has done its work, so doing it again is not the cure.
            if self._seen is not None:
                self._seen(error)
            return Failed(describe(error).to_json(), "result")

    def _call(
        self, handler: Handler, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> Coroutine[object, None, object]:
        if self._arounds:
            function = partial(handler.function, *args, **kwargs)
            called: Coroutine[object, None, object] = self._surrounded(function, is_async=handler.is_async)
        elif handler.is_async:
            called = handler.function(*args, **kwargs)
        else:
            called = self._in_thread(partial(handler.function, *args, **kwargs))
        timeout = handler.spec.timeout
        return called if timeout is None else self._limited(called, timeout)

    async def _limited(self, called: Coroutine[object, None, object], timeout: timedelta) -> object:
        limit = asyncio.timeout(timeout.total_seconds())
        try:
            async with limit:
                return await called
        except TimeoutError as error:
            if limit.expired():
                raise TimeoutError(f"the attempt took longer than its timeout of {timeout}") from error
            raise

    async def _surrounded(self, function: Callable[[], Any], *, is_async: bool) -> object:
        """A plain context manager goes where the handler goes, so that what belongs to a thread is in the right one."""
        contexts = around.made(self._arounds, running.get())
        if is_async:
            return await around.on_loop(contexts, function)
        on_loop, in_thread = around.parted(contexts)
        return await around.on_loop(on_loop, partial(self._in_thread, partial(around.in_thread, in_thread, function)))

    async def _in_thread(self, function: Callable[[], object]) -> object:
        """Errors come back as values: a future cannot carry StopIteration, and would hang on it."""

        def call() -> Returned:
            try:
                return function(), None
            except BaseException as error:  # SystemExit ends the attempt, not the thread
                return None, error

        result, error = await self._run_in_thread(call)
        if error is not None:
            raise error
        return result

    def _failed(self, row: Claimed, handler: Handler, error: BaseException) -> Outcome:
        """What an error means for the job."""
        if self._seen is not None:
            self._seen(error)
        if isinstance(error, Snooze):
            return Snoozed(error.delay)
        if isinstance(error, Cancel):
            return Cancelled(error.reason)
        wanted = isinstance(error, RetryAfter) or handler.spec.retry.wants(error)  # may leave a note on the error
        failure = describe(error).to_json()
        if row.failures + 1 >= row.attempts:
            return Failed(failure, "exhausted")
        if isinstance(error, RetryAfter):
            return Retried(failure, error.delay)
        if not wanted:
            return Failed(failure, "refused")
        return Retried(failure, handler.spec.retry.delay(row.failures + 1, random.random))
