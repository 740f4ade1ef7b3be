"""What a worker says for its workflows costs its batch, however many others sleep, wait or remember.

As in test_plans.py: prepared on tables that were vacuumed while they were empty, loaded since, never analysed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg.rows import TupleRow

from rowlock.model.ids import new_id
from rowlock.model.outcome import Parked, Succeeded
from rowlock.model.row import ClaimedJob, NewJob
from rowlock.model.workflow.step import NewChild, StepUpdate
from rowlock.store import settle as settle_store
from rowlock.store.explain import open_steps, step_sum
from rowlock.store.query import Query
from rowlock.store.workflows import signals, steps
from tests.engine import Engine
from tests.store.test_plans import BATCH, Plan, Prepared, claim_query, load

Db = psycopg.Connection[TupleRow]

OTHERS = 10_000
NOBODY = ClaimedJob(
    *("00000000-0000-0000-0000-000000000000",) * 2, "w", "{}", "default", 0, "", 0, 0, 0, 1, None, False, None, None
)._replace(version=1)


@pytest.fixture
def engine(url: str, db: Db) -> Iterator[Engine]:
    for table in ("jobs", "steps", "signals"):
        db.execute(f"alter table rowlock.{table} set (autovacuum_enabled = off)".encode())
        db.execute(f"vacuum analyze rowlock.{table}".encode())
    engine = Engine(url)
    yield engine
    engine.close()


def others(db: Db, count: int = OTHERS) -> None:
    """Workflows that sleep or wait for a signal, each with a few steps and a signal that nobody took."""
    db.execute(
        f"""
        insert into rowlock.jobs (
            id, queue, task, state, waits_for, priority, attempts, run_at, created_at, args, version, claims, wakes,
            wakes_at
        )
        select
            rowlock.uuid7(), 'default', 'w', case when n % 2 = 0 then 'ready' else 'waiting' end,
            case when n % 2 = 1 then 'signal' end, 0, 1, rowlock.now() + interval '1 day', rowlock.now(), '{{}}', 1, 1,
            1, case when n % 2 = 1 then 2 end
        from generate_series(1, {count}) as n
        """.encode()
    )
    db.execute(
        """
        insert into rowlock.steps (job, key, position, kind, state, until, child, started_at)
        select
            job.id, 's' || n, n, case n when 1 then 'step' when 2 then 'child' else 'sleep' end,
            case when n < 3 then 'done' else 'open' end, job.run_at, case when n = 2 then gen_random_uuid() end,
            rowlock.now()
        from rowlock.jobs as job cross join generate_series(1, 3) as n
        where job.task = 'w'
        on conflict do nothing
        """
    )
    db.execute(
        """
        insert into rowlock.signals (id, job, number, name, sent_at)
        select gen_random_uuid(), id, 1, 'paid', rowlock.now() from rowlock.jobs where task = 'w'
        on conflict do nothing
        """
    )


def running(engine: Engine, db: Db, *, parent: bool = False) -> list[ClaimedJob]:
    """A batch of workflows in a worker's hands; children, if they have a parent."""
    load(db, BATCH, priority=4)
    db.execute("update rowlock.jobs set version = 1, wakes = 1 where priority = 4")
    if parent:
        db.execute(
            """
            update rowlock.jobs set version = null, parent = (select id from rowlock.jobs where task = 'w' limit 1)
            where priority = 4
            """
        )
    return engine.claim(BATCH)


def record(rows: Sequence[ClaimedJob]) -> Query[Any]:
    return steps.record(
        [(row, StepUpdate("s", 1, "step", "done", value="1")) for row in rows], told={row.token: "{}" for row in rows}
    )


def spawn(rows: Sequence[ClaimedJob]) -> Query[Any]:
    return steps.spawn(
        [
            (row, NewChild("t", 1, "{}", NewJob(new_id(), "default", "t", "{}", 0, 1, parent=row.id)))
            for row in rows
        ]
    )  # fmt: skip


def remember(rows: Sequence[ClaimedJob]) -> Query[Any]:
    return steps.load([row.id for row in rows])


def hear(rows: Sequence[ClaimedJob]) -> Query[Any]:
    return steps.load_signals([row.id for row in rows])


def park(rows: Sequence[ClaimedJob]) -> Query[Any]:
    return settle_store.return_workflows([(row, Parked(9, "signal")) for row in rows], told={})


def settle(rows: Sequence[ClaimedJob]) -> Query[Any]:
    return settle_store.settle_workflows([(row, Succeeded("1"), timedelta(days=1)) for row in rows], told={})


