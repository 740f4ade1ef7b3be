"""What there is to see at one moment: plain values, from which a view can be drawn."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bench:
    """One worker: its process, and what the database says of it."""

    number: int
    pid: int
    alive: bool
    held: int
    slots: int
    lease: float | None  # seconds left; None when it is not on the books
    note: str


@dataclass(frozen=True, slots=True)
class Happening:
    """One line of what has happened."""

    at: float  # seconds since the demo began
    kind: str  # killed, rescued, retry, started, …: how it is drawn
    text: str


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything that the view shows."""

    at: float
    story: str
    benches: tuple[Bench, ...]
    states: Counter[str]
    delayed: int
    enqueued: int
    retried: int
    killed: int
    rescued: int
    lost: int
    rates: tuple[int, ...]  # jobs ended in each of the last seconds
    happenings: tuple[Happening, ...]
