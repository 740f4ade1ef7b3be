"""Side loop: runs async code in another thread, and sync handlers in the caller's."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from queue import Empty, SimpleQueue
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

# A Ctrl-C that comes just as a thread goes to sleep does not wake it: so often it wakes by itself, in seconds.
_TURN = 0.2


class InThread(Protocol):
    """Runs a function in the caller's thread, where no loop is running; called from the loop."""

    async def __call__(self, function: Callable[[], T], /) -> T: ...


def in_side_loop(main: Callable[[InThread], Coroutine[Any, Any, T]]) -> T:
    """Run `main` on a loop in another thread; this one waits, and runs what it is sent meanwhile.

    So sync handlers run in the thread of the test, to which its connection belongs, and outside of any running loop.
    """
    asgiref = sys.modules.get("asgiref.sync")
    if asgiref is not None:  # Django's own way of doing this: what uses it finds its way back to this thread
        answer: T = asgiref.async_to_sync(main)(in_framework_thread)
        return answer
    calls = _Calls()
    with ThreadPoolExecutor(1, thread_name_prefix="rowlock-loop") as thread:
        ended = thread.submit(copy_context().run, asyncio.run, calls.cancellable(main))
        ended.add_done_callback(calls.end)
        try:
            calls.serve()
        except BaseException:  # Ctrl-C; what was claimed is handed back, which takes this thread once more
            calls.cancel()
            calls.serve()
            raise
    return ended.result()


async def in_framework_thread(function: Callable[[], T], /) -> T:
    """Run a function where Django's own async verbs run theirs, if it is there; else in any thread."""
    asgiref = sys.modules.get("asgiref.sync")
    if asgiref is None:
        return await asyncio.to_thread(function)
    result: T = await asgiref.sync_to_async(function, thread_sensitive=True)()
    return result


class _Calls:
    """Functions that the loop sends to the caller's thread."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None

    async def cancellable(self, main: Callable[[InThread], Coroutine[Any, Any, T]]) -> T:
        """Run `main`, and be ready to cancel it."""
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        return await main(self)

    async def __call__(self, function: Callable[[], T], /) -> T:
        done: Future[T] = Future()
        context = copy_context()

        def call() -> None:
            if not done.set_running_or_notify_cancel():
                return
            try:
                answer = context.run(function)
            except BaseException as error:
                done.set_exception(error)
            else:
                done.set_result(answer)

        self._calls.put(call)
        return await asyncio.wrap_future(done)

    def serve(self) -> None:
        """Run the functions that come until the loop has ended."""
        while (call := self._next()) is not None:
            call()

    def _next(self) -> Callable[[], None] | None:
        while True:
            with suppress(Empty):
                return self._calls.get(timeout=_TURN)

    def cancel(self) -> None:
        """Ask `main` to end."""
        if self._loop is not None and self._task is not None:
            self._loop.call_soon_threadsafe(self._task.cancel)

    def end(self, _ended: Future[Any]) -> None:
        """The loop has ended."""
        self._calls.put(None)
