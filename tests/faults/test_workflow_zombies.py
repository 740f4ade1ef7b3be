"""Workers that stop in the middle of a workflow and go on after another has it: what they do then is not remembered."""

from __future__ import annotations

from functools import partial

import psycopg
import pytest

from rowlock import Call, Workflow
from tests.depth import deep
from tests.faults import workflows
from tests.faults.conftest import MakeStage
from tests.faults.stage import LIMIT, Stage
from tests.waiting import until

LEASE = 1.5

KINDS = [
    workflows.stay_in_a_step,
    workflows.stay_in_a_step_in_a_thread,
    workflows.stay_in_a_transaction,
]


@pytest.fixture
def stage(url: str, make_stage: MakeStage) -> Stage:
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(workflows.EFFECTS.encode())
    return make_stage(url, lease=LEASE, app="tests.faults.workflows")


@deep
def test_a_zombie_cannot_write_a_step_and_the_workflow_goes_on_elsewhere(stage: Stage) -> None:
    # given a worker with a workflow in a step, one in a step in a thread, and one in a transaction
    [zombie] = stage.crew.start()
    jobs = [stage.sender.send(partial(begin, kind)) for kind in KINDS]
    passing(stage, len(jobs))

    # when it is frozen until another one has come to the same place, and goes on there first
    zombie.freeze()
    [heir] = stage.crew.start()
    passing(stage, 2 * len(jobs))
    stage.oracle.open_gate_to("gate", zombie.pid)
    zombie.thaw()
    until(lambda: len(zombie.incarnations) > 1, what="a new incarnation of the zombie", limit=LIMIT)
    stale = {line["token"] for line in stage.oracle.read("began") if line.pid == zombie.pid}
    broken = until(lambda: ended(stage, stale), what="the ends of its attempts", limit=LIMIT)
    assert stage.one("select count(*) from public.effects") == 0
    assert stage.one("select count(*) from rowlock.steps") == 0
    stage.oracle.open_gate_to("gate", heir.pid)

    # then what counts is what the other one did: a step's result, a transaction's writes, a child's
    with stage.look() as db:
        stage.all_is_well(db, exact_crashes=False)
        assert db.execute("select n, count(*) from public.effects group by n").fetchall() == [(3, 1)]
        assert db.execute("select count(*) from rowlock.history where parent is not null").fetchone() == (1,)
    assert broken <= {"CancelledError", "LeaseLost"}
    ran = {line["value"]: line.pid for line in stage.oracle.read("ran")}
    known = {(line["n"], line["value"]): line.pid for line in stage.oracle.read("knows") if line["step"] == "gate"}
    assert len(known) == len(jobs)
    assert {ran[value] for _, value in known} == {heir.pid}


def test_a_zombie_that_wakes_up_to_enqueue_a_child_has_none(stage: Stage) -> None:
    # given a worker whose workflow holds its whole loop
    [zombie] = stage.crew.start()
    job = stage.sender.send(lambda n: workflows.stay_before_a_child.bind(n, "gate"))
    stage.began(job)

    # when it is frozen until another one has the workflow, and its very next word is to enqueue a child
    zombie.freeze()
    stage.crew.start()
    stage.began(job, times=2)
    stage.oracle.open_gate_to("gate", zombie.pid)
    zombie.thaw()
    until(lambda: len(zombie.incarnations) > 1, what="a new incarnation of the zombie", limit=LIMIT)
    assert stage.one("select count(*) from rowlock.jobs where parent is not null") == 0
    stage.oracle.open_gate("gate")

    # then there is one child, and it is the other one's
    with stage.look() as db:
        stage.all_is_well(db, exact_crashes=False)
        assert db.execute("select state from rowlock.history where parent = %s", [job]).fetchall() == [("succeeded",)]


def begin(kind: Workflow[[int, str], str], n: int) -> Call[str]:
    return kind.bind(n, "gate")


def passing(stage: Stage, times: int) -> None:
    """Wait until so many tries have come to their gates."""
    until(lambda: len(stage.oracle.read("ran")) >= times, what=f"{times} tries at their gates", limit=LIMIT)


def ended(stage: Stage, tokens: set[str]) -> set[str]:
    """The errors by which these attempts ended; none before all of them have."""
    lines = {line["token"]: line["error"] for line in stage.oracle.read("broken off")}
    return {lines[token] for token in tokens} if lines.keys() >= tokens else set()
