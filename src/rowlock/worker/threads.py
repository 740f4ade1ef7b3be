"""Threads: sync handlers run in threads, which are left behind when stuck."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context, copy_context
from itertools import count
from queue import SimpleQueue
from types import FrameType, TracebackType
from typing import Generic, TypeVar

T = TypeVar("T")

_WAITING, _RUNNING, _LEFT = range(3)

_numbers = count(1)


class HandlerThread(threading.Thread):
    """A thread that runs sync handlers."""


class HandlerThreads(Generic[T]):
    """At most so many threads, each started when there is nothing else to do for it.

    They are daemons: one that is stuck does not keep the process. Only the loop starts and counts them. The
    incarnations of a worker share them: what one has left behind runs beside what the next one starts.
    """

    def __init__(self, most: int) -> None:
        self.stuck = 0  # left behind, and running still
        self.size = most
        self._inherited = 0  # how many were stuck when this incarnation began
        self._places = 0  # threads that serve
        self._open = 0  # calls that wait for a thread, or run in one that serves
        self._calls: SimpleQueue[_Call[T] | None] = SimpleQueue()
        self._lock = threading.Lock()  # around what a call's thread and the loop decide about it

    @property
    def most(self) -> int:
        """How many may serve, beside those that an earlier incarnation has left behind and that run still."""
        self._inherited = min(self._inherited, self.stuck)
        return max(1, self.size - self._inherited)

    def begin(self) -> None:
        """A new incarnation uses them from now on."""
        self._inherited = self.stuck

    async def run(self, function: Callable[[], T]) -> T:
        """Run a function that never raises, in a copy of this context; cancelled while it runs, it is left behind."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        call = _Call(function, copy_context(), loop, answer)
        self._open += 1
        self._calls.put(call)
        self._fill()
        try:
            return await answer
        finally:
            self._open -= 1
            if answer.cancelled():
                self._leave(call)

    def close(self) -> None:
        """Let the threads go, each when it has ended what it does."""
        for _ in range(self._places):
            self._calls.put(None)
        self._places = 0

    def _fill(self) -> None:
        if self._places < min(self._open, self.most):
            self._places += 1
            HandlerThread(target=self._serve, name=f"rowlock-{next(_numbers)}", daemon=True).start()

    def _leave(self, call: _Call[T]) -> None:
        """Nobody waits for the answer any more. Its thread, if it has one, gives its place to another."""
        with self._lock:
            left = call.state == _RUNNING
            call.state = _LEFT
            self.stuck += left
        if left:
            self._places -= 1
            self._fill()

    def _serve(self) -> None:
        while (call := self._calls.get()) is not None:
            with self._lock:
                if call.state == _LEFT or call.answer.cancelled():  # the loop may not have come to leave it yet
                    continue
                call.state = _RUNNING
            answer = call.context.run(call.function)
            with self._lock:
                if call.state == _LEFT:  # another serves in this one's place
                    self.stuck -= 1
                    return
                call.state = _WAITING  # for the loop: there is nothing to leave behind
            with suppress(RuntimeError):  # the loop is closed
                call.loop.call_soon_threadsafe(call.deliver, answer)
            del call, answer  # what a job has left must not stay until the next one comes


class _Call(Generic[T]):
    __slots__ = ("answer", "context", "function", "loop", "state")

    def __init__(
        self, function: Callable[[], T], context: Context, loop: asyncio.AbstractEventLoop, answer: asyncio.Future[T]
    ) -> None:
        self.function = function
        self.context = context
        self.loop = loop
        self.answer = answer
        self.state = _WAITING

    def deliver(self, answer: T) -> None:
        if not self.answer.done():
            self.answer.set_result(answer)


def stack_below(thread: int, file: str) -> TracebackType | None:
    """What a thread is doing now, as a traceback: its frames below the one of this file, which called the handler."""
    frame: FrameType | None = sys._current_frames().get(thread)  # noqa: SLF001  as traceback's own documentation does
    stack: TracebackType | None = None
    while frame is not None and frame.f_code.co_filename != file:
        stack = TracebackType(stack, frame, frame.f_lasti, frame.f_lineno)
        frame = frame.f_back
    return None if frame is None else stack  # else the thread has gone on to something else
