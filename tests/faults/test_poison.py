"""Jobs that take their worker along: they fail as poison after three crashes, and those beside them do not."""

from __future__ import annotations

from typing import Any

from rowlock import Call
from tests.depth import deep
from tests.faults import tasks
from tests.faults.check import MOST_CRASHES, assert_all_is_well, check
from tests.faults.conftest import MakeStage
from tests.faults.stage import LIMIT, Stage
from tests.waiting import until

INNOCENTS = 24
WORKERS = 2
LEASE = 2


@deep
def test_a_job_that_kills_its_worker_fails_as_poison_and_its_neighbours_succeed(
    url: str, make_stage: MakeStage
) -> None:
    # given jobs that die in every way, on the loop and in threads, among others that last a while
    stage = make_stage(url, lease=LEASE)
    deadly = [
        stage.sender.send(lambda n, way=way, task=task: task.bind(n, way))  # type: ignore[misc]
        for way, task in zip(tasks.WAYS_TO_DIE, [tasks.die, tasks.die_in_a_thread] * 2, strict=True)
    ]
    innocent = [stage.sender.send(an_innocent) for _ in range(INNOCENTS)]

    # when workers work on them, each replaced when it has died
    stage.crew.start(WORKERS)
    with stage.look() as db:
        query = "select count(*) from rowlock.jobs"
        until(lambda: keep(stage) and db.execute(query).fetchone() == (0,), what="the end of all jobs", limit=LIMIT)
        stage.crew.stop()

        # then the deadly are poison, and the innocent have succeeded though they were there
        verdict = check(stage.oracle, db)
        ends = {str(job): rest for job, *rest in db.execute("select id, state, reason, crashes from rowlock.history")}
    stage.trial.count(deaths=len(verdict.killed), **verdict.counts)
    assert_all_is_well(verdict)
    assert [ends[job] for job in deadly] == [["failed", "poison", MOST_CRASHES]] * len(deadly)
    assert {ends[job][0] for job in innocent} == {"succeeded"}


def an_innocent(n: int) -> Call[Any]:
    return (tasks.linger if n % 2 else tasks.linger_in_a_thread).bind(n, 0.3)


def keep(stage: Stage) -> bool:
    """Replace the dead."""
    stage.crew.start(WORKERS - len(stage.crew.living()))
    return True
