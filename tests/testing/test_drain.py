"""Draining: due jobs are run to their end, here and now, and everything about them is as in a worker."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

from rowlock import Cancel, Filter, Keep, Retry, RetryAfter, Rowlock, RowlockError, Snooze, current_job
from rowlock.errors import InvalidOption
from rowlock.model.outcome import Blocked, Succeeded
from rowlock.testing import adrain, drain
from rowlock.types import CurrentJob
from tests.waiting import auntil
from tests.worker.working import Db, ended, one

HOUR = timedelta(hours=1)
AT_ONCE = Retry(attempts=3, base=timedelta(0), cap=timedelta(0))


@pytest.fixture(params=["alone", "beside asgiref"])
def company(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With asgiref loaded, as under Django, its bridge between threads is used; else our own."""
    if request.param == "alone":
        monkeypatch.delitem(sys.modules, "asgiref.sync", raising=False)
    else:
        __import__("asgiref.sync")


def left_over(db: Db) -> tuple[int, int]:
    """Workers on the books, and jobs that one of them holds."""
    return one(db, "select count(*) from rowlock.workers"), one(
        db, "select count(*) from rowlock.jobs where state = 'running'"
    )


# What is run


def test_due_jobs_of_every_queue_run_by_priority_then_by_age_and_later_ones_stay(app: Rowlock, db: Db) -> None:
    ran = []

    @app.task(name="note")
    def note(name: str) -> None:
        ran.append(name)

    note.using(queue="z").enqueue("old")
    note.using(queue="a").enqueue("young")
    note.using(queue="z", priority=2).enqueue("urgent")
    note.using(queue="m", priority=-4).enqueue("idle")
    note.using(delay=HOUR, priority=4).enqueue("later")
    drained = drain(app)

    assert ran == ["urgent", "old", "young", "idle"]
    assert drained.succeeded == len(drained) == 4
    assert one(db, "select count(*) from rowlock.jobs") == 1
    assert left_over(db) == (0, 0)


def test_queues_that_are_named_are_strict_and_others_are_left_alone(app: Rowlock) -> None:
    ran = []

    @app.task(name="note")
    def note(name: str) -> None:
        ran.append(name)

    for queue in ("c", "b", "a"):
        note.using(queue=queue, priority=ord(queue) - ord("a")).enqueue(queue)
    drain(app, queues=["a", "c"])
    drain(app, queues="b")

    assert ran == ["a", "c", "b"]


def test_what_handlers_enqueue_runs_too(app: Rowlock, company: None) -> None:
    ran = []

    @app.task(name="leaf")
    def leaf(name: str) -> None:
        ran.append(name)

    @app.task(name="sync")
    def sync() -> None:
        leaf.enqueue("of sync")

    @app.task(name="async")
    async def asynchronous() -> None:
        await leaf.aenqueue("of async")

    sync.enqueue()
    asynchronous.enqueue()
    drained = drain(app)

    assert [attempt.task for attempt in drained] == ["sync", "async", "leaf", "leaf"]
    assert ran == ["of sync", "of async"]


def test_in_async_tests_too(app: Rowlock) -> None:
    @app.task(name="leaf")
    def leaf() -> None:
        return None

    @app.task(name="sync")
    def sync() -> None:
        leaf.enqueue()

    @app.task(name="async")
    async def asynchronous() -> None:
        await leaf.aenqueue()

    async def story() -> list[str]:
        async with app:
            await sync.aenqueue()
            await asynchronous.aenqueue()
            return [attempt.task for attempt in await adrain(app)]

    assert asyncio.run(story()) == ["sync", "async", "leaf", "leaf"]


