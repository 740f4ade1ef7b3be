"""Threads of our own for blocking calls: handlers may have filled the loop's executor."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import TypeVar

T = TypeVar("T")


async def in_own_thread(function: Callable[[], T]) -> T:
    """Run a blocking function in a daemon thread; the end of the process does not wait for it."""
    loop = asyncio.get_running_loop()
    context = copy_context()
    answer: asyncio.Future[T] = loop.create_future()

    def give(deliver: Callable[[], None]) -> None:
        if not answer.done():
            deliver()

    def work() -> None:
        try:
            deliver = partial(answer.set_result, context.run(function))
        except BaseException as error:
            deliver = partial(answer.set_exception, error)
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(give, deliver)

    threading.Thread(target=work, name="rowlock-apart", daemon=True).start()
    return await answer
