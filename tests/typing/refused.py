"""What the type checkers must refuse, one error a line; checked, never run.

Each line carries the error that mypy and the one that pyright must find. A line on which either finds nothing is an
unneeded ignore, which both report.
"""

from __future__ import annotations

from datetime import timedelta

from rowlock import Call, Context, Job, Key
from tests.typing.declared import (
    a_sync_function,
    add,
    app,
    approve,
    carry_later,
    checkout,
    greet,
    measure,
    render,
    report,
    send_mail,
    sync,
    tasks,
    total,
    without_its_context,
)


def enqueue_refuses_wrong_arguments() -> None:
    add.enqueue()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    add.enqueue("1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    add.enqueue(1, 2, 3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    add.enqueue(1, c=2)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    add.enqueue(1, a=2)  # type: ignore[misc]  # pyright: ignore[reportCallIssue]
    greet.enqueue("Ada", True)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    greet.enqueue("Ada", loud="very")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    send_mail.enqueue("ada@example.org")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    total.enqueue(["1.0"])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
    measure.enqueue(None)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    render.enqueue(pages=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


async def aenqueue_refuses_wrong_arguments() -> None:
    await add.aenqueue("1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await greet.aenqueue()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await greet.aenqueue(name=b"Ada")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await send_mail.aenqueue("a", "b", "c")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await render.aenqueue("1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def using_refuses_wrong_options_and_arguments() -> None:
    add.using(queue=1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    add.using(priority="high")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    add.using(delay=5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    add.using(run_at=timedelta(minutes=5))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    add.using(expires=60)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    add.using(tags=[1])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
    add.using(eta=None)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    add.using("sums")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    add.using(queue="sums").enqueue("1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await add.using(queue="sums").aenqueue()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    Key("k", taken="drop")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Key("k", timedelta(hours=1))  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    greet.using(key="k").bind(loud=True)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def bind_refuses_wrong_arguments() -> None:
    add.bind("1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    greet.bind()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    measure.bind(1, 2)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    add.bind(1).enqueue(2)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


async def many_refuse_what_is_no_call() -> None:
    app.enqueue_many([1])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    app.enqueue_many([add])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    app.enqueue_many(add.bind(1))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await app.aenqueue_many([add.enqueue(1)])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def results_are_not_mixed_up() -> None:
    _a: Job[str] = add.enqueue(1)  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    _b: Job[int] = greet.enqueue("Ada")  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    _c: Job[int] = await greet.aenqueue("Ada")  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    _d: Call[None] = measure.bind(1)  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    _e: Job[bytes] = greet.aenqueue("Ada")  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    _f: list[Job[str]] = app.enqueue_many([add.bind(1)])  # type: ignore[list-item]  # pyright: ignore[reportAssignmentType]


async def results_are_typed_and_take_a_timedelta() -> None:
    _a: str = add.enqueue(1).result()  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    _b: int = await greet.enqueue("Ada").aresult()  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    _c: bytes = add.enqueue(1).aresult()  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    add.enqueue(1).result(30)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await add.enqueue(1).aresult(timeout=0.5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    app.jobs.get(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def declarations_refuse_wrong_options() -> None:
    app.task(queue=1)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    app.task(quue="mail")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    app.task(expires=60)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    app.task(breaker=20)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    app.task(timeout=30)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    tasks.task(retry=3)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    tasks.task("name")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
    app.include([add])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    app.enqueue(add, 1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def a_task_called_here_refuses_wrong_arguments() -> None:
    add("1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await greet("Ada", True)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    _a: str = add(1)  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    _b: str = greet("Ada")  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    add(1).hex()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]


def schedules_refuse_wrong_rules_and_policies() -> None:
    app.task.every(60)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    app.task.every("@daily", tz=1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    app.task.every("@daily", overlap="drop")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    tasks.task.every("@daily", catch_up="all")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    tasks.task.every()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    add.every("@daily", jitter=5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    add.bind(1).every("@daily", queue="sums")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    report.enqueue(1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    sync.enqueue(since="0")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    app.task.every("@daily")("report")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]


async def workflows_refuse_wrong_arguments(ctx: Context) -> None:
    approve.enqueue()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    approve.enqueue(ctx)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    approve.enqueue(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await checkout.aenqueue(7)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    checkout.using(key="k").enqueue("7", [])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    checkout.bind(7, lines="tea")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    _a: Job[str] = approve.enqueue("lease")  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]


def workflows_refuse_wrong_functions_and_options() -> None:
    app.workflow(a_sync_function)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    app.workflow(without_its_context)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    tasks.workflow(version=2)(without_its_context)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    app.workflow(version="2")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    app.workflow(timeout=timedelta(minutes=1))  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    app.workflow(history=False)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    app.workflow(breaker=None)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    checkout.migration("1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    checkout.migration(1)(carry_later)  # type: ignore[type-var]  # pyright: ignore[reportArgumentType]
