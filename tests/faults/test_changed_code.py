"""Recorded histories against code that was changed in one place (G11, G13, T39): blocked, and nothing is written.

Each history is that of a program that nobody wrote: steps, moments, sleeps and branches, in an order that was drawn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import hypothesis
from hypothesis import strategies as st

from rowlock import Context, Rowlock
from rowlock.testing import drain
from tests.depth import deep
from tests.faults.seeds import Trial
from tests.rows import Db
from tests.workflow.playing import AT_MOST, MOMENT, ended

EXAMPLES = 40

# A call of the code: a step of that name with that argument, a moment, a sleep; or branches, each with its own calls.
Op = tuple[Any, ...]
Program = tuple[Op, ...]

SIMPLE = st.one_of(
    st.tuples(st.just("step"), st.sampled_from("abc"), st.integers(0, 1)), st.just(("now",)), st.just(("sleep",))
)
BRANCHES = st.tuples(
    st.just("gather"), st.lists(st.lists(SIMPLE, min_size=1, max_size=2).map(tuple), min_size=2, max_size=3).map(tuple)
)
PROGRAMS = st.lists(st.one_of(SIMPLE, SIMPLE, BRANCHES), min_size=1, max_size=4).map(tuple)


def deployed(url: str, program: Program, calls: list[tuple[str, int]]) -> Rowlock:
    """An app whose workflow is the program, and then waits for a signal."""
    app = Rowlock(url)

    async def step(name: str, given: int) -> str:
        calls.append((name, given))
        return f"{name}{given}, call {len(calls)}"

    async def play(ctx: Context, ops: Program) -> list[Any]:
        return [await one(ctx, op) for op in ops]

    async def one(ctx: Context, op: Op) -> object:
        kind, *given = op
        if kind == "gather":
            return list(await asyncio.gather(*[play(ctx, ops) for ops in given[0]]))
        if kind == "step":
            return await ctx.using(name=given[0]).step(step, given[0], given[1])
        if kind == "now":
            return str(ctx.now())
        await ctx.sleep(MOMENT)
        return None

    @app.workflow(name="w")
    async def w(ctx: Context) -> list[Any]:
        results = await play(ctx, program)
        await ctx.signal("go")
        return results

    return app


def changed(data: st.DataObject, program: Program) -> Program:
    """The same program but for one place: something is removed, inserted, replaced, or comes before its neighbour."""
    at = data.draw(st.integers(0, len(program) - 1), label="at")
    ways: list[Callable[[], Program]] = [
        lambda: (*program[:at], *program[at + 1 :]),
        lambda: (*program[:at], data.draw(SIMPLE, label="new"), *program[at:]),
        lambda: (*program[:at], data.draw(SIMPLE, label="instead"), *program[at + 1 :]),
        lambda: (*program[:at], *reversed(program[at : at + 2]), *program[at + 2 :]),
    ]
    if program[at][0] == "gather":
        ways.append(lambda: (*program[:at], ("gather", program[at][1][::-1]), *program[at + 1 :]))
    return data.draw(st.sampled_from(ways), label="way")()


def branches(program: Program) -> dict[int, Program]:
    """The calls of each branch; those of the code itself are branch 0."""
    others = [ops for kind, *given in program if kind == "gather" for ops in given[0]]
    return {0: tuple(op for op in program if op[0] != "gather"), **dict(enumerate(others, 1))}


def differs_at_ends(program: Program, other: Program) -> bool:
    """Whether code only has less, or more, at the ends of its branches.

    That is no change which could be seen: a branch may be cut off by another one, and may not have come to its end.
    """
    had, has = branches(program), branches(other)
    return had[0] == has[0] and all(
        one == another for number, ops in has.items() for one, another in zip(had.get(number, ()), ops, strict=False)
    )


def remembered(db: Db) -> list[tuple[Any, ...]]:
    """All steps, as they stand in the table."""
    return db.execute("select step::text from rowlock.steps as step order by job, key").fetchall()


@deep
def test_a_history_meets_other_code_and_is_blocked_or_the_same_code_and_goes_on(url: str, db: Db, trial: Trial) -> None:
    met = {"blocked": 0, "same": 0}

    @hypothesis.seed(trial.counts["seed"])
    @hypothesis.settings(
        max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(hypothesis.HealthCheck)
    )
    @hypothesis.given(PROGRAMS, st.data())
    def meet(program: Program, data: st.DataObject) -> None:
        db.execute("delete from rowlock.jobs; delete from rowlock.steps; delete from rowlock.signals")
        calls: list[tuple[str, int]] = []
        with deployed(url, program, calls) as app:
            job = app.enqueue("w")
            drain(app)
            before, done = remembered(db), list(calls)
            app.signal(job, "go")
        other = changed(data, program)
        hypothesis.assume(other == program or not differs_at_ends(program, other))
        with deployed(url, other, calls) as app:
            outcomes = ended(drain(app))
        assert calls == done, "a step was run again, or a new one in the place of another"
        if other == program:
            met["same"] += 1
            assert outcomes[-1] == "succeeded"
            return
        met["blocked"] += 1
        assert outcomes == ["blocked"], f"{program} met {other}"
        assert remembered(db) == before
        with deployed(url, program, calls) as app:
            drain(app)
            assert len(app.jobs.get(job.id).result(AT_MOST)) == len(program)
        assert calls == done

    meet()
    assert met["blocked"] > 0
    trial.count(**met)
