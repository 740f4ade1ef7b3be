"""A handler's transaction: what it writes and the end of its job are committed together, or not at all."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest

from rowlock import Retry, Rowlock, RowlockError, Task, current_job
from rowlock.errors import JobFailed, LeaseLost
from rowlock.testing import adrain, drain
from tests.db.wire import Wire
from tests.depth import deep
from tests.waiting import until
from tests.worker.process import worker_process
from tests.worker.working import Db, ended, one, work_off, work_until

ONCE = Retry(attempts=1)
AT_ONCE = Retry(attempts=3, base=timedelta(0), cap=timedelta(0))
ENDED = "select count(*) from rowlock.history"


@pytest.fixture(autouse=True)
def orders(db: Db) -> None:
    """A table of the user's own, beside ours."""
    db.execute("create table orders (number integer primary key)")


def written(db: Db) -> list[int]:
    return [number for (number,) in db.execute("select number from orders order by number")]


def spoil(db: Db, job: UUID) -> None:
    """Take the job away from its attempt, as a rescue does."""
    db.execute("update rowlock.jobs set state = 'ready', token = null where id = %s", [job])


# Committed together


def test_what_an_async_handler_writes_is_committed_with_the_end_of_its_job(app: Rowlock, db: Db) -> None:
    @app.task(name="place")
    async def place(number: int) -> str:
        async with current_job().transaction() as connection:
            await connection.execute("insert into orders values (%s)", [number])
            assert (written(db), one(db, ENDED)) == ([], 0)
            return current_job().give_result(f"order {number}")

    job = place.enqueue(7)
    work_off(app, db)

    assert job.result(timeout=timedelta(0)) == "order 7"
    assert written(db) == [7]
    assert ended(db) == [("place", "succeeded", None, 0)]


def test_what_a_sync_handler_writes_is_committed_with_the_end_of_its_job(app: Rowlock, db: Db) -> None:
    @app.task(name="place")
    def place(number: int) -> None:
        with current_job().transaction() as connection:
            connection.execute("insert into orders values (%s)", [number])
            assert (written(db), one(db, ENDED)) == ([], 0)
        assert (written(db), one(db, ENDED)) == ([number], 1)

    job = place.enqueue(7)
    work_off(app, db)

    assert job.result(timeout=timedelta(0)) is None
    assert ended(db) == [("place", "succeeded", None, 0)]


def test_whoever_waits_for_the_result_is_told_by_the_transaction(app: Rowlock) -> None:
    @app.task(name="answer")
    async def answer() -> int:
        async with current_job().transaction():
            return current_job().give_result(42)

    async def story() -> int:
        async with app, app.worker():
            return await (await answer.aenqueue()).aresult(timeout=timedelta(seconds=30))

    assert asyncio.run(story()) == 42


def test_a_job_is_counted_logged_and_kept_as_if_it_had_been_settled(
    app: Rowlock, db: Db, caplog: pytest.LogCaptureFixture
) -> None:
    @app.task(name="place", history=False)
    async def place() -> None:
        async with current_job().transaction() as connection:
            await connection.execute("insert into orders values (1)")

    @app.task(name="show")
    async def show() -> None:
        current_job().progress(0.5, "half")
        async with current_job().transaction():
            current_job().progress(1.0, "whole")

    app.enqueue_many([place.bind(), show.bind()])
    with caplog.at_level(logging.DEBUG, "rowlock.worker"):
        work_off(app, db)

    assert [row[0] for row in ended(db)] == ["show"]
    assert one(db, "select progress->>'note' from rowlock.history") == "whole"
    assert one(db, "select sum(succeeded)::integer from rowlock.minutes") == 2
    assert sum("succeeded in" in message for message in caplog.messages) == 2
    assert one(db, "select count(*) from rowlock.jobs") == 0


