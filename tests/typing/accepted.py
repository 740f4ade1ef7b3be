"""What the type checkers must accept, and the types they must find; checked, never run."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, assert_type

import psycopg

from rowlock import Call, Context, Job, Key, Task, Workflow, current_job
from rowlock.errors import ChildCancelled, ChildFailed
from rowlock.types import JobRecord
from tests.typing.declared import (
    add,
    app,
    approve,
    carry_checkout,
    checkout,
    clean,
    count,
    greet,
    measure,
    render,
    report,
    send_mail,
    sweep,
    sync,
    tasks,
    total,
)


def enqueue_keeps_the_signature() -> None:
    assert_type(add.enqueue(1), Job[int])
    assert_type(add.enqueue(1, 2), Job[int])
    assert_type(add.enqueue(a=1, b=2), Job[int])
    assert_type(greet.enqueue("Ada", loud=True), Job[str])
    assert_type(send_mail.enqueue("ada@example.org", body="Hello"), Job[None])
    assert_type(total.enqueue([1.0, 2.5]), Job[float])
    assert_type(measure.enqueue(3), Job[dict[str, int]])
    assert_type(render.enqueue(page=3), Job[bytes])
    assert_type(count.enqueue(1, 2, 3, odd=True), Job[int])


async def aenqueue_keeps_the_signature() -> None:
    assert_type(await add.aenqueue(1, b=2), Job[int])
    assert_type(await greet.aenqueue("Ada"), Job[str])
    assert_type(await send_mail.aenqueue("ada@example.org", "Hello"), Job[None])
    assert_type(await measure.aenqueue(3), Job[dict[str, int]])
    assert_type(await render.aenqueue(3), Job[bytes])


async def using_keeps_the_signature(
    connection: psycopg.Connection[dict[str, object]], aconnection: psycopg.AsyncConnection[Any]
) -> None:
    assert_type(add.using(queue="sums", priority=-4).enqueue(1, 2), Job[int])
    assert_type(add.using(connection=connection).enqueue(1), Job[int])
    assert_type(await greet.using(connection=aconnection, key="k").aenqueue("Ada", loud=True), Job[str])
    assert_type(await greet.using(delay=timedelta(minutes=1), tags=["a", "b"]).aenqueue("Ada"), Job[str])
    assert_type(render.using(run_at=datetime.now(UTC), attempts=3).enqueue(1), Job[bytes])
    assert_type(render.using(expires=timedelta(hours=1)).bind(1), Call[bytes])


async def bind_gives_a_typed_call() -> None:
    assert_type(add.bind(1), Call[int])
    assert_type(greet.bind("Ada"), Call[str])
    assert_type(greet.bind("Ada").enqueue(), Job[str])
    assert_type(await greet.bind("Ada").aenqueue(), Job[str])


async def many_keep_the_result_type(connection: psycopg.Connection[Any]) -> None:
    assert_type(app.enqueue_many([greet.bind("Ada"), greet.using(key="k").bind("Bob")]), list[Job[str]])
    unique = Key("k", period=timedelta(hours=1), taken="raise")
    assert_type(app.enqueue_many([greet.using(key=unique).bind("Ada")]), list[Job[str]])
    assert_type(app.enqueue_many((add.bind(n) for n in range(3)), connection=connection), list[Job[int]])
    assert_type(await app.aenqueue_many([render.bind(1)]), list[Job[bytes]])
    mixed: list[Call[object]] = [add.bind(1), greet.bind("Ada")]
    assert_type(app.enqueue_many(mixed), list[Job[object]])


async def results_have_the_type_of_the_handlers() -> None:
    assert_type(add.enqueue(1).result(), int)
    assert_type(send_mail.enqueue("ada@example.org", "Hello").result(timeout=timedelta(seconds=1)), None)
    assert_type(measure.bind(3).enqueue().result(timedelta(seconds=1)), dict[str, int])
    assert_type(await greet.enqueue("Ada").aresult(), str)
    assert_type(await render.using(key="k").enqueue(1).aresult(timedelta(minutes=1)), bytes)
    assert_type([job.result() for job in app.enqueue_many([greet.bind("Ada")])], list[str])
    assert_type(app.jobs.get("0190a5d8-0000-7000-8000-000000000000"), Job[Any])
    assert_type((await app.jobs.aget(add.enqueue(1).id)).result(), Any)
    assert_type(add.enqueue(1).record(), JobRecord)
    assert_type(await add.enqueue(1).arecord(), JobRecord)


async def transactions_answer_the_connection(connection: psycopg.Connection[dict[str, object]]) -> None:
    with current_job().transaction() as ours:
        assert_type(ours, psycopg.Connection[tuple[Any, ...]])
        assert_type(current_job().give_result(1), int)
    async with current_job().transaction() as aours:
        assert_type(aours, psycopg.AsyncConnection[tuple[Any, ...]])
    with current_job().transaction(connection) as theirs:
        assert_type(theirs, psycopg.Connection[dict[str, object]])


async def names_stand_for_unknown_tasks() -> None:
    assert_type(app.enqueue("reports.total", amounts=[1.0]), Job[Any])
    assert_type(await app.aenqueue("reports.total", [1.0]), Job[Any])


def a_job_of_a_narrow_result_serves_as_one_of_a_wider() -> None:
    job: Job[object] = add.enqueue(1)
    call: Call[int | None] = add.bind(1)
    del job, call


async def a_task_is_still_its_function() -> None:
    assert_type(add(1, b=2), int)
    assert_type(await greet("Ada", loud=True), str)
    assert_type(await asyncio.create_task(greet("Ada")), str)
    assert_type(sync(since=3), str)
    assert_type(await report(), int)
    either: list[Task[..., object]] = [add, greet, approve]
    assert_type(either[0](), Any)
    app.include(tasks)


def a_schedule_keeps_the_signature() -> None:
    assert_type(report, Task[[], int, Coroutine[Any, Any, int]])
    assert_type(report.enqueue(), Job[int])
    assert_type(sync.enqueue(since=3), Job[str])
    assert_type(sweep.enqueue(deep=True), Job[None])
    report.every("0 18 * * *", name="evening")
    greet.using(queue="mail", tags=["a"]).bind("Ada").every("0 9 * * *", tz="Europe/Paris", name="greet-ada")
    render.bind(1).every(timedelta(hours=1), overlap="replace", catch_up="last")


async def a_workflow_keeps_its_signature_without_its_context(aconnection: psycopg.AsyncConnection[Any]) -> None:
    assert_type(clean, Workflow[[], None])
    assert_type(approve.enqueue("lease", urgent=True), Job[bool])
    assert_type(await approve.aenqueue(document="lease"), Job[bool])
    assert_type(checkout.enqueue(7, ["tea"]), Job[dict[str, int]])
    assert_type(checkout.bind(order=7, lines=[]), Call[dict[str, int]])
    assert_type(checkout.using(key="order:7", queue="slow").enqueue(7, []), Job[dict[str, int]])
    assert_type(await checkout.using(connection=aconnection).aenqueue(7, []), Job[dict[str, int]])
    assert_type(app.enqueue_many([approve.bind("lease"), approve.bind("deed")]), list[Job[bool]])
    assert_type(carry_checkout({}), dict[str, Any])
    assert_type(checkout.version, int)
    clean.every("@daily", name="nightly")


async def a_signal_goes_to_a_job_an_id_or_a_key(aconnection: psycopg.AsyncConnection[Any]) -> None:
    job = approve.enqueue("lease")
    assert_type(app.signal(job, "decided", {"by": "ada"}), bool)
    assert_type(app.signal(job.id, "decided", key="form-1"), bool)
    assert_type(await app.asignal("lease:7", "decided", ["a", 1], connection=aconnection), bool)
    assert_type(job.signal("decided"), bool)
    assert_type(await job.asignal("decided", None, key="form-1"), bool)


async def what_a_context_answers_has_the_type_of_what_was_asked(ctx: Context) -> None:
    def plain(order: int) -> list[str]:
        return [str(order)]

    async def coroutine(order: int) -> str:
        return str(order)

    async def writes(connection: psycopg.AsyncConnection[Any], order: int) -> int:
        return order

    assert_type(await ctx.step(plain, 7), list[str])
    assert_type(await ctx.step(coroutine, order=7), str)
    assert_type(await ctx.transaction(writes, 7), int)
    assert_type(await ctx.signal("decided", schema=bool), bool)
    assert_type(await ctx.run(approve.bind("lease")), bool)
    assert_type(await ctx.map([checkout.bind(7, [])], concurrency=2), list[dict[str, int]])
    assert_type(await ctx.map([approve.bind("a")], return_exceptions=True), list[bool | ChildFailed | ChildCancelled])
