"""Action: a change that visitors of a role can make, by form or API."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from rowlock.dashboard.access.visitor import Role
from rowlock.dashboard.context import RequestContext
from rowlock.dashboard.page import Params

A = TypeVar("A", bound=Params)


@dataclass(frozen=True, slots=True)
class ActionResult:
    """The result in a sentence; the page that shows it, if it is another one; the facts, for programs."""

    says: str
    to: str | None = None  # a path of the dashboard's own
    facts: Any = None


@dataclass(frozen=True, slots=True)
class Action(Generic[A]):
    """POST `path`, whose `{names}` are fields of `params` too; it needs the role `role`."""

    path: str
    role: Role
    params: type[A]
    do: Callable[[RequestContext, A], Awaitable[ActionResult]]
    says: str  # what it does, in a sentence: for the API's description
