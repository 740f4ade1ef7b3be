"""Workflows that wait for signals, by the shipped statements: who sends, who takes, and what must be true of both.

Each workflow here is the same function: it waits for so many signals named `paid`, one after the other, and ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, NamedTuple

from rowlock.model.ids import new_id
from rowlock.model.outcome import Cancelled, Ended, Parked, Returned, Succeeded
from rowlock.model.row import ClaimedJob, NewJob
from rowlock.model.workflow.step import Signal, StepUpdate, StoredStep
from rowlock.store import claim as claim_store
from rowlock.store import settle as settle_store
from rowlock.store.claim import Lane
from rowlock.store.query import Query
from rowlock.store.workflows import signals, steps
from tests.faults.interleaving import acts, recorder
from tests.faults.interleaving.acts import DAY
from tests.faults.interleaving.machine import Choose, EveryOrder, Part, Played
from tests.faults.interleaving.recorder import Db
from tests.faults.interleaving.world import Scene, World

LANES = [Lane("default", 0)]
# A drain goes through every workflow a few times at most: each pass takes a signal, parks or ends.
_PASSES = 12


class Told(NamedTuple):
    """What one who sent, worked or cancelled was told, in a statement that was committed."""

    kind: str
    job: str
    signal: str | None = None


@dataclass
class Attempt:
    """A worker's, whose outcome may have been passed over because somebody had the row: then it is said again."""

    row: ClaimedJob
    outcome: Ended | Returned | None = None
    took: list[str] = field(default_factory=list)


# Senders


def send(target: str, *, key: str | None = None, signal: str | None = None, name: str = "paid") -> Part:
    """Send a signal, in one statement."""
    signal = signal or new_id()
    [sent] = yield signals.send(signal, target=target, name=name, payload=None, key=key)
    return [Told(sent.answer, sent.job or target, signal)]


# Workers


def claim(worker: str) -> Part:
    """Claim what is ready; the attempts that come of it."""
    rows: list[ClaimedJob] = yield claim_store.claim(lanes=LANES, limit=10, worker=worker)
    return [Attempt(row) for row in rows]


def play(attempt: Attempt, *, waits: int = 1, timeout: timedelta | None = None) -> Part:
    """One pass of the function over what is remembered: takes what there is, and ends, times out or parks."""
    row = attempt.row
    if row.cancelling:
        attempt.outcome = Cancelled("asked")
        return (yield from settle(attempt))
    loaded: list[tuple[str, StoredStep, str]] = yield steps.load([row.id])
    known = {step.key: step for _, step, _ in loaded}
    there: list[tuple[str, Signal]] = yield steps.load_signals([row.id])
    waiting = [signal for _, signal in there if signal.name == "paid"]
    facts: list[Told] = []
    for number in range(1, waits + 1):
        name = f"paid#{number}"
        if name in known and known[name].state != "open":
            continue
        if waiting:
            signal = waiting.pop(0)
            accepted = yield from _write(row, StepUpdate(name, number, "signal", "done", signal=signal.id))
            if not accepted:
                return facts  # the lease is lost, or somebody has the row: the attempt is taken up again by a rescue
            facts.append(Told("took", row.id, signal.id))
        elif name in known and known[name].due:
            accepted = yield from _write(row, StepUpdate(name, number, "signal", "failed"))
            if not accepted:
                return facts
            facts.append(Told("timed out", row.id))
        else:
            if name not in known and not (
                yield from _write(row, StepUpdate(name, number, "signal", "open", delay=timeout))
            ):
                return facts
            attempt.outcome = Parked((row.wakes or 0) + 1, "signal", loaded[-1][-1] if loaded else None)
            return [*facts, *(yield from settle(attempt))]
    attempt.outcome = Succeeded(None)
    return [*facts, *(yield from settle(attempt))]


def _write(row: ClaimedJob, record: StepUpdate) -> Part:
    return (yield steps.record([(row, record)], told={}))


def settle(attempt: Attempt) -> Part:
    """Say how it ended; nothing is known if somebody has the row just now."""
    row, outcome = attempt.row, attempt.outcome
    if outcome is None:
        return []
    query: Query[str]
    if isinstance(outcome, Parked):
        query = settle_store.return_workflows([(row, outcome)], told={})
        kind = "gave back"
    else:
        assert isinstance(outcome, Succeeded | Cancelled)
        query = settle_store.settle_workflows([(row, outcome, DAY)], told={})
        kind = "ended"
    accepted = yield query
    return [Told(kind, row.id)] if row.token in accepted else []


