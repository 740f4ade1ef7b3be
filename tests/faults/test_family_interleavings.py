"""Workflows and their children in every order (G2, G3, G8, G9, G10): parks, ends, cancels, rescues and zombies.

After each order a drain goes on until everything has ended, and the verdict is asked (interleaving/families.py): one
end of each, nobody sleeps through a wake, no running job changes hands, each child's end is in its parent's record.
What signals have to do with it: test_signal_interleavings.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta

import hypothesis
import pytest
from hypothesis import strategies as st

from rowlock.db.embedded import disposable
from rowlock.db.embedded.server import EmbeddedPostgres
from rowlock.model.outcome import Parked, Restarted, Succeeded
from rowlock.model.row import ClaimedJob, Orphan
from rowlock.model.spec import Keep
from rowlock.model.workflow.step import NewChild, StepUpdate
from rowlock.store import settle, upkeep
from rowlock.store.workflows import steps
from tests.depth import deep
from tests.faults.interleaving import acts
from tests.faults.interleaving.acts import Parts
from tests.faults.interleaving.families import (
    CHILD_DONE,
    CHILD_FAILED,
    HANDED_BACK,
    Families,
    claim,
    end,
    give_back,
    offspring,
    record,
    spawn,
    work,
)
from tests.faults.interleaving.machine import MOVES, Part, Played, drawn, held, undone
from tests.faults.interleaving.waiting import Told, answers, send
from tests.faults.interleaving.world import World
from tests.faults.seeds import Trial

Scene = Callable[[Families], Parts]
EveryOrder = Callable[[Scene], list[Played]]

EXAMPLES = 120


@pytest.fixture(scope="module")
def stage(server: EmbeddedPostgres, template: str) -> Iterator[Families]:
    world = Families(disposable.create(server.url, template=template))
    yield world
    world.close()


@pytest.fixture
def every_order(stage: Families, trial: Trial) -> EveryOrder:
    """Plays a scene in every order; how many there were is told in the summary."""
    trial.counts.pop("seed")  # nothing is left to chance

    def play_all(scene: Scene) -> list[Played]:
        orders = stage.every_order(lambda world: scene(families(world)))
        trial.count(orders=len(orders))
        return orders

    stage.children = 1
    return play_all


def families(world: World) -> Families:
    assert isinstance(world, Families)
    return world


def parking(parent: ClaimedJob, *, children: int = 1, due: bool = False) -> Part:
    """Park until the children have ended, as a settler does whose row somebody may have at first."""
    wakes = (parent.wakes or 0) + children
    return give_back(parent, Parked(wakes, "children", None if due else "1970-01-01 00:00:00+00"), tries=2)


# Children that end


def test_a_child_that_ends_while_its_parent_parks_wakes_it(every_order: EveryOrder) -> None:
    def scene(world: Families) -> Parts:
        [(parent, [child])] = world.parents(1, park=False)
        return {"a": held(parking(parent)), "b": held(end([(child, CHILD_DONE)], tries=2))}

    orders = every_order(scene)

    assert any(answers(played, "a") == ["gave back"] and answers(played, "b") == ["ended"] for played in orders)


@deep
def test_children_that_end_at_once_wake_their_parent_once(every_order: EveryOrder, stage: Families) -> None:
    stage.children = 2

    def scene(world: Families) -> Parts:
        [(parent, [one, other])] = world.parents(2, park=False)
        return {
            "a": held(end([(one, CHILD_DONE)], tries=2)),
            "b": held(end([(other, CHILD_FAILED)], tries=2)),
            "c": parking(parent, children=2),
        }

    every_order(scene)


@deep
def test_children_of_two_parents_in_two_settlers_do_not_wait_for_each_other(
    every_order: EveryOrder, stage: Families
) -> None:
    """Crosswise: a deadlock would be seen as sessions of which each waits for another."""
    stage.children = 2

    def scene(world: Families) -> Parts:
        [(_, [one, two]), (_, [three, four])] = world.parents(2, 2)
        return {
            "a": held(end([(one, CHILD_DONE), (three, CHILD_DONE)], tries=2)),
            "b": held(end([(four, CHILD_DONE), (two, CHILD_FAILED)], tries=2)),
            "c": work(world.worker(), children=2),
        }

    every_order(scene)


def test_a_child_that_ends_with_its_parent_in_one_statement(every_order: EveryOrder, stage: Families) -> None:
    stage.children = 2

    def scene(world: Families) -> Parts:
        [(parent, [one, other])] = world.parents(2, park=False)
        return {
            "a": held(end([(parent, Succeeded(None)), (one, CHILD_DONE)], tries=3)),
            "b": end([(other, CHILD_DONE)], tries=2),
        }

    orders = every_order(scene)

    assert any(answers(played, "a") == ["ended", "ended"] for played in orders)


def test_a_child_that_ends_while_its_parent_does_is_told_to_it_or_to_nobody(every_order: EveryOrder) -> None:
    def scene(world: Families) -> Parts:
        [(parent, [child])] = world.parents(1, park=False)
        return {
            "a": held(end([(parent, Succeeded(None))], tries=2)),
            "b": held(end([(child, CHILD_DONE)], tries=2)),
            "c": work(world.worker()),
        }

    every_order(scene)


def test_a_child_and_a_step_of_its_parent_are_both_remembered(every_order: EveryOrder) -> None:
    def scene(world: Families) -> Parts:
        [(parent, [child])] = world.parents(1, park=False)
        return {
            "a": acts.together(held(record(parent, told={parent.token: '{"a": 1}'})), parking(parent)),
            "b": held(end([(child, CHILD_DONE)], tries=2)),
        }

    every_order(scene)


@deep
def test_a_child_that_ends_when_its_parents_time_is_over_wakes_it_once(every_order: EveryOrder) -> None:
    def scene(world: Families) -> Parts:
        [(parent, [child])] = world.parents(1, park=False)
        world.do(sleeping(parent, timedelta(hours=1)))
        world.do(acts.pass_time(timedelta(hours=2)))
        return {
            "a": parking(parent, due=True),
            "b": held(end([(child, CHILD_DONE)], tries=2)),
            "c": work(world.worker(), passes=2),
        }

    every_order(scene)


def sleeping(row: ClaimedJob, delay: timedelta) -> Part:
    yield steps.record([(row, StepUpdate("sleep", 8, "sleep", "open", delay=delay))], told={})
    return []


# One who runs it


@pytest.mark.parametrize("kind", ["signal", "child"])
def test_who_wakes_a_workflow_that_runs_starts_no_second_one(every_order: EveryOrder, kind: str) -> None:
    """M20, G3: the step under way is that of one attempt."""

    def scene(world: Families) -> Parts:
        [(parent, [child])] = world.parents(1, park=False)
        waking = sending(parent.id) if kind == "signal" else end([(child, CHILD_DONE)], tries=2)
        return {
            "a": held(waking),
            "b": work(world.worker()),
            "c": acts.together(record(parent), parking(parent)),
        }

    every_order(scene)


def sending(job: str) -> Part:
    yield from send(job)
    return []


def test_a_zombie_writes_nothing_once_another_has_its_workflow(every_order: EveryOrder) -> None:
    """G2, T21: neither a step, nor a child, nor an end."""

    def scene(world: Families) -> Parts:
        parent = world.begun()
        return {
            "a": acts.together(
                record(parent), spawn(parent, offspring(parent, 1)), give_back(parent, Parked(1, "children"))
            ),
            "b": taken_over(world, parent),
        }

    orders = every_order(scene)

    assert {" ".join(answers(played, "a")) for played in orders} == {
        "",
        "recorded",
        "recorded spawned",
        "recorded spawned gave back",
    }
    for played in orders:
        assert "gave back" in answers(played, "a") or "recorded" in answers(played, "b")


def taken_over(world: Families, row: ClaimedJob) -> Part:
    """Its worker is taken for dead, and another one goes on; again if somebody has its row at first."""
    heir = world.worker()
    world.do(acts.bare(f"delete from rowlock.workers where id <> '{heir}'"))

    def part() -> Part:
        for _ in range(2):
            orphans = [Orphan(row.id, row.token)]
            if (yield upkeep.rescue(orphans, crashes=acts.MOST_CRASHES, keep=Keep(), actor="sweeper")):
                break
        rows: list[ClaimedJob] = yield from claim(heir)
        mine = [one for one in rows if one.id == row.id]
        return (yield from record(mine[0], "of the heir")) if mine else []

    return part()


def test_a_step_whose_transaction_commits_late_is_there_before_another_takes_over_or_never(
    every_order: EveryOrder,
) -> None:
    """Its row is locked until the commit: who would take it over passes it by until then."""

    def scene(world: Families) -> Parts:
        parent = world.begun()
        return {"a": held(record(parent)), "b": taken_over(world, parent)}

    orders = every_order(scene)

    assert {(" ".join(answers(played, "a")), " ".join(answers(played, "b"))) for played in orders} >= {
        ("recorded", "recorded"),
        ("", "recorded"),
    }
    for played in orders:
        if answers(played, "a") and answers(played, "b"):
            said = [step for step in played.steps if step in {("a", "transaction_commit"), ("b", "job_claim")}]
            assert said[0] == ("a", "transaction_commit"), "a zombie's step came after it was another's"


def test_children_whose_worker_is_not_answered_are_enqueued_once(every_order: EveryOrder) -> None:
    """M19: said again, and at once by both: the first one is still under way when it is said again."""

    def scene(world: Families) -> Parts:
        parent = world.begun()
        children = offspring(parent, 1)
        return {"a": spawn(parent, children), "b": spawn(parent, children)}

    for played in every_order(scene):
        assert len(answers(played, "a")) + len(answers(played, "b")) <= 1


def test_a_transaction_that_nobody_ends_holds_up_no_others_step(every_order: EveryOrder) -> None:
    """Its connection may be lost: then the server keeps it open until it notices."""

    def scene(world: Families) -> Parts:
        one, other = world.begun(), world.begun()
        return {"a": held(record(one)), "b": record_all([one, other])}

    for played in every_order(scene):
        between = [("a", "step_record"), ("b", "step_record"), ("a", "transaction_commit")]
        said = [step for step in played.steps if step in between]
        assert len(answers(played, "b")) == (1 if said == between else 2)


def record_all(rows: list[ClaimedJob]) -> Part:
    step = StepUpdate("step", 9, "step", "done", value="1")
    accepted = yield steps.record([(row, step) for row in rows], told={})
    return [Told("recorded", row.id, row.token) for row in rows if row.token in {one.token for one in accepted}]


# Cancels


@deep
@pytest.mark.parametrize("undoable", [True, False])
def test_a_cancel_and_the_end_of_a_workflow_are_one_or_the_other(every_order: EveryOrder, undoable: bool) -> None:  # noqa: FBT001
    def scene(world: Families) -> Parts:
        parent = world.begun()
        return {
            "a": cancelling(parent.id),
            "b": held(end([(parent, Succeeded(None, undoable=undoable))], tries=2)),
            "c": work(world.worker(), children=0),
        }

    for played in every_order(scene):
        [told] = answers(played, "a")
        assert told in {"cancelled", "too late"}


def cancelling(job: str) -> Part:
    facts = yield from acts.cancel(job)
    return [Told(fact.kind, job) for fact in facts]


def test_a_cancel_of_a_workflow_that_parks_is_noticed_whoever_comes_first(every_order: EveryOrder) -> None:
    def scene(world: Families) -> Parts:
        [(parent, [child])] = world.parents(1, park=False)
        return {
            "a": cancelling(parent.id),
            "b": held(give_back(parent, Parked(1, "children"))),
            "c": end([(child, CHILD_DONE)]),
        }

    for played in every_order(scene):
        assert answers(played, "a") == ["cancelled"]


@deep
@pytest.mark.parametrize("state", ["parked", "runs"])
def test_a_cancel_of_a_parent_its_childs_end_and_a_worker(every_order: EveryOrder, state: str) -> None:
    def scene(world: Families) -> Parts:
        [(parent, [child])] = world.parents(1, park=state == "parked")
        return {
            "a": cancelling(parent.id),
            "b": held(end([(child, CHILD_DONE)], tries=2)),
            "c": work(world.worker()),
        }

    for played in every_order(scene):
        assert answers(played, "a") == ["cancelled"] or "ended" in answers(played, "c")


@deep
def test_a_child_that_is_cancelled_is_told_to_its_parent_as_any_end(every_order: EveryOrder) -> None:
    def scene(world: Families) -> Parts:
        [(_, [child])] = world.parents(1)
        return {
            "a": cancelling(child.id),
            "b": end([(child, CHILD_DONE)], tries=2),
            "c": work(world.worker()),
        }

    every_order(scene)


@deep
def test_a_cancel_of_a_workflow_that_is_handed_back_is_noticed_by_the_next(every_order: EveryOrder) -> None:
    def scene(world: Families) -> Parts:
        parent = world.begun()
        return {"a": cancelling(parent.id), "b": held(give_back(parent, HANDED_BACK)), "c": work(world.worker())}

    for played in every_order(scene):
        assert answers(played, "a") == ["cancelled"]


def test_a_child_that_is_left_behind_is_cancelled_however_it_is_locked(every_order: EveryOrder) -> None:
    """By one who claims it, or by one who ends it: what was passed over is known, and asked for again."""

    def scene(world: Families) -> Parts:
        parent = world.begun()
        world.do(had(parent, children := offspring(parent, 1)))
        return {
            "a": acts.together(abandoning(children[0].job.id), end([(parent, Succeeded(None))])),
            "b": held(claiming(world.worker())),
        }

    orders = every_order(scene)

    assert {answers(played, "a")[0] for played in orders} == {"abandoned", "passed over"}


def had(row: ClaimedJob, children: list[NewChild]) -> Part:
    yield from spawn(row, children)
    return []


def claiming(worker: str) -> Part:
    yield from claim(worker)
    return []


def abandoning(child: str) -> Part:
    [locked] = yield settle.abandon_children([child], actor="worker")
    return [Told("passed over" if locked else "abandoned", child)]


# A fresh history


def test_a_restart_a_signal_and_a_childs_end(every_order: EveryOrder) -> None:
    """What the workflow was is forgotten in one statement: whoever wakes it meets the old one or the new one."""

    def scene(world: Families) -> Parts:
        parent = world.begun()
        world.do(recorded(parent))
        return {"a": restart(parent), "b": held(sending(parent.id)), "c": work(world.worker(), children=0)}

    every_order(scene)


def recorded(row: ClaimedJob) -> Part:
    yield from record(row)
    return []


def restart(row: ClaimedJob) -> Part:
    accepted = yield settle.restart_workflow(row, Restarted("{}", 1, "{}"))
    return [Told("gave back", row.id, token) for token in accepted]


# Drawn


Line = tuple[str, str, int]
COMMITS: dict[str, Callable[[Part], Part]] = {"at once": lambda part: part, "later": held, "never": undone}
LINES = st.tuples(
    st.sampled_from(["work", "work", "work", "end", "end", "record", "park", "send", "cancel", "expire", "rescue"]),
    st.sampled_from(list(COMMITS)),
    st.integers(0, 5),
)


@deep
def test_whatever_three_sessions_do_in_whatever_order(stage: Families, trial: Trial) -> None:
    """Scripts and schedules that nobody thought of; hypothesis shrinks what fails to its shortest form."""
    steps = 0
    stage.children = 2

    @hypothesis.seed(trial.counts["seed"])
    @hypothesis.settings(
        max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(hypothesis.HealthCheck)
    )
    @hypothesis.given(st.lists(st.lists(LINES, min_size=2, max_size=5), min_size=2, max_size=3), MOVES)
    def draw(scripts: list[list[Line]], moves: list[int]) -> None:
        nonlocal steps

        def scene(world: World) -> Parts:
            ours = families(world)
            [(parent, one), (other, two)] = ours.parents(2, 2, park=False)
            ours.do(parked(parent))
            rows = [other, *one, *two, parent]  # the last one is stale
            return {name: perform(script, rows, world.worker()) for name, script in zip("abc", scripts, strict=False)}

        steps += len(stage.play(scene, drawn(moves)).steps)

    draw()
    trial.count(schedules=EXAMPLES, steps=steps)


def parked(parent: ClaimedJob) -> Part:
    return give_back(parent, Parked(2, "children"))


def perform(script: list[Line], rows: list[ClaimedJob], worker: str) -> Part:
    facts: list[Told] = []
    for verb, commits, which in script:
        row = rows[which]
        match verb:
            case "work":
                facts += yield from work(worker, children=2)
            case "end":
                outcome = (CHILD_DONE, CHILD_FAILED)[which % 2] if row.version is None else Succeeded(None)
                parent = [(rows[0], Succeeded(None, undoable=True))] if which else []
                facts += yield from COMMITS[commits](end([(row, outcome), *parent]))
            case "record":
                facts += yield from COMMITS[commits](record(rows[5 * (which % 2)], f"{worker} {which}"))
            case "park":
                facts += yield from COMMITS[commits](parking(rows[5 * (which % 2)], children=2))
            case "send":
                yield from COMMITS[commits](sending(rows[5 * (which % 2)].id))
            case "cancel":
                yield from acts.cancel(row.id)
            case "expire":
                yield from acts.expire(worker)
            case _:
                yield from acts.rescue(lost=True)
    return facts
