"""Workflows as they are enqueued: the version in the row, by every way in, and keys that start one of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest

from rowlock import Context, Job, Key, Rowlock, Workflow
from rowlock.errors import KeyTaken
from rowlock.model.ids import new_id
from rowlock.model.row import NewJob
from rowlock.store import enqueue as enqueue_store
from rowlock.store.enqueue import LOAD_FROM
from rowlock.testing import travel
from tests.engine import Engine
from tests.waiting import until
from tests.worker.working import Db, one
from tests.workflow.remembering import put_workflow

Checkout = Workflow[[int], int]


@pytest.fixture
def checkout(app: Rowlock) -> Checkout:
    return declared(app, 2)


def declared(app: Rowlock, version: int) -> Checkout:
    @app.workflow(name="shop.checkout", version=version)
    async def checkout(ctx: Context, order: int) -> int:
        return order

    return checkout


def live(db: Db) -> list[tuple[Any, ...]]:
    return db.execute("select task, version, attempts, parent from rowlock.jobs order by id").fetchall()


def in_a_loop(app: Rowlock, call: Callable[[], Any]) -> Any:  # noqa: ANN401  whatever it answers
    async def run() -> Any:  # noqa: ANN401  whatever it answers
        async with app:
            return await call()

    return asyncio.run(run())


# The version in the row


@pytest.mark.parametrize(
    "enqueue",
    [
        lambda _app, workflow: workflow.enqueue(1),
        lambda _app, workflow: workflow.using(queue="slow").enqueue(1),
        lambda _app, workflow: workflow.using(key="k").enqueue(1),
        lambda _app, workflow: workflow.using(key=Key("k", taken="raise")).enqueue(1),
        lambda app, workflow: in_a_loop(app, lambda: workflow.aenqueue(1)),
        lambda app, workflow: in_a_loop(app, lambda: workflow.using(key="k").aenqueue(1)),
        lambda app, workflow: app.enqueue_many([workflow.bind(1)]),
        lambda app, _workflow: app.enqueue("shop.checkout", 1),
        lambda app, _workflow: app.enqueue("shop.checkout@2", 1),
    ],
    ids=["alone", "options", "key", "key that raises", "async", "async with a key", "many", "by name", "by version"],
)
def test_a_workflow_is_enqueued_with_its_version_and_one_attempt(
    app: Rowlock, checkout: Checkout, db: Db, enqueue: Callable[[Rowlock, Checkout], object]
) -> None:
    enqueue(app, checkout)

    assert live(db) == [("shop.checkout", 2, 1, None)]


def test_many_travel_with_their_versions_beside_tasks(app: Rowlock, checkout: Checkout, db: Db) -> None:
    task = app.task(name="t")(lambda: None)
    older = declared(app, 1)

    for count in (1, LOAD_FROM):
        app.enqueue_many([*[checkout.bind(1)] * count, *[task.bind()] * count, *[older.bind(1)] * count])

    counts = db.execute("select version, attempts, count(*) from rowlock.jobs group by 1, 2 order by 1").fetchall()
    assert counts == [(1, 1, LOAD_FROM + 1), (2, 1, LOAD_FROM + 1), (None, 10, LOAD_FROM + 1)]


def test_a_child_is_enqueued_with_its_parent(url: str, db: Db) -> None:
    engine, parent = Engine(url), new_id()
    child = NewJob(new_id(), "default", "t", "{}", 0, 10, parent=parent)

    engine.run(enqueue_store.insert([child, NewJob(new_id(), "default", "w", "{}", 0, 1, version=3, parent=parent)]))
    engine.close()

    assert live(db) == [("t", None, 10, UUID(parent)), ("w", 3, 1, UUID(parent))]


# From SQL


def test_sql_says_the_version(db: Db) -> None:
    db.execute("""select rowlock.enqueue('shop.checkout', '{"order": 7}', version => 2)""")
    db.execute("select rowlock.enqueue('shop.checkout', version => 3, key => 'k')")
    db.execute("select rowlock.enqueue('t')")
    db.execute("select rowlock.enqueue('t', attempts => 3)")

    assert set(live(db)) == {  # ids of one millisecond are in no order
        ("shop.checkout", 2, 1, None),
        ("shop.checkout", 3, 1, None),
        ("t", None, 10, None),
        ("t", None, 3, None),
    }


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("'w', version => 0", "version is 0; the first is 1"),
        ("'w', version => 1, attempts => 3", "attempts is for plain tasks"),
        ("'w', version => 1, key => 'k', period => '1 hour'", "held until its record has left history"),
        ("'w', version => 1, key => 'k', taken => 'replace'", "held until its record has left history"),
        ("'w@2'", "say task => 'w', version => '2'"),
    ],
)
def test_sql_is_told_what_a_workflow_cannot_have(db: Db, said: str, words: str) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue, match=words):
        db.execute(f"select rowlock.enqueue({said})".encode())

    assert live(db) == []


# Keys


def test_a_second_start_answers_the_first_ones_job(app: Rowlock, checkout: Checkout, db: Db) -> None:
    first = checkout.using(key="order:7").enqueue(7)
    again = checkout.using(key="order:7").enqueue(8)
    by_older_code = declared(app, 1).using(key="order:7").enqueue(7)

    assert (first.created, again.created, by_older_code.created) == (True, False, False)
    assert first == again == by_older_code
    assert one(db, "select rowlock.enqueue('shop.checkout', version => 2, key => 'order:7')") == first.id
    assert live(db) == [("shop.checkout", 2, 1, None)]


def test_of_many_that_start_it_at_once_one_does(checkout: Checkout, db: Db) -> None:
    def start(order: int) -> Job[int]:
        return checkout.using(key="order:7").enqueue(order)

    with ThreadPoolExecutor(8) as threads:
        started = list(threads.map(start, range(24)))

    assert len({job.id for job in started}) == len(live(db)) == 1
    assert [job.created for job in started].count(True) == 1


def test_who_comes_second_waits_for_the_first_ones_transaction(checkout: Checkout, url: str, db: Db) -> None:
    with psycopg.connect(url) as mine, ThreadPoolExecutor(1) as threads:
        first = checkout.using(key="order:7", connection=mine).enqueue(7)
        second = threads.submit(checkout.using(key="order:7").enqueue, 7)
        until(lambda: db.execute("select from pg_locks where not granted").fetchall(), what="a caller that waits")

        mine.commit()

        assert second.result() == first
    assert live(db) == [("shop.checkout", 2, 1, None)]


def test_an_ended_one_keeps_its_key_for_as_long_as_its_record(checkout: Checkout, app: Rowlock, db: Db) -> None:
    ended = put_workflow(db, "failed", version=2, key="order:7")
    db.execute(
        "insert into rowlock.keys (key, task, job, until) values (%s, %s, %s, rowlock.now() + interval '30 days')",
        ["order:7", "shop.checkout", ended],
    )

    assert checkout.using(key="order:7").enqueue(7).id == ended
    assert not checkout.using(key=Key("order:7", taken="skip")).enqueue(7).created
    with pytest.raises(KeyTaken, match=f"belongs to job {ended} of task shop.checkout"):
        checkout.using(key=Key("order:7", taken="raise")).enqueue(7)
    assert live(db) == []

    with travel(app, timedelta(days=31)):
        assert checkout.using(key="order:7").enqueue(7).created


def test_a_workflow_is_not_replaced_by_sql_that_takes_it_for_a_task(checkout: Checkout, db: Db) -> None:
    workflow = checkout.using(key="order:7").enqueue(7)

    for state in ("ready", "running"):
        db.execute(
            "update rowlock.jobs set state = %s, token = case when %s = 'running' then rowlock.token(id, claims) end",
            [state] * 2,
        )
        found = one(db, "select rowlock.enqueue('shop.checkout', key => 'order:7', taken => 'replace')")
        assert found == workflow.id

    assert one(db, "select args from rowlock.jobs") == {"order": 7}
    assert one(db, "select key from rowlock.jobs") == "order:7"