def work(worker: str, *, passes: int = 1, waits: int = 1, timeout: timedelta | None = None) -> Part:
    """Claim and play, so many times."""
    facts: list[Told] = []
    for _ in range(passes):
        for attempt in (yield from claim(worker)):
            facts += yield from play(attempt, waits=waits, timeout=timeout)
    return facts


# The stage


class Waiting(World):
    """The scene for workflows: each schedule is played to where nothing moves any more, and judged there."""

    waits = 1

    def started(self, *, key: str | None = None) -> str:
        """A workflow that nobody has claimed yet."""
        job = NewJob(new_id(), "default", "w", "{}", 0, 1, key=key, version=1)
        self._say(acts.enqueue([job]))
        return job.id

    def begun(self, *, key: str | None = None) -> tuple[str, Attempt]:
        """A workflow that runs, and waits for nothing yet."""
        job = self.started(key=key)
        [attempt] = self.claimed()
        assert attempt.row.id == job
        return job, attempt

    def claimed(self) -> list[Attempt]:
        """What is ready, in the hands of a worker."""
        return self._say(claim(self.worker()))

    def parked(self, *, key: str | None = None, timeout: timedelta | None = None) -> str:
        """A workflow that waits."""
        job, attempt = self.begun(key=key)
        self._say(play(attempt, waits=self.waits, timeout=timeout))
        return job

    def _say(self, part: Part) -> list[Any]:
        return self._alone(part)

    def play(self, scene: Scene, choose: Choose) -> Played:
        """One schedule, from an empty database to one where nothing moves any more."""
        recorder.clear(self._connection)
        played = self._machine.play(scene(self), choose)
        told = [fact for facts in played.knows.values() for fact in facts]
        try:
            told += self.drain()
            judge(self._connection, told)
        except AssertionError as error:
            error.add_note("in this order:\n" + str(played) + "\n" + "\n".join(map(str, told)))
            raise
        return Played(played.steps, {**played.knows, "drain": told[sum(map(len, played.knows.values())) :]})

    def every_order(self, scene: Scene) -> list[Played]:
        return [self.play(scene, choose) for choose in EveryOrder()]

    def drain(self) -> list[Told]:
        """All workers die; another one rescues what they held, and goes on for as long as anything moves."""
        self._connection.execute("delete from rowlock.workers")
        heir = self.worker()
        facts: list[Told] = []
        for _ in range(_PASSES):
            self._say(acts.rescue(lost=True))
            self._connection.execute(acts.TAKE_SUSPECTS)
            before = len(facts)
            facts += self._say(work(heir, waits=self.waits))
            if len(facts) == before:
                return facts
        raise AssertionError("I19: it does not come to rest")


def judge(db: Db, told: Sequence[Told]) -> None:
    """I11: whatever was told to be sent is there, and was taken once at most; nobody waits beside a signal for it."""
    sent = {fact.signal for fact in told if fact.kind == "sent"}
    stored = db.execute(
        """
        select id::text, job::text, taken_at is not null, true from rowlock.signals
        union all
        select signal ->> 'id', past.id::text, signal ->> 'taken_at' is not null, false
        from rowlock.history as past cross join json_array_elements(past.steps -> 'signals') as signal
        """
    ).fetchall()
    assert Counter(signal for signal, *_ in stored) == Counter(sent), "stored is what was told to be sent, and once"
    takes = Counter(fact.signal for fact in told if fact.kind == "took")
    assert set(takes.values()) <= {1}, "a signal was taken twice"
    assert takes.keys() == {signal for signal, _, taken, _ in stored if taken}
    live: dict[str, int] = dict(db.execute("select id::text, wakes from rowlock.jobs").fetchall())
    orphans = [signal for signal, job, _, is_live in stored if is_live and job not in live]
    assert orphans == [], "signals were left behind by a workflow that has ended"
    for job, wakes in live.items():
        mine = [taken for _, owner, taken, _ in stored if owner == job]
        assert wakes == len(mine), "each is counted, and once"
        assert all(mine), "I11: a workflow waits beside a signal that it waits for"
    resurrected = db.execute("select id from rowlock.jobs intersect select id from rowlock.history").fetchall()
    assert resurrected == [], "it lives and has ended"


def answers(played: Played, who: str) -> list[str]:
    """What one of them was told."""
    return [fact.kind for fact in played.knows[who]]
