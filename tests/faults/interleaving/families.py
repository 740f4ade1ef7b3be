"""Workflows and their children, by the shipped statements: who spawns, who ends, who waits for whom.

Each workflow here is the same function: it has so many children, waits for all of them, and ends.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from rowlock.model.ids import new_id
from rowlock.model.outcome import Cancelled, Ended, Failed, HandedBack, Parked, Returned, Succeeded
from rowlock.model.row import ClaimedJob, NewJob
from rowlock.model.workflow.step import NewChild, StepUpdate, StoredStep
from rowlock.store import claim as claim_store
from rowlock.store import enqueue, settle
from rowlock.store.claim import Lane
from rowlock.store.workflows import steps
from tests.faults.interleaving import acts, recorder
from tests.faults.interleaving.acts import DAY, FAILURE
from tests.faults.interleaving.machine import BEGIN, COMMIT, Choose, EveryOrder, Part, Played
from tests.faults.interleaving.recorder import Db, Version, versions
from tests.faults.interleaving.waiting import Told
from tests.faults.interleaving.world import Scene, World

CHILD_DONE, CHILD_FAILED = Succeeded('"done"'), Failed(FAILURE, "exhausted")

_LANES = [Lane("default", 0)]
_PASSES = 12


# Workers


def claim(worker: str, limit: int = 10) -> Part:
    """Claim what is ready; the rows that come of it."""
    return (yield claim_store.claim(lanes=_LANES, limit=limit, worker=worker))


def spawn(row: ClaimedJob, children: Sequence[NewChild]) -> Part:
    """Write down children and enqueue those that are new, both or neither, as a worker does."""
    yield BEGIN
    born: list[steps.SpawnedChild] = yield steps.spawn([(row, child) for child in children])
    new = {one.child for one in born if one.is_new}
    if new:
        yield enqueue.insert([child.job for child in children if child.job.id in new])
    yield COMMIT
    return [Told("spawned", one.child) for one in born if one.is_new]


def offspring(row: ClaimedJob, count: int) -> list[NewChild]:
    """Children that nobody has enqueued yet."""
    return [
        NewChild(f"t#{n}", n, "{}", NewJob(new_id(), "default", "t", "{}", 0, 10, parent=row.id))
        for n in range(1, count + 1)
    ]


def record(row: ClaimedJob, key: str = "step", *, told: dict[str, str] | None = None) -> Part:
    """Write down a step that is done."""
    accepted = yield steps.record([(row, StepUpdate(key, 9, "step", "done", value="1"))], told=told or {})
    return [Told("recorded", row.id, one.token) for one in accepted]


def end(attempts: Sequence[tuple[ClaimedJob, Ended]], *, tries: int = 1) -> Part:
    """End workflows and children in one statement; what somebody has locked is for the next time."""
    facts: list[Told] = []
    left = list(attempts)
    for _ in range(tries):
        accepted = yield settle.settle_workflows([(row, outcome, DAY) for row, outcome in left], told={})
        facts += [Told("ended", row.id, row.token) for row, _ in left if row.token in accepted]
        if not (left := [one for one in left if one[0].token not in accepted]):
            break
    return facts


def give_back(row: ClaimedJob, outcome: Returned, *, tries: int = 1) -> Part:
    """Park, or give back."""
    for _ in range(tries):
        if row.token in (yield settle.return_workflows([(row, outcome)], told={})):
            return [Told("gave back", row.id, row.token)]
    return []


def play(row: ClaimedJob, children: int = 1) -> Part:
    """One attempt of a workflow: has its children, and parks while some of them live; else it ends."""
    if row.cancelling:
        return (yield from end([(row, Cancelled("asked"))]))
    loaded: list[tuple[str, StoredStep, str]] = yield steps.load([row.id])
    known = {step.key: step for _, step, _ in loaded if step.kind == "child"}
    new = [child for child in offspring(row, children) if child.key not in known]
    facts = (yield from spawn(row, new)) if new else []
    if len(facts) < len(new):
        return facts  # it is lost, or somebody has the row
    left = len(new) + sum(step.state == "open" for step in known.values())
    if left:
        return facts + (yield from give_back(row, Parked((row.wakes or 0) + left, "children")))
    return facts + (yield from end([(row, Succeeded(None))]))


def work(worker: str, *, passes: int = 1, children: int = 1) -> Part:
    """Claim, and run what was claimed: workflows as above, children at once."""
    facts: list[Told] = []
    for _ in range(passes):
        rows: list[ClaimedJob] = yield from claim(worker)
        young = [(row, Cancelled("asked") if row.cancelling else CHILD_DONE) for row in rows if row.version is None]
        facts += (yield from end(young)) if young else []
        for row in rows:
            if row.version is not None:
                facts += yield from play(row, children)
    return facts


# The stage


class Families(World):
    """Each schedule is played to where nothing moves any more, and judged there."""

    children = 1

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.before: list[Told] = []  # what was told to those who set the scene

    def begun(self) -> ClaimedJob:
        """A workflow that runs, and has no children yet."""
        self._say(acts.enqueue([NewJob(new_id(), "default", "w", "{}", 0, 1, version=1)]))
        [row] = self.claimed()
        return row

    def claimed(self) -> list[ClaimedJob]:
        """What is ready, in the hands of a worker."""
        return self._say(claim(self.worker()))

    def parents(self, *counts: int, park: bool = True) -> list[tuple[ClaimedJob, list[ClaimedJob]]]:
        """Workflows with so many children each, which run; they themselves wait for those, or are about to."""
        families = []
        for count in counts:
            parent = self.begun()
            self._say(spawn(parent, offspring(parent, count)))
            families.append((parent, sorted(self.claimed())))
        for parent, children in families if park else ():
            self._say(give_back(parent, Parked((parent.wakes or 0) + len(children), "children")))
        return families

    def do(self, part: Part) -> list[Any]:
        """Have a part played alone."""
        return self._say(part)

    def _say(self, part: Part) -> list[Any]:
        facts: list[Any] = self._alone(part)
        self.before += [fact for fact in facts if isinstance(fact, Told)]
        return facts

    def play(self, scene: Scene, choose: Choose) -> Played:
        """One schedule, from an empty database to one where nothing moves any more."""
        recorder.clear(self._connection)
        self.before = []
        played = self._machine.play(scene(self), choose)
        told = [*self.before, *(fact for facts in played.knows.values() for fact in facts)]
        try:
            later = self.drain()
            judge(self._connection, [*told, *later])
        except AssertionError as error:
            error.add_note("in this order:\n" + str(played) + "\n" + "\n".join(map(str, told)))
            raise
        return Played(played.steps, {**played.knows, "drain": later})

    def every_order(self, scene: Scene) -> list[Played]:
        return [self.play(scene, choose) for choose in EveryOrder()]

    def drain(self) -> list[Told]:
        """All workers die; another one rescues what they held, and goes on until everything has ended."""
        self._connection.execute("delete from rowlock.workers")
        heir = self.worker()
        facts: list[Told] = []
        for _ in range(_PASSES):
            self._say(acts.rescue(lost=True))
            facts += self._say(work(heir, children=self.children))
            if not self.count("rowlock.jobs"):
                return facts
        raise AssertionError("I19, I13: somebody waits for what has happened")


# The verdict


def judge(db: Db, told: Sequence[Told]) -> None:
    """One end of each, legal and fenced; nobody sleeps through a wake; each child's end is in its parent's record."""
    for job, story in versions(db).items():
        facts = [fact for fact in told if fact.job == job]
        try:
            _life(story)
            _hands(story, facts)
            _endings(story, facts)
        except AssertionError as error:
            error.add_note("\n".join([f"job {job}", *map(str, story), *map(str, facts)]))
            raise
    _records(db)
    left = db.execute("select job, key from rowlock.steps union all select job, name from rowlock.signals").fetchall()
    assert left == [], "something was left behind by a workflow that has ended"


def _life(story: Sequence[Version]) -> None:
    """I4, I5, I13, I16: each version follows from the last, by a claim's token; no wake is slept through."""
    before: dict[str, Any] | None = None
    for version in (one for one in story if one.place == "jobs"):
        old, new = version.old, version.new
        assert old == before, "a version does not follow from the one before"
        before = new
        if old is None or new is None:
            continue
        if old["state"] == new["state"] == "running":
            assert old["token"] == new["token"], f"M20: a running job changed hands: {version}"
        if old["state"] != "running" and new["state"] == "running":
            assert new["claims"] == old["claims"] + 1
        assert new["wakes"] >= old["wakes"], "a wake was lost"
        assert new["wakes_at"] is None or new["wakes"] < new["wakes_at"], f"it sleeps, and was woken: {version}"
        assert old["cancel_at"] is None or new["cancel_at"] == old["cancel_at"], "a cancel was taken back"
        assert new["cancel_at"] is None or new["state"] != "waiting", "it waits, and was cancelled"


