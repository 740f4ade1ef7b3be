"""From what was seen to a picture of it."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from uuid import UUID

from rowlock.app.app import Rowlock
from rowlock.demo.crew import LEASE_SECONDS, SLOTS, Crew, Member
from rowlock.demo.ledger import Ledger
from rowlock.demo.picture import Card, CardState, Checkout, Chip, Picture
from rowlock.demo.watch import Watch
from rowlock.model.workflow.timeline import Timeline
from rowlock.store.results import JobStatus
from rowlock.store.stats.workers import WorkerRow

_SHOWN = 24
_NEWS = 14
_KILLED = -9
_CHECKOUT_STEPS = ("pick", "approval", "charge", "ship")


@dataclass(slots=True)
class Drawing:
    """What a picture needs beside what was seen: what the buttons have done."""

    streaming: bool = True
    postgres: str = "up"
    held_since: float | None = None
    dead_rows: int | None = None
    stopping: set[int] = field(default_factory=set)  # processes that were asked to
    checkouts: dict[int, UUID] = field(default_factory=dict)  # by order
    timelines: dict[int, Timeline] = field(default_factory=dict)

    def look_at_checkouts(self, app: Rowlock) -> None:
        """See how far the workflows are."""
        self.timelines = {order: app.workflows.show(job_id) for order, job_id in self.checkouts.items()}


def draw(drawing: Drawing, watch: Watch, ledger: Ledger, crew: Crew) -> Picture:
    """This moment."""
    scene = watch.scene()
    owners = {row.id: number for number, row in watch.workers.items()}
    held = defaultdict(list)
    for place in watch.places:
        if place.state == "running" and place.worker is not None:
            held[owners.get(place.worker)].append(place)
    others = any(member.is_alive for member in crew)
    cards = tuple(
        _card(drawing, member, watch.workers.get(member.number), held[member.number], others=others) for member in crew
    )
    due = [place for place in watch.places if place.state == "ready" and place.due_in <= 0]
    return Picture(
        seconds=scene.at,
        story=scene.story,
        cards=cards,
        ready=tuple(map(_chip, due[:_SHOWN])),
        ready_more=max(0, len(due) - _SHOWN),
        delayed=scene.delayed,
        ended=tuple(map(_chip, reversed(watch.ended))),
        enqueued=scene.enqueued,
        done=ledger.ended["succeeded"],
        failed=ledger.ended["failed"],
        retried=scene.retried,
        rescued=scene.rescued,
        crashes=scene.killed,
        lost=scene.lost,
        rates=scene.rates,
        rate=sum(scene.rates[-5:]) / 5,
        streaming=drawing.streaming,
        snapshot=None if drawing.held_since is None else time.monotonic() - drawing.held_since,
        dead_rows=drawing.dead_rows,
        postgres=drawing.postgres,
        checkouts=tuple(_checkout(order, line) for order, line in sorted(drawing.timelines.items(), reverse=True)),
        happenings=tuple(reversed(scene.happenings[-_NEWS:])),
    )


def _card(drawing: Drawing, member: Member, row: WorkerRow | None, held: Iterable[JobStatus], *, others: bool) -> Card:
    state = _state(drawing, member, row)
    dead = state == "crashed"
    jobs = tuple(_chip(place, ghost=dead) for place in held)
    left = None if row is None else row.lease
    return Card(
        number=member.number,
        pid=member.process.pid,
        state=state,
        slots=SLOTS if row is None else row.slots,
        jobs=jobs,
        lease=None if left is None else max(0.0, min(1.0, left / LEASE_SECONDS)),
        lease_left=left,
        says=says_of(state, jobs, left, others=others),
    )


def _state(drawing: Drawing, member: Member, row: WorkerRow | None) -> CardState:
    if member.is_alive:
        if member.process.pid in drawing.stopping:
            return "stopping"
        return "working" if row is not None and row.pid == member.process.pid else "starting"
    return "crashed" if member.process.returncode == _KILLED else "stopped"


def says_of(state: CardState, jobs: tuple[Chip, ...], lease: float | None, *, others: bool) -> str:
    """What stands below a worker; `others` says whether anybody lives who could take back what a dead one held."""
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


def _chip(place: JobStatus, *, ghost: bool = False) -> Chip:
    return Chip(
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
