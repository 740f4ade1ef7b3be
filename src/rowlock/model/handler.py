"""What a worker needs to run a task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rowlock.model.payload import Arguments, Result
from rowlock.model.spec import TaskSpec


@dataclass(frozen=True, slots=True)
class Handler:
    """A task's function, its facts, and how its arguments and result travel."""

    spec: TaskSpec
    function: Callable[..., Any]
    is_async: bool
    arguments: Arguments
    result: Result