def _hands(story: Sequence[Version], told: Sequence[Told]) -> None:
    """I5, M20: an attempt ends by its holder, who was told so, or by a rescue, which counts as a crash."""
    ended = {fact.signal for fact in told if fact.kind in {"gave back", "ended"}}
    for version in (one for one in story if one.place == "jobs"):
        old, new = version.old, version.new
        if old is not None and new is not None and old["state"] == "running" != new["state"]:
            assert old["token"] in ended or new["crashes"] == old["crashes"] + 1, f"nobody has ended it: {version}"


def _endings(story: Sequence[Version], told: Sequence[Told]) -> None:
    """I3, I5, I16: one end, which its holder was told of; cancelled is cancelled."""
    ends = [version.new for version in story if version.place == "history" and version.new is not None]
    assert len(ends) == 1, f"it ended {len(ends)} times"
    held = [one.old for one in story if one.place == "jobs" and one.new is None and one.old is not None]
    # Facts stand in the order of the sessions, not of time; and one who settled a cancelled workflow that has something
    # to undo was told that its attempt had ended, though the job went on.
    assert {row["token"] for row in held} <= {fact.signal for fact in told if fact.kind == "ended"}, "by somebody else"
    if any(row["cancel_at"] is not None for row in held) or any(fact.kind == "abandoned" for fact in told):
        assert ends[0]["state"] == "cancelled", "a cancelled job ended otherwise"
    recorded = Counter(fact.signal for fact in told if fact.kind == "recorded")
    tokens = {one.new["token"] for one in story if one.new is not None and one.place == "jobs"}
    assert recorded.keys() <= tokens, "I5: a step was accepted of somebody who never held the job"


