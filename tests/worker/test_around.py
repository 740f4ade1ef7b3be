"""Around: what the app puts around every attempt, and in which thread it is entered."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from datetime import timedelta
from typing import Any, Literal, NoReturn, get_args

import pytest

from rowlock import Context, Retry, Rowlock, Snooze, current_job
from rowlock.errors import TaskError
from rowlock.types import CurrentJob
from tests.worker.working import Db, ended, one, work_off, work_until

Note = Callable[[str], None]
Kind = Literal["async", "sync"]
KINDS = get_args(Kind)
NOTHING: dict[str, str] = {}
ONCE = Retry(attempts=1)


@pytest.fixture
def notes() -> list[str]:
    """What happened, in order."""
    return []


def declare_three(app: Rowlock, note: Note) -> None:
    """A plain one around an async one around a plain one; each tells when it is entered and left, and the error."""

    def plain(name: str) -> Callable[[CurrentJob], Any]:
        @contextmanager
        def around(job: CurrentJob) -> Iterator[None]:
            note(f"{name} in {job.task}")
            try:
                yield
            except BaseException as error:
                note(f"{name} saw {type(error).__name__}")
                raise
            note(f"{name} out")

        return around

    @asynccontextmanager
    async def middle(job: CurrentJob) -> AsyncIterator[None]:
        with plain("middle")(job):
            yield

    app.around(plain("outer"))
    app.around(middle)
    app.around(plain("inner"))


def handler(app: Rowlock, *, kind: Kind, body: Callable[[], Any]) -> Callable[[], Any]:
    """A task named `t` with one attempt, of either kind, that does the same."""

    async def on_loop() -> Any:  # noqa: ANN401  whatever the body answers
        return body()

    return app.task(name="t", retry=ONCE)(on_loop if kind == "async" else body).enqueue


def thread() -> str:
    return "the loop's thread" if threading.current_thread() is threading.main_thread() else "another thread"


def test_around_an_async_handler_the_first_declared_is_outermost(app: Rowlock, db: Db, notes: list[str]) -> None:
    declare_three(app, notes.append)
    enqueue = handler(app, kind="async", body=lambda: notes.append("runs"))

    enqueue()
    work_off(app, db)

    assert notes == [
        "outer in t",
        "middle in t",
        "inner in t",
        "runs",
        "inner out",
        "middle out",
        "outer out",
    ]


def test_around_a_sync_handler_plain_ones_are_inside_async_ones_and_else_as_declared(
    app: Rowlock, db: Db, notes: list[str]
) -> None:
    declare_three(app, lambda text: notes.append(f"{text}, {thread()}"))
    enqueue = handler(app, kind="sync", body=lambda: notes.append(f"runs, {thread()}"))

    enqueue()
    work_off(app, db)

    assert notes == [
        "middle in t, the loop's thread",
        "outer in t, another thread",
        "inner in t, another thread",
        "runs, another thread",
        "inner out, another thread",
        "outer out, another thread",
        "middle out, the loop's thread",
    ]


def test_a_plain_one_is_in_the_very_thread_of_its_sync_handler(app: Rowlock, db: Db) -> None:
    local = threading.local()

    @app.around
    @contextmanager
    def with_name(job: CurrentJob) -> Iterator[None]:
        local.name = job.id
        yield
        del local.name

    @app.task(name="t")
    def t() -> bool:
        return bool(local.name == current_job().id)

    app.enqueue_many(t.bind() for _ in range(50))
    work_off(app, db, slots=10)

    assert db.execute("select result::text, count(*) from rowlock.history group by 1").fetchall() == [("true", 50)]


def test_one_that_is_of_both_kinds_is_entered_as_the_handler_is(app: Rowlock, db: Db, notes: list[str]) -> None:
    class Both:
        def __init__(self, job: CurrentJob) -> None:
            self.task = job.task

        def __enter__(self) -> None:
            notes.append(f"{self.task} plain")

        def __exit__(self, *error: object) -> None: ...

        async def __aenter__(self) -> None:
            notes.append(f"{self.task} async")

        async def __aexit__(self, *error: object) -> None: ...

    app.around(Both)

    @app.task(name="on the loop")
    async def on_the_loop() -> None: ...

    @app.task(name="in a thread")
    def in_a_thread() -> None: ...

    on_the_loop.enqueue()
    in_a_thread.enqueue()
    work_off(app, db)

    assert sorted(notes) == ["in a thread plain", "on the loop async"]


@pytest.mark.parametrize("kind", KINDS)
def test_they_see_the_handlers_error_and_the_attempt_fails_with_it(
    app: Rowlock, db: Db, notes: list[str], kind: Kind
) -> None:
    def fail() -> NoReturn:
        raise ValueError("no luck")

    declare_three(app, notes.append)
    enqueue = handler(app, kind=kind, body=fail)

    enqueue()
    work_off(app, db)

    assert sorted(notes[3:]) == ["inner saw ValueError", "middle saw ValueError", "outer saw ValueError"]
    assert ended(db) == [("t", "failed", "exhausted", 1)]
    assert one(db, "select errors[1] ->> 'message' from rowlock.history") == "no luck"


@pytest.mark.parametrize("kind", KINDS)
def test_one_may_replace_the_error(app: Rowlock, db: Db, kind: Kind) -> None:
    @app.around
    @contextmanager
    def translate(job: CurrentJob) -> Iterator[None]:
        try:
            yield
        except KeyError as error:
            raise LookupError(f"in {job.task}") from error

    enqueue = handler(app, kind=kind, body=lambda: NOTHING["there"])

    enqueue()
    work_off(app, db)

    assert one(db, "select errors[1] ->> 'type' from rowlock.history") == "LookupError"


@pytest.mark.parametrize("kind", KINDS)
def test_one_that_swallows_the_error_lets_the_job_succeed_without_a_result(app: Rowlock, db: Db, kind: Kind) -> None:
    app.around(lambda _job: suppress(KeyError))
    enqueue = handler(app, kind=kind, body=lambda: NOTHING["there"])

    enqueue()
    work_off(app, db)

    assert ended(db) == [("t", "succeeded", None, 0)]
    assert one(db, "select result from rowlock.history") is None


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_on_entering_fails_the_attempt_and_those_outside_see_it(
    app: Rowlock, db: Db, notes: list[str], kind: Kind
) -> None:
    declare_three(app, notes.append)

    @app.around
    @contextmanager
    def broken(job: CurrentJob) -> Iterator[None]:
        if job.attempt:
            raise ConnectionError("no database for the framework")
        yield

    enqueue = handler(app, kind=kind, body=lambda: notes.append("runs"))

    enqueue()
    work_off(app, db)

    assert "runs" not in notes
    assert sorted(notes[3:]) == ["inner saw ConnectionError", "middle saw ConnectionError", "outer saw ConnectionError"]
    assert ended(db) == [("t", "failed", "exhausted", 1)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_snooze_passes_through(app: Rowlock, db: Db, notes: list[str], kind: Kind) -> None:
    def snooze() -> NoReturn:
        raise Snooze(timedelta(hours=1))

    declare_three(app, notes.append)
    enqueue = handler(app, kind=kind, body=snooze)

    enqueue()
    work_until(app, lambda: one(db, "select run_at > rowlock.now() + interval '59 minutes' from rowlock.jobs"))

    assert sorted(notes[3:]) == ["inner saw Snooze", "middle saw Snooze", "outer saw Snooze"]
    assert one(db, "select failures from rowlock.jobs") == 0


def test_the_timeout_covers_them(app: Rowlock, db: Db, notes: list[str]) -> None:
    @app.around
    @asynccontextmanager
    async def slow(_job: CurrentJob) -> AsyncIterator[None]:
        try:
            await asyncio.Event().wait()
            yield
        finally:
            notes.append("cleaned up")

    @app.task(name="t", timeout=timedelta(milliseconds=10), retry=ONCE)
    async def t() -> None: ...

    t.enqueue()
    work_off(app, db)

    assert notes == ["cleaned up"]
    assert "took longer than its timeout" in one(db, "select errors[1] ->> 'message' from rowlock.history")


def test_a_plain_one_sees_the_real_end_of_a_sync_handler_that_outlived_its_timeout(
    app: Rowlock, db: Db, notes: list[str]
) -> None:
    may_end = threading.Event()

    @app.around
    @contextmanager
    def around(_job: CurrentJob) -> Iterator[None]:
        yield
        notes.append("left after the handler's end")

    @app.task(name="t", timeout=timedelta(milliseconds=10), retry=ONCE)
    def t() -> None:
        may_end.wait()

    def timed_out_and_left() -> bool:
        if ended(db):
            may_end.set()
        return bool(notes)

    t.enqueue()
    work_until(app, timed_out_and_left)

    assert ended(db) == [("t", "failed", "exhausted", 1)]
    assert notes == ["left after the handler's end"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_handler_sees_the_context_variables_that_they_set(app: Rowlock, db: Db, kind: Kind) -> None:
    tenant: ContextVar[str] = ContextVar("tenant", default="nobody")
    region: ContextVar[str] = ContextVar("region", default="nowhere")

    @app.around
    @contextmanager
    def with_tenant(_job: CurrentJob) -> Iterator[None]:
        token = tenant.set("ada")
        yield
        tenant.reset(token)

    @app.around
    @asynccontextmanager
    async def with_region(_job: CurrentJob) -> AsyncIterator[None]:
        token = region.set("eu")
        yield
        region.reset(token)

    enqueue = handler(app, kind=kind, body=lambda: [tenant.get(), region.get(), current_job().task])

    enqueue()
    work_off(app, db)

    assert one(db, "select result from rowlock.history") == ["ada", "eu", "t"]


def test_a_result_that_is_not_a_context_manager_fails_the_attempt_with_a_sentence(app: Rowlock, db: Db) -> None:
    app.around(lambda _job: 42)  # type: ignore[type-var]
    enqueue = handler(app, kind="async", body=lambda: None)

    enqueue()
    work_off(app, db)

    assert "returned int, not a context manager" in one(db, "select errors[1] ->> 'message' from rowlock.history")


def test_a_generator_that_is_no_context_manager_is_refused_when_it_is_declared() -> None:
    app = Rowlock()

    def plain(_job: CurrentJob) -> Iterator[None]:
        yield

    async def on_loop(_job: CurrentJob) -> AsyncIterator[None]:
        yield

    with pytest.raises(TaskError, match=r"put @contextmanager on .*plain"):
        app.around(plain)  # type: ignore[type-var]
    with pytest.raises(TaskError, match=r"put @asynccontextmanager on .*on_loop"):
        app.around(on_loop)  # type: ignore[type-var]
    with pytest.raises(TaskError, match=r"not <contextlib.nullcontext"):
        app.around(nullcontext())  # type: ignore[type-var]
    assert app.arounds == []


def test_plain_ones_are_around_every_plain_function_of_a_workflow_in_its_thread(
    app: Rowlock, db: Db, notes: list[str]
) -> None:
    declare_three(app, lambda text: notes.append(f"{text}, {thread()}"))

    def body(name: str) -> Callable[..., None]:
        return lambda *_connection: notes.append(f"{name} runs, {thread()}")

    async def on_loop() -> None:
        notes.append("async step runs")

    @app.workflow(version=1, name="w", fails_on=ValueError)
    async def w(ctx: Context) -> None:
        ctx.using(name="undo").undo(body("undo"))
        await ctx.using(name="step").step(body("step"))
        await ctx.step(on_loop)
        await ctx.using(name="transaction").transaction(body("transaction"))
        raise ValueError("let it be undone")

    w.enqueue()
    work_off(app, db)

    entered = ["outer in w, another thread", "inner in w, another thread"]
    left = ["inner out, another thread", "outer out, another thread"]
    plain = {name: [*entered, f"{name} runs, another thread", *left] for name in ("step", "transaction", "undo")}
    assert [note for note in notes if "the loop's" not in note] == [
        *plain["step"],
        "async step runs",
        *plain["transaction"],
        *plain["undo"],
    ]
    assert notes[:3] == [f"{name} in w, the loop's thread" for name in ("outer", "middle", "inner")]