def test_jobs_enqueued_on_the_connection_are_committed_too(app: Rowlock, db: Db) -> None:
    @app.task(name="child")
    async def child() -> None: ...

    @app.task(name="parent", retry=AT_ONCE)
    async def parent() -> None:
        async with current_job().transaction() as connection:
            await child.using(connection=connection).aenqueue()
            if current_job().attempt == 1:
                raise ConnectionError("not yet")

    parent.enqueue()
    work_until(app, lambda: one(db, ENDED) == 2)

    assert [row[0] for row in ended(db)] == ["parent", "child"]


def test_the_connection_is_a_plain_session_with_psycopgs_own_types(app: Rowlock, url: str) -> None:
    ask = "select current_setting('enable_seqscan'), current_setting('search_path'), gen_random_uuid(), now()"
    seen: list[Any] = []

    @app.task(name="look")
    async def look() -> None:
        async with current_job().transaction() as connection:
            seen.append(await (await connection.execute(ask)).fetchone())

    look.enqueue()
    drain(app)
    with psycopg.connect(url) as plain:
        expected = plain.execute(ask.encode()).fetchone()

    assert expected is not None
    assert seen[0][:2] == expected[:2] == ("on", '"$user", public')
    assert [type(value) for value in seen[0]] == [type(value) for value in expected]


# Or not at all


def test_an_error_in_the_block_rolls_back_and_the_job_is_retried(app: Rowlock, db: Db) -> None:
    @app.task(name="place", retry=AT_ONCE)
    def place() -> None:
        with current_job().transaction() as connection:
            connection.execute("insert into orders values (%s)", [current_job().attempt])
            if current_job().attempt == 1:
                raise ConnectionError("not yet")

    place.enqueue()
    work_off(app, db)

    assert written(db) == [2]
    assert ended(db) == [("place", "succeeded", None, 1)]


def test_a_result_that_does_not_fit_rolls_back_and_fails_the_job(app: Rowlock, db: Db) -> None:
    @app.task(name="place", retry=AT_ONCE)
    async def place() -> int:
        async with current_job().transaction() as connection:
            await connection.execute("insert into orders values (1)")
            current_job().give_result("one")
        return 1

    job = place.enqueue()
    work_off(app, db)

    assert written(db) == []
    assert ended(db) == [("place", "failed", "result", 1)]
    with pytest.raises(JobFailed, match=r"the result of .*place"):
        job.result(timeout=timedelta(0))


def test_a_constraint_that_is_checked_at_the_commit_rolls_back_the_end_too(app: Rowlock, db: Db) -> None:
    db.execute("create table lines (number integer references orders deferrable initially deferred)")

    @app.task(name="place", retry=ONCE)
    async def place() -> None:
        async with current_job().transaction() as connection:
            await connection.execute("insert into lines values (1)")

    place.enqueue()
    work_off(app, db)

    assert one(db, "select count(*) from lines") == 0
    assert ended(db) == [("place", "failed", "exhausted", 1)]
    assert one(db, "select errors[1]->>'type' from rowlock.history") == "psycopg.errors.ForeignKeyViolation"


def test_a_rollback_that_the_handler_asks_for_leaves_the_job_to_its_return(app: Rowlock, db: Db) -> None:
    @app.task(name="place")
    async def place() -> int:
        async with current_job().transaction() as connection:
            await connection.execute("insert into orders values (1)")
            raise psycopg.Rollback
        return 3  # type: ignore[unreachable]  # the block swallows psycopg's own word for it

    job = place.enqueue()
    work_off(app, db)

    assert (written(db), job.result(timeout=timedelta(0))) == ([], 3)


def test_a_handler_that_catches_the_error_may_begin_again(app: Rowlock, db: Db) -> None:
    @app.task(name="place")
    def place() -> None:
        for number in (1, 2):
            try:
                with current_job().transaction() as connection:
                    connection.execute("insert into orders values (%s)", [number])
                    connection.execute("select 1 / %s", [number - 1])
            except psycopg.errors.DivisionByZero:
                continue

    place.enqueue()
    work_off(app, db)

    assert written(db) == [2]
    assert ended(db) == [("place", "succeeded", None, 0)]


