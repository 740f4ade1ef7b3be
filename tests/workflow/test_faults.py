"""Faults of the code or of what is around it: they block a workflow, and fail and undo nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from rowlock import Cancel, Filter, Rowlock
from rowlock.db.thread_connection import ReconnectingSyncConnection
from rowlock.errors import InvalidOption, JobFailed, RetryAfter, StepFailed
from rowlock.testing import drain, travel
from rowlock.worker.upkeep import unblock
from rowlock.workflow.context import Context
from tests.depth import deep
from tests.rows import Db
from tests.waiting import auntil
from tests.worker.working import one
from tests.workflow.playing import AT_MOST, MOMENT, ONCE, blocked, ended, play, steps
from tests.workflow.test_undoing import Shop

SOON = timedelta(seconds=5)


def due(db: Db) -> timedelta:
    """In how long a blocked workflow is tried again."""
    waits: timedelta = one(db, "select run_at - rowlock.now() from rowlock.jobs where waits_for = 'code'")
    return waits


# What it may fail of


class Declined(Exception):
    """An error of the business."""


class DeclinedForGood(Declined):
    """One kind of it."""


@pytest.mark.parametrize("declared", [Declined, [KeyError, Declined], (Declined,)])
@pytest.mark.parametrize(
    "error", [Declined("no"), DeclinedForGood("no"), ExceptionGroup("two", [Declined("a"), DeclinedForGood("b")])]
)
def test_an_error_that_is_declared_fails_it_and_it_is_undone(app: Rowlock, declared: Any, error: Exception) -> None:  # noqa: ANN401  as users may say
    shop = Shop()

    @app.workflow(name="w", fails_on=declared)
    async def w(ctx: Context) -> None:
        ctx.undo(shop.undo, "a")
        raise error

    job = w.enqueue()
    drain(app)

    with pytest.raises(JobFailed, match=type(error).__name__) as caught:
        job.result(AT_MOST)
    assert caught.value.reason == "raised"
    assert shop.log == ["undo a"]


def _failed() -> StepFailed:
    return StepFailed("charge", error_type="ValueError", message="no", remote_traceback="", attempts=1)


@pytest.mark.parametrize(
    "error",
    [
        KeyError("order"),
        Declined("no"),
        SystemExit(3),
        asyncio.CancelledError(),
        ExceptionGroup(
            "mixed", [StepFailed("s", error_type="E", message="", remote_traceback="", attempts=1), KeyError()]
        ),
    ],
    ids=lambda error: type(error).__name__,
)
def test_any_other_error_blocks_it_and_undoes_nothing(app: Rowlock, db: Db, error: BaseException) -> None:
    shop = Shop()

    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        await ctx.step(shop.do, "a")
        ctx.undo(shop.undo, "a")
        raise error

    job = w.enqueue()

    assert ended(drain(app)) == ["blocked"]
    assert blocked(job).startswith("its code raised ")
    assert type(error).__name__ in blocked(job)
    assert type(error).__name__ in job.record().errors[-1].type
    assert shop.log == ["do a"]
    assert timedelta(0) < due(db) <= SOON


@pytest.mark.parametrize("how", ["step", "child"])
def test_callers_and_filters_see_the_error_that_it_failed_of(app: Rowlock, how: str) -> None:
    @app.task(name="declines", retry=ONCE)
    async def declines() -> None:
        raise Declined("the card")

    @app.workflow(name="w", retry=ONCE)
    async def w(ctx: Context) -> None:
        await (ctx.step(declines) if how == "step" else ctx.run(declines.bind()))

    job = w.enqueue()
    drain(app)

    with pytest.raises(JobFailed, match=r"failed .*: the card") as caught:
        job.result(AT_MOST)
    assert caught.value.error_type == f"{__name__}.Declined"
    assert [one.id for one in app.jobs.list(Filter(task="w", error=f"{__name__}.Declined")).records] == [job.id]


@pytest.mark.parametrize("declared", [3, "ValueError", [ValueError("no")], [int]])
def test_what_is_declared_are_classes_of_errors(app: Rowlock, declared: Any) -> None:  # noqa: ANN401  as users may say
    with pytest.raises(InvalidOption, match="must be a class of errors, or several"):
        app.workflow(name="w", fails_on=declared)(_nothing)


async def _nothing(ctx: Context) -> None: ...


def test_retry_after_in_its_code_is_not_a_fault(app: Rowlock) -> None:
    asked: list[bool] = []

    @app.workflow(name="w")
    async def w(ctx: Context) -> str:
        if not asked:
            asked.append(True)
            raise RetryAfter(MOMENT)
        return "later"

    assert play(app, w.enqueue()) == "later"


# Where the record goes on


def test_an_error_where_the_record_goes_on_is_of_changed_code(url: str, db: Db) -> None:
    """The deploy that knew no limit for an order which had been charged: it was failed, and not refunded."""
    shop = Shop()

    def deploy(limits: dict[int, int] | None) -> Rowlock:
        app = Rowlock(url)

        @app.workflow(name="checkout", fails_on=LookupError)
        async def checkout(ctx: Context, order: int) -> str:
            if limits is not None and limits[order]:
                pass
            ctx.undo(shop.undo, "charge")
            await ctx.step(shop.do, "charge")
            await ctx.signal("packed")
            return "shipped"

        return app

    with deploy(None) as right:
        job = right.enqueue("checkout", order=7)
        drain(right)
        right.signal(job, "packed")
    with deploy({8: 100}) as wrong:
        drain(wrong)
        assert blocked(job).startswith("changed code: ")
        assert "the code raises KeyError: 7, and the record goes on with step 'do' (done)" in blocked(job)
    with deploy({7: 100}) as fixed:
        assert play(fixed, fixed.jobs.get(job.id)) == "shipped"
    assert shop.log == ["do charge"]
    assert one(db, "select count(*) from rowlock.history where state = 'succeeded'") == 1


@pytest.mark.parametrize("how", ["cancel", "restart"])
def test_an_end_where_the_record_goes_on_is_of_changed_code_too(url: str, how: str) -> None:
    shop = Shop()

    def deploy(*, early: bool) -> Rowlock:
        app = Rowlock(url)

        @app.workflow(name="w")
        async def w(ctx: Context) -> None:
            if early and how == "cancel":
                raise Cancel("no more of these")
            if early:
                ctx.restart()
            ctx.undo(shop.undo, "a")
            await ctx.step(shop.do, "a")
            await ctx.signal("go")

        return app

    with deploy(early=False) as right:
        job = right.enqueue("w")
        drain(right)
        right.signal(job, "go")
    with deploy(early=True) as changed:
        drain(changed)

        assert "and the record goes on with step 'do' (done)" in blocked(job)
    assert shop.log == ["do a"]


def test_one_that_is_cancelled_waits_for_code_that_comes_to_its_undos(url: str) -> None:
    shop = Shop()

    def deploy(*, fixed: bool) -> Rowlock:
        app = Rowlock(url)

        @app.workflow(name="w")
        async def w(ctx: Context) -> None:
            if not fixed:
                raise KeyError("settings")
            await ctx.step(shop.do, "a")
            ctx.undo(shop.undo, "a")
            await ctx.signal("go")

        return app

    with deploy(fixed=True) as right:
        job = right.enqueue("w")
        drain(right)
    with deploy(fixed=False) as wrong:
        job.cancel()
        drain(wrong)
        assert "the code raises KeyError: 'settings'" in blocked(job)
    with deploy(fixed=True) as right:
        drain(right)
    assert shop.log == ["do a", "undo a"]


# Results that do not fit


def test_a_wrong_annotation_of_its_result_costs_nothing_but_a_deploy(url: str) -> None:
    """Charged, shipped, and then refunded because of `-> str`."""
    shop = Shop()

    def deploy(annotation: object) -> Rowlock:
        app = Rowlock(url)

        async def w(ctx: Context) -> Any:  # noqa: ANN401  set below
            await ctx.step(shop.do, "ship")
            ctx.undo(shop.undo, "ship")
            return 7

        w.__annotations__["return"] = annotation
        app.workflow(name="w")(w)
        return app

    with deploy(str) as wrong:
        job = wrong.enqueue("w")
        drain(wrong)
        assert blocked(job).startswith("what it returns does not fit: ")
    with deploy(int) as right:
        assert play(right, right.jobs.get(job.id)) == 7
    assert shop.log == ["do ship"]


def test_what_a_step_returned_is_kept_for_the_annotation_that_it_fits(url: str) -> None:
    calls: list[int] = []

    def deploy(annotation: object) -> Rowlock:
        app = Rowlock(url)

        def count(number: int) -> Any:  # noqa: ANN401  set below
            calls.append(number)
            return number

        count.__annotations__["return"] = annotation

        @app.workflow(name="w")
        async def w(ctx: Context) -> object:
            with suppress(Exception):  # it is not the code's to catch
                return [await ctx.step(count, 7)]
            return "caught"

        return app

    with deploy(str) as wrong:
        job = wrong.enqueue("w")
        drain(wrong)
        assert "what 'count' has returned is recorded, and does not fit" in blocked(job)
        assert steps(wrong, job) == [("count", "done")]
    with deploy(int) as right:
        assert play(right, right.jobs.get(job.id)) == [7]
    assert calls == [7]


def test_a_recorded_result_that_new_code_cannot_read_blocks_it(url: str) -> None:
    """A field without a default, added by a deploy: it was failed, and refunded."""

    class Parcel(BaseModel):
        weight: int

    class Insured(Parcel):
        value: int

    shop = Shop()

    def deploy(kind: type[Parcel]) -> Rowlock:
        app = Rowlock(url)

        async def pack() -> Any:  # noqa: ANN401  set below
            return kind(weight=3)

        pack.__annotations__["return"] = kind

        @app.task(name="send")
        async def send() -> Any:  # noqa: ANN401  set below
            return kind(weight=4)

        send.function.__annotations__["return"] = kind

        @app.workflow(name="w")
        async def w(ctx: Context, how: str) -> int:
            ctx.undo(shop.undo, "it")
            parcel: Parcel = await (ctx.run(send.bind()) if how == "child" else ctx.step(pack))
            await ctx.signal("go")
            return parcel.weight

        return app

    with deploy(Parcel) as right:
        jobs = [right.enqueue("w", how=how) for how in ("step", "child")]
        drain(right)
        for job in jobs:
            right.signal(job, "go")
    with deploy(Insured) as wrong:
        drain(wrong)
        assert ["Field required" in blocked(job) or "value" in blocked(job) for job in jobs] == [True, True]
    with deploy(Parcel) as right:
        drain(right)
        assert [right.jobs.get(job.id).result(AT_MOST) for job in jobs] == [3, 4]
    assert shop.log == []


# What is around it


@pytest.mark.parametrize("when", ["before", "after"])
def test_what_is_around_it_may_fail_and_it_goes_on_when_that_has_passed(app: Rowlock, when: str) -> None:
    shop, broken = Shop(), [True]

    @app.around
    @asynccontextmanager
    async def pool(_job: object) -> AsyncIterator[None]:
        if broken and when == "before":
            raise ConnectionError("the pool is exhausted")
        yield
        if broken:
            raise ConnectionError("the pool is exhausted")

    @app.workflow(name="w", fails_on=ConnectionError)
    async def w(ctx: Context) -> str:
        await ctx.step(shop.do, "a")
        ctx.undo(shop.undo, "a")
        return "done"

    job = w.enqueue()
    drain(app)
    assert blocked(job) == "what is around its code raised ConnectionError: the pool is exhausted"
    broken.clear()
    with travel(app, SOON):
        drain(app)

    assert job.result(AT_MOST) == "done"
    assert shop.log == ["do a"]


def test_an_error_that_is_swallowed_around_the_code_is_the_codes_all_the_same(app: Rowlock) -> None:
    @app.around
    @asynccontextmanager
    async def quiet(_job: object) -> AsyncIterator[None]:
        with suppress(Exception):
            yield

    def fails() -> None:
        raise ValueError("no")

    @app.workflow(name="w", retry=ONCE)
    async def w(ctx: Context, how: str) -> None:
        if how == "fault":
            raise KeyError("no")
        await ctx.step(fails)

    job, failed = w.enqueue("fault"), w.enqueue("failure")
    drain(app)

    assert blocked(job).startswith("its code raised KeyError")
    with pytest.raises(JobFailed, match="step 'fails' failed"):
        failed.result(AT_MOST)


def test_one_that_is_cancelled_is_undone_though_what_is_around_it_fails_meanwhile(app: Rowlock) -> None:
    shop, broken = Shop(), list[bool]()

    @app.around
    @asynccontextmanager
    async def pool(_job: object) -> AsyncIterator[None]:
        if broken:
            raise ConnectionError("the pool is exhausted")
        yield

    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        await ctx.step(shop.do, "a")
        ctx.undo(shop.undo, "a")
        await ctx.signal("go")

    job = w.enqueue()
    drain(app)
    broken.append(True)
    job.cancel()
    drain(app)
    assert blocked(job).startswith("what is around its code raised")
    broken.clear()
    with travel(app, SOON):
        drain(app)

    assert shop.log == ["do a", "undo a"]
    assert job.record().state == "cancelled"


# Tried again


def test_it_is_tried_again_after_twice_as_long_each_time_until_it_gets_on(app: Rowlock, db: Db) -> None:
    faults = [True, True, True]
    waits = []

    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        if faults:
            raise KeyError(faults.pop())
        await ctx.step(_fine)
        raise KeyError("later")

    w.enqueue()
    at = timedelta(0)
    for _ in range(5):
        with travel(app, at):
            drain(app)
            waits.append(round(due(db).total_seconds()))
        at += timedelta(seconds=waits[-1])

    assert waits == [5, 10, 20, 5, 10]


async def _fine() -> None: ...


def test_the_longest_pause_is_a_quarter_of_an_hour(app: Rowlock, db: Db) -> None:
    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        raise KeyError("no")

    w.enqueue()
    db.execute("update rowlock.jobs set failures = 2000000000")
    drain(app)

    assert timedelta(minutes=14) < due(db) <= timedelta(minutes=15)


def test_a_worker_makes_it_ready_again_when_its_time_has_come_and_not_before(app: Rowlock, db: Db, url: str) -> None:
    fixed: list[bool] = []

    @app.workflow(name="w")
    async def w(ctx: Context) -> str:
        if not fixed:
            raise KeyError("no")
        return "well"

    job = w.enqueue()
    drain(app)
    fixed.append(True)
    with closing(ReconnectingSyncConnection(url, "rowlock", name="test")) as connection:
        unblock(connection)
        assert blocked(job)
        with travel(app, SOON):
            unblock(connection)
            assert one(db, "select state from rowlock.jobs") == "ready"

            assert play(app, job) == "well"


@deep
def test_a_fleet_tries_it_again_by_itself(app: Rowlock, db: Db) -> None:
    fixed: list[bool] = []

    @app.workflow(name="w")
    async def w(ctx: Context) -> str:
        if not fixed:
            raise KeyError("no")
        return "well"

    async def story() -> str:
        async with app, app.worker():
            job = await w.aenqueue()
            await auntil(lambda: one(db, "select waits_for from rowlock.jobs") == "code", what="it is blocked")
            fixed.append(True)
            return await job.aresult(timedelta(seconds=60))

    assert asyncio.run(story()) == "well"


def test_new_code_takes_it_up_at_once(url: str) -> None:
    def deploy(*, fixed: bool) -> Rowlock:
        app = Rowlock(url)

        @app.workflow(name="w")
        async def w(ctx: Context) -> str:
            if not fixed:
                raise KeyError("no")
            return "well"

        return app

    with deploy(fixed=False) as wrong:
        job = wrong.enqueue("w")
        drain(wrong)
        assert blocked(job)
    with deploy(fixed=True) as right:
        drain(right)

        assert right.jobs.get(job.id).result(AT_MOST) == "well"


def test_explain_says_what_was_raised_and_when_it_is_tried_again(app: Rowlock) -> None:
    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        raise KeyError("order")

    job = w.enqueue()
    drain(app)

    found = job.explain()

    assert (found.state, found.code) == ("waiting", "fault")
    assert found.says.startswith("Its code raised KeyError: 'order'. Nothing has failed or is undone because of that; ")
    assert "it is tried again at " in found.says
    assert "or name the error in fails_on=" in (found.do or "")
