"""What the demo's page shows at one moment: plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from rowlock.demo.scene import Happening

CardState = Literal["starting", "working", "stopping", "stopped", "crashed"]


@dataclass(frozen=True, slots=True)
class Chip:
    """A job. A ghost runs, says its row, but the worker that ran it is dead; `rescued` were ghosts once."""

    id: str
    task: str
    state: str
    ghost: bool = False
    rescued: bool = False
    retried: int = 0


@dataclass(frozen=True, slots=True)
class Card:
    """A worker process. `lease` is the share of its lease that is left, `lease_left` the seconds; None without one."""

    number: int
    pid: int
    state: CardState
    slots: int
    jobs: tuple[Chip, ...]
    lease: float | None
    lease_left: float | None
    says: str


@dataclass(frozen=True, slots=True)
class Checkout:
    """A workflow that was started here: its steps by name and state, and whether it waits for a person."""

    id: UUID
    order: int
    status: str
    steps: tuple[tuple[str, str], ...]
    asks: bool


@dataclass(frozen=True, slots=True)
class Picture:
    """Everything."""

    seconds: float  # since it began
    story: str
    cards: tuple[Card, ...]
    ready: tuple[Chip, ...]
    ready_more: int
    delayed: int
    ended: tuple[Chip, ...]
    enqueued: int
    done: int
    failed: int
    retried: int
    rescued: int
    crashes: int
    lost: int
    rates: tuple[int, ...]  # jobs ended in each of the last seconds
    rate: float  # jobs a second, over the last five
    streaming: bool
    snapshot: float | None  # seconds for which it has been held
    dead_rows: int | None
    postgres: str  # "up", or what is happening to it
    checkouts: tuple[Checkout, ...]
    happenings: tuple[Happening, ...]