# The lease is lost, or the job is to be cancelled


def test_a_handler_whose_job_was_taken_away_is_told_and_rolled_back(app: Rowlock, db: Db) -> None:
    told: list[LeaseLost] = []
    numbers = count(1)

    @app.task(name="place")
    async def place() -> None:
        number = next(numbers)  # the second may begin before the first has been told
        try:
            async with current_job().transaction() as connection:
                await connection.execute("insert into orders values (%s)", [number])
                if number == 1:
                    spoil(db, current_job().id)
        except LeaseLost as lost:
            told.append(lost)
            raise

    job = place.enqueue()
    work_until(app, lambda: one(db, ENDED) == 1)

    assert [lost.job for lost in told] == [job.id]
    assert written(db) == [2]
    assert db.execute("select state, claims, failures from rowlock.history").fetchall() == [("succeeded", 2, 0)]


def test_a_job_that_somebody_cancels_meanwhile_ends_as_cancelled_and_writes_nothing(app: Rowlock, db: Db) -> None:
    @app.task(name="place")
    def place() -> None:
        with current_job().transaction() as connection:
            connection.execute("insert into orders values (1)")
            assert one(db, "select rowlock.cancel(%s)", current_job().id) == "cancelled"

    place.enqueue()
    work_until(app, lambda: one(db, ENDED) == 1)

    assert written(db) == []
    assert ended(db) == [("place", "cancelled", "asked", 0)]


def test_a_cancellation_after_the_commit_is_too_late(app: Rowlock, db: Db) -> None:
    answers: list[str] = []

    @app.task(name="place")
    def place() -> None:
        with current_job().transaction() as connection:
            connection.execute("insert into orders values (1)")
        answers.append(one(db, "select rowlock.cancel(%s)", current_job().id))

    place.enqueue()
    work_off(app, db)

    assert (answers, written(db)) == (["too late"], [1])
    assert ended(db) == [("place", "succeeded", None, 0)]


def test_a_row_that_somebody_has_locked_is_waited_for(app: Rowlock, db: Db, url: str) -> None:
    @app.task(name="place")
    def place() -> None:
        with psycopg.connect(url) as other:
            other.execute("select from rowlock.jobs where id = %s for update", [current_job().id])
            with current_job().transaction() as connection:
                connection.execute("insert into orders values (1)")
                pids = (other.info.backend_pid, connection.info.backend_pid)
                thread = threading.Thread(target=let_go, args=(other, *pids))
                thread.start()
            thread.join()

    def let_go(other: Db, holds: int, waits: int) -> None:
        until(lambda: one(db, "select %s = any(pg_blocking_pids(%s))", holds, waits), what="the wait for the lock")
        other.rollback()

    place.enqueue()
    work_until(app, lambda: one(db, ENDED) == 1)

    assert written(db) == [1]
    assert ended(db) == [("place", "succeeded", None, 0)]


# The answer to the commit is lost


@pytest.fixture
def wire(url: str, tmp_path: Path) -> Iterator[Wire]:
    with Wire(url, tmp_path) as wire:
        yield wire


@pytest.mark.parametrize("arrives", [True, False], ids=["committed", "not committed"])
def test_an_unknown_commit_takes_effect_once_whatever_became_of_it(
    app: Rowlock, db: Db, wire: Wire, *, arrives: bool
) -> None:
    errors: list[Exception] = []

    @app.task(name="place", retry=AT_ONCE)
    def place() -> None:
        with psycopg.connect(wire.url) as mine:
            try:
                with current_job().transaction(mine):
                    mine.execute("insert into orders values (%s)", [current_job().attempt])
                    if current_job().attempt == 1:
                        wire.cut_at(b"COMMIT", arrives=arrives)
            except psycopg.OperationalError as error:
                errors.append(error)
                raise

    place.enqueue()
    work_until(app, lambda: one(db, "select not exists (select from rowlock.jobs)"))

    assert (wire.lost, len(errors)) == (1, 1)
    assert written(db) == ([1] if arrives else [2])
    assert ended(db) == [("place", "succeeded", None, 0 if arrives else 1)]