def whole_scans(plan: Plan) -> list[str]:
    """Scans that read all of a table, or all of an index."""
    return [
        f"{node['Node Type']} on {node['Relation Name']} by {node.get('Index Name')}"
        for node in plan.nodes
        if node.get("Relation Name") in {"jobs", "steps", "signals", "keys"} and "Index Cond" not in node
        and node["Node Type"] not in {"ModifyTable", "LockRows"}
    ]  # fmt: skip


@pytest.mark.parametrize("query", [record, spawn, remember, hear, park, settle])
def test_what_a_workflow_says_costs_its_batch(engine: Engine, db: Db, query: Any) -> None:  # noqa: ANN401  one of these
    prepared = Prepared(engine, query([NOBODY]))
    for _ in range(6):
        prepared.explain(query([NOBODY]))
    others(db)
    rows = running(engine, db)

    plan = prepared.explain(query(rows))

    assert whole_scans(plan) == []
    assert plan.rows_touched() <= 20 * BATCH


def test_children_that_end_cost_their_batch_and_one_parent(engine: Engine, db: Db) -> None:
    prepared = Prepared(engine, settle([NOBODY]))
    for _ in range(6):
        prepared.explain(settle([NOBODY]))
    others(db)
    rows = running(engine, db, parent=True)
    db.execute(
        """
        insert into rowlock.steps (job, key, position, kind, state, child, started_at)
        select parent, id::text, 1, 'child', 'open', id, rowlock.now() from rowlock.jobs where priority = 4
        """
    )

    plan = prepared.explain(settle(rows))

    assert whole_scans(plan) == []
    assert plan.rows_touched() <= 25 * BATCH
    assert db.execute("select count(*) from rowlock.jobs where parent is not null").fetchone() == (0,)
    assert db.execute("select max(wakes) from rowlock.jobs").fetchone() == (1 + BATCH,)


def test_children_that_end_find_each_its_parent_among_all_that_wait(engine: Engine, db: Db) -> None:
    prepared = Prepared(engine, settle([NOBODY]))
    for _ in range(6):
        prepared.explain(settle([NOBODY]))
    others(db)
    db.execute("update rowlock.steps set state = 'open' where kind = 'child'")
    db.execute(
        """
        insert into rowlock.jobs (id, queue, task, priority, attempts, run_at, created_at, args, parent)
        select child, 'default', 't', 4, 1, rowlock.now(), rowlock.now(), '{}', job
        from rowlock.steps where kind = 'child' order by job limit %s
        """,
        [BATCH],
    )
    rows = engine.claim(BATCH)

    plan = prepared.explain(settle(rows))

    assert whole_scans(plan) == []
    assert plan.rows_touched() <= 40 * BATCH
    assert db.execute("select count(*) from rowlock.jobs where wakes = 2").fetchone() == (BATCH,)
    assert db.execute("select count(*) from rowlock.steps where kind = 'child' and state = 'done'").fetchone() == (
        BATCH,
    )


def test_looking_at_one_workflow_does_not_read_the_others(engine: Engine, db: Db) -> None:
    job = uuid4()
    looks: list[Query[Any]] = [
        open_steps(job),
        step_sum(job),
        steps.recall_steps([str(job)]),
        steps.recall_workflows([str(job)]),
    ]
    prepared = [Prepared(engine, look) for look in looks]
    others(db)

    plans = [one.explain(look) for one, look in zip(prepared, looks, strict=True)]

    assert [whole_scans(plan) for plan in plans] == [[], [], [], []]
    assert max(plan.buffers for plan in plans) < OTHERS / 10


def test_a_signal_costs_its_workflow(engine: Engine, db: Db) -> None:
    send = Prepared(engine, signals.send(new_id(), target=str(uuid4()), name="go", payload=None, key=None))
    others(db, 100)
    few = send.explain(signal_to_one(db)).buffers
    others(db)

    many = send.explain(signal_to_one(db)).buffers

    assert many <= few + 20  # the indexes are a level or two higher


def signal_to_one(db: Db) -> Query[Any]:
    row = db.execute("select id::text from rowlock.jobs where state = 'waiting' order by id desc limit 1").fetchone()
    assert row is not None
    return signals.send(new_id(), target=row[0], name="go", payload=None, key="k")


def test_workflows_that_sleep_and_wait_leave_the_claim_as_it_was(engine: Engine, db: Db) -> None:
    claim = Prepared(engine, claim_query(engine))
    load(db, BATCH)
    alone = claim.explain(claim_query(engine, limit=50)).buffers
    others(db, 2 * OTHERS)

    beside = claim.explain(claim_query(engine, limit=50)).buffers

    assert beside <= alone * 1.1
