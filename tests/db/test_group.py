"""Group commit: concurrent aenqueue calls share a commit, and none of them pays for another's fault."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.rows import TupleRow

from rowlock import Rowlock, Task
from rowlock.db.enqueue_batch import EnqueueBatcher
from rowlock.model.ids import new_id
from rowlock.model.row import NewJob
from rowlock.store.query import LARGEST_STATEMENT
from tests.waiting import auntil

Db = psycopg.Connection[TupleRow]
T = Task[[int], None]

GOOD = NewJob("", "default", "t", "{}", 0, 10)


@pytest.fixture
def task(app: Rowlock) -> T:
    def note(number: int) -> None:
        return None

    return app.task(name="t")(note)


def jobs(db: Db) -> list[UUID]:
    return [job for (job,) in db.execute("select id from rowlock.jobs order by id")]


def commits(db: Db) -> int:
    """How many transactions inserted the jobs that are there."""
    row = db.execute("select count(distinct xmin::text) from rowlock.jobs").fetchone()
    assert row is not None
    count: int = row[0]
    return count


def run(app: Rowlock, main: Coroutine[Any, Any, object]) -> None:
    async def inside() -> None:
        async with app:
            await main

    asyncio.run(inside())


def test_concurrent_callers_share_commits(app: Rowlock, task: T, db: Db) -> None:
    async def callers() -> None:
        made = await asyncio.gather(*(task.aenqueue(n) for n in range(200)))
        assert [job.id for job in made] == jobs(db)

    run(app, callers())

    # The first goes at once and alone, the others while it is under way.
    assert commits(db) <= 3


def test_a_lone_caller_waits_for_nobody(app: Rowlock, task: T, db: Db) -> None:
    async def caller() -> None:
        for n in range(3):
            job = await task.aenqueue(n)
            assert job.id in jobs(db)

    run(app, caller())

    assert commits(db) == 3


def test_each_caller_returns_after_its_own_commit(app: Rowlock, task: T, db: Db) -> None:
    async def caller(n: int) -> None:
        job = await task.aenqueue(n)
        assert db.execute("select from rowlock.jobs where id = %s", [job.id]).fetchall()

    async def callers() -> None:
        await asyncio.gather(*(caller(n) for n in range(50)))

    run(app, callers())


def test_more_callers_than_one_statement_takes_are_all_served(app: Rowlock, task: T, db: Db) -> None:
    async def callers() -> None:
        made = await asyncio.gather(*(task.aenqueue(n) for n in range(4500)))
        assert len({job.id for job in made}) == 4500

    run(app, callers())

    assert len(jobs(db)) == 4500
    assert commits(db) <= 6


def test_callers_with_keys_go_alone(app: Rowlock, task: T, db: Db) -> None:
    async def callers() -> None:
        await asyncio.gather(*(task.using(key=str(n)).aenqueue(n) for n in range(10)))

    run(app, callers())

    assert commits(db) == 10


def test_a_held_key_holds_up_nobody_else(app: Rowlock, task: T, url: str, db: Db) -> None:
    async def callers() -> None:
        async with await psycopg.AsyncConnection.connect(url) as winner:
            await task.using(connection=winner, key="k").aenqueue(0)
            waiting = asyncio.create_task(task.using(key="k").aenqueue(1))

            await asyncio.gather(*(task.aenqueue(n) for n in range(20)))
            assert len(jobs(db)) == 20
            assert not waiting.done()

            await winner.commit()
            assert not (await waiting).created

    run(app, callers())


@pytest.mark.parametrize("count", [10, 600])
@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (GOOD._replace(priority=9), psycopg.errors.CheckViolation),
        (GOOD._replace(args="{"), psycopg.errors.InvalidTextRepresentation),
        (GOOD._replace(args='"\x00"'), psycopg.DataError),
        (GOOD._replace(args='"\ud800"'), UnicodeEncodeError),
    ],
    ids=["a check", "a cast", "a character of C's", "half a character"],
)
def test_one_bad_row_fails_its_own_caller_alone(
    app: Rowlock, db: Db, bad: NewJob, error: type[Exception], count: int
) -> None:
    group = EnqueueBatcher(app.database)
    good = [GOOD._replace(id=new_id()) for _ in range(count)]
    bad = bad._replace(id=new_id())
    said: list[BaseException | None] = []

    async def callers() -> None:
        middle = count // 2
        everyone = [*good[:middle], bad, *good[middle:]]
        said.extend(await asyncio.gather(*(group.enqueue(job) for job in everyone), return_exceptions=True))

    run(app, callers())

    assert [type(answer) for answer in said if answer is not None] == [error]
    assert jobs(db) == [UUID(job.id) for job in good]


def test_large_arguments_of_many_callers_are_sent_in_bounded_statements(app: Rowlock, db: Db) -> None:
    group = EnqueueBatcher(app.database)
    large = GOOD._replace(args='"' + "x" * 900_000 + '"')
    good = [large._replace(id=new_id()) for _ in range(24)]
    bad = large._replace(id=new_id(), priority=9)
    said: list[BaseException | None] = []

    async def callers() -> None:
        everyone = [*good[:12], bad, *good[12:]]
        said.extend(await asyncio.gather(*(group.enqueue(job) for job in everyone), return_exceptions=True))

    run(app, callers())

    assert [type(answer) for answer in said if answer is not None] == [psycopg.errors.CheckViolation]
    assert jobs(db) == [UUID(job.id) for job in good]
    sizes = db.execute("select sum(octet_length(args::text)) from rowlock.jobs group by xmin::text").fetchall()
    assert max(size for (size,) in sizes) <= LARGEST_STATEMENT


def test_a_bad_row_ends_nothing_for_later_callers(app: Rowlock, task: T, db: Db) -> None:
    group = EnqueueBatcher(app.database)

    async def callers() -> None:
        for _ in range(3):
            with pytest.raises(psycopg.errors.CheckViolation):
                await group.enqueue(GOOD._replace(id=new_id(), attempts=0))
            await group.enqueue(GOOD._replace(id=new_id()))

    run(app, callers())

    assert len(jobs(db)) == 3


@pytest.mark.parametrize("position", [0, 1, 2])
def test_a_cancelled_caller_takes_nobody_along(app: Rowlock, task: T, url: str, db: Db, position: int) -> None:
    async def callers() -> None:
        async with await psycopg.AsyncConnection.connect(url) as holder:
            await holder.execute("lock table rowlock.jobs in share mode")  # holds up every insert
            waiting = [asyncio.create_task(task.aenqueue(n)) for n in range(3)]
            await auntil(lambda: held_up(db), what="a held-up insert")

            waiting[position].cancel()
            await asyncio.wait([waiting[position]])
            await holder.rollback()

            ended = await asyncio.gather(*waiting, return_exceptions=True)
        cancelled = [isinstance(end, asyncio.CancelledError) for end in ended]
        assert cancelled == [n == position for n in range(3)]
        there = jobs(db)
        for end in ended:
            assert isinstance(end, asyncio.CancelledError) or (not isinstance(end, BaseException) and end.id in there)
        await task.aenqueue(3)

    run(app, callers())


def test_a_loop_that_ends_while_callers_wait_ends_them_too(app: Rowlock, task: T, url: str, db: Db) -> None:
    with psycopg.connect(url) as holder:

        async def callers() -> None:
            holder.execute("lock table rowlock.jobs in share mode")
            waiting = [asyncio.create_task(task.aenqueue(n)) for n in range(3)]
            await auntil(lambda: held_up(db), what="a held-up insert")
            waiting[0].cancel()
            with suppress(asyncio.CancelledError):
                await waiting[0]

        asyncio.run(callers())  # ends, although nothing was ever sent

    run(app, task.aenqueue(4))
    assert len(jobs(db)) >= 1


def held_up(db: Db) -> bool:
    return bool(db.execute("select from pg_locks where not granted").fetchall())