# Killed


@deep
def test_killed_workers_leave_every_effect_exactly_once(app: Rowlock, db: Db, url: str) -> None:
    db.execute("create table effects (number integer)")  # without a key: what happens twice is seen twice
    tasks = ["write once", "write once in a thread"]
    calls = [app.call(tasks[number % 2], number=number) for number in range(400)]

    def in_the_middle() -> None:
        before: int = one(db, "select count(*) from effects")
        until(lambda: one(db, "select count(*) > %s from effects", before + 20))

    with worker_process(url, lease=1) as first, worker_process(url, lease=1) as second, worker_process(url, lease=1):
        app.enqueue_many(calls)
        for victim in (first, second):
            in_the_middle()
            victim.kill()
        until(lambda: one(db, ENDED) == len(calls), what="the end of all jobs", limit=90)

    assert [number for (number,) in db.execute("select * from effects order by 1")] == list(range(len(calls)))
    assert db.execute("select distinct state, failures from rowlock.history").fetchall() == [("succeeded", 0)]
    assert one(db, "select sum(crashes) > 0 from rowlock.history")


# The last thing a handler does


def test_an_error_after_the_commit_is_logged_and_changes_nothing(
    app: Rowlock, db: Db, caplog: pytest.LogCaptureFixture
) -> None:
    @app.task(name="place", retry=AT_ONCE)
    async def place() -> None:
        async with current_job().transaction() as connection:
            await connection.execute("insert into orders values (1)")
        raise ValueError("too late")

    place.enqueue()
    work_off(app, db)

    assert written(db) == [1]
    assert ended(db) == [("place", "succeeded", None, 0)]
    assert any("ValueError" in message and "changes nothing" in message for message in caplog.messages)


def test_another_result_after_the_commit_is_logged_and_changes_nothing(
    app: Rowlock, db: Db, caplog: pytest.LogCaptureFixture
) -> None:
    @app.task(name="answer")
    async def answer() -> int:
        async with current_job().transaction():
            current_job().give_result(1)
        return 2

    job = answer.enqueue()
    work_off(app, db)

    assert job.result(timeout=timedelta(0)) == 1
    assert any("another result" in message for message in caplog.messages)


def test_a_second_transaction_after_the_commit_is_refused(app: Rowlock, db: Db) -> None:
    @app.task(name="place")
    async def place() -> None:
        async with current_job().transaction():
            pass
        async with current_job().transaction() as connection:
            await connection.execute("insert into orders values (1)")

    place.enqueue()
    drained = drain(app)

    assert "can be only once" in str(drained.errors[0])
    assert (written(db), drained.succeeded) == ([], 1)


def test_a_transaction_inside_of_another_is_refused(app: Rowlock, db: Db) -> None:
    @app.task(name="place", retry=ONCE)
    def place() -> None:
        with current_job().transaction() as connection:
            connection.execute("insert into orders values (1)")
            with current_job().transaction():
                pass

    place.enqueue()
    drained = drain(app)

    assert "in a transaction already" in str(drained.errors[0])
    assert (written(db), drained.failed) == ([], 1)


def test_a_result_is_given_only_inside_of_a_block(app: Rowlock) -> None:
    @app.task(name="early", retry=ONCE)
    def early() -> None:
        current_job().give_result(1)

    @app.task(name="late", retry=ONCE)
    def late() -> None:
        with current_job().transaction():
            pass
        current_job().give_result(1)

    app.enqueue_many([early.bind(), late.bind()])
    drained = drain(app)

    assert ["let the handler return it" in str(error) for error in drained.errors] == [True, True]
    assert (drained.failed, drained.succeeded) == (1, 1)


