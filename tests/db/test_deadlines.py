"""No call waits for ever: a server that says nothing costs the connection, never the caller."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg.rows import TupleRow

from rowlock import Rowlock
from rowlock.db.errors import Unreachable
from rowlock.db.session import aconnect, connect
from rowlock.db.thread_connection import ReconnectingSyncConnection
from rowlock.db.worker_connection import ReconnectingConnection
from rowlock.errors import Locked
from rowlock.store import queues
from tests.waiting import auntil, until

SHORT = 0.3
# Far beyond every deadline here, and what psycopg would have waited for at the least.
NEVER = 60.0


@contextmanager
def frozen(*pids: int) -> Iterator[None]:
    """Inside it these processes say nothing: to their clients they look like a network that swallows everything."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def test_a_statement_without_an_answer_fails_and_costs_the_connection(url: str) -> None:
    connection = connect(url, name="test", deadline=SHORT)

    with (
        frozen(connection.info.backend_pid),
        pytest.raises(psycopg.OperationalError, match="no answer from the server in time"),
    ):
        connection.execute("select 1")

    assert connection.closed


def test_an_async_statement_without_an_answer_fails_and_costs_the_connection(url: str) -> None:
    async def ask() -> None:
        connection = await aconnect(url, name="test", deadline=SHORT)
        with (
            frozen(connection.info.backend_pid),
            pytest.raises(psycopg.OperationalError, match="no answer from the server in time"),
        ):
            await connection.execute("select 1")
        assert connection.closed

    asyncio.run(ask())


def test_a_cancelled_statement_costs_the_connection_and_waits_for_nobody(url: str) -> None:
    async def ask() -> None:
        connection = await aconnect(url, name="test", deadline=NEVER)
        with frozen(connection.info.backend_pid):
            asking = asyncio.create_task(connection.execute("select 1"))
            await asyncio.sleep(0)
            asking.cancel()
            # psycopg by itself would ask the server to cancel, and then wait for it: 5 s, and 5 s more.
            done, _ = await asyncio.wait([asking], timeout=4)
        assert done == {asking}
        assert asking.cancelled()
        assert connection.closed

    asyncio.run(ask())


def test_a_statement_that_is_answered_in_pieces_may_take_its_time(url: str) -> None:
    with connect(url, name="test", deadline=5.0) as connection:
        rows = connection.execute("select number from generate_series(1, 500000) as number").fetchall()

        assert len(rows) == 500_000
        assert not connection.closed


def test_a_caller_whose_connection_hangs_is_served_by_another_one(url: str, db: psycopg.Connection[TupleRow]) -> None:
    app = Rowlock(url, deadline=timedelta(seconds=2))
    app.task(name="add")(lambda: None)
    app.enqueue("add")
    query = "select pid from pg_stat_activity where application_name = 'rowlock' and datname = current_database()"
    [[pid]] = db.execute(query).fetchall()

    with frozen(pid), app:
        job = app.enqueue("add")

    assert db.execute("select count(*) from rowlock.jobs where id = %s", [job.id]).fetchone() == (1,)


def test_whoever_waits_for_a_lock_is_told_by_the_server_and_leaves_nothing_behind(
    url: str, db: psycopg.Connection[TupleRow]
) -> None:
    app = Rowlock(url, deadline=timedelta(seconds=1))
    task = app.task(name="add")(_nothing)

    with psycopg.connect(url) as winner, app:  # has the key, and does not say whether it keeps it
        task.using(connection=winner, key="k").enqueue()
        with pytest.raises(Locked, match=r"for longer than the app's deadline of 1 s; end that transaction"):
            task.using(key="k").enqueue()
        winner.rollback()

    assert db.execute("select count(*) from rowlock.jobs").fetchone() == (0,)
    assert db.execute("select count(*) from rowlock.keys").fetchone() == (0,)


def test_a_steady_connection_says_nothing_more_when_its_time_is_over(url: str) -> None:
    steady = ReconnectingSyncConnection(url, "rowlock", name="test", deadline=NEVER)
    steady.run(queues.settings())

    steady.until = 0.0

    with pytest.raises(Unreachable, match="no time left"):
        steady.run(queues.settings())
    steady.close()


def test_a_steady_connection_can_be_aborted_from_another_thread(url: str) -> None:
    steady = ReconnectingSyncConnection(url, "rowlock", name="test", deadline=NEVER)
    pid = steady.open().info.backend_pid
    heard: list[Exception] = []

    def ask() -> None:
        try:
            steady.run(queues.settings())
        except Unreachable as outage:
            heard.append(outage)

    with frozen(pid):
        asking = threading.Thread(target=ask)
        asking.start()
        until(lambda: not _aborted(steady, asking))

    assert len(heard) == 1
    steady.close()


def _aborted(steady: ReconnectingSyncConnection, asking: threading.Thread) -> bool:
    steady.abort()
    return asking.is_alive()


def test_a_link_comes_back_on_another_connection_when_its_own_hangs(url: str) -> None:
    async def ask() -> list[object]:
        link = ReconnectingConnection(url, "rowlock", name="test", deadline=SHORT)
        first = await link.open()
        with frozen(first.info.backend_pid):
            answer: list[object] = [*await link.run(queues.channels(["default"]))]
        await link.close()
        return answer

    assert len(asyncio.run(ask())) == 1


def test_a_link_that_is_broken_while_it_rests_lets_go_of_the_number_of_its_socket_before_the_socket(url: str) -> None:
    """A socket that is closed leaves its number to the next one, perhaps in another thread: it is not ours to read."""
    open_still: list[bool] = []

    async def rest() -> bool:
        link, woken, loop = (
            ReconnectingConnection(url, "rowlock", name="test"),
            asyncio.Event(),
            asyncio.get_running_loop(),
        )
        connection = await link.open()
        pgconn: Any = connection.pgconn
        remove_reader = loop.remove_reader

        def remove(number: int) -> bool:
            open_still.append(pgconn.pgconn_ptr is not None)
            return bool(remove_reader(number))

        loop.remove_reader = remove  # type: ignore[method-assign, assignment]
        resting = asyncio.create_task(link.rest(woken, NEVER))
        with connect(url, name="other") as other:
            await auntil(lambda: link._reads is not None)
            other.execute("select pg_terminate_backend(%s)", [connection.info.backend_pid])
            answer = await resting
        await link.close()
        return answer

    assert asyncio.run(rest())
    assert open_still == [True]


def test_a_link_knocks_less_and_less_often_while_nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    class Enough(Exception):
        pass

    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 9:
            raise Enough

    monkeypatch.setattr(asyncio, "sleep", sleep)
    link = ReconnectingConnection("postgresql://nobody@127.0.0.1:1/none", "rowlock", name="test")

    with pytest.raises(Enough):
        asyncio.run(link.open())

    pauses = [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0, 2.0]
    assert all(pause / 2 <= wait <= pause for wait, pause in zip(waits, pauses, strict=True))


def _nothing() -> None:
    return None
