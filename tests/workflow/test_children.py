"""Children: jobs of their own, whose ends are told to the workflow that asked for them."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from rowlock import Cancel, Retry, Rowlock, Snooze
from rowlock.errors import ChildCancelled, ChildFailed, JobCancelled, WorkflowError
from rowlock.testing import drain, travel
from rowlock.workflow.context import Context
from tests.rows import Db
from tests.worker.working import one
from tests.workflow.playing import AT_MOST, AT_ONCE, HOUR, MOMENT, ONCE, ended, play, steps


def states(db: Db, task: str) -> list[str]:
    """Of the jobs of a task, live and ended, in the order in which they were made."""
    query = """
        select state from (
            select id, task, state from rowlock.jobs union all select id, task, state from rowlock.history
        ) as job where task = %s order by id
    """
    return [state for (state,) in db.execute(query, [task])]


def test_a_child_is_a_job_of_its_own_and_its_result_is_the_workflows(app: Rowlock, db: Db) -> None:
    ran: list[str] = []

    @app.task(name="double", queue="side", priority=3)
    def double(number: int) -> int:
        ran.append(f"double {number}")
        return number * 2

    @app.workflow(name="w")
    async def w(ctx: Context) -> int:
        answer = await ctx.run(double.bind(4))
        await ctx.sleep(MOMENT)
        return answer + await ctx.run(double.using(queue="other", priority=-2).bind(5))

    job = w.enqueue()
    drained = drain(app)
    rows = db.execute(
        "select queue, priority, parent from rowlock.history where task = 'double' order by id"
    ).fetchall()

    assert job.result(AT_MOST) == 18
    assert [attempt.task for attempt in drained] == ["w", "double", "w", "w", "double", "w"]
    assert ran == ["double 4", "double 5"]
    assert rows == [("side", 3, job.id), ("other", -2, job.id)]
    assert steps(app, job) == [("double", "done"), ("sleep", "done"), ("double#2", "done")]


def test_how_a_child_ended_is_raised_where_it_was_waited_for_in_every_attempt(app: Rowlock) -> None:
    caught: list[list[str]] = []

    @app.task(name="fails", retry=AT_ONCE)
    def fails() -> None:
        raise KeyError("no")

    @app.task(name="gives up")
    def gives_up() -> None:
        raise Cancel("not today")

    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        errors: list[str] = []
        try:
            await ctx.run(fails.bind())
        except ChildFailed as error:
            errors += [error.task, error.reason, error.error_type, error.message, "".join(error.__notes__)[-30:]]
        try:
            await ctx.run(gives_up.bind())
        except ChildCancelled as error:
            errors += [error.task, error.reason]
        await ctx.sleep(MOMENT)
        caught.append(errors)

    play(app, w.enqueue())

    assert caught[0][:4] == ["fails", "exhausted", "KeyError", "'no'"]
    assert caught[0][5:] == ["gives up", "not today"]


def test_a_child_may_be_retried_and_snooze_as_any_job(app: Rowlock) -> None:
    calls: list[str] = []

    @app.task(name="flaky", retry=Retry(attempts=2, base=HOUR, cap=HOUR, jitter=0.0))
    def flaky() -> int:
        calls.append("called")
        if len(calls) == 1:
            raise Snooze(timedelta(0))
        if len(calls) == 2:
            raise ConnectionError("down")
        return len(calls)

    @app.workflow(name="w")
    async def w(ctx: Context) -> int:
        return await ctx.run(flaky.bind())

    job = w.enqueue()
    first = ended(drain(app))
    with travel(app, HOUR):
        drain(app)

    assert first == ["parked", "snoozed", "retried"]
    assert job.result(AT_MOST) == 3


def test_a_child_that_somebody_cancels_is_told(app: Rowlock, db: Db) -> None:
    @app.task(name="child")
    def child() -> None: ...

    @app.workflow(name="w")
    async def w(ctx: Context) -> str:
        try:
            await ctx.run(child.using(delay=HOUR).bind())
        except ChildCancelled as error:
            return f"{error.task} {error.reason}"
        return "no"

    job = w.enqueue()
    drain(app)
    app.jobs.get(one(db, "select id from rowlock.jobs where task = 'child'")).cancel()
    drain(app)

    assert job.result(AT_MOST) == "child asked"


def test_a_child_that_expires_is_told(app: Rowlock) -> None:
    @app.task(name="child")
    def child() -> None: ...

    @app.workflow(name="w")
    async def w(ctx: Context) -> str:
        with pytest.raises(ChildCancelled, match="expired"):
            await ctx.run(child.using(queue="away", expires=HOUR).bind())
        return "told"

    job = w.enqueue()
    drain(app, queues="default")
    with travel(app, 2 * HOUR):
        drain(app)

    assert job.result(AT_MOST) == "told"


# Many


def test_map_answers_in_the_order_of_its_calls(app: Rowlock) -> None:
    @app.task(name="square")
    def square(number: int) -> int:
        return number**2

    @app.workflow(name="w")
    async def w(ctx: Context) -> list[int]:
        assert await ctx.map([]) == []
        return await ctx.map(square.bind(number) for number in range(7))

    job = w.enqueue()
    drained = drain(app)

    assert job.result(AT_MOST) == [number**2 for number in range(7)]
    assert [attempt.task for attempt in drained] == ["w"] + ["square"] * 7 + ["w"]


def test_map_keeps_to_its_concurrency_and_all_come_to_their_turn(app: Rowlock, db: Db) -> None:
    live: list[int] = []

    @app.task(name="note")
    def note(number: int) -> int:
        live.append(one(db, "select count(*) from rowlock.jobs where task = 'note'"))
        return number

    @app.workflow(name="w")
    async def w(ctx: Context) -> list[int]:
        return await ctx.map([note.bind(number) for number in range(11)], concurrency=4)

    job = w.enqueue()
    drained = drain(app)

    assert job.result(AT_MOST) == list(range(11))
    assert max(live) == 4
    assert sum(attempt.task == "w" for attempt in drained) <= 6


def test_map_raises_the_first_error_when_all_have_ended_or_gives_each_in_its_place(app: Rowlock, db: Db) -> None:
    @app.task(name="odd", retry=ONCE)
    def odd(number: int) -> int:
        if number % 2:
            return number
        raise ValueError(f"{number} is even")

    @app.workflow(name="w")
    async def w(ctx: Context) -> list[str]:
        with pytest.raises(ChildFailed, match="0 is even"):
            await ctx.map([odd.bind(number) for number in range(4)])
        answers = await ctx.map([odd.bind(number) for number in range(4)], concurrency=2, return_exceptions=True)
        return [type(answer).__name__ for answer in answers]

    assert play(app, w.enqueue()) == ["ChildFailed", "int", "ChildFailed", "int"]
    assert states(db, "odd") == ["failed", "succeeded"] * 4


@pytest.mark.parametrize("concurrency", [0, -1, True])
def test_map_takes_a_concurrency_that_makes_sense(app: Rowlock, concurrency: int) -> None:
    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        with pytest.raises(WorkflowError, match="must be 1 or more"):
            await ctx.map([], concurrency=concurrency)

    play(app, w.enqueue())


def test_hundreds_of_children_wake_their_workflow_once(app: Rowlock, db: Db) -> None:
    @app.task(name="one")
    async def one_of_many(number: int) -> int:
        return number

    @app.workflow(name="w")
    async def w(ctx: Context) -> int:
        return sum(await ctx.map([one_of_many.bind(number) for number in range(400)]))

    async def story() -> int:
        async with app:
            job = await w.aenqueue()
            async with app.worker(grace=timedelta(seconds=5), slots=50):
                return await job.aresult(timedelta(seconds=60))

    assert asyncio.run(story()) == sum(range(400))
    assert one(db, "select claims from rowlock.history where task = 'w'") <= 3


# Workflows of workflows


def test_a_workflow_may_be_a_child_and_have_children(app: Rowlock, db: Db) -> None:
    @app.task(name="leaf")
    def leaf(name: str) -> str:
        return name

    @app.workflow(name="twig")
    async def twig(ctx: Context, name: str) -> list[str]:
        await ctx.sleep(MOMENT)
        return await ctx.map([leaf.bind(f"{name}{number}") for number in range(2)])

    @app.workflow(name="tree")
    async def tree(ctx: Context) -> list[list[str]]:
        return list(await asyncio.gather(ctx.run(twig.bind("a")), ctx.run(twig.bind("b"))))

    job = tree.enqueue()

    assert play(app, job) == [["a0", "a1"], ["b0", "b1"]]
    assert one(db, "select count(*) from rowlock.steps") == 0
    assert states(db, "twig") == ["succeeded"] * 2


def test_a_child_that_is_a_workflow_undoes_before_its_failure_is_told(app: Rowlock) -> None:
    said: list[str] = []

    @app.workflow(name="inner", fails_on=ValueError)
    async def inner(ctx: Context) -> None:
        ctx.undo(said.append, "undone")
        await ctx.sleep(MOMENT)
        raise ValueError("no")

    @app.workflow(name="outer", fails_on=ValueError)
    async def outer(ctx: Context) -> None:
        try:
            await ctx.run(inner.bind())
        except ChildFailed as error:
            said.append(f"{error.error_type}: {error.message}")

    play(app, outer.enqueue())

    assert said == ["undone", "ValueError: no"]


# Left behind


def test_a_child_that_lives_when_its_workflow_ends_is_cancelled(app: Rowlock, db: Db) -> None:
    undone: list[str] = []

    @app.task(name="later")
    def later() -> None: ...

    @app.workflow(name="inner", fails_on=ValueError)
    async def inner(ctx: Context) -> None:
        ctx.undo(undone.append, "inner")
        await ctx.signal("never")

    @app.workflow(name="w", fails_on=ValueError)
    async def w(ctx: Context, *, fails: bool) -> str:
        children = ctx.run(later.using(delay=2 * HOUR).bind()), ctx.run(inner.bind())
        await ctx.any(*children, ctx.sleep(HOUR))
        if fails:
            raise ValueError("no")
        return "early"

    w.enqueue(fails=False)
    w.enqueue(fails=True)
    cancelled = w.enqueue(fails=False)
    drain(app)
    cancelled.cancel()
    with travel(app, HOUR):
        drain(app)

    assert states(db, "w") == ["succeeded", "failed", "cancelled"]
    assert states(db, "later") == states(db, "inner") == ["cancelled"] * 3
    assert undone == ["inner"] * 3
    with pytest.raises(JobCancelled):
        cancelled.result(AT_MOST)


def test_a_child_that_ends_after_its_workflow_tells_nobody(app: Rowlock, db: Db) -> None:
    @app.task(name="slow")
    def slow() -> str:
        return "too late"

    @app.workflow(name="w")
    async def w(ctx: Context) -> str:
        await ctx.any(ctx.run(slow.using(queue="away").bind()), ctx.sleep(MOMENT))
        return "gone"

    job = w.enqueue()
    drain(app, queues="default")
    drain(app)

    assert job.result(AT_MOST) == "gone"
    assert states(db, "slow") == ["cancelled"]


def test_a_child_takes_no_key(app: Rowlock) -> None:
    @app.task(name="child")
    def child() -> None: ...

    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        call: Any = child.using(key="k").bind()
        with pytest.raises(WorkflowError, match="needs none: leave it out"):
            await ctx.run(call)

    play(app, w.enqueue())