class _Ended(NamedTuple):
    """A job's row in history."""

    parent: str | None
    state: str
    at: Decimal
    told: dict[str, str]  # what it was told of its children, by their ids


def _records(db: Db) -> None:
    """I13: how each child has ended is what its parent was told, if the parent was there to be told."""
    ended = _ended(db)
    for parent in ended.values():
        for job, told in parent.told.items():
            assert job in ended, "M19: a child was written down, and is nowhere"
            child = ended[job]
            expected = ("done" if child.state == "succeeded" else "failed") if child.at <= parent.at else "open"
            assert told == expected, f"the child has ended as {child.state}, its parent was told {told}"
    for job, child in ended.items():
        known = child.parent is None or (child.parent in ended and job in ended[child.parent].told)
        assert known, "M19: a child was run, and its parent knows nothing of it"


def _ended(db: Db) -> dict[str, _Ended]:
    """All that has ended. To be compared here: a join of history with itself took a third of an order's time."""
    found = db.execute(
        "select id::text, parent::text, state, extract(epoch from ended_at), steps::text from rowlock.history"
    ).fetchall()
    ended = {}
    for job, parent, state, ended_at, record in found:
        steps_of = json.loads(record or "{}").get("steps", [])
        told = {step["child"]: step["state"] for step in steps_of if step.get("child")}
        ended[job] = _Ended(parent, state, ended_at, told)
    return ended


HANDED_BACK = HandedBack()
