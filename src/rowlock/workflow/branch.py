"""Branches: which call of a workflow's code is which, whatever finishes first.

A call is known by its name, how often its branch has called that name, and its position among the calls of its branch.
A branch is an asyncio task: the code inside of one runs in one order, and so it begins others. Those are numbered when
they are begun. Numbered by what they do first, or by what ends first, branches that wait for each other would exchange
their steps as soon as those end in another order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar, Token
from random import Random
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from rowlock.errors import WorkflowError


class CallSite(NamedTuple):
    """Where in the code a call stands: its key, the path of its branch, and its position there."""

    key: str
    path: str
    position: int


class Branch:
    """One strand of a workflow's code."""

    __slots__ = ("_last", "_numbers", "_random", "_seed", "_seen", "_undos", "path", "position", "task")

    def __init__(self, path: str, seed: str) -> None:
        self.path = path
        self.task: asyncio.Task[Any] | None = None
        self.position = 0  # of the latest call
        self._seed = seed
        self._seen: dict[str, int] = {}
        self._last = 0  # number of a branch
        self._numbers: WeakKeyDictionary[asyncio.Task[Any], int] | None = None
        self._random: Random | None = None
        self._undos: Branch | None = None

    def place(self, name: str) -> CallSite:
        """The place of the next call, which is one of that name."""
        key = self.peek(name)
        self.position += 1
        self._seen[name] = self._seen.get(name, 0) + 1
        return CallSite(key, self.path, self.position)

    def peek(self, name: str) -> str:
        """The key that the next call would have, were it of that name."""
        seen = self._seen.get(name, 0) + 1
        return f"{self.path}{name}" if seen == 1 else f"{self.path}{name}#{seen}"

    def number(self, task: asyncio.Task[Any]) -> int:
        """Which of the tasks that this branch has begun."""
        if self._numbers is None:
            self._numbers = WeakKeyDictionary()
        if task not in self._numbers:
            self._last += 1
            self._numbers[task] = self._last
        return self._numbers[task]

    def fork(self, task: asyncio.Task[Any]) -> Branch:
        """The branch of a task that this one has begun."""
        branch = Branch(f"{self.path}{self.number(task)}/", self._seed)
        branch.task = task
        return branch

    def undo_place(self, name: str) -> CallSite:
        """The place of what is to be undone, within its branch: a replay may come to others' before, or after."""
        if self._undos is None:
            self._undos = Branch(f"undo/{self.path}", self._seed)
        return self._undos.place(name)

    @property
    def random(self) -> Random:
        """Random numbers that are the same in every attempt."""
        if self._random is None:
            self._random = Random(f"{self._seed}/{self.path}")
        return self._random


_current: ContextVar[Branch | None] = ContextVar("rowlock_branch", default=None)


def enter(root: Branch) -> None:
    """This task runs a workflow from its beginning."""
    root.task = asyncio.current_task()
    _current.set(root)
    loop = asyncio.get_running_loop()
    factory = loop.get_task_factory()
    if not isinstance(factory, _Numbering):
        loop.set_task_factory(_Numbering(factory))


class _Numbering:
    """Makes tasks as the loop would, and numbers those that the code of a workflow begins.

    There is no other way to hear of them before they do something. Should somebody replace it, they are numbered by
    what they do first.
    """

    def __init__(self, before: Callable[..., Any] | None) -> None:
        self._before = before

    def __call__(self, loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> Any:  # noqa: ANN401  of any kind
        branch: Branch | None = None
        # What steps begin, and what we begin ourselves, is not begun again by a replay.
        if _current.get() is not None and current_step() is None and asyncio.current_task(loop) is not None:
            branch = current()  # before the task is made, which takes a copy of this context along
        if self._before is None:
            task: asyncio.Task[Any] = asyncio.Task(coroutine, loop=loop, **options)
        else:
            task = self._before(loop, coroutine, **options)
        if branch is not None:
            branch.number(task)
        return task


def current() -> Branch:
    """The branch of this task; one that was begun by another branch is a new one."""
    branch = _current.get()
    if branch is None:
        raise WorkflowError("a workflow's context belongs to its own code, and to the tasks that this begins")
    task = asyncio.current_task()
    if branch.task is not task and task is not None:
        branch = branch.fork(task)
        _current.set(branch)
    return branch


def path_of(key: str) -> str:
    """The path of the branch that a step belongs to."""
    head, slash, _ = key.rpartition("/")
    return head + slash


_key: ContextVar[str | None] = ContextVar("rowlock_step", default=None)


class inside_step:  # noqa: N801  it reads as a block
    """Inside of the step with this key."""

    __slots__ = ("_before", "_name")

    def __init__(self, key: str) -> None:
        self._name = key

    def __enter__(self) -> None:
        self._before: Token[str | None] = _key.set(self._name)

    def __exit__(self, *_error: object) -> None:
        _key.reset(self._before)


def current_step() -> str | None:
    """The key of the step that is running here; None outside of steps."""
    return _key.get()
