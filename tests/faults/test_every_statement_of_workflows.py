"""Crash at every statement by which a workflow is remembered (G1, G16): what was recorded is never done again, nothing
is wedged between two writes, children and transactions are done once, signals are taken once, undoing is completed.

As in test_every_statement.py, but that each workflow has a queue of its own, and a worker for it: what one leaves to be
done would come between the next one's statements. What each tells the oracle is in workflows.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from threading import Event
from uuid import uuid4

import pytest

from rowlock import Rowlock
from tests.depth import deep
from tests.faults import workflows
from tests.faults.conftest import MakeCrew
from tests.faults.crew import LIMIT, Member
from tests.faults.oracle import Oracle
from tests.faults.proxy import Proxy
from tests.faults.seeds import Trial
from tests.faults.striking import MODES, Mode, Point
from tests.faults.victims import OPTIONS, SETTLE, Db, Victims, at
from tests.waiting import until

pytestmark = deep

HANDLER = "rowlock handler"

# One attempt after the other: carried over, begun anew, a step, a transaction, a sleep and a signal, a child, the end.
TAKING_EVERY_WAY = [
    *at(SETTLE, "step_load", "schema_now", "workflow_state", "workflow_restart"),
    Point("step_load", SETTLE, 2),
    *[Point("step_record", SETTLE, nth) for nth in (1, 2, 3)],
    *at(HANDLER, "transaction_begin", "schema_look", "insert", "step_record", "transaction_commit"),
    *[Point("workflow_return", SETTLE, nth) for nth in (1, 2)],
    *at(SETTLE, "signal_load", "transaction_begin", "step_spawn", "job_enqueue", "transaction_commit"),
    *[Point("workflow_settle", SETTLE, nth) for nth in (1, 2)],  # the child's, and its own
]
# The same as above up to the error; then that it has failed, what undoes it, and the child that is left behind.
TURNING_BACK = [
    *[Point("step_record", SETTLE, nth) for nth in (4, 5, 6)],
    *at(SETTLE, "child_abandon", "job_cancelling", "workflow_settle"),
]
WHEN_IT_STARTS = {("select", SETTLE), ("queue_channels", SETTLE), ("worker_serving", SETTLE)}
# A worker bears these alike, whatever it says: test_every_statement.py. Here they meet what is said in a transaction.
BORNE = [mode for mode in MODES if not mode.kills and mode.name != "reply lost"]
IN_TRANSACTION = [
    *at(SETTLE, "step_spawn", "job_enqueue", "transaction_commit"),
    *at(HANDLER, "step_record"),
]


@pytest.fixture
def scene(url: str, make_crew: MakeCrew, oracle: Oracle, recorded: Db) -> Iterator[Victims]:
    recorded.execute(workflows.EFFECTS.encode())
    with Proxy(url) as proxy, Rowlock(url) as app:
        crew = make_crew(proxy.url, **(OPTIONS | {"app": "tests.faults.workflows"}))
        yield Victims(url, proxy, crew, oracle, app, recorded)
        crew.kill()


def test_these_are_all_the_statements_of_workflows(scene: Victims) -> None:
    """A statement that is new has to be entered above."""
    points = [*TAKING_EVERY_WAY, *TURNING_BACK]
    for begin in (take_every_way, turn_back):
        start(scene)
        begin(scene, Event())
        until(lambda: scene.db.execute("select from rowlock.jobs").fetchone() is None, what="all ends", limit=LIMIT)
    said = Counter((one.name, one.who) for one in scene.proxy.passed if one.who in {SETTLE, HANDLER})

    assert said.keys() - WHEN_IT_STARTS == {(point.name, point.who) for point in points}
    assert all(said[point.name, point.who] >= point.nth for point in points)


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode not in BORNE], ids=str)
def test_a_worker_whose_workflow_takes_every_way(scene: Victims, mode: Mode, trial: Trial) -> None:
    struck = {strike(scene, point, mode, take_every_way): point for point in TAKING_EVERY_WAY}

    conclude(scene, trial)
    all_went_every_way(scene, struck)


@pytest.mark.parametrize("mode", BORNE, ids=str)
def test_a_worker_whose_transaction_meets_trouble(scene: Victims, mode: Mode, trial: Trial) -> None:
    struck = {strike(scene, point, mode, take_every_way): point for point in IN_TRANSACTION}

    conclude(scene, trial)
    all_went_every_way(scene, struck)


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode not in BORNE], ids=str)
def test_a_worker_whose_workflow_turns_back(scene: Victims, mode: Mode, trial: Trial) -> None:
    struck = [strike(scene, point, mode, turn_back) for point in TURNING_BACK]

    conclude(scene, trial)
    for job in struck:
        all_was_taken_back(scene, job)


def strike(scene: Victims, point: Point, mode: Mode, begin: Callable[[Victims, Event], str]) -> str:
    """Strike a worker at a statement of a workflow's; one that lives goes on with it."""
    victim = start(scene)
    with scene.struck(point, mode, victim=lambda: victim) as struck:
        job = begin(scene, struck)
    assert mode.kills or victim.is_alive
    return job


