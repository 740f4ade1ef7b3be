"""Workers that stop in mid-sentence and go on after others have taken their jobs: what they say then is not heard."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest

from rowlock import Call
from tests.depth import deep
from tests.faults import tasks
from tests.faults.conftest import MakeStage
from tests.faults.crew import Member
from tests.faults.stage import LIMIT, Stage
from tests.waiting import until

# As short as it may be, so that many zombies fit into a test; workers here may lose it on a busy machine, too.
LEASE = 1.5
ZOMBIES = 32
WORKERS, FROZEN_AT_ONCE = 6, 4


@deep
def test_the_writes_of_zombies_are_refused_around_the_edge_of_the_lease(url: str, make_stage: MakeStage) -> None:
    # given a stream of jobs that last a while, and workers
    stage = make_stage(url, lease=LEASE, slots=6)
    chance = stage.trial.random
    for member in stage.crew.start(WORKERS):
        member.works()

    # when they are frozen, several at once, for a little less or a lot more than their lease
    def a_call(n: int) -> Call[Any]:
        return (tasks.linger if n % 2 else tasks.linger_in_a_thread).bind(n, chance.uniform(0.05, 0.5 * LEASE))

    with stage.sender.sending(a_call):
        freezer = Freezer(stage)
        freezer.run([chance.uniform(0.7, 2.5) * LEASE for _ in range(ZOMBIES)])

    # then every job has one end, which is that of its last claim, and no accepted attempts overlap
    stage.trial.count(zombies=ZOMBIES)
    with stage.look() as db:
        verdict = stage.all_is_well(db, exact_crashes=False)
    assert verdict.counts["rescues"] > 0
    assert verdict.counts["refused"] > 0


@dataclass
class Freezer:
    """Freezes workers of a crew, some at once, each for its own time."""

    stage: Stage
    _thawing: list[threading.Timer] = field(default_factory=list)

    def run(self, durations: list[float]) -> None:
        for seconds in durations:
            until(lambda: len(self._frozen()) < FROZEN_AT_ONCE, what="somebody to thaw", limit=LIMIT)
            member = self.stage.trial.random.choice([one for one in self.stage.crew if not one.is_frozen])
            member.freeze()
            timer = threading.Timer(seconds, member.thaw)
            timer.start()
            self._thawing.append(timer)
        for timer in self._thawing:
            timer.join()

    def _frozen(self) -> list[Member]:
        return [member for member in self.stage.crew if member.is_frozen]


@deep
def test_a_zombie_is_told_that_its_jobs_are_others_and_they_get_their_crash_back(
    url: str, make_stage: MakeStage
) -> None:
    # given a worker with a job on its loop and one in a thread
    stage = make_stage(url, lease=LEASE)
    [zombie] = stage.crew.start()
    jobs = [
        stage.sender.send(lambda n: tasks.stay.bind(n, "gate")),
        stage.sender.send(lambda n: tasks.stay_in_a_thread.bind(n, "gate")),
    ]
    stale = [stage.began(job)["token"] for job in jobs]

    # when it is frozen until another one has taken them, and goes on
    zombie.freeze()
    stage.crew.start()
    for job in jobs:
        stage.began(job, times=2)
    zombie.thaw()
    until(lambda: len(zombie.incarnations) > 1, what="a new incarnation of the zombie", limit=LIMIT)

    # then the crash is taken back, for it lives
    until(lambda: stage.one("select sum(crashes) from rowlock.jobs") == 0, what="a pardon", limit=LIMIT)

    # and its handlers learn of it, whatever they do; the outcome is that of the other worker
    stage.oracle.open_gate("gate")
    told = until(lambda: broken_off(stage, stale), what="two handlers that are told", limit=LIMIT)
    assert told[stale[0]] in {"CancelledError", "LeaseLost"}
    assert told[stale[1]] == "LeaseLost"
    with stage.look() as db:
        stage.all_is_well(db, exact_crashes=False)
        rows = db.execute("select state, crashes, result #>> '{}' from rowlock.history").fetchall()
    assert [(state, crashes, token in stale) for state, crashes, token in rows] == [("succeeded", 0, False)] * 2


def broken_off(stage: Stage, tokens: list[str]) -> dict[str, str]:
    """The errors by which these attempts ended; none before all of them have."""
    lines = {line["token"]: line["error"] for line in stage.oracle.read("broken off")}
    return lines if lines.keys() >= set(tokens) else {}


def test_a_worker_that_is_started_in_the_place_of_a_dead_one_is_not_taken_for_it(
    url: str, make_stage: MakeStage
) -> None:
    # given a worker that was killed with a job in hand
    stage = make_stage(url, lease=LEASE)
    [dead] = stage.crew.start()
    job = stage.sender.send(lambda n: tasks.stay.bind(n, "gate"))
    stage.began(job)
    dead.kill()

    # when another one of the same host and pid appears, as in a container that was started again, and lives
    with stage.look() as db:
        db.execute("create temp table another as select * from rowlock.workers where pid = %s", [dead.pid])
        db.execute("update another set id = gen_random_uuid(), lease = now() + '1 day'")
        db.execute("insert into rowlock.workers select * from another")
    stage.crew.start()

    # then the job is rescued all the same
    stage.began(job, times=2)
    stage.oracle.open_gate("gate")
    with stage.look() as db:
        assert stage.all_is_well(db).counts["rescues"] == 1


@deep
@pytest.mark.parametrize("fate", ["frozen", "killed"])
def test_jobs_of_a_worker_whose_row_was_deleted_are_rescued(fate: str, url: str, make_stage: MakeStage) -> None:
    # given a worker with a job in hand, frozen or killed
    stage = make_stage(url, lease=LEASE)
    [worker] = stage.crew.start()
    job = stage.sender.send(lambda n: tasks.stay.bind(n, "gate"))
    stage.began(job)
    if fate == "frozen":
        worker.freeze()
    else:
        worker.kill()

    # when somebody deletes its row
    with stage.look() as db:
        delete_workers(db)
    stage.crew.start()

    # then another one runs the job, and the first one, if it comes back, is not heard
    second = stage.began(job, times=2)
    if fate == "frozen":
        worker.thaw()
    stage.oracle.open_gate("gate")
    with stage.look() as db:
        stage.all_is_well(db, exact_crashes=False)
        assert db.execute("select result #>> '{}' from rowlock.history").fetchall() == [(second["token"],)]


def delete_workers(db: psycopg.Connection[Any]) -> None:
    db.execute("delete from rowlock.workers")
