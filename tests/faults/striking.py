"""What can happen to one statement of ours, and where it strikes."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from tests.faults.proxy import Action, Call, Cut, Hole, Passed, Proxy, Refuse


class Point(NamedTuple):
    """One statement of a recorded run: its name, whose it is, and which of these it is."""

    name: str
    who: str
    nth: int = 1

    def __str__(self) -> str:
        return f"{self.name} {self.nth} of {self.who!r}"


def points(passed: Iterable[Passed]) -> list[Point]:
    """Every statement of a recorded run."""
    seen: Counter[tuple[str, str]] = Counter()
    found = []
    for one in passed:
        seen[one.name, one.who] += 1
        found.append(Point(one.name, one.who, seen[one.name, one.who]))
    return found


@dataclass(frozen=True, slots=True)
class Mode:
    """One thing that can happen. `kills`: to whoever said it, before or `after` the server has done it."""

    name: str
    action: Action | None = None
    kills: bool = False
    after: bool = False

    def __str__(self) -> str:
        return self.name


KILLED_BEFORE = Mode("killed before", kills=True)
KILLED_AFTER = Mode("killed after", kills=True, after=True)
MODES = (
    KILLED_BEFORE,
    KILLED_AFTER,
    Mode("reply lost", Cut(after=True)),
    Mode("deadlock", Refuse("40P01")),
    Mode("disk full", Refuse("53100")),
    Mode("read-only", Refuse("25006")),
    Mode("black hole", Hole()),
)


def strike(proxy: Proxy, point: Point, mode: Mode, *, kill: Callable[[], object]) -> threading.Event:
    """Let it happen when the statement comes; answers an event that is set when it has."""
    if mode.action is not None:
        return proxy.on(point.name, mode.action, nth=point.nth, who=point.who).happened
    happened = threading.Event()

    def end() -> None:
        kill()
        happened.set()
        raise ConnectionResetError  # what is on its way goes nowhere

    proxy.on(point.name, Call(end, after=mode.after), nth=point.nth, who=point.who)
    return happened
