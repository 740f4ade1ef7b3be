"""What a workflow says of itself, what would differ from attempt to attempt, and how it begins again."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rowlock import Rowlock, current_job
from rowlock.errors import JobCancelled, WorkflowError
from rowlock.testing import drain, travel
from rowlock.workflow.context import Context
from tests.rows import Db
from tests.worker.working import one, working
from tests.workflow.playing import AT_MOST, HOUR, MOMENT, blocked, ended, play, steps


async def nothing() -> None: ...


# State and progress


def test_its_state_is_there_for_those_who_look_with_the_next_step_and_at_its_end(app: Rowlock) -> None:
    seen: list[Any] = []

    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        ctx.state["at"] = "start"
        await ctx.step(nothing)
        seen.append(await asyncio.to_thread(lambda: app.jobs.get(ctx.id).record().workflow_state))
        ctx.state["at"] = "waiting"
        await ctx.signal("go")
        ctx.state["at"] = "end"

    job = w.enqueue()
    before = job.record().workflow_state
    drain(app)
    parked = job.record().workflow_state
    app.signal(job, "go")
    drain(app)

    assert before is None
    assert (seen[0], parked) == ({"at": "start"}, {"at": "waiting"})
    assert job.record().workflow_state == {"at": "end"}


def test_its_state_is_made_anew_by_every_attempt(app: Rowlock) -> None:
    @app.workflow(name="w")
    async def w(ctx: Context) -> dict[str, Any]:
        for number in range(3):
            ctx.state["done"] = ctx.state.get("done", 0) + 1
            await ctx.sleep(MOMENT)
            ctx.state[f"slept {number}"] = True
        return dict(ctx.state)

    assert play(app, w.enqueue()) == {"done": 3, "slept 0": True, "slept 1": True, "slept 2": True}


@pytest.mark.parametrize("where", ["a step", "a wait", "a second wait", "the end", "a restart"])
def test_a_state_that_is_no_json_blocks_it_wherever_it_is_to_be_written(app: Rowlock, where: str) -> None:
    @app.workflow(name="w")
    async def w(ctx: Context, where: str, again: bool = False) -> None:  # noqa: FBT001, FBT002  a job's argument
        if where == "a second wait":
            await ctx.any(ctx.signal("go"), ctx.sleep(MOMENT))
            ctx.state["bad"] = object()
            await ctx.signal("go")
        ctx.state["bad"] = object()
        if where == "a step":
            await ctx.step(nothing)
        elif where == "a wait":
            await ctx.signal("go")
        elif where == "a restart" and not again:
            ctx.restart(where, again=True)

    job = w.enqueue(where)
    drain(app)

    assert "ctx.state cannot be JSON" in blocked(job)
    assert [key for key, _ in steps(app, job) if key == "nothing"] == ["nothing"] * (where == "a step")


def test_its_progress_is_that_of_any_job(app: Rowlock) -> None:
    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        current_job().progress(0.25, "before")
        await ctx.using(name="inside").step(lambda: current_job().progress(0.5, "inside"))
        await ctx.signal("go")

    job = w.enqueue()
    drain(app)
    progress = job.record().progress

    assert progress is not None
    assert (progress.share, progress.note) == (0.5, "inside")


def test_it_knows_who_it_is(app: Rowlock) -> None:
    @app.workflow(name="w", version=3)
    async def w(ctx: Context) -> list[Any]:
        return [str(ctx.id), ctx.key, ctx.version, str(current_job().id)]

    job = w.using(key="w:1").enqueue()

    assert play(app, job) == [str(job.id), "w:1", 3, str(job.id)]


# The same in every attempt


def test_its_time_and_its_chance_are_the_same_in_every_attempt(app: Rowlock) -> None:
    seen: list[list[Any]] = []

    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        async def branch() -> float:
            await ctx.step(nothing)
            return ctx.random()

        values = [ctx.now(), ctx.random(), ctx.random(), *await asyncio.gather(branch(), branch())]
        await ctx.sleep(HOUR)
        seen.append([*values, ctx.now()])
        await ctx.sleep(MOMENT)

    w.enqueue()
    w.enqueue()
    drain(app)
    with travel(app, HOUR):
        drain(app)

    first, second = seen[0], seen[1]
    assert len(seen) == 4
    assert sorted(seen[:2], key=str) == sorted(seen[2:], key=str)
    assert len(set(first[1:5] + second[1:5])) == 8
    assert all(0 <= value < 1 for value in first[1:5])
    assert timedelta(minutes=59) < first[5] - first[0] < timedelta(minutes=61)


def test_its_time_is_the_databases(app: Rowlock) -> None:
    @app.workflow(name="w")
    async def w(ctx: Context) -> datetime:
        return ctx.now()

    job = w.enqueue()
    with travel(app, 24 * HOUR):
        drain(app)

    assert job.result(AT_MOST) > datetime.now(UTC) + 23 * HOUR


def test_its_time_is_the_databases_in_a_worker_that_has_just_begun(app: Rowlock) -> None:
    @app.workflow(name="w")
    async def w(ctx: Context) -> datetime:
        return ctx.now()

    job = w.enqueue()
    with travel(app, 24 * HOUR), working(app):
        now = job.result(timedelta(seconds=30))

    assert now > datetime.now(UTC) + 23 * HOUR


def test_a_change_is_had_by_those_who_had_not_passed_its_place(app: Rowlock, url: str) -> None:
    def declared(app: Rowlock, *, patched: bool) -> Any:  # noqa: ANN401  a workflow
        @app.workflow(name="w")
        async def w(ctx: Context) -> list[str]:
            did = [await ctx.using(name="a").step(lambda: "a")]
            if patched and ctx.patched("b comes in between"):
                did.append(await ctx.using(name="b").step(lambda: "b"))
            await ctx.signal("go")
            if patched and ctx.patched("c comes later"):
                did.append(await ctx.using(name="c").step(lambda: "c"))
            return did

        return w

    old = declared(app, patched=False).enqueue()
    drain(app)
    with Rowlock(url) as deployed:
        new = declared(deployed, patched=True).enqueue()
        drain(deployed)
        for job in (old, new):
            app.signal(job.id, "go")
        drain(deployed)

    assert old.result(AT_MOST) == ["a", "c"]
    assert new.result(AT_MOST) == ["a", "b", "c"]
    markers = {"patched b comes in between", "patched c comes later"}
    assert {key for key, _ in steps(app, new)} == {"a", "b", "go", "c", *markers}
    assert {key for key, _ in steps(app, old)} == {"a", "go", "c", "patched c comes later"}


def test_a_change_in_a_loop_is_had_from_where_it_came(app: Rowlock, url: str) -> None:
    def declared(app: Rowlock, *, patched: bool) -> Any:  # noqa: ANN401  a workflow
        @app.workflow(name="w")
        async def w(ctx: Context) -> list[bool]:
            had: list[bool] = []
            for _ in range(4):
                had.append(patched and ctx.patched("in the loop"))
                await ctx.step(nothing)
                await ctx.signal("next")
            return had

        return w

    job = declared(app, patched=False).enqueue()
    app.signal(job, "next")
    drain(app)
    with Rowlock(url) as deployed:
        declared(deployed, patched=True)
        for _ in range(3):
            app.signal(job, "next")
            drain(deployed)

    assert job.result(AT_MOST) == [False, False, True, True]


# Beginning again


def test_a_restart_has_other_arguments_and_a_fresh_history_its_state_and_the_signals_nobody_took(
    app: Rowlock, db: Db
) -> None:
    remembered: list[int] = []
    keys: list[str] = []

    @app.workflow(name="w")
    async def w(ctx: Context, turn: int) -> list[Any]:
        remembered.append(one(db, "select count(*) from rowlock.steps"))
        for _ in range(3):
            await ctx.using(name="key").step(lambda: keys.append(ctx.idempotency_key))
        said = await ctx.signal("say")
        ctx.state["said"] = [*ctx.state.get("said", []), said]
        if turn < 3:
            ctx.restart(turn + 1)
        return [turn, *ctx.state["said"]]

    job = w.using(key="w:1").enqueue(1)
    for word in ("a", "b", "c"):
        app.signal("w:1", "say", word)
    drained = drain(app)

    assert job.result(AT_MOST) == [3, "a", "b", "c"]
    assert ended(drained) == ["restarted", "restarted", "succeeded"]
    assert remembered == [0, 1, 1]
    assert len(set(keys)) == 9
    assert [key for key, _ in steps(app, job)] == ["start", "key", "key#2", "key#3", "say"]


def test_a_restart_cancels_the_children_that_it_would_forget(app: Rowlock, db: Db) -> None:
    @app.task(name="child")
    def child() -> None: ...

    @app.workflow(name="w")
    async def w(ctx: Context, again: bool) -> str:  # noqa: FBT001  a job's argument
        if again:
            await ctx.any(ctx.run(child.using(delay=HOUR).bind()), ctx.sleep(MOMENT))
            ctx.restart(again=False)
        return "done"

    job = w.enqueue(again=True)

    assert play(app, job) == "done"
    assert one(db, "select state from rowlock.history where task = 'child'") == "cancelled"


def test_a_restart_takes_arguments_that_fit_and_has_nothing_to_undo(app: Rowlock) -> None:
    @app.workflow(name="w")
    async def w(ctx: Context, turn: int) -> str:
        with pytest.raises(TypeError, match="turn"):
            ctx.restart("x")
        with pytest.raises(TypeError):
            ctx.restart()
        ctx.undo(print)
        with pytest.raises(WorkflowError, match="would forget what is to be undone"):
            ctx.restart(2)
        return "refused"

    assert play(app, w.enqueue(1)) == "refused"


def test_one_that_begins_again_for_ever_may_be_cancelled(app: Rowlock, db: Db) -> None:
    @app.workflow(name="w")
    async def w(ctx: Context, turn: int = 1) -> None:
        await ctx.step(nothing)
        await ctx.sleep(HOUR)
        ctx.restart(turn + 1)

    job = w.enqueue()
    drain(app)
    with travel(app, HOUR):
        drain(app)
        turn = one(db, "select (args ->> 'turn')::integer from rowlock.jobs")
        job.cancel()
        drain(app)

    assert turn == 2
    with pytest.raises(JobCancelled):
        job.result(AT_MOST)
