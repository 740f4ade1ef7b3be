"""Workflows that are terminated: ended without code and without undo, in whatever state they are."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import psycopg
import pytest

from rowlock import Context, Rowlock, current_job
from rowlock.errors import JobNotFound, NotAWorkflow
from rowlock.testing import drain
from tests.rows import Db, put
from tests.waiting import until
from tests.worker.working import one, work_until
from tests.workflow.playing import play
from tests.workflow.remembering import is_live, put_signal, put_step, put_workflow, row_of


def leftovers(db: Db) -> int:
    """Rows of steps, signals and keys that no live job has."""
    return int(
        one(
            db,
            """
            select count(*) from (
                select job from rowlock.steps union all select job from rowlock.signals
                union all select job from rowlock.keys
            ) as row where not exists (select from rowlock.jobs where jobs.id = row.job)
            """,
        )
    )


def test_a_workflow_whose_code_is_gone_ends_and_leaves_nothing_behind(app: Rowlock, db: Db) -> None:
    blocked = {"waits_for": "code", "reason": "unknown task", "wakes_at": None, "cancel_at": datetime.now(UTC)}
    job = put_workflow(db, "waiting", key="order-7", **blocked)
    put_step(db, job, "reserve", value="shelf 7")
    put_signal(db, job, "paid")
    child = put_workflow(db, "waiting", parent=job)

    assert f"rowlock workflows terminate {job}" in str(app.jobs.explain(job).do)
    assert app.workflows.terminate(job, by="ada", why="the code is gone") is True
    again = app.workflows.terminate(job)

    assert again is True
    assert row_of(db, job, "state", "reason", "key") == ("cancelled", "terminated", "order-7")
    timeline = app.workflows.show(job)
    assert [step.key for step in timeline] == ["reserve"]
    assert [sent.name for sent in timeline.signals] == ["paid"]
    assert leftovers(db) == 0
    assert one(db, "select cancel_at is not null from rowlock.jobs where id = %s", child)
    event = app.jobs.events(job)[0]
    assert (event.kind, event.actor, event.details["why"]) == ("terminated", "ada", "the code is gone")
    assert "terminated" in str(app.jobs.explain(job))


def test_one_that_runs_can_record_nothing_more_and_undoes_nothing(app: Rowlock, url: str, db: Db) -> None:
    said: list[str] = []
    other = Rowlock(url)

    async def terminate() -> None:
        await other.workflows.aterminate(current_job().id)

    async def on(ctx: Context) -> None:
        ctx.undo(said.append, "undone")
        try:
            await ctx.step(terminate)
            said.append("went on")
        finally:
            said.append("over")

    job = app.workflow(name="on")(on).enqueue()
    with other:
        work_until(app, lambda: said)

    assert row_of(db, job.id, "state", "reason") == ("cancelled", "terminated")
    assert said == ["over"]
    assert leftovers(db) == 0


def test_a_parent_is_told_that_its_child_was_terminated(app: Rowlock, db: Db) -> None:
    @app.workflow(name="child")
    async def child(ctx: Context) -> None:
        await ctx.signal("never")

    @app.workflow(name="parent")
    async def parent(ctx: Context) -> str:
        try:
            await ctx.run(child.bind())
        except Exception as error:
            return str(error)
        return "done"

    job = parent.enqueue()
    drain(app)
    app.workflows.terminate(one(db, "select id from rowlock.jobs where parent is not null"))

    assert "terminated" in play(app, job)


def test_what_is_recorded_while_it_waits_for_the_row_goes_into_history_too(app: Rowlock, url: str, db: Db) -> None:
    job = put_workflow(db, "running")
    with psycopg.connect(url) as worker, ThreadPoolExecutor(1) as pool:
        worker.execute("select from rowlock.jobs where id = %s for no key update", [job])
        terminating = pool.submit(app.workflows.terminate, job)
        until(lambda: one(db, "select exists (select from pg_stat_activity where wait_event_type = 'Lock')"))
        put_step(worker, job, "charge")
        worker.commit()
        assert terminating.result(10)

    assert [step.key for step in app.workflows.show(job)] == ["charge"]
    assert leftovers(db) == 0


def test_who_terminates_what_cannot_be_is_told_why(app: Rowlock, db: Db) -> None:
    plain, over = put(db), put_workflow(db, "failed")

    with pytest.raises(NotAWorkflow, match=r"job\.cancel"):
        app.workflows.terminate(plain)
    with pytest.raises(JobNotFound):
        app.workflows.terminate("01890000-0000-7000-8000-000000000000")
    assert app.workflows.terminate(over) is False
    assert is_live(db, plain)
