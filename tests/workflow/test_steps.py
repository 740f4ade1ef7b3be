"""Steps: each is run once, its result is remembered before anything after it runs, and is the same ever after."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import psycopg
import pytest
from pydantic import BaseModel

from rowlock import Rowlock
from rowlock.errors import StepFailed
from rowlock.testing import drain
from rowlock.types import CurrentJob
from rowlock.workflow.context import Context
from tests.rows import Db
from tests.worker.working import one
from tests.workflow.playing import AT_MOST, AT_ONCE, MOMENT, ended, kept, play, steps


class Calls(Counter[str]):
    """Counts calls of steps by a name that they are given."""

    async def note(self, name: str) -> str:
        self[name] += 1
        return f"{name} {self[name]}"

    def note_in_thread(self, name: str) -> str:
        self[name] += 1
        return f"{name} {self[name]}"


def test_a_step_that_is_recorded_never_runs_again_however_often_its_workflow_does(app: Rowlock) -> None:
    calls, attempts = Calls(), []

    @app.workflow(name="w")
    async def w(ctx: Context) -> list[str]:
        attempts.append(1)
        answers = [await ctx.step(calls.note, "a")]
        for _ in range(3):
            await ctx.sleep(MOMENT)
            answers.append(await ctx.step(calls.note_in_thread, "b"))
        return answers

    job = w.enqueue()
    drained = drain(app)

    assert job.result(AT_MOST) == ["a 1", "b 1", "b 2", "b 3"]
    assert ended(drained) == ["parked"] * 3 + ["succeeded"]
    assert len(attempts) == 4
    assert calls == {"a": 1, "b": 3}


def test_its_result_is_recorded_before_the_next_statement_runs(app: Rowlock, url: str) -> None:
    seen: list[Any] = []

    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        for number in range(3):
            await ctx.using(name="count").step(int, number * 10)
            with psycopg.connect(url) as other:
                seen.append(other.execute("select key, value::text from rowlock.steps order by key").fetchall())

    play(app, w.enqueue())

    rows = [("count", "0"), ("count#2", "10"), ("count#3", "20")]
    assert seen == [rows[:1], rows[:2], rows]


def test_it_is_known_by_its_name_and_how_often_that_was_called(app: Rowlock) -> None:
    calls = Calls()

    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        await ctx.step(calls.note, "x")
        await ctx.step(calls.note, "x")
        await ctx.using(name="third time").step(calls.note, "x")
        await ctx.step(calls.note, "x")

    job = w.enqueue()
    play(app, job)

    keys = ["note", "note#2", "third time", "note#3"]
    assert steps(app, job) == [(key, "done") for key in keys]
    assert [kept(app, job, key) for key in keys] == ["x 1", "x 2", "x 3", "x 4"]


# The same value


class Basket(BaseModel):
    lines: list[str]
    total: Decimal


@dataclass
class Point:
    x: int
    at: datetime


def a_point() -> Point:
    return Point(1, datetime(2026, 3, 1, 8, 30, 0, 123456, tzinfo=UTC))


def a_basket() -> Basket:
    return Basket(lines=["a"], total=Decimal("1.10"))


def a_tuple() -> tuple[int, str]:
    return (1, "x")


def a_decimal() -> Decimal:
    return Decimal("0.10")


def a_moment() -> datetime:
    return datetime(2026, 3, 29, 1, 30, tzinfo=UTC)


def a_dict() -> dict[date, timedelta]:
    return {date(2026, 3, 1): timedelta(seconds=1.5)}


def an_id() -> UUID:
    return UUID(int=7)


def nothing() -> None:
    return None


def something() -> Any:  # noqa: ANN401  it is not told
    return {"a": [1, None, 'ü \\ " ']}


VALUES: list[Callable[[], Any]] = [a_point, a_basket, a_tuple, a_decimal, a_moment, a_dict, an_id, nothing, something]


def test_a_result_is_the_same_when_it_is_made_and_when_it_is_remembered(app: Rowlock) -> None:
    seen: list[list[Any]] = []

    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        seen.append([await ctx.step(value) for value in VALUES])
        await ctx.sleep(MOMENT)

    play(app, w.enqueue())

    assert seen == [[value() for value in VALUES]] * 2
    assert [[type(value) for value in attempt] for attempt in seen] == [[type(value()) for value in VALUES]] * 2


def test_what_would_not_come_back_the_same_is_refused_where_it_was_made(app: Rowlock) -> None:
    caught: list[StepFailed] = []

    def untyped():  # type: ignore[no-untyped-def]  # as users may write them
        return (1, (2,))

    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        try:
            await ctx.step(untyped)
        except StepFailed as error:
            caught.append(error)
        await ctx.sleep(MOMENT)

    play(app, w.enqueue())

    assert [error.error_type for error in caught] == ["rowlock.errors.InvalidArguments"] * 2
    assert "tuple" in caught[0].message
    assert caught[0].attempts == 1


# Side by side


def test_steps_of_a_gather_run_side_by_side_and_keep_their_places(app: Rowlock) -> None:
    calls, both = Calls(), asyncio.Event()

    async def first() -> str:
        await both.wait()
        return await calls.note("first")

    async def second() -> str:
        both.set()
        return await calls.note("second")

    @app.workflow(name="w")
    async def w(ctx: Context) -> list[str]:
        answers = list(await asyncio.gather(ctx.step(first), ctx.step(second), ctx.step(calls.note_in_thread, "third")))
        await ctx.sleep(MOMENT)
        return answers

    assert play(app, w.enqueue()) == ["first 1", "second 1", "third 1"]
    assert calls == {"first": 1, "second": 1, "third": 1}


@pytest.mark.parametrize("begin", ["gather", "task group"])
def test_branches_that_end_in_another_order_do_not_exchange_their_results(app: Rowlock, begin: str) -> None:
    """At first the last one is the quickest; from the record all are answered at once, the first one first."""
    order: list[int] = []
    turn = [asyncio.Event() for _ in range(4)]
    turn[3].set()

    async def fetch(number: int) -> int:
        await turn[number].wait()
        order.append(number)
        if number:
            turn[number - 1].set()
        return number

    async def twice() -> int:
        return 2

    @app.workflow(name="w")
    async def w(ctx: Context) -> list[list[int]]:
        async def branch(number: int) -> list[int]:
            fetched = await ctx.step(fetch, number)
            doubled = fetched * await ctx.step(twice)
            await ctx.sleep(MOMENT)
            return [number, fetched, doubled, await ctx.step(twice)]

        if begin == "gather":
            return list(await asyncio.gather(*[branch(number) for number in range(4)]))
        async with asyncio.TaskGroup() as group:
            branches = [group.create_task(branch(number)) for number in range(4)]
        return [one.result() for one in branches]

    job = w.enqueue()
    answers = play(app, job)

    assert order == [3, 2, 1, 0]
    assert answers == [[number, number, 2 * number, 2] for number in range(4)]
    assert {key for key, _ in steps(app, job)} == {
        f"{branch}/{name}" for branch in (1, 2, 3, 4) for name in ("fetch", "twice", "twice#2", "sleep")
    }


def test_branches_that_wait_for_each_other_are_known_by_who_was_begun_first(app: Rowlock) -> None:
    """What a branch does first may come after others: by that, those of the replay would be others."""
    order: list[str] = []
    second_fetched = asyncio.Event()

    async def fetch(name: str) -> str:
        if name == "a":
            await second_fetched.wait()
        else:
            second_fetched.set()
        return name

    async def use(_same: int) -> str:
        order.append("used")
        return f"use {len(order)}"

    @app.workflow(name="w")
    async def w(ctx: Context) -> list[str]:
        async def fetching(name: str) -> str:
            return await ctx.step(fetch, name)

        async def using(fetched: asyncio.Task[str]) -> str:
            name = await fetched
            return f"{name}: {await ctx.step(use, 1)}"

        a, b = asyncio.create_task(fetching("a")), asyncio.create_task(fetching("b"))
        answers = await asyncio.gather(using(a), using(b))
        await ctx.sleep(MOMENT)
        return list(answers)

    job = w.enqueue()

    assert play(app, job) == ["a: use 2", "b: use 1"]
    assert kept(app, job, "3/use") == "use 2"


def test_tasks_that_a_step_begins_are_none_of_the_workflows(app: Rowlock) -> None:
    async def inner() -> int:
        return 1

    async def busy() -> int:
        return sum(await asyncio.gather(inner(), inner()))

    @app.workflow(name="w")
    async def w(ctx: Context) -> list[int]:
        async def branch() -> int:
            return await ctx.step(busy)

        await ctx.step(busy)
        answers = list(await asyncio.gather(branch(), branch()))
        await ctx.sleep(MOMENT)
        return answers

    job = w.enqueue()

    assert play(app, job) == [2, 2]
    first, *others = [key for key, _ in steps(app, job)][:3]
    assert (first, sorted(others)) == ("busy", ["1/busy", "2/busy"])  # those two begin at once


def test_tasks_of_what_is_around_it_are_none_of_the_workflows(app: Rowlock) -> None:
    begun: list[int] = []

    async def nothing() -> None: ...

    @app.around
    @asynccontextmanager
    async def around(_job: CurrentJob) -> AsyncIterator[None]:
        begun.append(1)
        await asyncio.gather(*[nothing() for _ in begun])  # one more in every attempt
        yield

    @app.workflow(name="w")
    async def w(ctx: Context) -> list[str]:
        async def branch(name: str) -> str:
            return await ctx.step(str, name)

        answers = list(await asyncio.gather(branch("a"), branch("b")))
        await ctx.sleep(MOMENT)
        return answers

    assert play(app, w.enqueue()) == ["a", "b"]
    assert len(begun) == 2


def test_a_branch_of_a_branch_has_its_place_below_it(app: Rowlock) -> None:
    calls = Calls()

    @app.workflow(name="w")
    async def w(ctx: Context) -> list[list[str]]:
        async def leaf(name: str) -> str:
            return await ctx.step(calls.note, name)

        async def twig(name: str) -> list[str]:
            return list(await asyncio.gather(leaf(f"{name}1"), leaf(f"{name}2")))

        answers = list(await asyncio.gather(twig("a"), twig("b")))
        await ctx.sleep(MOMENT)
        return answers

    job = w.enqueue()

    assert play(app, job) == [["a1 1", "a2 1"], ["b1 1", "b2 1"]]
    assert {key for key, _ in steps(app, job)} == {"1/1/note", "1/2/note", "2/1/note", "2/2/note", "sleep"}


# Where they run


def test_an_async_step_runs_on_the_loop_and_a_sync_one_in_a_thread(app: Rowlock) -> None:
    threads: dict[str, int] = {}

    class Called:
        async def __call__(self) -> None:
            threads["callable"] = threading.get_ident()

    async def on_loop() -> None:
        threads["loop"] = threading.get_ident()

    def in_thread() -> None:
        threads["thread"] = threading.get_ident()

    @app.task(name="a task")
    async def a_task() -> None:
        threads["task"] = threading.get_ident()

    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        threads["code"] = threading.get_ident()
        await ctx.step(on_loop)
        await ctx.step(in_thread)
        await ctx.step(Called())
        await ctx.step(a_task)

    play(app, w.enqueue())

    assert threads["loop"] == threads["callable"] == threads["task"] == threads["code"] != threads["thread"]


def test_a_step_is_known_to_the_outside_by_a_key_that_is_the_same_in_every_try(app: Rowlock) -> None:
    said: dict[str, list[str]] = {"before": [], "inside": [], "thread": [], "other": []}

    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        async def charge() -> None:
            said["inside"].append(ctx.idempotency_key)
            if len(said["inside"]) < 3:
                raise ConnectionError("down")

        said["before"].append(ctx.idempotency_key)
        await ctx.using(retry=AT_ONCE).step(charge)
        await ctx.using(name="in thread").step(lambda: said["thread"].append(ctx.idempotency_key))
        await ctx.using(name="other").step(lambda: said["other"].append(ctx.idempotency_key))

    play(app, w.enqueue())

    assert len(set(said["before"] + said["inside"])) == 1
    assert len(said["inside"]) == 3
    assert len({said["inside"][0], *said["thread"], *said["other"]}) == 3


def test_a_loop_of_steps_goes_on_without_being_replayed(app: Rowlock, db: Db) -> None:
    @app.workflow(name="w")
    async def w(ctx: Context) -> int:
        total = 0
        for number in range(50):
            total += await ctx.using(name="add").step(int, number)
        return total

    job = w.enqueue()

    assert len(drain(app)) == 1
    assert job.result(AT_MOST) == sum(range(50))
    assert one(db, "select claims from rowlock.history") == 1
