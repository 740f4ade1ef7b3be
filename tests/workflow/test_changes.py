"""Code that has changed under a workflow: it waits for code that fits, with a sentence, and nothing is written."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from rowlock import Cancel, Rowlock
from rowlock.testing import drain
from rowlock.workflow.context import Context
from tests.depth import deep
from tests.rows import Db
from tests.worker.working import one
from tests.workflow.playing import AT_MOST, HOUR, MOMENT, ended, everything, steps

Code = Callable[[Context], Coroutine[Any, Any, Any]]


async def a() -> str:
    return "a"


async def b(_given: int = 1) -> str:
    return "b"


async def began(ctx: Context) -> str:
    ctx.state["at"] = "began"
    await ctx.step(a)
    await ctx.step(b, 1)
    await asyncio.gather(_branch(ctx), _branch(ctx))
    await ctx.sleep(MOMENT)
    await ctx.signal("go")
    return "went"


async def _branch(ctx: Context) -> None:
    await ctx.step(b, 2)


async def renamed(ctx: Context) -> None:
    await ctx.using(name="alpha").step(a)
    await ctx.step(b, 1)


async def removed(ctx: Context) -> None:
    await ctx.step(b, 1)


async def inserted(ctx: Context) -> None:
    await ctx.step(a)
    await ctx.using(name="new").step(a)
    await ctx.step(b, 1)


async def reordered(ctx: Context) -> None:
    await ctx.step(b, 1)
    await ctx.step(a)


async def other_arguments(ctx: Context) -> None:
    await ctx.step(a)
    await ctx.step(b, 2)


async def other_kind(ctx: Context) -> None:
    await ctx.step(a)
    await ctx.signal("b")


async def other_delay(ctx: Context) -> None:
    await ctx.step(a)
    await ctx.step(b, 1)
    await asyncio.gather(_branch(ctx), _branch(ctx))
    await ctx.sleep(HOUR)


async def shorter(ctx: Context) -> None:
    await ctx.step(a)


async def in_a_branch(ctx: Context) -> None:
    async def branch() -> None:
        await ctx.using(name="c").step(b, 2)

    await ctx.step(a)
    await ctx.step(b, 1)
    await asyncio.gather(_branch(ctx), branch())


async def swallowed(ctx: Context) -> str:
    ctx.state["at"] = "elsewhere"
    try:
        await ctx.step(b, 1)
    except BaseException:  # as some people write
        await ctx.using(name="what else").step(a)
    return "went on regardless"


CHANGES = [
    (renamed, "at call 1 the code calls step 'alpha', and the record has step 'a' (done)"),
    (removed, "at call 1 the code calls step 'b' as call 1, and the record has step 'b' (done) as call 2"),
    (inserted, "at call 2 the code calls step 'new', and the record has step 'b' (done)"),
    (reordered, "at call 1 the code calls step 'b' as call 1, and the record has step 'b' (done) as call 2"),
    (other_arguments, "at call 2 the code calls step 'b' with [2], and the record has it with [1]"),
    (other_kind, "at call 2 the code calls signal 'b' as call 2, and the record has step 'b' (done) as call 2"),
    (other_delay, 'with "1:00:00", and the record has it with "0:00:00.000001"'),
    (shorter, "at call 2 the code has come to its end, and the record goes on with step 'b' (done)"),
    (in_a_branch, "at call 1 of branch '2/' the code calls step '2/c', and the record has step '2/b' (done)"),
    (swallowed, "at call 1 the code calls step 'b'"),
]


def deploy(url: str, code: Code) -> Rowlock:
    app = Rowlock(url)
    app.workflow(name="w", fails_on=ValueError)(code)
    return app


@pytest.mark.parametrize(
    ("code", "difference"),
    [*CHANGES[:3], *(pytest.param(*change, marks=deep) for change in CHANGES[3:])],
    ids=[code.__name__ for code, _ in CHANGES],
)
def test_code_that_differs_blocks_it_and_the_right_code_takes_it_up(
    url: str, db: Db, code: Code, difference: str
) -> None:
    with deploy(url, began) as right:
        job = right.enqueue("w")
        drain(right)
    before = everything(db)
    right.signal(job, "go")  # which is what has it looked at again
    db.execute("delete from rowlock.signals")

    with deploy(url, code) as changed:
        first, again = ended(drain(changed)), ended(drain(changed))
    blocked = everything(db)
    row = db.execute("select state, waits_for, reason from rowlock.jobs").fetchall()
    with deploy(url, began) as right:
        right.signal(job, "go")
        drain(right)
        result = right.jobs.get(job.id).result(AT_MOST)

    assert first == ["blocked"]
    assert again in (["blocked"], [])
    assert blocked == before
    assert row[0][:2] == ("waiting", "code")
    assert row[0][2].startswith("changed code: ")
    assert difference in row[0][2]
    assert "Deploy the code that it began with" in row[0][2]
    assert result == "went"


def test_what_a_step_was_given_counts_only_where_it_can_be_told(app: Rowlock, url: str) -> None:
    """A value that is no JSON, or a long one, is not kept, and so not compared."""

    async def use(_thing: object) -> str:
        return "used"

    def declared(app: Rowlock, things: list[object]) -> None:
        @app.workflow(name="w")
        async def w(ctx: Context) -> None:
            for thing in things:
                await ctx.step(use, thing)
            await ctx.signal("go")

    declared(app, [{1, 2}, "x" * 20_000])
    job = app.enqueue("w")
    drain(app)
    with Rowlock(url) as other:
        declared(other, [{3}, "y" * 20_000])
        other.signal(job, "go")
        drain(other)

    assert app.jobs.get(job.id).record().state == "succeeded"


def test_one_that_waits_for_code_is_not_woken_by_signals_and_has_them_when_it_goes_on(url: str, db: Db) -> None:
    with deploy(url, began) as right:
        job = right.enqueue("w")
        drain(right)
    with deploy(url, renamed) as changed:
        changed.signal(job, "go")
        drain(changed)
        changed.signal(job, "go")
        waits = one(db, "select waits_for from rowlock.jobs")
    with deploy(url, began) as right:
        drain(right)

        assert waits == "code"
        assert right.jobs.get(job.id).result(AT_MOST) == "went"


# Versions


def versions(app: Rowlock, *numbers: int) -> dict[int, Any]:
    def declared(version: int) -> Any:  # noqa: ANN401  a workflow
        @app.workflow(name="w", version=version)
        async def w(ctx: Context, order: int) -> list[Any]:
            ctx.state.setdefault("began", ctx.version)
            ctx.state["order"] = order
            await ctx.using(name=f"step of {version}").step(lambda: None)
            await ctx.signal("go")
            return [ctx.version, dict(ctx.state)]

        return w

    return {number: declared(number) for number in numbers}


def test_versions_run_side_by_side_each_by_its_own_code(app: Rowlock) -> None:
    declared = versions(app, 1, 2)
    jobs = [declared[number].enqueue(number) for number in (1, 2)]
    drain(app)
    for job in jobs:
        app.signal(job, "go")
    drain(app)

    assert [job.result(AT_MOST) for job in jobs] == [[1, {"began": 1, "order": 1}], [2, {"began": 2, "order": 2}]]


def test_a_version_that_nobody_has_is_left_alone_and_visible(url: str, db: Db) -> None:
    with Rowlock(url) as old:
        job = versions(old, 1)[1].enqueue(7)
        drain(old)
        old.signal(job, "go")
    with Rowlock(url) as new:
        versions(new, 2)
        blocked = ended(drain(new))
        reason = one(db, "select reason from rowlock.jobs")
    with Rowlock(url) as old:
        versions(old, 1)
        drain(old)

        assert blocked == ["blocked"]
        assert "unknown version 1 of workflow 'w'" in reason
        assert old.jobs.get(job.id).result(AT_MOST) == [1, {"began": 1, "order": 7}]


def test_state_is_carried_over_by_migrations_one_after_the_other(url: str, db: Db) -> None:
    with Rowlock(url) as old:
        job = versions(old, 1)[1].enqueue(7)
        drain(old)
    with Rowlock(url) as new:
        declared = versions(new, 2, 3)
        declared[2].migration(1)(lambda state: {**state, "order": state["order"] * 10, "by": ["1 to 2"]})
        declared[3].migration(2)(lambda state: {**state, "by": [*state["by"], "2 to 3"]})
        new.signal(job, "go")
        drained = ended(drain(new))

        assert drained == ["restarted", "succeeded"]
        assert new.jobs.get(job.id).result(AT_MOST) == [3, {"began": 1, "order": 7, "by": ["1 to 2", "2 to 3"]}]
        assert [key for key, _ in steps(new, new.jobs.get(job.id))] == ["start", "step of 3", "go"]
        assert one(db, "select version from rowlock.history") == 3


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (KeyError("lines"), "KeyError: 'lines'"),
        (Cancel("x"), "rowlock.errors.Cancel: x"),
        (SystemExit("x"), "SystemExit: x"),
    ],
    ids=["an error", "a cancel", "an exit"],
)
def test_a_migration_that_fails_blocks_it_and_nothing_is_lost(
    url: str, db: Db, error: BaseException, said: str
) -> None:
    def broken(_state: dict[str, Any]) -> dict[str, Any]:
        raise error

    with Rowlock(url) as old:
        job = versions(old, 1)[1].enqueue(7)
        drain(old)
    before = everything(db)
    with Rowlock(url) as new:
        versions(new, 2)[2].migration(1)(broken)
        new.signal(job, "go")
        drain(new)
    db.execute("delete from rowlock.signals")

    assert everything(db) == before
    assert one(db, "select reason from rowlock.jobs") == (
        f"the state of version 1 could not be carried over to version 2: {said}; fix the migration"
    )
