"""A session that plays a drawn script: a worker and a caller in one, with all that it was ever told still in mind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rowlock.model.key import Key
from rowlock.model.row import ClaimedJob
from tests.faults.interleaving import acts
from tests.faults.interleaving.acts import Fact
from tests.faults.interleaving.machine import Part, held, undone
from tests.faults.interleaving.world import World

# How many lines a script has, at least and at most.
LENGTH = (2, 6)
# How an act's statement meets the others': committed at once, some time later, or never.
COMMITS: dict[str, Callable[[Part], Part]] = {"at once": lambda part: part, "later": held, "never": undone}


class Line(NamedTuple):
    """One line of a script: what to do, when it commits, and which of the things it knows to do it with."""

    verb: str
    commits: str
    which: int


@dataclass
class Troupe:
    """What players have in common: the jobs that any of them has made, and all workers."""

    world: World
    jobs: list[str] = field(default_factory=list)
    workers: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.stranger = self.world.worker()


@dataclass
class Player:
    """One of them."""

    troupe: Troupe
    script: Sequence[Line]
    worker: str = ""
    rows: list[ClaimedJob] = field(default_factory=list)  # stale ones, and those of claims that were rolled back, too

    def __post_init__(self) -> None:
        """It runs a job already, and a job is another's by now that it once ran: most that goes wrong begins so."""
        world, self.worker = self.troupe.world, self.troupe.world.worker()
        [stale] = world.running(self.worker)
        world.do(acts.give_back([stale]))
        world.do(acts.claim(self.troupe.stranger))
        self.rows = [stale, *world.running(self.worker)]
        self.troupe.workers.append(self.worker)
        self.troupe.jobs += [row.id for row in self.rows]

    def play(self) -> Part:
        facts: list[Fact] = []
        for line in self.script:
            if (part := self._part(line)) is not None:
                facts += yield from part
        return facts

    def _part(self, line: Line) -> Part | None:
        """The act of a line; None when there is nothing to do it with."""
        if (whole := self._with_jobs(line)) is not None:
            return whole
        act = VERBS[line.verb](self, line.which)
        return None if act is None else COMMITS[line.commits](act)

    def _with_jobs(self, line: Line) -> Part | None:
        """Acts that are transactions of their own."""
        if line.verb == "rescue":
            return acts.rescue(lost=bool(line.which % 2))
        if line.verb == "cancel" and self.troupe.jobs:
            return self._cancel(self.troupe.jobs[line.which % len(self.troupe.jobs)])
        return None

    def _cancel(self, job: str) -> Part:
        facts = yield from acts.cancel(job)
        return [fact for fact in facts if fact.kind == "cancelled"]

    def enqueue(self, which: int) -> Part:
        made = acts.new(key=f"k{which}" if which else None)
        facts = yield from acts.enqueue(made)
        self.troupe.jobs += [fact.job for fact in facts]
        return facts

    def replace(self, which: int) -> Part:
        facts = yield from acts.enqueue(acts.new(key=Key(f"k{1 + which % 2}", taken="replace")))
        self.troupe.jobs += [fact.job for fact in facts]
        return facts

    def claim(self, which: int) -> Part:
        facts = yield from acts.claim(self.worker, 1 + which)
        self.rows += acts.claimed(facts)
        return facts

    def settle(self, which: int) -> Part | None:
        return acts.settle(self._some(which), (acts.SUCCEEDED, acts.FAILED)[which % 2]) if self.rows else None

    def give_back(self, which: int) -> Part | None:
        return acts.give_back(self._some(which), (acts.RETRIED, acts.HANDED_BACK)[which % 2]) if self.rows else None

    def progress(self, which: int) -> Part | None:
        return acts.say_progress(self.rows[which % len(self.rows)], 0.5) if self.rows else None

    def hand_back(self, which: int) -> Part:
        return acts.hand_back(self.worker, [row.token for row in self.rows[:which]])

    def disown(self, which: int) -> Part:
        return acts.disown(self.worker, [row.token for row in self.rows[:which]])

    def renew(self, _which: int) -> Part:
        return acts.renew(self.worker)

    def expire(self, which: int) -> Part:
        return acts.expire(self.troupe.workers[which % len(self.troupe.workers)])

    def return_anew(self, _which: int) -> Part:
        """It fenced itself, and comes back under a new id."""
        old, self.worker = self.worker, self.troupe.world.worker()
        self.troupe.workers.append(self.worker)
        return acts.together(acts.hand_back(old), acts.pardon(old))

    def _some(self, which: int) -> list[ClaimedJob]:
        """One row, or all: stale and fresh ones of one job in one batch, too."""
        return self.rows if which == 0 else [self.rows[which % len(self.rows)]]


VERBS: dict[str, Callable[[Player, int], Part | None]] = {
    "enqueue": Player.enqueue,
    "replace": Player.replace,
    "claim": Player.claim,
    "settle": Player.settle,
    "give back": Player.give_back,
    "progress": Player.progress,
    "hand back": Player.hand_back,
    "disown": Player.disown,
    "renew": Player.renew,
    "expire": Player.expire,
    "return anew": Player.return_anew,
    "rescue": lambda _player, _which: None,
    "cancel": lambda _player, _which: None,
}
# What a script is drawn from: attempts change hands by few of the verbs, and so these come more often.
REPERTOIRE = [*VERBS, "claim", "claim", "settle", "settle", "give back", "rescue", "expire", "cancel"]
