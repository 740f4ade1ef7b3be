"""Picture: all that the demo's page shows at one moment, as plain values."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal
from uuid import UUID

from rowlock.app.app import Rowlock
from rowlock.demo.job_log import JobLog
from rowlock.demo.watch import DemoEvent, Watch
from rowlock.demo.workers import LEASE_SECONDS, SLOTS, WorkerProcess, WorkerProcesses
from rowlock.model.workflow.timeline import Timeline
from rowlock.store.jobs import JobStatus
from rowlock.store.stats.workers import WorkerRow

_SHOWN = 24
_NEWS = 14
_KILLED = -9
_CHECKOUT_STEPS = ("pick", "approval", "charge", "ship")

CardState = Literal["starting", "working", "stopping", "stopped", "crashed"]


@dataclass(frozen=True, slots=True)
class JobChip:
    """A job. A ghost runs, says its row, but the worker that ran it is dead; `rescued` were ghosts once."""

    id: str
    task: str
    state: str
    ghost: bool = False
    rescued: bool = False
    retried: int = 0


@dataclass(frozen=True, slots=True)
class WorkerCard:
    """A worker process. `lease` is the share of its lease that is left, `lease_left` the seconds; None without one."""

    number: int
    pid: int
    state: CardState
    slots: int
    jobs: tuple[JobChip, ...]
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
    """The page's data."""

    seconds: float  # since it began
    story: str
    cards: tuple[WorkerCard, ...]
    ready: tuple[JobChip, ...]
    ready_more: int
    delayed: int
    ended: tuple[JobChip, ...]
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
    happenings: tuple[DemoEvent, ...]


@dataclass(slots=True)
class ButtonEffects:
    """What the buttons have done, for the next picture."""

    streaming: bool = True
    postgres: str = "up"
    held_since: float | None = None
    dead_rows: int | None = None
    stopping: set[int] = field(default_factory=set)  # processes that were asked to
    checkouts: dict[int, UUID] = field(default_factory=dict)  # by order
    timelines: dict[int, Timeline] = field(default_factory=dict)

    def refresh_checkouts(self, app: Rowlock) -> None:
        """Read how far the workflows are."""
        self.timelines = {order: app.workflows.show(job_id) for order, job_id in self.checkouts.items()}


def picture_now(effects: ButtonEffects, watch: Watch, job_log: JobLog, processes: WorkerProcesses) -> Picture:
    """The picture of this moment."""
    state = watch.state()
    owners = {row.id: number for number, row in watch.workers.items()}
    held = defaultdict(list)
    for place in watch.places:
        if place.state == "running" and place.worker is not None:
            held[owners.get(place.worker)].append(place)
    others = any(member.is_alive for member in processes)
    cards = tuple(
        _card(effects, member, watch.workers.get(member.number), held[member.number], others=others)
        for member in processes
    )
    due = [place for place in watch.places if place.state == "ready" and place.due_in <= 0]
    return Picture(
        seconds=state.at,
        story=state.story,
        cards=cards,
        ready=tuple(map(_chip, due[:_SHOWN])),
        ready_more=max(0, len(due) - _SHOWN),
        delayed=state.delayed,
        ended=tuple(map(_chip, reversed(watch.ended))),
        enqueued=state.enqueued,
        done=job_log.ended["succeeded"],
        failed=job_log.ended["failed"],
        retried=state.retried,
        rescued=state.rescued,
        crashes=state.killed,
        lost=state.lost,
        rates=state.rates,
        rate=sum(state.rates[-5:]) / 5,
        streaming=effects.streaming,
        snapshot=None if effects.held_since is None else time.monotonic() - effects.held_since,
        dead_rows=effects.dead_rows,
        postgres=effects.postgres,
        checkouts=tuple(_checkout(order, line) for order, line in sorted(effects.timelines.items(), reverse=True)),
        happenings=tuple(reversed(state.happenings[-_NEWS:])),
    )


def _card(
    effects: ButtonEffects, member: WorkerProcess, row: WorkerRow | None, held: Iterable[JobStatus], *, others: bool
) -> WorkerCard:
    state = _state(effects, member, row)
    dead = state == "crashed"
    jobs = tuple(_chip(place, ghost=dead) for place in held)
    left = None if row is None else row.lease
    return WorkerCard(
        number=member.number,
        pid=member.process.pid,
        state=state,
        slots=SLOTS if row is None else row.slots,
        jobs=jobs,
        lease=None if left is None else max(0.0, min(1.0, left / LEASE_SECONDS)),
        lease_left=left,
        says=says_of(state, jobs, left, others=others),
    )


def _state(effects: ButtonEffects, member: WorkerProcess, row: WorkerRow | None) -> CardState:
    if member.is_alive:
        if member.process.pid in effects.stopping:
            return "stopping"
        return "working" if row is not None and row.pid == member.process.pid else "starting"
    return "crashed" if member.process.returncode == _KILLED else "stopped"


def says_of(state: CardState, jobs: tuple[JobChip, ...], lease: float | None, *, others: bool) -> str:
    """The sentence below a worker; `others` says that a live worker could take back what a dead one held."""
    count = f"{len(jobs)} job{'' if len(jobs) == 1 else 's'}"
    match state:
        case "working":
            return f"Holds {count} under one lease, which it renews every second."
        case "starting":
            return "Starts up: it puts itself on the books, then it claims."
        case "stopping":
            return f"Takes nothing new; {count} end, or go back to the queue at no cost."
        case "stopped":
            return "Has handed back what it held, and gone."
        case "crashed":
            if not jobs:
                return "Is dead. The jobs it held were rescued by the others."
            wait = f"in {lease:.1f} s, when its lease is over" if lease is not None and lease > 0 else "now"
            taken = f"Another worker takes them back {wait}" if others else "Nobody lives who could take them back"
            return f"Is dead. Its {count} still say running: ghosts. {taken}."


def _chip(place: JobStatus, *, ghost: bool = False) -> JobChip:
    return JobChip(
        id=place.id,
        task=place.task,
        state=place.state,
        ghost=ghost,
        rescued=place.crashes > 0,
        retried=place.failures,
    )


def _checkout(order: int, timeline: Timeline) -> Checkout:
    done = {step.name: step.state for step in timeline}
    asks = any(wait.name == "approval" for wait in timeline.waits)
    return Checkout(
        id=timeline.job.id,
        order=order,
        status=timeline.job.state,
        steps=tuple((name, "asks" if asks and name == "approval" else done.get(name, "")) for name in _CHECKOUT_STEPS),
        asks=asks,
    )
