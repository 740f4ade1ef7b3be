"""Running: whatever a handler does, its attempt ends in exactly one outcome, and the worker lives on."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
from collections.abc import Callable
from contextvars import ContextVar
from datetime import timedelta
from typing import Any, NoReturn

import pytest

from rowlock import Cancel, Retry, RetryAfter, Rowlock, RowlockError, Snooze, current_job
from tests.waiting import auntil
from tests.worker.working import Db, ended, one, work_off, work_until

AT_ONCE = Retry(attempts=3, base=timedelta(0), cap=timedelta(0))


def test_an_async_handler_runs_with_its_arguments_and_its_result_is_kept(app: Rowlock, db: Db) -> None:
    @app.task(name="add")
    async def add(a: int, b: int) -> int:
        return a + b

    add.enqueue(20, b=22)
    work_off(app, db)

    assert ended(db) == [("add", "succeeded", None, 0)]
    assert one(db, "select result from rowlock.history") == 42


def test_a_sync_handler_runs_in_a_thread_and_the_loop_goes_on(app: Rowlock, db: Db) -> None:
    together = threading.Barrier(3, timeout=20)

    @app.task(name="blocks")
    def blocks() -> str:
        together.wait()
        return threading.current_thread().name

    app.enqueue_many(blocks.bind() for _ in range(3))
    work_off(app, db)

    names = {row[0] for row in db.execute("select result from rowlock.history")}
    assert len(names) == 3
    assert all(name.startswith("rowlock") for name in names)


def test_current_job_tells_a_handler_which_job_it_runs(app: Rowlock, db: Db) -> None:
    seen: list[Any] = []

    def look() -> None:
        job = current_job()
        seen.append((str(job.id), job.task, job.queue, job.attempt, job.attempts, job.key, job.tags, job.crashes))

    sync_look = app.task(name="sync look")(look)

    @app.task(name="async look")
    async def async_look() -> None:
        look()

    jobs = [task.using(tags=["a", "b"], key=task.name, attempts=7).enqueue() for task in (sync_look, async_look)]
    work_off(app, db)

    assert sorted(seen) == sorted((str(job.id), job.task, "default", 1, 7, job.task, ("a", "b"), 0) for job in jobs)


def test_current_job_outside_a_handler_is_an_error_that_says_so() -> None:
    with pytest.raises(RowlockError, match="no job is running here"):
        current_job()


def test_context_variables_of_one_job_do_not_leak_into_the_next(app: Rowlock, db: Db) -> None:
    name: ContextVar[str] = ContextVar("name", default="clean")

    @app.task(name="leaky")
    async def leaky() -> str:
        before = name.get()
        name.set("dirty")
        return before

    app.enqueue_many(leaky.bind() for _ in range(20))
    work_off(app, db, slots=2)

    assert {row[0] for row in db.execute("select result from rowlock.history")} == {"clean"}


def test_a_failing_job_is_retried_until_its_attempts_are_spent(app: Rowlock, db: Db) -> None:
    attempts: list[int] = []

    @app.task(name="fails", retry=AT_ONCE)
    async def fails() -> None:
        attempts.append(current_job().attempt)
        raise ValueError("no luck")

    fails.enqueue()
    work_off(app, db)

    assert attempts == [1, 2, 3]
    assert ended(db) == [("fails", "failed", "exhausted", 3)]
    errors = one(db, "select errors from rowlock.history")
    assert [(error["type"], error["message"]) for error in errors] == [("ValueError", "no luck")] * 3
    assert "raise ValueError" in errors[0]["traceback"]


def test_a_retry_waits_as_its_policy_says(app: Rowlock, db: Db) -> None:
    @app.task(name="fails", retry=Retry(attempts=2, base=timedelta(hours=1), cap=timedelta(hours=1), jitter=0))
    async def fails() -> None:
        raise ValueError

    fails.enqueue()
    work_off(app, db)

    assert one(db, "select run_at between started_at + '1 hour' and rowlock.now() + '1 hour' from rowlock.jobs")


def test_an_error_that_the_policy_does_not_want_fails_at_once(app: Rowlock, db: Db) -> None:
    @app.task(name="fails", retry=Retry(on=(OSError,)))
    async def fails() -> None:
        raise ValueError("not an OSError")

    fails.enqueue()
    work_off(app, db)

    assert ended(db) == [("fails", "failed", "refused", 1)]


def test_snooze_spends_no_attempt_and_retry_after_does(app: Rowlock, db: Db) -> None:
    @app.task(name="snoozes")
    async def snoozes() -> None:
        raise Snooze(timedelta(hours=1))

    @app.task(name="retries")
    def retries() -> None:
        raise RetryAfter(timedelta(hours=2), "busy")

    snoozes.enqueue()
    retries.enqueue()
    work_off(app, db)

    query = (
        "select task, failures, round(extract(epoch from run_at - rowlock.now()) / 3600)::int, state from rowlock.jobs"
    )
    assert sorted(db.execute(query).fetchall()) == [("retries", 1, 2, "ready"), ("snoozes", 0, 1, "ready")]


def test_cancel_ends_the_job_as_cancelled_even_past_except_exception(app: Rowlock, db: Db) -> None:
    @app.task(name="cancels")
    async def cancels() -> None:
        try:
            raise Cancel("the order is gone")
        except Exception:
            return

    cancels.enqueue()
    work_off(app, db)

    assert ended(db) == [("cancels", "cancelled", "the order is gone", 0)]


def test_a_handler_that_takes_too_long_is_stopped_and_the_error_says_why(app: Rowlock, db: Db) -> None:
    forever = threading.Event()

    @app.task(name="async", timeout=timedelta(milliseconds=20), retry=Retry.none())
    async def hangs() -> None:
        await asyncio.Event().wait()

    @app.task(name="sync", timeout=timedelta(milliseconds=20), retry=Retry.none())
    def blocks() -> None:
        forever.wait(20)

    hangs.enqueue()
    blocks.enqueue()
    work_off(app, db)
    forever.set()

    assert ended(db) == [("async", "failed", "exhausted", 1), ("sync", "failed", "exhausted", 1)]
    assert "longer than its timeout of 0.02 s" in one(db, "select errors[1]->>'message' from rowlock.history limit 1")


def test_a_job_that_has_expired_is_cancelled_unrun(app: Rowlock, db: Db) -> None:
    @app.task(name="stale")
    async def stale() -> NoReturn:
        raise AssertionError("ran")

    stale.using(expires=timedelta(microseconds=1)).enqueue()
    work_off(app, db)

    assert ended(db) == [("stale", "cancelled", "expired", 0)]


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("cannot be printed")


def _raise(error: BaseException) -> Callable[[], NoReturn]:
    def handler() -> NoReturn:
        raise error

    return handler


def _loud() -> NoReturn:
    raise ValueError("x" * 100_000_000)


def _deep() -> None:
    _deep()


HOSTILE = {
    "exits": _raise(SystemExit(3)),
    "interrupts": _raise(KeyboardInterrupt()),
    "cancels itself": _raise(asyncio.CancelledError()),
    "stops an iteration": _raise(StopIteration(1)),
    "closes a generator": _raise(GeneratorExit()),
    "cannot be printed": _raise(Unprintable()),
    "speaks 100 MB": _loud,
    "speaks NUL": _raise(ValueError("a\0b\ud800c")),
    "recurses": _deep,
    "groups": _raise(BaseExceptionGroup("many", [SystemExit(1), ValueError("one")])),
    "returns a set": lambda: {1, 2},
    "returns itself": lambda: lambda: None,
    "returns NaN": lambda: float("nan"),
    "returns too much": lambda: "x" * 3_000_000,
}


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_hostile_handlers_never_hurt_the_worker(app: Rowlock, db: Db, kind: str) -> None:
    for name, handler in HOSTILE.items():
        if kind == "async":

            async def call(handler: Callable[[], Any] = handler) -> Any:  # noqa: ANN401
                return handler()

            app.task(name=name, retry=Retry.none())(call)
        else:

            def call_sync(handler: Callable[[], Any] = handler) -> Any:  # noqa: ANN401
                return handler()

            app.task(name=name, retry=Retry.none())(call_sync)

    @app.task(name="good")
    async def good() -> str:
        return "fine"

    app.enqueue_many(app.call(name) for name in [*HOSTILE, "good"])
    work_off(app, db)

    outcomes = {row[0]: row[1:3] for row in ended(db)}
    assert outcomes.pop("good") == ("succeeded", None)
    expected = {name: ("failed", "result" if name.startswith("returns") else "exhausted") for name in HOSTILE}
    assert outcomes == expected
    assert one(db, "select max(octet_length(errors[1]::text)) from rowlock.history") < 40_000


def test_an_unknown_task_stays_visible_and_runs_when_a_worker_knows_it(app: Rowlock, db: Db, url: str) -> None:
    app.enqueue("not yet written", x=1)
    work_until(app, lambda: one(db, "select state = 'waiting' from rowlock.jobs"))
    facts = "select waits_for, reason like 'unknown task%%not yet written%%', failures from rowlock.jobs"
    assert db.execute(facts.replace("%%", "%").encode()).fetchone() == ("code", True, 0)

    newer = Rowlock(url)

    @newer.task(name="not yet written")
    async def written(x: int) -> int:
        return x

    work_until(newer, lambda: ended(db))

    assert ended(db) == [("not yet written", "succeeded", None, 0)]


def test_arguments_that_no_longer_fit_wait_for_code_that_takes_them(app: Rowlock, db: Db, url: str) -> None:
    app.enqueue("renamed", user=7)

    @app.task(name="renamed")
    async def new_signature(*, user_id: int) -> None: ...

    work_until(app, lambda: one(db, "select state = 'waiting' from rowlock.jobs"))
    assert "arguments do not fit" in one(db, "select reason from rowlock.jobs")
    assert one(db, "select failures from rowlock.jobs") == 0

    fixed = Rowlock(url)

    @fixed.task(name="renamed")
    async def both_signatures(user_id: int | None = None, user: int | None = None) -> int | None:
        return user_id or user

    work_until(fixed, lambda: ended(db))

    assert one(db, "select result from rowlock.history") == 7


def test_an_alias_takes_jobs_of_the_old_name(app: Rowlock, db: Db) -> None:
    app.enqueue("old.name")

    @app.task(name="new.name", aliases=["old.name"])
    async def renamed() -> None: ...

    work_off(app, db)

    assert ended(db) == [("old.name", "succeeded", None, 0)]


def test_a_success_is_logged_quietly_and_a_failure_with_its_error_and_the_job(
    app: Rowlock, db: Db, caplog: pytest.LogCaptureFixture
) -> None:
    @app.task(name="quiet")
    async def good() -> None: ...

    @app.task(name="bad", retry=Retry(attempts=2, base=timedelta(milliseconds=1)))
    async def bad(card: str) -> None:
        raise ValueError(f"no such user {len(card)}\nsecond line")

    good.enqueue()
    job = bad.enqueue("4711-0815")
    with caplog.at_level(logging.INFO, logger="rowlock.worker"):
        work_off(app, db)

    assert "quiet" not in caplog.text
    assert "0815" not in caplog.text  # arguments are nobody's business
    retried, failed = [record for record in caplog.records if record.getMessage().startswith("bad")]
    assert (retried.levelno, failed.levelno) == (logging.WARNING, logging.ERROR)
    assert re.fullmatch(
        rf"bad {job.id} failed in attempt 1 of 2 and is tried again in [\d.]+ ms: ValueError: no such user 9",
        retried.getMessage(),
    )
    assert failed.getMessage() == f"bad {job.id} failed for good in attempt 2 of 2: ValueError: no such user 9"
    for number, record in enumerate((retried, failed), 1):
        fields = vars(record)
        assert (fields["job_id"], fields["task"], fields["queue"]) == (str(job.id), "bad", "default")
        assert (fields["attempt"], fields["error_type"]) == (number, "ValueError")
    assert (retried.exc_info, retried.exc_text) == (None, None)
    assert failed.exc_info is not None
    assert isinstance(failed.exc_info[1], ValueError)
    assert "second line" in caplog.text
    assert 'raise ValueError(f"no such user' in caplog.text


def test_outcomes_that_are_no_failure_are_logged_in_words(
    app: Rowlock, db: Db, caplog: pytest.LogCaptureFixture
) -> None:
    @app.task(name="later")
    async def later() -> None:
        raise Snooze(timedelta(hours=2))

    @app.task(name="gone")
    async def gone() -> None:
        raise Cancel("the order is gone")

    @app.task(name="asked")
    async def asked() -> None:
        await asyncio.Event().wait()

    jobs = {job.task: job for job in app.enqueue_many([later.bind(), gone.bind(), asked.bind()])}
    with caplog.at_level(logging.INFO, logger="rowlock.worker"):

        async def work() -> None:
            async with app.worker():
                await auntil(lambda: one(db, "select count(*) from rowlock.jobs where state = 'running'") == 1)
                await jobs["asked"].acancel()
                await auntil(lambda: one(db, "select count(*) from rowlock.history") == 2)

        asyncio.run(work())

    said = {record.getMessage() for record in caplog.records}
    assert said >= {
        f"later {jobs['later'].id} snoozes for 2 h",
        f"gone {jobs['gone'].id} is cancelled: the order is gone",
        f"asked {jobs['asked'].id} is cancelled: somebody asked for it",
    }


def test_a_stored_traceback_begins_with_the_handler(app: Rowlock, db: Db) -> None:
    @app.task(name="bad", retry=Retry(attempts=1))
    def bad() -> None:
        raise ValueError

    bad.enqueue()
    work_off(app, db)

    _, first, *_ = one(db, "select errors[1] ->> 'traceback' from rowlock.history").splitlines()
    assert __file__ in first
    assert first.endswith(", in bad")


def test_jobs_of_a_task_without_code_are_a_line_and_then_a_count(
    app: Rowlock, db: Db, caplog: pytest.LogCaptureFixture
) -> None:
    one(db, "select count(rowlock.enqueue('nobodys')) from generate_series(1, 50)")

    work_off(app, db)

    said = [message for message in caplog.messages if "for code: unknown task 'nobodys'" in message]
    assert len(said) == 2
    assert said[1].startswith("49 more jobs of nobodys wait for code")


def test_history_false_leaves_no_trace_of_success_but_keeps_failures(app: Rowlock, db: Db) -> None:
    @app.task(name="quiet", history=False, retry=Retry.none())
    async def quiet(*, fail: bool) -> None:
        if fail:
            raise ValueError

    quiet.enqueue(fail=False)
    quiet.enqueue(fail=True)
    work_off(app, db)

    assert ended(db) == [("quiet", "failed", "exhausted", 1)]
