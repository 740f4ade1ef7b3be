"""An action: what somebody with a certain role can have done, by a form or by the API."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from rowlock.dashboard.desk import Desk
from rowlock.dashboard.page import Asked
from rowlock.dashboard.visitor import Role

A = TypeVar("A", bound=Asked)


@dataclass(frozen=True, slots=True)
class Did:
    """What was done, in a sentence; where to look at it, if it is elsewhere; and the facts, for programs."""

    says: str
    to: str | None = None  # a path of the dashboard's own
    facts: Any = None


@dataclass(frozen=True, slots=True)
class Action(Generic[A]):
    """POST `path`, whose `{names}` are fields of `asked` too; only those who may act as `role` can."""

    path: str
    role: Role
    asked: type[A]
    do: Callable[[Desk, A], Awaitable[Did]]
    says: str  # what it does, in a sentence: for the API's description