def test_a_sync_block_on_the_event_loop_is_refused(app: Rowlock) -> None:
    @app.task(name="block", retry=ONCE)
    async def block() -> None:
        with current_job().transaction():
            pass

    block.enqueue()

    with pytest.raises(RowlockError, match="use `async with`"):
        drain(app, raising=True)


def test_an_attempt_that_goes_on_after_its_commit_is_left_alone(app: Rowlock, db: Db) -> None:
    """The database does not hold its job any more, which elsewhere means that the lease is lost."""
    go_on = asyncio.Event()
    ends: list[str] = []

    @app.task(name="linger")
    async def linger() -> None:
        async with current_job().transaction():
            pass
        try:
            await go_on.wait()
        except asyncio.CancelledError:
            ends.append("cancelled")
            raise
        ends.append("done")

    async def story() -> None:
        await linger.aenqueue()
        async with app, app.worker(lease=timedelta(seconds=1), grace=timedelta(seconds=30)):
            await asyncio.to_thread(until, lambda: one(db, ENDED) == 1)
            renewals = "select count(distinct lease) from rowlock.workers"
            leases = {one(db, "select lease from rowlock.workers")}

            def renewed() -> bool:
                leases.add(one(db, "select lease from rowlock.workers"))
                return len(leases) > 5

            assert one(db, renewals) == 1
            await asyncio.to_thread(until, renewed)
            go_on.set()

    asyncio.run(story())

    assert ends == ["done"]


# Draining


@pytest.mark.parametrize("fails", [False, True])
def test_in_a_drain_the_block_commits_as_in_a_worker(app: Rowlock, db: Db, *, fails: bool) -> None:
    place = placing(app, fails=fails)

    place.enqueue()
    drained = drain(app)

    assert (drained.succeeded, drained.failed) == ((0, 1) if fails else (1, 0))
    assert written(db) == ([] if fails else [1])


@pytest.mark.parametrize("fails", [False, True])
def test_on_a_drained_connection_the_block_is_part_of_its_open_transaction(
    app: Rowlock, db: Db, url: str, *, fails: bool
) -> None:
    place = placing(app, fails=fails)

    with psycopg.connect(url) as mine:
        place.using(connection=mine).enqueue()
        drained = drain(app, connection=mine)
        seen = mine.execute("select number from orders").fetchall()
        mine.rollback()

    assert (drained.succeeded, drained.failed) == ((0, 1) if fails else (1, 0))
    assert seen == ([] if fails else [(1,)])
    assert (written(db), one(db, ENDED)) == ([], 0)


def placing(app: Rowlock, *, fails: bool) -> Task[[], None]:
    @app.task(name="place", retry=ONCE)
    def place() -> None:
        with current_job().transaction() as connection:
            connection.execute("insert into orders values (1)")
            if fails:
                connection.execute("insert into orders values (1)")

    return place


def test_on_a_drained_connection_of_the_other_colour_the_block_is_refused(app: Rowlock, url: str) -> None:
    async def story() -> list[BaseException]:
        place = placing(app, fails=False)
        async with await psycopg.AsyncConnection.connect(url) as mine:
            await place.using(connection=mine).aenqueue()
            return list((await adrain(app, connection=mine)).errors)

    assert ["drain without connection=" in str(error) for error in asyncio.run(story())] == [True]


def test_on_a_drained_connection_another_one_is_refused(app: Rowlock, url: str, db: Db) -> None:
    @app.task(name="place", retry=ONCE)
    def place() -> None:
        with psycopg.connect(url) as other, current_job().transaction(other):
            other.execute("insert into orders values (1)")

    with psycopg.connect(url) as mine:
        place.using(connection=mine).enqueue()
        drained = drain(app, connection=mine)

    assert "give that connection" in str(drained.errors[0])
    assert written(db) == []
