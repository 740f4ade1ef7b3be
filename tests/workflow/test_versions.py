"""Versions in one fleet: a worker that lacks one leaves its jobs alone, visible, and another takes them up."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from rowlock import Context, Rowlock, Workflow
from rowlock.errors import InvalidArguments
from rowlock.model.outcome import Blocked
from rowlock.model.row import ClaimedJob
from rowlock.store import claim, workers
from rowlock.testing import fire, travel
from rowlock.worker.call import unknown
from tests.depth import deep
from tests.engine import Engine
from tests.store.test_plans import Prepared
from tests.waiting import until
from tests.worker.working import Db, ended, one, work_until, working

DAY = timedelta(days=1)
Checkout = Workflow[[int], list[int]]


@pytest.fixture
def newer(url: str) -> Iterator[Rowlock]:
    """An app on the same database, of another deploy."""
    with Rowlock(url) as app:
        yield app


def declared(app: Rowlock, version: int, **options: Any) -> Checkout:  # noqa: ANN401  app.workflow's own
    @app.workflow(name="shop.checkout", version=version, **options)
    async def checkout(ctx: Context, order: int = 0) -> list[int]:
        return [order, version]

    return checkout


def blocked(db: Db) -> bool:
    return one(db, "select bool_and(state = 'waiting') from rowlock.jobs")  # type: ignore[no-any-return]


def results(db: Db) -> list[Any]:
    return [result for (result,) in db.execute("select result from rowlock.history order by id")]


# In a fleet


def test_a_worker_without_the_version_leaves_the_job_and_another_takes_it_up(
    app: Rowlock, newer: Rowlock, db: Db
) -> None:
    declared(app, 1), declared(newer, 1)
    declared(newer, 3).enqueue(7)

    work_until(app, lambda: blocked(db))
    [seen] = db.execute("select waits_for, reason, failures, attempts from rowlock.jobs").fetchall()
    work_until(newer, lambda: ended(db))

    reason = "unknown version 3 of workflow 'shop.checkout': this worker has 1; deploy it"
    assert seen == ("code", reason, 0, 1)
    assert ended(db) == [("shop.checkout", "succeeded", None, 0)]
    assert results(db) == [[7, 3]]


@deep
def test_each_job_is_run_by_the_code_of_its_version(app: Rowlock, newer: Rowlock, db: Db) -> None:
    older, latest = declared(app, 1), declared(newer, 2)
    app.enqueue_many([older.bind(order) for order in range(20)])
    newer.enqueue_many([latest.bind(order) for order in range(20)])

    with working(app), working(newer):
        until(lambda: len(ended(db)) == 40, what="the end of all jobs")

    assert results(db) == [[order, 1] for order in range(20)] + [[order, 2] for order in range(20)]
    assert {state for _, state, *_ in ended(db)} == {"succeeded"}


def test_a_worker_says_which_versions_it_has(app: Rowlock, db: Db) -> None:
    declared(app, 1), declared(app, 2, aliases=["checkout"]).migration(1)(dict)
    app.task(name="t")(lambda: None)

    with working(app):
        until(lambda: db.execute("select from rowlock.workers").fetchall(), what="the worker's entry")
        tasks = one(db, "select tasks from rowlock.workers")

    assert tasks == ["checkout@1", "checkout@2", "shop.checkout@1", "shop.checkout@2", "t"]


def test_a_job_of_a_version_without_code_goes_on_where_a_migration_leads(app: Rowlock, newer: Rowlock, db: Db) -> None:
    declared(app, 1).enqueue(7)
    declared(newer, 2).migration(1)(dict)

    work_until(newer, lambda: ended(db))

    assert results(db) == [[7, 2]]


def test_a_workflow_that_sql_enqueued_without_a_version_waits_visibly(app: Rowlock, db: Db) -> None:
    declared(app, 1), declared(app, 2)
    job = app.jobs.get(one(db, "select rowlock.enqueue('shop.checkout')"))

    work_until(app, lambda: blocked(db))

    [seen] = db.execute("select waits_for, reason, failures from rowlock.jobs").fetchall()
    assert seen == ("code", "a workflow needs a version: rowlock.enqueue('shop.checkout', version => 2)", 0)
    found = job.explain()
    assert (found.code, found.says) == ("unversioned", "It has no version, and 'shop.checkout' is a workflow.")
    assert "version => N" in str(found.do)


@pytest.mark.parametrize(
    ("known", "has"),
    [([], "none of it"), ([1], "1"), ([1, 2], "1 and 2"), ([10, 2, 1], "1, 2 and 10")],
)
def test_what_a_worker_lacks_is_said_with_what_it_has(app: Rowlock, known: list[int], has: str) -> None:
    for version in known:
        declared(app, version)
    app.task(name="shop.check")(lambda: None)
    row = ClaimedJob(
        str(uuid4()), "", "shop.checkout", "{}", "q", 0, "", 0, 0, 1, 1, None, False, None, None, version=3
    )  # fmt: skip

    said = unknown(row, app.tasks.handlers())

    assert said == f"unknown version 3 of workflow 'shop.checkout': this worker has {has}; deploy it"


def test_taking_up_looks_at_the_jobs_of_its_tasks_alone(url: str, db: Db) -> None:
    engine = Engine(url)
    db.execute(
        """
        insert into rowlock.jobs
            (id, queue, task, state, waits_for, reason, attempts, run_at, created_at, args, version)
        select
            gen_random_uuid(), 'default', case when n <= 10 then 'w' else 'other' || n end, 'waiting', 'code',
            'unknown version', 1, now(), now(), '{}', case when n % 2 = 0 then 2 else 1 end
        from generate_series(1, 20000) as n
        """
    )
    query = claim.take_up(queues=["default"], tasks=["t", "w@2"], limit=100, worker=engine.worker)

    plan = Prepared(engine, query).explain(query)

    assert one(db, "select array_agg(distinct task || version) from rowlock.jobs where state = 'running'") == ["w2"]
    assert one(db, "select count(*) from rowlock.jobs where state = 'running'") == 5
    assert plan.whole_scans() == []
    assert plan.rows_touched() < 100
    engine.close()


def test_what_an_old_worker_refused_a_running_one_takes_up_once_when_that_has_gone(url: str, db: Db) -> None:
    """In a rolling deploy the new workers start before the old ones stop."""
    new, old = Engine(url), Engine(url)
    take_up = claim.take_up(queues=["default"], tasks=["t"], limit=100, worker=new.worker)
    new.enqueue()
    old.give_back(*old.claim(), outcome=Blocked("code", "changed code"))

    beside = new.run(take_up)
    old.run(workers.leave(worker=old.worker))
    taken = new.run(take_up)
    new.give_back(*taken, outcome=Blocked("code", "changed code"))
    again = new.run(take_up)

    assert (len(beside), len(taken), len(again)) == (0, 1, 0)
    new.close()
    old.close()


def test_what_running_old_workers_refuse_goes_to_newer_ones_once_and_never_back(url: str, db: Db) -> None:
    old, new, newest = Engine(url), Engine(url), Engine(url)
    for hours, engine in enumerate((newest, new, old)):
        db.execute(
            "update rowlock.workers set started_at = started_at - make_interval(hours => %s) where id = %s",
            [hours, engine.worker],
        )

    def take_up(engine: Engine) -> int:
        query = claim.take_up(queues=["default"], tasks=["t"], limit=100, worker=engine.worker)
        taken = engine.run(query)
        if taken:
            engine.give_back(*taken, outcome=Blocked("code", "changed code"))
        return len(taken)

    old.enqueue()
    old.give_back(*old.claim(), outcome=Blocked("code", "changed code"))

    looks = [take_up(engine) for _ in range(2) for engine in (old, new, old, newest, new, old)]

    assert looks == [0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]
    for engine in (old, new, newest):
        engine.close()


# Explain


def test_nobody_who_listens_knows_its_version(app: Rowlock, newer: Rowlock, db: Db) -> None:
    declared(app, 1), declared(app, 2)
    latest = declared(newer, 3)
    job, later = latest.enqueue(7), latest.using(delay=DAY).enqueue(7)
    with working(app):
        until(lambda: one(db, "select count(*) from rowlock.jobs where state = 'waiting'"), what="a blocked job")

        found, not_yet = job.explain(), later.explain()

    assert (found.code, found.facts["known_versions"]) == ("unknown_version", [1, 2])
    assert found.says == (
        "It waits for the code of version 3 of workflow 'shop.checkout'; what is known there is shop.checkout@1, "
        "shop.checkout@2."
    )
    assert "or a migration from it" in str(found.do)
    assert not_yet.code == "delayed"
    assert "none of them knows version 3 of workflow 'shop.checkout'" in not_yet.also[0]


# Schedules


def test_a_schedule_makes_jobs_of_the_version_that_declares_it(app: Rowlock, newer: Rowlock, db: Db) -> None:
    declared(app, 1).every(DAY, overlap="allow")
    fire(app)
    with travel(app, DAY):
        assert fire(app) == ["shop.checkout"]
    declared(newer, 2).every(DAY, overlap="allow")
    with travel(app, 2 * DAY):
        assert fire(newer) == ["shop.checkout"]
    asked = newer.schedules.run_now("shop.checkout")

    rows = db.execute("select id, version, attempts from rowlock.jobs order by created_at, id").fetchall()
    assert [row[1:] for row in rows if row[0] != asked.id] == [(1, 1), (2, 1)]
    assert [row[1:] for row in rows if row[0] == asked.id] == [(2, 1)]
    assert newer.schedules.get("shop.checkout").version == 2


def test_an_operators_schedule_keeps_its_version_when_it_is_edited(app: Rowlock, db: Db) -> None:
    older = declared(app, 1)

    @app.workflow(name="shop.checkout", version=2)
    async def latest(ctx: Context, basket: str) -> None: ...

    added = app.schedules.add("nightly", older.bind(7), "0 3 * * *")

    edited = app.schedules.edit("nightly", args={"order": 8}, queue="slow")

    assert (added.version, edited.version, edited.queue, edited.args) == (1, 1, "slow", {"order": 8})
    with pytest.raises(InvalidArguments):
        app.schedules.edit("nightly", args={"basket": "b"})
    app.schedules.run_now("nightly")
    assert one(db, "select version from rowlock.jobs") == 1


def test_an_edit_of_a_declared_schedule_outlives_a_new_version(app: Rowlock, newer: Rowlock, db: Db) -> None:
    declared(app, 1).every(DAY)
    fire(app)
    app.schedules.edit("shop.checkout", queue="slow")

    declared(newer, 2).every(DAY)
    fire(newer)

    schedule = app.schedules.get("shop.checkout")
    assert (schedule.version, schedule.queue) == (2, "slow")
    assert one(db, "select declared ->> 'version' from rowlock.schedules") == "2"
