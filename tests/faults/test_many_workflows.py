"""Workflows by the hundred, and what is lost between them: notifications, workers, a day of the clock (G6 to G9)."""

from __future__ import annotations

from datetime import timedelta

import psycopg
import pytest
from psycopg.rows import TupleRow

from rowlock import Context, Rowlock
from tests.depth import deep
from tests.faults import workflows
from tests.faults.conftest import MakeStage
from tests.faults.stage import LIMIT, Stage
from tests.waiting import until
from tests.worker.working import one, working

Db = psycopg.Connection[TupleRow]

SLEEPERS, CANCELLED = 300, 20
CHILDREN = 2_000


@pytest.fixture
def stage(url: str, make_stage: MakeStage) -> Stage:
    return make_stage(url, lease=3, slots=50, app="tests.faults.workflows")


@pytest.mark.parametrize("kind", ["signal", "cancel"])
def test_a_workflow_whose_notification_is_lost_is_found_by_looking(app: Rowlock, db: Db, kind: str) -> None:
    # given a worker with nothing to do, and a workflow that waits
    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        await ctx.signal("go")

    job = w.enqueue()
    with working(app):
        until(lambda: one(db, "select count(*) from rowlock.jobs where state = 'waiting'"))
        until(lambda: one(db, "select count(*) from rowlock.parked"))

        # when it is woken, and nobody hears of it
        with db.transaction():
            db.execute("delete from rowlock.parked")
            call = "rowlock.signal(%s, 'go')" if kind == "signal" else "rowlock.cancel(%s::uuid)"
            db.execute(f"select {call}".encode(), [str(job.id)])

        # then it goes on all the same
        until(lambda: one(db, "select count(*) from rowlock.history"))
    assert one(db, "select state from rowlock.history") == {"signal": "succeeded", "cancel": "cancelled"}[kind]


@deep
def test_timers_outlive_a_leap_of_the_clock_and_the_death_of_their_worker(stage: Stage) -> None:
    # given workflows that sleep for a day, of which some are cancelled meanwhile
    [victim] = stage.crew.start()
    jobs = stage.sender.send_many(SLEEPERS, workflows.nap.bind)
    asleep = "select count(*) from rowlock.jobs where state = 'ready' and run_at > rowlock.now() and claims = 1"
    until(lambda: stage.one(asleep) == SLEEPERS, what="all asleep", limit=LIMIT)
    for job in jobs[:CANCELLED]:
        assert stage.app.jobs.get(job).cancel()
    until(lambda: stage.one("select count(*) from rowlock.history") == CANCELLED, what="cancels", limit=LIMIT)
    assert stage.one(asleep) == SLEEPERS - CANCELLED

    # when a day passes at once, and their worker dies as they wake up
    with stage.look() as db:
        leap(db, timedelta(days=1, hours=1))
        until(lambda: stage.one("select count(*) from rowlock.history") != CANCELLED, what="the first", limit=LIMIT)
        victim.kill()
        stage.crew.start()

        # then each wakes up once, and none before its time
        stage.all_is_well(db, exact_crashes=False)
        states = db.execute("select state, count(*) from rowlock.history group by 1 order by 1").fetchall()
        early = db.execute(
            """
            select count(*) from rowlock.history as past cross join json_array_elements(past.steps -> 'steps') as step
            where state = 'succeeded' and past.ended_at < (step ->> 'until')::timestamptz
            """
        ).fetchone()
    assert states == [("cancelled", CANCELLED), ("succeeded", SLEEPERS - CANCELLED)]
    assert early == (0,)


def leap(db: Db, by: timedelta) -> None:
    db.execute(
        "create or replace function rowlock.now() returns timestamptz language sql stable parallel safe"
        f" return statement_timestamp() + interval '{by.total_seconds()} s'".encode()
    )


@deep
def test_two_thousand_children_in_two_workers_wake_their_parent_when_all_have_ended(stage: Stage) -> None:
    # given two workers
    for member in stage.crew.start(2):
        member.works()

    # when a workflow has two thousand children
    job = stage.sender.send(lambda n: workflows.have_children.bind(n, CHILDREN))

    # then each is run once, and the parent, woken when all had ended, knows them all
    with stage.look() as db:
        stage.all_is_well(db, exact_crashes=False)
        query = "select count(*), count(distinct worker) from rowlock.history where parent = %s and claims = 1"
        row = db.execute(query, [job]).fetchone()
        claims = db.execute("select claims from rowlock.history where id = %s", [job]).fetchone()
    assert row == (CHILDREN, 2)
    assert claims == (2,)
    assert {line["value"] for line in stage.oracle.read("knows")} == {CHILDREN}


@deep
def test_a_child_that_is_poison_is_told_to_its_parent(stage: Stage) -> None:
    # given a workflow with a child that kills whoever runs it
    stage.crew.start()
    stage.sender.send(workflows.lose_a_child.bind)

    # when three have died of it
    for _ in range(3):
        until(lambda: not stage.crew.living(), what="the end of a worker", limit=LIMIT)
        stage.crew.start()

    # then the parent is told why
    with stage.look() as db:
        stage.all_is_well(db)
        states = db.execute("select task, state, reason from rowlock.history order by id").fetchall()
    assert states == [("lose a child", "succeeded", None), ("die", "failed", "poison")]
    assert [line["value"] for line in stage.oracle.read("knows")] == ["poison"]
