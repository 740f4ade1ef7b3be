"""What must work wherever the database is and however it is set up: one worker, and all that users do with it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg.rows import TupleRow

from rowlock import Filter, Job, Retry, Rowlock, Snooze, current_job
from rowlock.errors import JobCancelled, JobFailed
from rowlock.store.claim import Lane
from rowlock.types import JobRecord
from tests.engine import Engine
from tests.waiting import until
from tests.worker.working import one, working

Db = psycopg.Connection[TupleRow]

SOON = timedelta(seconds=60)
LATER = datetime(2033, 3, 27, 1, 30, 15, 123456, tzinfo=UTC)  # an hour that some time zones do not have
BULK = 1_200  # enough for COPY
LEASE = timedelta(seconds=3)


class Place:
    """An app on the database in question, with tasks, and a look into that database from elsewhere."""

    def __init__(self, app: Rowlock, db: Db) -> None:
        self.app = app
        self.db = db
        self.holding = threading.Event()

        @app.task(name="add")
        async def add(a: int, b: int) -> int:
            current_job().progress(0.5, "half")
            return a + b

        @app.task(name="add in a thread")
        def add_in_a_thread(a: int, b: int) -> int:
            return a + b

        @app.task(name="flaky", retry=Retry(attempts=3, base=timedelta(0)))
        async def flaky() -> int:
            if current_job().attempt == 1:
                raise ConnectionError("not yet")
            return current_job().attempt

        @app.task(name="snoozing")
        async def snoozing() -> None:
            raise Snooze(timedelta(days=1))

        @app.task(name="broken", retry=Retry.none())
        def broken() -> None:
            raise ValueError("never")

        @app.task(name="hold")
        async def hold() -> None:
            self.holding.set()
            await asyncio.Event().wait()

        @app.task(name="note")
        async def note(n: int) -> None:
            async with current_job().transaction() as connection:
                await connection.execute("insert into public.notes values (%s)", [n])

        @app.task(name="note in a thread")
        def note_in_a_thread(n: int) -> None:
            with current_job().transaction() as connection:
                connection.execute("insert into public.notes values (%s)", [n])

        db.execute("create table if not exists public.notes (n integer)")
        self.note, self.note_in_a_thread = note, note_in_a_thread
        self.add, self.add_in_a_thread, self.flaky = add, add_in_a_thread, flaky
        self.snoozing, self.broken, self.hold = snoozing, broken, hold

    def state(self, job: Job[Any], state: str) -> JobRecord:
        """Wait until a job is in this state."""
        return until(lambda: (record := job.record()).state == state and record, what=f"{state} {job}") or job.record()


Check = Callable[[Place], None]


def check_everything(place: Place, *, besides: Sequence[Check] = (), **worker: Any) -> None:  # noqa: ANN401  app.worker's
    """Every check, one after the other, on one worker."""
    with working(place.app, lease=LEASE, **worker):
        for check in (*CHECKS, *besides):
            check(place)
    print(f"{len(CHECKS) + len(besides)} checks")  # noqa: T201  pytest shows it when the test failed


def enqueued_one_by_one(place: Place) -> None:
    plain = place.add.enqueue(1, 2)
    threaded = place.add_in_a_thread.enqueue(3, 4)

    assert (plain.result(SOON), threaded.result(SOON)) == (3, 7)
    assert not plain.cancel()  # too late


def enqueued_and_awaited_by_many(place: Place) -> None:
    async def many() -> list[int]:
        jobs = await asyncio.gather(*[place.add.aenqueue(n, n) for n in range(20)])
        answers = await asyncio.gather(*[job.aresult(SOON) for job in jobs])
        await place.app.aclose()
        return answers

    assert asyncio.run(many()) == [2 * n for n in range(20)]


def enqueued_in_bulk(place: Place) -> None:
    calls = [place.add.using(queue="bulk", tags=["bulk"]).bind(n, n) for n in range(BULK)]

    jobs = place.app.enqueue_many(calls)

    there = "select count(*) from rowlock.jobs where queue = 'bulk' and tags = '{bulk}'"
    assert len(jobs) == BULK
    assert one(place.db, there) == BULK
    assert place.app.jobs.delete(Filter(queue="bulk")).changed == BULK


def a_key_is_held_once(place: Place) -> None:
    later = place.add.using(key="one", delay=timedelta(hours=1))
    first = later.enqueue(1, 1)

    again, other = place.app.enqueue_many([later.bind(2, 2), place.add.using(key="two").bind(3, 3)])

    assert (first.created, again.created, again.id) == (True, False, first.id)
    assert other.result(SOON) == 6
    assert place.app.jobs.cancel(Filter(key="one")).changed == 1
    assert later.enqueue(4, 4).created


def moments_are_kept_to_the_microsecond(place: Place) -> None:
    job = place.add.using(run_at=LATER, tags=["ä'\"\\{},"]).enqueue(1, 1)

    record = job.record()

    assert (record.state, record.run_at, record.tags) == ("ready", LATER, ("ä'\"\\{},",))
    assert abs(record.created_at - datetime.now(UTC)) < timedelta(minutes=5)
    assert one(place.db, "select run_at from rowlock.jobs where id = %s", job.id) == LATER
    assert place.app.jobs.list(Filter(tag="ä'\"\\{},")).records[0].id == job.id


def a_failed_attempt_is_retried(place: Place) -> None:
    job = place.flaky.enqueue()

    assert job.result(SOON) == 2
    record = job.record()
    assert (record.failures, record.claims, [error.type for error in record.errors]) == (1, 2, ["ConnectionError"])


def a_snoozing_job_waits_its_time(place: Place) -> None:
    job = place.snoozing.enqueue()

    record = until(lambda: (seen := job.record()).claims == 1 and seen.state == "ready" and seen)

    assert record
    assert timedelta(hours=23) < record.run_at - datetime.now(UTC) < timedelta(hours=25)


def a_failed_job_is_told_and_retried_by_an_operator(place: Place) -> None:
    job = place.broken.enqueue()

    with pytest.raises(JobFailed) as told:
        job.result(SOON)
    again = place.app.jobs.retry(Filter(ids=[job.id]), by="smoke", why="to see")

    assert (told.value.error_type, told.value.reason, again.changed) == ("ValueError", "exhausted", 1)
    until(lambda: (record := job.record()).claims == 2 and record.state == "failed")
    assert [event.kind for event in place.app.jobs.events(job.id)][:1] == ["retried"]


def a_job_that_has_not_begun_is_cancelled(place: Place) -> None:
    job = place.add.using(delay=timedelta(hours=1)).enqueue(1, 1)

    answer = place.app.jobs.cancel(Filter(ids=[job.id]))

    assert answer.changed == 1
    with pytest.raises(JobCancelled):
        job.result(SOON)


def a_running_job_is_cancelled(place: Place) -> None:
    job = place.hold.enqueue()
    assert place.holding.wait(60)

    answer = job.cancel(why="to see")

    assert answer
    with pytest.raises(JobCancelled):
        job.result(SOON)


def a_handler_commits_with_its_job(place: Place) -> None:
    jobs = [place.note.enqueue(1), place.note_in_a_thread.enqueue(2)]

    assert [job.result(SOON) for job in jobs] == [None, None]
    assert place.db.execute("select n from public.notes order by n").fetchall() == [(1,), (2,)]


def a_paused_task_waits_until_it_is_resumed(place: Place) -> None:
    place.app.tasks.pause("add in a thread", why="to see", duration=timedelta(hours=1))
    job = place.add_in_a_thread.enqueue(5, 5)
    place.state(job, "waiting")

    [pause] = place.app.tasks.pauses()
    resumed = place.app.tasks.resume("add in a thread")

    assert (pause.task, pause.why, resumed) == ("add in a thread", "to see", True)
    assert pause.until is not None
    assert timedelta(minutes=50) < pause.until - datetime.now(UTC) < timedelta(minutes=70)
    assert job.result(SOON) == 10


def jobs_are_moved_and_reprioritised(place: Place) -> None:
    jobs = [place.add.using(queue="old").enqueue(n, n) for n in range(3)]

    place.app.jobs.reprioritise(Filter(queue="old"), priority=4)
    place.app.jobs.move(Filter(queue="old"), queue="default")

    assert [job.result(SOON) for job in jobs] == [0, 2, 4]
    assert {job.record().priority for job in jobs} == {4}


def jobs_of_the_dead_are_rescued(place: Place) -> None:
    job = place.add.using(queue="of the dead").enqueue(1, 1)
    dead = Engine(place.app.database.conninfo(), lease=timedelta(milliseconds=200))
    claimed = dead.claim(lanes=[Lane("of the dead", 0)])
    dead.close()

    record = until(lambda: (seen := job.record()).crashes == 1 and seen)

    assert [row.id for row in claimed] == [str(job.id)]
    assert record
    assert (record.state, record.failures) == ("ready", 0)
    assert "rescued" in [event.kind for event in place.app.jobs.events(job.id)]


def everything_is_counted(place: Place) -> None:
    stats = place.app.stats()

    assert stats.unknown == {}
    assert stats.queues["default"].runnable is not None
    assert [worker.slots for worker in stats.fleet.workers or ()] == [100]
    assert stats.database.claim is not None


def migrating_again_changes_nothing(place: Place) -> None:
    assert place.app.migrate() == []


CHECKS: tuple[Check, ...] = (
    enqueued_one_by_one,
    enqueued_and_awaited_by_many,
    enqueued_in_bulk,
    a_key_is_held_once,
    moments_are_kept_to_the_microsecond,
    a_failed_attempt_is_retried,
    a_snoozing_job_waits_its_time,
    a_failed_job_is_told_and_retried_by_an_operator,
    a_job_that_has_not_begun_is_cancelled,
    a_running_job_is_cancelled,
    a_handler_commits_with_its_job,
    a_paused_task_waits_until_it_is_resumed,
    jobs_are_moved_and_reprioritised,
    jobs_of_the_dead_are_rescued,
    everything_is_counted,
    migrating_again_changes_nothing,
)
