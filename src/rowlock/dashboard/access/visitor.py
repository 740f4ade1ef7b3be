"""Visitors: who uses the dashboard, and what their role allows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Literal, get_args

from starlette.requests import HTTPConnection

from rowlock.errors import InvalidOption
from rowlock.model.names import check_text, shown

Role = Literal["viewer", "operator", "admin"]

ROLES: Final[tuple[Role, ...]] = get_args(Role)
"""Each role may do what the roles before it may."""

_MAX_NAME: Final = 200


@dataclass(frozen=True, slots=True)
class Visitor:
    """Somebody who may use the dashboard; `name` is the actor in the audit.

    A viewer looks, without arguments and results; an operator retries, cancels, pauses and signals; an admin also
    deletes, enqueues and edits.
    """

    name: str
    role: Role = "viewer"

    def __post_init__(self) -> None:
        check_text("name", self.name, limit=_MAX_NAME)
        check_role(self.role)

    def may(self, role: Role) -> bool:
        """Whether they may do what this role may."""
        return ROLES.index(self.role) >= ROLES.index(role)


Auth = Callable[[HTTPConnection], Visitor | Awaitable[Visitor | None] | None]
"""Returns who a request is from, called for each request; None is nobody."""


def check_role(role: str) -> Role:
    """A role by its name."""
    for known in ROLES:
        if known == role:
            return known
    raise InvalidOption(f"role {shown(role)} is none of {', '.join(ROLES)}")