def start(scene: Victims) -> Member:
    """A worker that has nothing to do but the next workflow."""
    numbers = len(scene.oracle.read("sent"))
    return scene.crew.start(queues=workflows.queue(numbers + 1))[0].works()


def take_every_way(scene: Victims, struck: Event) -> str:
    """Start the workflow, and send its signal when it waits for it: at the latest when its worker has been struck."""
    job = scene.sender.send(lambda n: workflows.take_every_way_once.using(queue=workflows.queue(n)).bind(n))
    query = "select from rowlock.jobs where id = %s and wakes_at is not null and run_at <= rowlock.now()"
    until(lambda: struck.is_set() or scene.db.execute(query, [job]).fetchone() is not None, limit=LIMIT)
    for _ in range(2):
        scene.app.signal(job, "paid", str(uuid4()), key="once")
    return job


def turn_back(scene: Victims, _struck: Event) -> str:
    return scene.sender.send(lambda n: workflows.turn_back.using(queue=workflows.queue(n)).bind(n))


def conclude(scene: Victims, trial: Trial) -> None:
    """Faults off: somebody who works on all queues does what is left, and all is well."""
    queues = [workflows.queue(line["n"]) for line in scene.oracle.read("sent")]
    scene.conclude(trial, exact_crashes=True, queues=queues)


def all_went_every_way(scene: Victims, struck: dict[str, Point]) -> None:
    """Each has succeeded, and came to know one thing only of each of its steps: the same in every attempt."""
    numbers = {line["job"]: line["n"] for line in scene.oracle.read("acknowledged")}
    for job, point in struck.items():
        n = numbers[job]
        assert scene.state(job) == "succeeded"
        assert known(scene, n).keys() == {"carried", "roll", "enter", "signal", "child"}
        # What was done and not recorded is done again; what was recorded, never.
        times = len([line for line in scene.oracle.read("ran") if line["n"] == n])
        assert times == 1 or (times == 2 and (point.name, point.who, point.nth) == ("step_record", SETTLE, 1))
        query = "select count(*) from public.effects where n = %s"
        assert scene.db.execute(query, [n]).fetchone() == (1,), f"{point}: the transaction was not done once"
        query = "select array_agg(state) from rowlock.history where parent = %s"
        assert scene.db.execute(query, [job]).fetchone() == (["succeeded"],), f"{point}: the child was not run once"
        query = "select json_array_length(steps -> 'signals'), steps #>> '{signals,0,taken_at}' is not null"
        query += " from rowlock.history where id = %s"
        assert scene.db.execute(query.encode(), [job]).fetchone() == (1, True), f"{point}: its signal is not there once"
    nothing_is_left(scene)


def all_was_taken_back(scene: Victims, job: str) -> None:
    """It has failed as it should, with everything undone, the latest first; the child that was left is cancelled."""
    [n] = [line["n"] for line in scene.oracle.read("acknowledged") if line["job"] == job]
    assert scene.db.execute("select state, reason from rowlock.history where id = %s", [job]).fetchone() == (
        "failed",
        "raised",
    )
    known(scene, n)
    undone = [line["step"] for line in scene.oracle.read("taken back") if line["n"] == n]
    assert list(dict.fromkeys(undone)) == ["second", "first"]
    assert len(undone) <= 3, "at most one was undone and not recorded"
    children = scene.db.execute("select state from rowlock.history where parent = %s", [job]).fetchall()
    assert children == [("cancelled",)]
    nothing_is_left(scene)


def known(scene: Victims, n: int) -> dict[str, object]:
    """I10: what a workflow knows of each step is in every attempt the same."""
    told = {(line["step"], line["value"]) for line in scene.oracle.read("knows") if line["n"] == n}
    by_step = dict(told)
    assert len(by_step) == len(told), f"a step came to two things: {sorted(map(str, told))}"
    return by_step


def nothing_is_left(scene: Victims) -> None:
    for table in ("steps", "signals"):
        assert scene.db.execute(f"select * from rowlock.{table}".encode()).fetchall() == []
