"""Check: replays of what workflows remember, against code that has changed or has not. Nothing is written or called."""

from __future__ import annotations

import asyncio
import re
from typing import Any
from uuid import uuid4

import pytest

from rowlock import Rowlock, RowlockError, Workflow, current_job
from rowlock.errors import InvalidOption
from rowlock.model.workflow.record import CheckedWorkflow, WorkflowCheck
from rowlock.testing import drain
from rowlock.workflow import check as checking
from rowlock.workflow.context import Context
from tests.rows import Db
from tests.workflow.playing import DAY, HOUR, MOMENT, ONCE, everything
from tests.workflow.test_changes import CHANGES, Code, began, deploy


def only(checked: WorkflowCheck) -> CheckedWorkflow:
    [one] = checked.workflows
    return one


async def never() -> str:
    raise AssertionError("a check has called a step")


async def fine() -> str:
    return "fine"


@pytest.mark.parametrize(("code", "difference"), CHANGES, ids=[code.__name__ for code, _ in CHANGES])
def test_code_that_would_block_it_differs_and_nothing_is_written(url: str, db: Db, code: Code, difference: str) -> None:
    with deploy(url, began) as right:
        job = right.enqueue("w")
        drain(right)
        before = everything(db)

        fits = right.workflows.check()
    with deploy(url, code) as changed:
        differs = only(changed.workflows.check())

    assert [(one.id, one.verdict, one.difference) for one in fits.workflows] == [(job.id, "fits", None)]
    assert fits.all_fit
    assert (differs.verdict, differs.state, differs.version) == ("differs", "parked", 1)
    assert difference in (differs.difference or "")
    assert "ctx.patched" in (differs.difference or "")
    assert everything(db) == before


def test_it_takes_no_right_to_write(url: str, db: Db) -> None:
    with deploy(url, began) as right:
        right.enqueue("w")
        drain(right)
    reader = f"reader_{uuid4().hex}"
    for said in (
        f"create role {reader} login",
        f"grant usage on schema rowlock to {reader}",
        f"grant select on all tables in schema rowlock to {reader}",
        f"grant execute on function rowlock.now(), rowlock.shown_state, rowlock.unfolded(uuid, json) to {reader}",
    ):
        db.execute(said.encode())

    with deploy(re.sub(r"//[^@/]*@", f"//{reader}@", url), began) as looking:
        checked = looking.workflows.check(ended=True)

    assert checked.all_fit
    assert len(checked.workflows) == 1


def test_no_step_wait_or_child_is_begun_and_none_is_called(app: Rowlock, url: str, db: Db) -> None:
    def declared(app: Rowlock, step: Any) -> None:  # noqa: ANN401  any function
        @app.task(name="child")
        async def child() -> None: ...

        @app.workflow(name="w", retry=ONCE, fails_on=ValueError)
        async def w(ctx: Context, ends: str) -> None:
            assert current_job().id == ctx.id
            ctx.state["ends"] = ends
            ctx.using(name="back").undo(step)
            await ctx.using(name="step").step(step)
            if ends == "sleep":
                await ctx.sleep(DAY)
            if ends == "signal":
                await ctx.any(ctx.signal("go", timeout=HOUR), ctx.sleep(DAY))
            if ends == "children":
                await ctx.map([child.using(run_at=ctx.now() + DAY).bind() for _ in range(2)])
            if ends == "error":
                raise ValueError("as it ended")
            await asyncio.gather(*[ctx.using(name="not yet").step(step) for _ in range(2)])

    declared(app, fine)
    for ends in ("sleep", "signal", "children", "error", "well"):
        app.enqueue("w", ends=ends)
    drain(app)
    before = everything(db)

    with Rowlock(url) as other:
        declared(other, never)
        live, all_of_them = other.workflows.check(), asyncio.run(other.workflows.acheck(ended=True))

    assert [(one.state, one.verdict, one.difference) for one in all_of_them.workflows] == [
        ("succeeded", "fits", None),
        ("failed", "fits", None),
        ("parked", "fits", None),
        ("parked", "fits", None),
        ("parked", "fits", None),
    ]
    assert live.workflows == all_of_them.workflows[2:]
    assert everything(db) == before


def test_a_change_that_is_guarded_fits_those_that_were_past_it_and_those_that_were_not(url: str) -> None:
    async def guarded(ctx: Context) -> str:
        if ctx.patched("with insurance"):
            await ctx.using(name="insure").step(never)
        return await began(ctx)

    with deploy(url, began) as before:
        before.enqueue("w")
        drain(before)
        before.enqueue("w")  # it has not begun

    with deploy(url, guarded) as after:
        checked = after.workflows.check()

    assert [one.verdict for one in checked.workflows] == ["fits", "fits"]


def test_code_that_raises_where_the_record_goes_on_differs(url: str) -> None:
    async def broken(_ctx: Context) -> None:
        raise KeyError("order")

    async def restarting(ctx: Context) -> None:
        ctx.restart()

    with deploy(url, began) as right:
        right.enqueue("w")
        drain(right)

    said = []
    for code in (broken, restarting):
        with deploy(url, code) as changed:
            said.append(only(changed.workflows.check()).difference or "")

    assert "the code raises KeyError: 'order', and the record goes on with step 'a' (done)" in said[0]
    assert "the code restarts, and the record goes on with step 'a' (done)" in said[1]


