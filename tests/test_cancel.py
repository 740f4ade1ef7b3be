"""Job.cancel, and its like in SQL: one of two answers, and no third."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from uuid import uuid4

import psycopg
import pytest

from rowlock import Job, Rowlock, RowlockError
from rowlock.errors import InvalidOption, JobNotFound
from tests.engine import Engine
from tests.rows import Db, put
from tests.waiting import until
from tests.worker.working import one


@pytest.fixture(params=["python", "sql"])
def cancel(request: pytest.FixtureRequest, app: Rowlock, db: Db) -> Callable[[object], bool]:
    """Cancel a job by its id: in Python, and as other languages do."""

    def by_sql(job_id: object) -> bool:
        return {"cancelled": True, "too late": False}[str(one(db, "select rowlock.cancel(%s, 'ada', 'so')", job_id))]

    return by_sql if request.param == "sql" else lambda job_id: app.jobs.get(str(job_id)).cancel(by="ada", why="so")


@pytest.mark.parametrize("state", ["ready", "waiting"])
def test_a_job_that_has_not_started_ends_at_once(
    app: Rowlock, db: Db, cancel: Callable[[object], bool], state: str
) -> None:
    job = put(db, state, key="k")

    assert cancel(job) is True

    assert db.execute("select state, reason, key from rowlock.history").fetchall() == [("cancelled", "asked", "k")]
    assert one(db, "select (select count(*) from rowlock.jobs) + (select count(*) from rowlock.keys)") == 0
    [event] = app.jobs.events(job)
    assert (event.kind, event.actor, event.details["why"], event.details["state"]) == ("cancelled", "ada", "so", state)


def test_a_running_job_is_marked_once(app: Rowlock, db: Db, cancel: Callable[[object], bool]) -> None:
    job = put(db, "running", key="k")

    assert cancel(job) is True
    marked = one(db, "select cancel_at from rowlock.jobs")
    assert cancel(job) is True

    assert marked is not None
    assert one(db, "select cancel_at from rowlock.jobs") == marked
    assert one(db, "select count(*) from rowlock.keys") == 1
    assert [event.kind for event in app.jobs.events(job)] == ["cancelled"]


def test_the_worker_of_a_running_job_is_notified(url: str, db: Db, cancel: Callable[[object], bool]) -> None:
    worker = uuid4()
    with psycopg.connect(url, autocommit=True) as listener:
        listener.execute(f'listen "rowlock:{worker}"'.encode())

        cancel(put(db, "running", worker=worker))

        assert [notice.payload for notice in listener.notifies(timeout=30, stop_after=1)] == ["cancel"]


@pytest.mark.parametrize(("state", "answer"), [("succeeded", False), ("failed", False), ("cancelled", True)])
def test_an_ended_job_stays_as_it_is(
    app: Rowlock, db: Db, cancel: Callable[[object], bool], state: str, *, answer: bool
) -> None:
    job = put(db, state)

    assert cancel(job) is answer

    assert one(db, "select state from rowlock.history") == state
    assert app.jobs.events(job) == ()


def test_a_job_that_is_nowhere_is_an_error(app: Rowlock, db: Db) -> None:
    @app.task(name="t")
    def task() -> None: ...

    job = task.enqueue()
    db.execute("delete from rowlock.jobs")

    with pytest.raises(JobNotFound):
        job.cancel()
    with pytest.raises(psycopg.errors.NoDataFound, match="there is no job"):
        db.execute("select rowlock.cancel(%s)", [job.id])


@pytest.mark.parametrize("commits", [True, False])
def test_it_waits_for_whoever_is_ending_the_job(app: Rowlock, url: str, db: Db, *, commits: bool) -> None:
    """Skipping the locked row, it could only have guessed."""
    engine = Engine(url)
    [job_id] = engine.enqueue()
    rows = engine.claim()
    answers: list[bool] = []
    job: Job[object] = app.jobs.get(job_id)

    engine.connection.execute("begin")
    engine.settle(*rows)
    asking = threading.Thread(target=lambda: answers.append(job.cancel()))
    asking.start()
    waits = "select count(*) = 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    until(lambda: one(db, waits))
    engine.connection.execute("commit" if commits else "rollback")
    asking.join()
    engine.close()

    assert answers == [not commits]
    assert job.record().state == ("succeeded" if commits else "running")


def test_it_is_kept_as_long_as_its_task_says(app: Rowlock, db: Db) -> None:
    job = put(db, "ready", queue="short")
    db.execute("insert into rowlock.queues (name, keep_cancelled) values ('short', '2 days')")

    app.jobs.get(job).cancel()

    assert one(db, "select expires_on - (ended_at at time zone 'UTC')::date from rowlock.history") == 2


def test_on_a_loop_there_is_acancel(app: Rowlock, db: Db) -> None:
    async def cancel() -> bool:
        async with app:
            job = await app.jobs.aget(put(db, "ready"))
            with pytest.raises(RowlockError, match=r"await job.acancel\(\)"):
                job.cancel()
            return await job.acancel()

    assert asyncio.run(cancel())


def test_bad_words_are_refused_before_anything_is_done(app: Rowlock, db: Db) -> None:
    job = app.jobs.get(put(db, "ready"))

    with pytest.raises(InvalidOption, match="why"):
        job.cancel(why="nul\x00")

    assert job.record().state == "ready"