def test_modules_of_the_app_are_imported_first(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "drained_tasks.py").write_text(
        "from rowlock import Tasks\ntasks = Tasks()\nran = []\n@tasks.task\ndef note() -> None:\n    ran.append(1)\n"
        "from drained_app import app\napp.include(tasks)\n"
    )
    (tmp_path / "drained_app.py").write_text(
        f"from rowlock import Rowlock\napp = Rowlock({url!r}, imports=['drained_tasks'])\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    app: Rowlock = __import__("drained_app").app

    with app:
        app.enqueue("drained_tasks.note")
        drained = drain(app)

    assert drained.succeeded == 1


# How it ends


def test_every_way_to_end_is_counted_and_settled_as_a_worker_does(app: Rowlock, db: Db) -> None:
    @app.task(name="ends", retry=Retry(attempts=2, on=(ValueError,)))
    async def ends(how: str) -> object:
        match how:
            case "snoozes":
                raise Snooze(HOUR)
            case "cancels":
                raise Cancel("enough")
            case "asks":
                raise RetryAfter(HOUR)
            case "fails":
                raise ValueError(how)
            case "breaks":
                raise TypeError(how)
            case "exits":
                raise SystemExit(how)
            case "returns nonsense":
                return object()
            case _:
                return how

    for how in ("returns", "snoozes", "cancels", "asks", "fails", "breaks", "exits", "returns nonsense"):
        ends.enqueue(how)
    ends.using(expires=timedelta(microseconds=1)).enqueue("too late")
    app.enqueue("unheard of")
    drained = drain(app)

    assert (drained.succeeded, drained.failed, drained.cancelled) == (1, 3, 2)
    assert (drained.retried, drained.snoozed, drained.blocked) == (2, 1, 1)
    assert " ".join(attempt.ended for attempt in drained) == (
        "succeeded snoozed cancelled retried retried failed failed failed cancelled blocked"
    )
    assert [type(error).__name__ for error in drained.errors] == [
        "ValueError", "TypeError", "SystemExit", "InvalidArguments",
    ]  # fmt: skip
    assert ended(db) == [
        ("ends", "succeeded", None, 0),
        ("ends", "cancelled", "enough", 0),
        ("ends", "failed", "refused", 1),
        ("ends", "failed", "refused", 1),
        ("ends", "failed", "result", 1),
        ("ends", "cancelled", "expired", 0),
    ]
    states = db.execute("select state, failures, waits_for from rowlock.jobs order by id").fetchall()
    assert states == [("ready", 0, None), ("ready", 1, None), ("ready", 1, None), ("waiting", 0, "code")]
    assert left_over(db) == (0, 0)


def test_a_report_names_each_attempt_with_its_outcome_and_its_error(app: Rowlock) -> None:
    @app.task(name="second time lucky", retry=AT_ONCE, queue="q")
    def lucky() -> str:
        if current_job().attempt == 1:
            raise OSError("bad luck")
        return "done"

    job = lucky.enqueue()
    first, second = drain(app)

    assert (first.job, first.task, first.queue, first.attempt) == (job.id, "second time lucky", "q", 1)
    assert repr(first.error) == "OSError('bad luck')"
    assert (second.job, second.attempt, second.outcome, second.error) == (job.id, 2, Succeeded('"done"'), None)
    assert job.result() == "done"


def test_an_attempt_that_takes_too_long_fails(app: Rowlock, company: None) -> None:
    @app.task(name="slow", timeout=timedelta(milliseconds=1))
    async def slow() -> None:
        await asyncio.Event().wait()

    slow.enqueue()
    drained = drain(app)

    assert drained.retried == 1
    assert "longer than its timeout" in str(drained.errors[0])


def test_jobs_that_waited_for_code_run_once_it_is_there_and_those_that_it_refuses_wait(app: Rowlock, db: Db) -> None:
    app.enqueue("note", text="well")
    app.enqueue("note", words="ill")
    before = drain(app)

    @app.task(name="note")
    def note(text: str) -> str:
        return text

    after = drain(app)

    assert before.blocked == 2
    assert (after.succeeded, after.blocked) == (1, 1)
    assert isinstance(after.attempts[1].outcome, Blocked)
    assert "do not fit" in one(db, "select reason from rowlock.jobs")


def test_a_paused_queue_is_left_alone(app: Rowlock, db: Db) -> None:
    @app.task(name="t")
    def task() -> None:
        return None

    task.enqueue()
    app.queues.pause("default", why="a test")

    assert len(drain(app)) == 0
    app.queues.resume("default")
    assert drain(app).succeeded == 1


# What handlers see


def test_a_sync_handler_runs_in_the_thread_of_the_test(app: Rowlock, company: None) -> None:
    seen = []

    @app.task(name="look")
    def look() -> None:
        seen.append(threading.get_ident())
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()

    look.enqueue()
    drained = drain(app)

    assert drained.errors == ()
    assert seen == [threading.get_ident()]


def test_around_lifespan_current_job_and_progress_are_as_in_a_worker(url: str, db: Db) -> None:
    seen: list[object] = []

    @asynccontextmanager
    async def lifespan(app: Rowlock) -> AsyncIterator[None]:
        seen.append("begin")
        yield
        seen.append("end")

    with Rowlock(url, lifespan=lifespan) as app:

        @app.around
        @contextmanager
        def watch(job: CurrentJob) -> Iterator[None]:
            seen.append(job.task)
            yield
            seen.append("after")

        @app.task(name="look")
        def look() -> None:
            seen.append((current_job().key, current_job().attempt))
            current_job().progress(0.5, "half")
            current_job().progress(1, "all")

        look.using(key="k").enqueue()
        drain(app)

    assert seen == ["begin", "look", ("k", 1), "after", "end"]
    assert one(db, "select progress->>'note' from rowlock.history") == "all"


# What the test is told


def test_by_default_errors_are_kept_and_on_request_the_first_one_is_raised_with_its_own_traceback(
    app: Rowlock, db: Db, company: None
) -> None:
    @app.task(name="fails")
    def fails(text: str) -> None:
        raise LookupError(text)

    fails.enqueue("first")
    fails.enqueue("second")
    with pytest.raises(LookupError, match="first") as caught:
        drain(app, raising=True)
    drained = drain(app)

    assert caught.traceback[-1].name == "fails"
    assert [str(error) for error in drained.errors] == ["second"]
    assert one(db, "select array_agg(failures) from rowlock.jobs") == [1, 1]
    assert left_over(db) == (0, 0)


def test_asked_to_raise_it_passes_over_snoozes_and_retries_that_the_handler_asked_for(app: Rowlock) -> None:
    @app.task(name="t")
    def task(error: str) -> None:
        raise {"snooze": Snooze(HOUR), "retry": RetryAfter(HOUR), "cancel": Cancel()}[error]

    for error in ("snooze", "retry", "cancel"):
        task.enqueue(error)
    drained = drain(app, raising=True)

    assert (drained.snoozed, drained.retried, drained.cancelled) == (1, 1, 1)


def test_a_handler_that_ends_the_test_ends_it(app: Rowlock, db: Db, company: None) -> None:
    @app.task(name="t")
    def task() -> None:
        pytest.fail("not what was expected")

    task.enqueue()
    with pytest.raises(pytest.fail.Exception, match="not what was expected"):
        drain(app)

    assert left_over(db) == (0, 0)


def test_jobs_without_end_are_stopped_by_the_limit_which_says_so(app: Rowlock, db: Db) -> None:
    @app.task(name="again")
    def again() -> None:
        again.enqueue()

    again.enqueue()
    with pytest.raises(RowlockError, match=r"5 attempts were run and again is still due; most often ran again \(5\)"):
        drain(app, limit=5)

    assert left_over(db) == (0, 0)
    assert db.execute("select state, failures from rowlock.jobs").fetchall() == [("ready", 0)]


def test_as_many_jobs_as_the_limit_are_no_fault(app: Rowlock) -> None:
    @app.task(name="t")
    def task() -> None:
        return None

    app.enqueue_many(task.bind() for _ in range(5))

    assert drain(app, limit=5).succeeded == 5


def test_jobs_in_an_open_transaction_of_the_apps_own_connection_are_not_taken_for_none(url: str) -> None:
    with psycopg.connect(url) as mine, Rowlock(url, connection=lambda: mine) as app:

        @app.task(name="t")
        def t() -> None: ...

        t.enqueue()

        with pytest.raises(InvalidOption, match=r"no job; .* some, on default: say drain\(app, connection=…\)"):
            drain(app)
        assert drain(app, connection=mine).succeeded == 1
        assert drain(app).succeeded == 0
        mine.rollback()
        assert drain(app).succeeded == 0


def test_a_limit_below_one_is_refused(app: Rowlock) -> None:
    with pytest.raises(InvalidOption, match="limit=0 must be at least 1"):
        drain(app, limit=0)


def test_in_a_running_loop_the_async_verb_is_named(app: Rowlock) -> None:
    async def story() -> None:
        drain(app)

    with pytest.raises(RowlockError, match=r"use `await adrain\(…\)`"):
        asyncio.run(story())


def test_a_job_that_somebody_else_has_meanwhile_is_an_error(app: Rowlock, db: Db) -> None:
    @app.task(name="t")
    def task() -> None:
        db.execute("update rowlock.jobs set token = gen_random_uuid()")

    task.enqueue()

    with pytest.raises(RowlockError, match="its outcome cannot be written"):
        drain(app)


# Interrupted


def test_ctrl_c_while_an_async_handler_runs_hands_its_job_back(
    app: Rowlock, db: Db, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "asgiref.sync", raising=False)

    @app.task(name="t")
    async def task() -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        await asyncio.Event().wait()

    task.enqueue()
    with pytest.raises(KeyboardInterrupt):
        drain(app)

    assert left_over(db) == (0, 0)
    assert db.execute("select state, failures from rowlock.jobs").fetchall() == [("ready", 0)]


def test_a_cancelled_drain_hands_its_job_back(app: Rowlock, db: Db) -> None:
    started = []

    @app.task(name="t")
    async def task() -> None:
        started.append(1)
        await asyncio.Event().wait()

    task.enqueue()

    async def story() -> None:
        async with app:
            draining = asyncio.create_task(adrain(app))
            await auntil(lambda: started)
            draining.cancel()
            with pytest.raises(asyncio.CancelledError):
                await draining

    asyncio.run(story())

    assert left_over(db) == (0, 0)
    assert db.execute("select state, failures from rowlock.jobs").fetchall() == [("ready", 0)]


# In company


def test_beside_a_live_worker_every_job_runs_once(app: Rowlock, db: Db) -> None:
    ran: list[int] = []

    @app.task(name="note")
    async def note(number: int) -> None:
        ran.append(number)

    app.enqueue_many(note.bind(number) for number in range(300))

    async def story() -> None:
        async with app, app.worker(slots=2):
            await adrain(app)
            await auntil(lambda: one(db, "select count(*) from rowlock.history") == 300)

    asyncio.run(story())

    assert sorted(ran) == list(range(300))


@pytest.mark.parametrize("end", ["returns", "fails"])
def test_a_job_that_its_own_handler_cancels_ends_as_cancelled(app: Rowlock, db: Db, end: str) -> None:
    @app.task(name="job")
    def job() -> None:
        app.jobs.cancel(Filter(ids=[current_job().id]))
        if end == "fails":
            raise ValueError

    job.enqueue()
    drain(app)

    assert db.execute("select state, reason from rowlock.history").fetchall() == [("cancelled", "asked")]


def test_a_job_that_is_cancelled_while_it_runs_is_kept_as_long_as_the_app_says(url: str, db: Db) -> None:
    with Rowlock(url, keep=Keep(cancelled=timedelta(days=30))) as app:

        @app.task(name="give_up")
        def give_up() -> None:
            app.jobs.cancel(Filter(ids=[current_job().id]))

        give_up.enqueue()
        drain(app)

    state, kept = db.execute("select state, expires_on - ended_at::date from rowlock.history").fetchall()[0]
    assert (state, kept) == ("cancelled", 30)
