"""Expiry: a job that was not started in time is not worth starting any more, whether anybody claims it or not."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
from datetime import timedelta
from uuid import uuid4

import psycopg
import pytest

from rowlock import Retry, Rowlock, Task, Tasks
from rowlock.db.thread_connection import ReconnectingSyncConnection
from rowlock.errors import InvalidOption, JobCancelled
from rowlock.model.spec import Keep
from rowlock.store.upkeep import EXPIRED_AT_ONCE
from rowlock.testing import drain
from rowlock.worker import upkeep
from tests.cli.conftest import Type, rowlock, shop, typed
from tests.rows import Db, put, travel
from tests.worker.working import ended, one, work_until, working

__all__ = ["rowlock", "shop", "typed"]  # fixtures

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
# With a lease so short, upkeep comes round within two seconds.
SHORT = timedelta(seconds=3)

EXPIRED = "select count(*) from rowlock.history where state = 'cancelled' and reason = 'expired'"


@pytest.fixture
def news(app: Rowlock) -> Task[[], None]:
    """A task whose jobs are worth starting for an hour."""

    @app.task(name="news", expires=HOUR)
    async def news() -> None: ...

    return news


def sweep(url: str, *, longest: timedelta = timedelta(days=30)) -> None:
    """As upkeep does it."""
    steady = ReconnectingSyncConnection(url, "rowlock", name="test")
    upkeep.expire(steady, keep=Keep(), longest=longest)
    steady.close()


# How long


def test_what_a_task_says_holds_for_its_jobs_and_what_a_call_says_for_that_one(news: Task[[], None], db: Db) -> None:
    news.enqueue()
    news.using(priority=1).enqueue()
    news.using(expires=MINUTE).enqueue()
    news.using(delay=3 * HOUR).enqueue()

    spans = db.execute("select expires_at - run_at from rowlock.jobs order by id").fetchall()
    assert [span for (span,) in spans] == [HOUR, HOUR, MINUTE, HOUR]


def test_it_is_counted_from_run_at_however_a_job_is_enqueued(app: Rowlock, news: Task[[], None], db: Db) -> None:
    app.enqueue_many([news.using(delay=3 * HOUR).bind()] * 600)  # by COPY
    app.enqueue_many([news.using(delay=3 * HOUR).bind()] * 2)
    news.using(delay=3 * HOUR, key="k").enqueue()
    asyncio.run(news.using(delay=3 * HOUR).aenqueue())
    db.execute("select rowlock.enqueue('news', delay => '3 hours', expires => '1 hour')")

    spans = db.execute("select distinct run_at - created_at, expires_at - run_at from rowlock.jobs").fetchall()
    assert spans == [(3 * HOUR, HOUR)]


@pytest.mark.parametrize("span", [timedelta(0), -MINUTE, 60])
def test_a_span_that_no_job_outlives_is_refused(app: Rowlock, news: Task[[], None], span: timedelta) -> None:
    with pytest.raises(InvalidOption, match="expires="):
        app.task(name="t", expires=span)(len)
    with pytest.raises(InvalidOption, match="expires="):
        news.using(expires=span)


@pytest.mark.parametrize("span", ["0", "-1 hour"])
def test_sql_refuses_it_too(db: Db, span: str) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="expires is"):
        db.execute("select rowlock.enqueue('t', expires => %s::interval)", [span])


# Where nobody claims


def test_upkeep_ends_what_nobody_claims(app: Rowlock, news: Task[[], None], db: Db) -> None:
    app.queues.pause("paused")
    app.tasks.pause("news")
    news.using(queue="paused", key="k").enqueue()
    news.using(queue="nobody listens").enqueue()
    put(db, "waiting", task="no code")
    db.execute("update rowlock.jobs set expires_at = rowlock.now() + interval '1 hour'")
    put(db, task="for ever", queue="paused")

    travel(db, 2 * HOUR)
    work_until(app, lambda: one(db, EXPIRED) == 3, lease=SHORT, queues=["default", "paused"])

    assert sorted(ended(db)) == [("news", "cancelled", "expired", 0)] * 2 + [("no code", "cancelled", "expired", 0)]
    assert one(db, "select task from rowlock.jobs") == "for ever"
    assert one(db, "select count(*) from rowlock.keys") == 0
    assert [event.kind for event in app.jobs.events()] == ["paused", "paused"]  # there may be millions of these jobs


def test_whoever_waits_for_it_is_told(url: str, db: Db) -> None:
    listener = uuid4()
    job, other = put(db, task="stale"), put(db, task="fresh")
    db.execute("insert into rowlock.waiters select unnest(%s::uuid[]), %s, now()", [[job, other], listener])
    db.execute("update rowlock.jobs set expires_at = rowlock.now() where task = 'stale'")
    with psycopg.connect(url, autocommit=True) as ear:
        ear.execute(f'listen "rowlock:{listener}"'.encode())

        sweep(url)

        assert len(list(ear.notifies(timeout=30, stop_after=1))) == 1


def test_its_result_says_that_it_has_expired(url: str, news: Task[[], None], db: Db) -> None:
    job = news.using(queue="nobody listens").enqueue()
    travel(db, 2 * HOUR)

    sweep(url)

    with pytest.raises(JobCancelled, match=f"job {job.id} of news was cancelled: expired") as said:
        job.result(timeout=MINUTE)
    assert said.value.reason == "expired"


def test_a_job_that_runs_is_left_alone(app: Rowlock, db: Db) -> None:
    began, go_on = threading.Event(), threading.Event()

    @app.task(name="long", expires=HOUR)
    def long() -> str:
        began.set()
        go_on.wait()
        return "done"

    job = long.enqueue()
    with working(app, lease=timedelta(days=1)):
        began.wait()
        travel(db, 2 * HOUR)
        sweep(db.info.dsn)
        go_on.set()
        result = job.result(timeout=MINUTE)

    assert result == "done"
    assert one(db, EXPIRED) == 0


def test_a_retry_that_would_start_too_late_ends_it_with_what_went_wrong(app: Rowlock, url: str, db: Db) -> None:
    @app.task(name="fails", expires=HOUR, retry=Retry(base=2 * HOUR, cap=2 * HOUR))
    async def fails() -> None:
        raise OSError("down")

    job = fails.enqueue()
    work_until(app, lambda: one(db, "select failures = 1 and state = 'ready' from rowlock.jobs"))
    travel(db, HOUR + MINUTE)  # it is not even due
    sweep(url)

    record = job.record()
    assert (record.state, record.reason, record.failures, record.claims) == ("cancelled", "expired", 1, 1)
    assert [error.message for error in record.errors] == ["down"]


def test_a_job_that_somebody_has_locked_is_passed_over(url: str, db: Db) -> None:
    put(db, task="locked")
    put(db, task="free")
    db.execute("update rowlock.jobs set expires_at = rowlock.now()")
    with psycopg.connect(url) as other:
        other.execute("select from rowlock.jobs where task = 'locked' for update")

        sweep(url)

        assert [task for task, *_ in ended(db)] == ["free"]


def test_thousands_end_in_chunks(url: str, db: Db, caplog: pytest.LogCaptureFixture) -> None:
    db.execute(
        """
        insert into rowlock.jobs (id, queue, task, attempts, run_at, created_at, expires_at, args)
        select rowlock.uuid7(), 'q', 't', 1, rowlock.now(), rowlock.now(), rowlock.now(), '{}'
        from generate_series(1, %s)
        """,
        [EXPIRED_AT_ONCE * 2 + 1],
    )

    with caplog.at_level(logging.INFO, "rowlock.upkeep"):
        sweep(url)

    assert one(db, EXPIRED) == EXPIRED_AT_ONCE * 2 + 1
    assert one(db, "select count(*) from rowlock.jobs") == 0
    assert "cancelled 2001 jobs that had expired" in caplog.text


def test_a_history_without_a_part_for_the_day_gets_one(url: str, db: Db) -> None:
    put(db)
    db.execute("update rowlock.jobs set expires_at = rowlock.now()")
    db.execute("insert into rowlock.queues (name, keep_cancelled) values ('default', '60 days')")

    for _ in range(2):
        sweep(url, longest=timedelta(days=90))

    assert one(db, EXPIRED) == 1


def test_the_command_line_says_when_it_expires_and_that_it_has(rowlock: Type, news: Task[[], None], db: Db) -> None:
    job = news.using(queue="nobody listens").enqueue()

    before = rowlock("jobs", "show", str(job.id))
    travel(db, 2 * HOUR)
    sweep(db.info.dsn)
    after = rowlock("jobs", "list", "--state", "cancelled", "--reason", "expired", "--json")

    assert re.search(r"^expires +20\S+Z \(in \d+ min\)", before.out, re.MULTILINE)
    assert str(job.id) in after.out


# In tests


def test_a_drain_ends_what_a_worker_would(app: Rowlock, news: Task[[], None], db: Db) -> None:
    app.queues.pause("paused")
    news.enqueue()
    news.using(queue="paused").enqueue()
    travel(db, 2 * HOUR)

    drained = drain(app)

    assert (len(drained), drained.expired, drained.cancelled) == (1, 1, 2)
    assert ended(db) == [("news", "cancelled", "expired", 0)] * 2


def test_a_drain_on_a_connection_ends_them_there(app: Rowlock, news: Task[[], None], url: str, db: Db) -> None:
    news.using(queue="elsewhere").enqueue()
    travel(db, 2 * HOUR)

    with psycopg.connect(url) as connection:
        drained = drain(app, connection=connection, queues="default")
        connection.rollback()

    assert drained.cancelled == 1
    assert one(db, "select count(*) from rowlock.jobs") == 1


# Declared without an app


def test_tasks_of_a_library_can_expire(app: Rowlock, db: Db) -> None:
    tasks = Tasks()

    @tasks.task(name="library", expires=MINUTE)
    async def library() -> None: ...

    app.include(tasks)
    library.enqueue()

    assert one(db, "select expires_at - run_at from rowlock.jobs") == MINUTE