def test_code_that_waits_for_something_else_is_given_up(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def stuck(ctx: Context) -> None:
        await ctx.step(fine)
        await asyncio.Event().wait()

    with deploy(url, stuck) as app:
        app.enqueue("w")

        waits = only(app.workflows.check())
    monkeypatch.setattr(checking, "_WITHIN", 0.05)
    with deploy(url, stuck_at_once) as other:
        given_up = only(other.workflows.check())

    assert waits.verdict == "fits"  # its first step, which is new, is where it would go on from
    assert given_up.verdict == "differs"
    assert "it waits for something that is no step" in (given_up.difference or "")


async def stuck_at_once(_ctx: Context) -> None:
    await asyncio.Event().wait()


def test_what_is_undone_is_compared_too(url: str) -> None:
    def undoing(given: int) -> Code:
        async def code(ctx: Context) -> None:
            await ctx.step(fine)
            ctx.undo(put_back, given)
            raise ValueError("no")

        return code

    async def put_back(_number: int) -> None: ...

    with deploy(url, undoing(1)) as right:
        right.enqueue("w")
        drain(right)

        fits = only(right.workflows.check(ended=True))
    with deploy(url, undoing(2)) as changed:
        differs = only(changed.workflows.check(ended=True))

    assert (fits.state, fits.verdict) == ("failed", "fits")
    assert "undo 'undo/put_back' with [2], and the record has it with [1]" in (differs.difference or "")


# Versions and arguments


def test_versions_that_the_code_lacks_are_told_apart_from_those_it_can_go_on_with(app: Rowlock, url: str) -> None:
    def declared(app: Rowlock, version: int) -> Any:  # noqa: ANN401  a workflow
        @app.workflow(name="w", version=version)
        async def w(ctx: Context) -> None:
            ctx.state["count"] = version
            await ctx.using(name=f"step {version}").step(fine)
            await ctx.signal("go")

        return w

    for version in (1, 2):
        declared(app, version).enqueue()
    drain(app)

    with Rowlock(url) as newer:
        declared(newer, 2)
        lacking = newer.workflows.check()
    with Rowlock(url) as newest:
        third: Workflow[[], None] = declared(newest, 3)

        @third.migration(2)
        def carry(state: dict[str, Any]) -> dict[str, Any]:
            return {"count": state["count"] + 1}

        @third.migration(1)
        def cannot(state: dict[str, Any]) -> dict[str, Any]:
            return {"count": state["number"]}

        carried = newest.workflows.check()

    assert [(one.version, one.verdict) for one in lacking.workflows] == [(2, "fits"), (1, "no code")]
    assert not lacking.all_fit
    assert [(one.version, one.verdict) for one in carried.workflows] == [(2, "fits"), (1, "differs")]
    assert carried.workflows[1].difference == (
        "the state of version 1 could not be carried over to version 3: KeyError: 'number'; fix the migration"
    )


def test_arguments_that_no_longer_fit_differ(app: Rowlock, url: str) -> None:
    @app.workflow(name="w")
    async def w(ctx: Context, order: int) -> None: ...

    w.enqueue(7)
    with Rowlock(url) as other:

        @other.workflow(name="w")
        async def changed(ctx: Context, order: int, customer: str) -> None: ...

        differs = only(other.workflows.check())

    assert differs.verdict == "differs"
    assert "arguments do not fit 'w'" in (differs.difference or "")
    assert "customer" in (differs.difference or "")


# Which of them


def test_the_newest_are_checked_up_to_a_limit_and_of_one_workflow_if_asked(app: Rowlock) -> None:
    for name in ("a", "b"):

        @app.workflow(name=name)
        async def w(ctx: Context) -> None:
            await ctx.sleep(MOMENT)

    jobs = [app.enqueue(name) for name in ("a", "b", "a", "a")]

    two, of_b, all_of_them = (
        app.workflows.check(limit=2),
        app.workflows.check(workflow="b"),
        app.workflows.check(limit=4),
    )

    assert ([one.id for one in two.workflows], two.is_whole) == ([jobs[3].id, jobs[2].id], False)
    assert ([one.id for one in of_b.workflows], of_b.is_whole) == ([jobs[1].id], True)
    assert (len(all_of_them.workflows), all_of_them.is_whole) == (4, True)
    with pytest.raises(InvalidOption, match="limit=0 must be a whole number"):
        app.workflows.check(limit=0)


def test_many_are_checked_some_at_a_time(app: Rowlock) -> None:
    @app.workflow(name="w")
    async def w(ctx: Context, number: int) -> None:
        await ctx.sleep(MOMENT)

    app.enqueue_many([w.bind(number) for number in range(45)])

    some, all_of_them = app.workflows.check(limit=25), app.workflows.check()

    assert (len(some.workflows), some.is_whole) == (25, False)
    assert (len({one.id for one in all_of_them.workflows}), all_of_them.is_whole) == (45, True)


def test_it_refuses_to_block_a_loop(app: Rowlock) -> None:
    async def call() -> None:
        app.workflows.check()

    with pytest.raises(RowlockError, match=r"await app\.workflows\.acheck"):
        asyncio.run(call())
