"""What workflows cannot do, in words; and code that does what it should not: it is not lost, and nothing hangs."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

import pytest

from rowlock import Rowlock
from rowlock.errors import JobFailed, StepFailed, WorkflowError
from rowlock.model.workflow.step import MOST_STEPS
from rowlock.testing import drain
from rowlock.workflow import execution as engine
from rowlock.workflow.context import Context
from tests.rows import Db
from tests.worker.working import one
from tests.workflow.playing import AT_MOST, HOUR, MOMENT, ONCE, blocked, ended, play, steps


async def nothing() -> None: ...


# Refused


VERBS: dict[str, Callable[[Context], object]] = {
    "ctx.step": lambda ctx: ctx.step(nothing),
    "ctx.transaction": lambda ctx: ctx.transaction(print),
    "ctx.sleep": lambda ctx: ctx.sleep(HOUR),
    "ctx.signal": lambda ctx: ctx.signal("go"),
    "ctx.any": lambda ctx: ctx.any(),
    "ctx.undo": lambda ctx: ctx.undo(print),
    "ctx.now": lambda ctx: ctx.now(),
    "ctx.random": lambda ctx: ctx.random(),
    "ctx.patched": lambda ctx: ctx.patched("x"),
    "ctx.restart": lambda ctx: ctx.restart(),
}


def test_no_verb_can_be_used_inside_of_a_step(app: Rowlock) -> None:
    @app.task(name="child")
    def child() -> None: ...

    told: dict[str, list[str]] = {}
    verbs: dict[str, Callable[[Context], object]] = {**VERBS, "ctx.run": lambda ctx: ctx.run(child.bind())}

    def use(ctx: Context, where: str) -> None:
        for name, verb in verbs.items():
            try:
                verb(ctx)
            except WorkflowError as error:
                told.setdefault(where, []).append(str(error))
            else:
                told.setdefault(where, []).append(f"{name} was not refused")

    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        async def on_loop() -> None:
            use(ctx, "on the loop")

        await ctx.step(on_loop)
        await ctx.using(name="in a thread").step(lambda: use(ctx, "in a thread"))

    play(app, w.enqueue())

    sentences = [
        f"{name}(…) inside of a step cannot be remembered; call it in the workflow's own code" for name in verbs
    ]
    assert told == {"on the loop": sentences, "in a thread": sentences}


def test_names_that_could_not_be_told_from_branches_and_numbers_are_refused(app: Rowlock) -> None:
    @app.workflow(name="w")
    async def w(ctx: Context) -> list[str]:
        told: list[str] = []
        calls: list[Callable[[], object]] = [
            lambda: ctx.step(lambda: None),
            lambda: ctx.using(name="a/b").step(nothing),
            lambda: ctx.using(name="a#2").step(nothing),
            lambda: ctx.signal("a\nb"),
            lambda: ctx.using(name="").step(nothing),
            lambda: ctx.using(name="ü" * 101).step(nothing),
        ]
        for call in calls:
            try:
                call()
            except WorkflowError as error:
                told.append(str(error))
        return told

    told = play(app, w.enqueue())

    assert told[0] == "a lambda has no name to be remembered by; say ctx.using(name=…).step(…)"
    assert told[1] == "'a/b' cannot name a step or a signal: use printable characters other than / and #"
    assert "longer than 200 bytes" in told[5]
    assert len(told) == 6


def test_a_context_is_its_own_codes(app: Rowlock) -> None:
    contexts: list[Context] = []

    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        contexts.append(ctx)

    play(app, w.enqueue())

    async def elsewhere() -> None:
        await contexts[0].step(nothing)

    with pytest.raises(WorkflowError, match="belongs to its own code"):
        asyncio.run(elsewhere())


# Limits


def test_there_is_a_most_that_a_step_may_answer(app: Rowlock) -> None:
    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        def huge() -> str:
            return "x" * 20_000_000

        await ctx.step(huge)

    job = w.enqueue()
    drain(app)

    with pytest.raises(JobFailed, match=r"step 'huge' failed \(1 attempt\).*PayloadTooLarge"):
        job.result(AT_MOST)


@pytest.mark.parametrize("what", ["steps", "children", "a wait"])
def test_there_is_a_most_that_a_workflow_may_remember(app: Rowlock, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "MOST_STEPS", 3)
    undone: list[str] = []

    @app.task(name="child")
    def child() -> None: ...

    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        ctx.undo(undone.append, "it")
        if what == "children":
            await ctx.map([child.bind() for _ in range(4)])
        for _ in range(3):
            await ctx.step(nothing)
        if what == "a wait":
            await ctx.signal("go")
        await ctx.step(nothing)

    job = w.enqueue()
    drain(app)

    assert re.search(r"has 4 steps, and 3 is the most .* ctx.restart\(…\)", blocked(job))
    assert undone == []
    assert MOST_STEPS == 10_000


# Code that does what it should not


def test_code_that_goes_on_when_it_is_stopped_at_a_wait_changes_nothing(app: Rowlock) -> None:
    """It parks by being cancelled there; what it makes of that is not its outcome."""
    did: list[str] = []

    @app.workflow(name="w")
    async def w(ctx: Context, how: str) -> str:
        try:
            await ctx.signal("go")
        except asyncio.CancelledError:
            if how == "returns":
                return "early"
            if how == "raises":
                raise ValueError("no") from None
            if how == "goes on":
                await ctx.using(name="late").step(lambda: did.append("late"))
        finally:
            if how == "cleans up":
                await ctx.using(name="clean up").step(lambda: did.append("clean up"))
        return "done"

    jobs = {how: w.enqueue(how) for how in ("returns", "raises", "goes on", "cleans up")}
    first = ended(drain(app))
    early = list(did)
    for job in jobs.values():
        app.signal(job, "go")
    drain(app)

    assert first == ["parked"] * 4
    assert early == []
    assert [job.result(AT_MOST) for job in jobs.values()] == ["done"] * 4
    assert did == ["clean up"]


def test_a_task_that_nobody_waits_for_ends_with_its_workflow(app: Rowlock, db: Db) -> None:
    left: list[asyncio.Task[Any]] = []
    did: list[str] = []
    over = asyncio.Event()

    async def hang() -> None:
        await asyncio.Event().wait()

    @app.workflow(name="w")
    async def w(ctx: Context) -> str:
        async def in_a_step() -> None:
            await ctx.step(hang)

        async def at_a_wait() -> None:
            await ctx.signal("never")

        async def elsewhere() -> None:
            await over.wait()
            await ctx.using(name="late").step(lambda: did.append("late"))

        left.extend(asyncio.create_task(branch) for branch in (in_a_step(), at_a_wait(), elsewhere()))
        await ctx.step(nothing)
        over.set()
        return "gone"

    job = w.enqueue()

    assert play(app, job) == "gone"
    assert one(db, "select count(*) from rowlock.steps") == 0
    assert did == []
    assert [key for key, _ in steps(app, job)] == ["nothing"]


def test_an_error_that_code_makes_of_another_is_its_own_and_the_step_is_known(app: Rowlock, db: Db) -> None:
    async def fails() -> None:
        raise KeyError("no")

    @app.workflow(name="w", retry=ONCE, fails_on=[LookupError])
    async def w(ctx: Context) -> None:
        try:
            await ctx.step(fails)
        except StepFailed as error:
            raise LookupError("not there") from error

    job = w.enqueue()
    drain(app)

    with pytest.raises(JobFailed, match="LookupError: not there"):
        job.result(AT_MOST)
    failure = [step for step in app.workflows.show(job.id) if step.key == "failure"]
    assert failure[0].result["step"] == "fails"
    assert one(db, "select count(*) from rowlock.steps") == 0


def test_code_that_raises_cancelled_error_by_itself_is_blocked(app: Rowlock) -> None:
    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        await ctx.sleep(MOMENT)
        raise asyncio.CancelledError

    job = w.enqueue()
    drain(app)

    assert "CancelledError" in blocked(job)


def test_a_result_that_is_none_blocks_it_and_nothing_is_undone(app: Rowlock) -> None:
    undone: list[str] = []

    @app.workflow(name="w")
    async def w(ctx: Context) -> object:
        ctx.undo(undone.append, "it")
        return object()

    job = w.enqueue()
    drain(app)

    assert blocked(job).startswith("what it returns does not fit: ")
    assert undone == []
