"""What may happen to a statement on its way."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Cut:
    """The connection ends, or every one: before the server has heard of the statement, or the client of the answer."""

    after: bool = False
    everywhere: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """Somebody is called, before the server has heard of it or before the client hears of it; then it goes on."""

    callback: Callable[[], object]
    after: bool = False


@dataclass(frozen=True, slots=True)
class Refuse:
    """The statement never reaches the server; the client is told this error."""

    sqlstate: str


@dataclass(frozen=True, slots=True)
class Hole:
    """From this statement on nothing passes on this connection, or on any; `after`: the answer is the first to stay."""

    everywhere: bool = False
    after: bool = False


Action = Cut | Call | Refuse | Hole


@dataclass(slots=True, eq=False)
class Fault:
    """What is to happen to the nth statement of a name from now on; `happened` is set when it has."""

    name: str
    action: Action
    nth: int
    who: str | None
    happened: threading.Event = field(default_factory=threading.Event)
