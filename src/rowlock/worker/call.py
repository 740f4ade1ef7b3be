"""Call: one attempt, from the claimed row to its outcome.

Whatever a handler does, its attempt ends in exactly one outcome.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from datetime import timedelta

from rowlock.errors import Cancel, InvalidArguments, RetryAfter, Snooze
from rowlock.model.failure import describe
from rowlock.model.handler import Handler
from rowlock.model.outcome import Blocked, Cancelled, Failed, HandedBack, Outcome, Retried, Snoozed, Succeeded
from rowlock.model.row import Claimed
from rowlock.worker.attempt import CurrentJob, running

# Where a sync handler runs: given a function that never raises, answers what it answers.
Returned = tuple[object, BaseException | None]
InThread = Callable[[Callable[[], Returned]], Awaitable[Returned]]


class Caller:
    """Calls handlers: async ones on the loop, sync ones where `in_thread` says."""

    def __init__(self, *, handlers: Mapping[str, Handler], in_thread: InThread) -> None:
        self._handlers = handlers
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
        running.set(CurrentJob(row))
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
            return Failed(describe(error).to_json(), "result")

    def _call(
        self, handler: Handler, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> Coroutine[object, None, object]:
        if handler.is_async:
            called: Coroutine[object, None, object] = handler.function(*args, **kwargs)
        else:
            called = self._in_thread(handler, args, kwargs)
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

    async def _in_thread(self, handler: Handler, args: tuple[object, ...], kwargs: dict[str, object]) -> object:
        """Errors come back as values: a future cannot carry StopIteration, and would hang on it."""

        def call() -> Returned:
            try:
                return handler.function(*args, **kwargs), None
            except BaseException as error:  # SystemExit ends the attempt, not the thread
                return None, error

        result, error = await self._run_in_thread(call)
        if error is not None:
            raise error
        return result

    def _failed(self, row: Claimed, handler: Handler, error: BaseException) -> Outcome:
        """What an error means for the job."""
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
