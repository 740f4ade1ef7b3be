"""Waits: for a moment, for a signal, for the first of several; nothing is held, and what ended them is remembered."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from rowlock import Rowlock
from rowlock.errors import SignalTimeout, WorkflowError
from rowlock.testing import drain, travel
from rowlock.workflow.context import Context
from tests.rows import Db
from tests.worker.working import one
from tests.workflow.playing import AT_MOST, DAY, HOUR, MOMENT, blocked, ended, kept, play, steps


def rows(db: Db) -> list[tuple[Any, ...]]:
    """How live workflows wait."""
    return db.execute("select state, waits_for, wakes_at is not null, worker is null from rowlock.jobs").fetchall()


# Sleep


def test_a_sleep_ends_by_the_databases_clock_and_holds_nothing_meanwhile(app: Rowlock, db: Db) -> None:
    @app.workflow(name="w")
    async def w(ctx: Context) -> str:
        await ctx.sleep(HOUR)
        await ctx.sleep_until(datetime.now(UTC).replace(microsecond=0, second=0, minute=0, hour=0) + 2 * DAY)
        return "awake"

    job = w.enqueue()
    first = ended(drain(app))
    again = ended(drain(app))
    held = db.execute("select state, waits_for, run_at > rowlock.now() + '59 min', token is null from rowlock.jobs")
    asleep = held.fetchall()
    with travel(app, HOUR):
        second = ended(drain(app))
    with travel(app, 3 * DAY):
        third = ended(drain(app))

    assert (first, again, second, third) == (["parked"], [], ["parked"], ["succeeded"])
    assert asleep == [("ready", None, True, True)]
    assert job.result(AT_MOST) == "awake"
    assert steps(app, job) == [("sleep", "done"), ("sleep#2", "done")]


def test_what_is_past_already_is_not_waited_for(app: Rowlock) -> None:
    @app.workflow(name="w")
    async def w(ctx: Context) -> str:
        await ctx.sleep(timedelta(0))
        await ctx.sleep_until(datetime(2001, 1, 1, tzinfo=UTC))
        return "awake"

    assert play(app, w.enqueue()) == "awake"


@pytest.mark.parametrize("span", [timedelta(seconds=-1), 5])
def test_a_sleep_takes_a_span_that_makes_sense(app: Rowlock, span: Any) -> None:  # noqa: ANN401  as users may say
    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        await ctx.sleep(span)

    job = w.enqueue()
    drain(app)

    assert "InvalidOption" in blocked(job)


# Signals


def test_a_signal_is_taken_once_whether_it_came_before_or_after_its_wait(app: Rowlock, db: Db) -> None:
    @app.workflow(name="w")
    async def w(ctx: Context) -> list[Any]:
        return [await ctx.signal("paid"), await ctx.signal("paid"), await ctx.signal("shipped")]

    job = w.enqueue()
    app.signal(job, "paid", {"early": 1})
    first = ended(drain(app))
    waiting = rows(db)
    app.signal(job, "shipped", "out of turn")
    spurious = ended(drain(app))
    app.signal(job, "paid", [2])
    last = ended(drain(app))

    assert (first, spurious, last) == (["parked"], ["parked"], ["succeeded"])
    assert waiting == [("waiting", "signal", True, False)]
    assert job.result(AT_MOST) == [{"early": 1}, [2], "out of turn"]
    assert steps(app, job) == [("paid", "done"), ("paid#2", "done"), ("shipped", "done")]


def test_two_waits_of_one_name_take_one_signal_each(app: Rowlock) -> None:
    @app.workflow(name="w")
    async def w(ctx: Context) -> list[Any]:
        return list(await asyncio.gather(ctx.signal("vote"), ctx.signal("vote")))

    job = w.enqueue()
    drain(app)
    app.signal(job, "vote", "yes")
    one_of_two = ended(drain(app))
    app.signal(job, "vote", "no", key="voter 2")
    app.signal(job, "vote", "no", key="voter 2")
    drain(app)

    assert one_of_two == ["parked"]
    assert job.result(AT_MOST) == ["yes", "no"]


def test_a_signal_that_nobody_took_is_kept_with_the_workflow(app: Rowlock, db: Db) -> None:
    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        await ctx.signal("go")

    job = w.enqueue()
    for _ in range(2):
        app.signal(job, "go")
    drain(app)

    assert one(db, "select json_array_length(steps -> 'signals') from rowlock.history") == 2
    assert one(db, "select count(*) from rowlock.signals") == 0


def test_a_wait_that_takes_too_long_is_a_timeout_in_every_attempt(app: Rowlock, db: Db) -> None:
    caught: list[str] = []

    @app.workflow(name="w")
    async def w(ctx: Context) -> Any:  # noqa: ANN401  a payload
        try:
            await ctx.signal("paid", timeout=HOUR)
        except TimeoutError as error:
            caught.append(f"{type(error).__name__}: {error}")
        return await ctx.signal("paid", timeout=HOUR)

    job = w.enqueue()
    drain(app)
    waiting = rows(db)
    with travel(app, HOUR):
        drain(app)
        app.signal(job, "paid", "late")
        drain(app)

    assert waiting == [("ready", None, True, False)]
    assert len(caught) == 2
    assert caught[0].startswith("SignalTimeout: no signal 'paid'")
    assert job.result(AT_MOST) == "late"
    assert steps(app, job) == [("paid", "failed"), ("paid#2", "done")]


class Approval(BaseModel):
    by: str
    amount: int


@dataclass
class Answer:
    yes: bool


def test_a_schema_is_kept_for_forms_and_the_payload_becomes_what_it_says(app: Rowlock) -> None:
    @app.workflow(name="w")
    async def w(ctx: Context) -> list[Any]:
        approval = await ctx.signal("approve", schema=Approval)
        answer = await ctx.signal("answer", schema=Answer)
        numbers = await ctx.signal("numbers", schema=tuple[int, ...])
        free = await ctx.signal("free", schema={"type": "object"})
        return [approval.by, answer.yes, sum(numbers), free]

    job = w.enqueue()
    drain(app)
    [form] = [step.form for step in app.workflows.show(job.id)]
    app.signal(job, "approve", {"by": "ann", "amount": 3})
    app.signal(job, "answer", {"yes": True})
    app.signal(job, "numbers", [1, 2])
    drain(app)
    [*_, last] = [step.form for step in app.workflows.show(job.id)]
    app.signal(job, "free", {"whatever": 1})
    drain(app)

    assert form["properties"]["amount"] == {"title": "Amount", "type": "integer"}
    assert last == {"type": "object"}
    assert job.result(AT_MOST) == ["ann", True, 3, {"whatever": 1}]


def test_a_payload_that_does_not_fit_is_an_error_where_it_was_waited_for_each_time(app: Rowlock) -> None:
    caught: list[str] = []

    @app.workflow(name="w")
    async def w(ctx: Context) -> str:
        while True:
            try:
                return (await ctx.signal("approve", schema=Approval)).by
            except ValidationError as error:
                caught.append(error.errors()[0]["type"])

    job = w.enqueue()
    app.signal(job, "approve", {"by": "bob"})
    drain(app)
    app.signal(job, "approve", {"by": "ann", "amount": 1})
    drain(app)

    assert job.result(AT_MOST) == "ann"
    assert caught == ["missing"] * 2


@pytest.mark.parametrize(("schema", "complaint"), [({"a": {1}}, "cannot be JSON"), ([], "must be a type"), (3, "form")])
def test_a_schema_that_is_none_is_refused(app: Rowlock, schema: Any, complaint: str) -> None:  # noqa: ANN401  as users may say
    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        await ctx.signal("approve", schema=schema)

    job = w.enqueue()
    drain(app)

    assert re.search(f"WorkflowError: schema=.*{complaint}", blocked(job))


# The first of several


def test_any_answers_the_first_and_remembers_which_it_was(app: Rowlock) -> None:
    @app.task(name="child")
    def child() -> str:
        return "child"

    firsts: list[Any] = []

    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        by_signal = await ctx.any(ctx.signal("a"), ctx.sleep(HOUR))
        by_name = await ctx.any(ctx.sleep(HOUR), go=ctx.signal("a"))
        by_time = await ctx.any(ctx.signal("b"), late=ctx.sleep(MOMENT))
        by_child = await ctx.any(ctx.signal("b"), ctx.run(child.bind()))
        nested = await ctx.any(ctx.any(ctx.signal("b"), now=ctx.sleep(MOMENT)), ctx.sleep(HOUR))
        firsts.append([by_signal, by_name, by_time, by_child, nested])
        await ctx.signal("b")

    job = w.enqueue()
    app.signal(job, "a", 1)
    app.signal(job, "a", 2)
    drain(app)
    app.signal(job, "b")
    drain(app)

    expected = [(0, 1), ("go", 2), ("late", None), (1, "child"), (0, ("now", None))]
    assert firsts == [expected] * len(firsts)
    assert len(firsts) > 1
    assert firsts[0][4].value.which == "now"
    assert [kept(app, job, key) for key in ("any", "any#2", "any#3", "any#4")] == [0, 1, 1, 1]


def test_what_comes_later_does_not_change_who_was_first_and_is_there_for_the_next_wait(app: Rowlock) -> None:
    @app.workflow(name="w")
    async def w(ctx: Context) -> list[Any]:
        first = await ctx.any(yes=ctx.signal("yes"), no=ctx.signal("no"))
        await ctx.sleep(HOUR)
        return [first.which, first.value, await ctx.signal("yes")]

    job = w.enqueue()
    drain(app)
    app.signal(job, "no", "first")
    drain(app)
    app.signal(job, "yes", "second")
    with travel(app, HOUR):
        drain(app)

    assert job.result(AT_MOST) == ["no", "first", "second"]


def test_a_wait_that_lost_may_be_waited_for_again_and_one_that_won_is_answered_alike(app: Rowlock) -> None:
    @app.workflow(name="w")
    async def w(ctx: Context) -> list[Any]:
        paid, late = ctx.signal("paid"), ctx.sleep(MOMENT)
        first = await ctx.any(paid, late=late)
        await late
        return [first.which, await paid]

    job = w.enqueue()
    drain(app)
    app.signal(job, "paid", "at last")
    app.signal(job, "paid", "again")
    drain(app)

    assert job.result(AT_MOST) == ["late", "at last"]
    assert steps(app, job) == [("paid", "done"), ("sleep", "done"), ("any", "done")]


def test_the_errors_of_the_first_are_raised(app: Rowlock) -> None:
    caught: list[str] = []

    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        try:
            await ctx.any(ctx.signal("a", timeout=MOMENT), ctx.signal("b"))
        except SignalTimeout as error:
            caught.append(str(error))
        await ctx.sleep(MOMENT)

    play(app, w.enqueue())

    assert len(caught) >= 2
    assert len(set(caught)) == 1


def test_any_takes_waits_and_nothing_else(app: Rowlock) -> None:
    async def nothing() -> None: ...

    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        step = ctx.step(nothing)
        with pytest.raises(WorkflowError, match=r"ctx.any takes ctx.signal"):
            await ctx.any(step)  # type: ignore[arg-type]
        with pytest.raises(WorkflowError, match=r"ctx.any takes ctx.signal"):
            await ctx.any()
        await step

    play(app, w.enqueue())


def test_several_waits_at_once_end_each_at_its_time(app: Rowlock) -> None:
    ends: list[str] = []

    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        async def branch(name: str, hours: int) -> None:
            await ctx.sleep(hours * HOUR)
            await ctx.using(name="end").step(lambda: ends.append(name))

        async with asyncio.TaskGroup() as group:
            group.create_task(branch("b", 2))
            group.create_task(branch("a", 1))
            group.create_task(branch("c", 3))

    job = w.enqueue()
    seen = []
    for hours in range(4):
        with travel(app, hours * HOUR):
            drain(app)
        seen.append("".join(ends))

    assert seen == ["", "a", "ab", "abc"]
    assert job.result(AT_MOST) is None
