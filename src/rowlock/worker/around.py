"""Around: context managers around every attempt, and around a worker's life.

A plain one belongs to the thread that it is entered in, as a session or a connection of that thread does. So it goes
around each function that runs in a thread, in that thread; of a workflow, around each of its sync steps.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack, ExitStack
from typing import TYPE_CHECKING, Any

from rowlock.errors import TaskError

if TYPE_CHECKING:
    from rowlock.worker.attempt import CurrentJob

Plain = AbstractContextManager[Any]
Async = AbstractAsyncContextManager[Any]
Around = Callable[["CurrentJob"], Plain | Async]


def check_maker(function: object, said: str) -> None:
    """Refuse, when it is declared, a function that cannot return a context manager; `said` is what declares it."""
    wrapper = _wrapper_for(function)
    if wrapper is not None:
        raise TaskError(f"{said} wants a function that returns a context manager; put @{wrapper} on {_name(function)}")
    if not callable(function):
        raise TaskError(f"{said} wants a function that returns a context manager, not {function!r}")


def _wrapper_for(function: object) -> str | None:
    if inspect.isasyncgenfunction(function) or inspect.iscoroutinefunction(function):
        return "asynccontextmanager"
    return "contextmanager" if inspect.isgeneratorfunction(function) else None


def made(arounds: Iterable[Around], job: CurrentJob) -> list[Plain | Async]:
    """The context managers of one attempt."""
    return [checked(around(job), _name(around)) for around in arounds]


def checked(context: Plain | Async, maker: str) -> Plain | Async:
    """What a function returned, which must be a context manager of one kind or the other; `maker` is its name."""
    if isinstance(context, AbstractContextManager | AbstractAsyncContextManager):
        return context
    raise TypeError(f"{maker} returned {type(context).__name__}, not a context manager")


def parted(contexts: Sequence[Plain | Async]) -> tuple[list[Plain | Async], list[Plain]]:
    """For a sync handler: those to enter on the loop, and those to enter in the handler's thread."""
    return (
        [context for context in contexts if not isinstance(context, AbstractContextManager)],
        [context for context in contexts if isinstance(context, AbstractContextManager)],
    )


async def on_loop(contexts: Sequence[Plain | Async], call: Callable[[], Awaitable[object]]) -> object:
    """Call inside all of them, the first outermost; None when one of them swallowed the error."""
    async with AsyncExitStack() as stack:
        for context in contexts:
            await enter(stack, context)
        return await call()
    return None  # type: ignore[unreachable]  # mypy takes it that a stack swallows nothing


def in_thread(contexts: Sequence[Plain], call: Callable[[], object]) -> object:
    """Call inside all of them, the first outermost; None when one of them swallowed the error."""
    with ExitStack() as stack:
        for context in contexts:
            stack.enter_context(context)
        return call()
    return None  # type: ignore[unreachable]  # mypy takes it that a stack swallows nothing


async def enter(stack: AsyncExitStack, context: Plain | Async) -> None:
    """Enter on the loop: as an async context manager if it is one."""
    if isinstance(context, AbstractAsyncContextManager):
        await stack.enter_async_context(context)
    else:
        stack.enter_context(context)


def _name(function: object) -> str:
    return getattr(function, "__qualname__", repr(function))
