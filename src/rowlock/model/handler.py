"""What a worker needs to run a task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rowlock.model.payload import Arguments, Result
from rowlock.model.spec import TaskSpec

Carry = Callable[[dict[str, Any]], dict[str, Any]]
"""What makes the state of one version of a workflow into that of a later one."""


@dataclass(frozen=True, slots=True)
class Handler:
    """A task's function, its facts, and how its arguments and result travel.

    `carries` are what the state of a workflow of an earlier version goes through, in this order, to become this one's.
    """

    spec: TaskSpec
    function: Callable[..., Any]
    is_async: bool
    arguments: Arguments
    result: Result
    carries: tuple[Carry, ...] = ()

    @property
    def version(self) -> int | None:
        """The version of a workflow's code; None: it is no workflow."""
        return self.spec.version

    @property
    def is_workflow(self) -> bool:
        """Whether its function remembers what it has done."""
        return self.spec.version is not None
