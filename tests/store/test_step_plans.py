"""Plans of what workflows say: each statement costs its batch, beside any number that sleep, wait, or remember much."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any

import pytest

from rowlock.model.ids import new_ids
from rowlock.model.outcome import Ended, Parked, Returned, Succeeded
from rowlock.model.row import Claimed, NewJob
from rowlock.model.step import Record, Spawned
from rowlock.store import endings, recall, steps
from rowlock.store.explain import open_steps, step_sum
from rowlock.store.query import Query
from tests.engine import Engine
from tests.store.test_plans import NIL, Db, Plan, Prepared

FLOOD = 20_000
BATCH = 100
# Parked as they are, each with the step that it waits in: a child that has not ended.
_PARKED = """
with parked as (
    insert into rowlock.jobs
        (id, queue, task, attempts, claims, run_at, created_at, args, version, state, waits_for, wakes_at)
    select rowlock.uuid7(), 'elsewhere', 't', 1, 1, rowlock.now(), rowlock.now(), '{}', 1, 'waiting', 'children', 1
    from generate_series(1, %s)
    returning id
)
insert into rowlock.steps (job, key, position, kind, state, child, until, started_at)
select id, 'child', 1, 'child', 'open', rowlock.uuid7(), rowlock.now() + interval '1 day', rowlock.now() from parked
"""
# Children of the first of those.
_CHILDREN = """
insert into rowlock.jobs (id, queue, task, attempts, run_at, created_at, args, parent)
select child, 'default', 't', 1, rowlock.now(), rowlock.now(), '{}', job from rowlock.steps order by job limit %s
"""
_WORKFLOWS = """
insert into rowlock.jobs (id, queue, task, attempts, run_at, created_at, args, version)
select rowlock.uuid7(), 'default', 't', 1, rowlock.now(), rowlock.now(), '{}', 1 from generate_series(1, %s)
"""
NOBODY = Claimed(NIL, NIL, "t", "{}", "default", 0, "", 0, 0, 0, 1, None, False, None, None, 1)


@pytest.fixture
def engine(url: str, db: Db) -> Iterator[Engine]:
    """A session whose statements meet tables that were vacuumed while they were empty, and will not be analysed."""
    for table in ("jobs", "steps", "signals"):
        db.execute(f"alter table rowlock.{table} set (autovacuum_enabled = off)".encode())
        db.execute(f"vacuum analyze rowlock.{table}".encode())
    engine = Engine(url)
    yield engine
    engine.close()


def end(rows: Sequence[Claimed]) -> Query[Any]:
    ended: list[tuple[Claimed, Ended, timedelta | None]] = [(row, Succeeded("1"), timedelta(days=1)) for row in rows]
    return endings.settle(ended, told={})


def park(rows: Sequence[Claimed]) -> Query[Any]:
    parked: list[tuple[Claimed, Returned]] = [
        (row, Parked(wakes_at=1, waits_for="signal", since=None, undoing=False)) for row in rows
    ]
    return endings.give_back(parked, told={})


def record(rows: Sequence[Claimed]) -> Query[Any]:
    return steps.record([(row, Record("charge", 1, "step", "done", value="1")) for row in rows], told={})


def load(rows: Sequence[Claimed]) -> Query[Any]:
    return steps.load(row.id for row in rows)


def signals(rows: Sequence[Claimed]) -> Query[Any]:
    return steps.load_signals(row.id for row in rows)


def spawn(rows: Sequence[Claimed]) -> Query[Any]:
    children = [NewJob(job_id, "default", "t", "{}", 0, 1) for job_id in new_ids(len(rows))]
    return steps.spawn([(row, Spawned("child", 1, None, child)) for row, child in zip(rows, children, strict=True)])


STATEMENTS: list[Callable[[Sequence[Claimed]], Query[Any]]] = [record, load, signals, park, end]


def whole_scans(plan: Plan) -> list[str]:
    """Scans that read a table, or an index of it, from one end to the other."""
    return [
        f"{node['Node Type']} on {node.get('Relation Name')} {node.get('Index Name', '')}"
        for node in plan.nodes
        if node.get("Relation Name") in {"jobs", "steps", "signals", "keys"}
        and "Index Cond" not in node
        and node["Node Type"] in {"Seq Scan", "Index Scan", "Index Only Scan"}
    ]


@pytest.mark.parametrize("query", STATEMENTS, ids=[query.__name__ for query in STATEMENTS])
def test_a_statement_prepared_on_empty_tables_costs_its_batch(
    engine: Engine, db: Db, query: Callable[[Sequence[Claimed]], Query[Any]]
) -> None:
    said = Prepared(engine, query([NOBODY]))
    for _ in range(6):
        said.explain(query([NOBODY]))
    db.execute(_PARKED, [FLOOD])
    db.execute(_WORKFLOWS, [BATCH])
    rows = engine.claim(BATCH)
    engine.run(record(rows))

    plan = said.explain(query(rows))

    assert len(rows) == BATCH
    assert whole_scans(plan) == []
    assert plan.rows_touched() <= 40 * BATCH


def test_children_that_end_find_their_parents_steps_among_all_that_are_open(engine: Engine, db: Db) -> None:
    settle = Prepared(engine, end([NOBODY]))
    for _ in range(6):
        settle.explain(end([NOBODY]))
    db.execute(_PARKED, [FLOOD])
    db.execute(_CHILDREN, [BATCH])
    rows = engine.claim(BATCH)

    plan = settle.explain(end(rows))

    assert len(rows) == BATCH
    assert whole_scans(plan) == []
    assert plan.rows_touched() <= 40 * BATCH
    woken = "select count(*) from rowlock.jobs where queue = 'elsewhere' and state = 'ready' and wakes = 1"
    assert db.execute(woken.encode()).fetchone() == (BATCH,)
    answered = "select count(*) from rowlock.steps where kind = 'child' and state = 'done'"
    assert db.execute(answered.encode()).fetchone() == (BATCH,)


def test_looking_at_one_workflow_does_not_read_the_others(engine: Engine, db: Db) -> None:
    [job] = db.execute("select gen_random_uuid()").fetchone() or ()
    looks: list[Query[Any]] = [open_steps(job), step_sum(job), recall.steps([str(job)]), recall.workflows([str(job)])]
    prepared = [Prepared(engine, look) for look in looks]
    db.execute(_PARKED, [FLOOD])

    plans = [one.explain(look) for one, look in zip(prepared, looks, strict=True)]

    assert [whole_scans(plan) for plan in plans] == [[], [], [], []]
    assert max(plan.buffers for plan in plans) < FLOOD / 10


def test_children_are_written_down_beside_any_number_of_others(engine: Engine, db: Db) -> None:
    said = Prepared(engine, spawn([NOBODY]))
    for _ in range(6):
        said.explain(spawn([NOBODY]))
    db.execute(_PARKED, [FLOOD])
    db.execute(_WORKFLOWS, [BATCH])
    rows = engine.claim(BATCH)

    plan = said.explain(spawn(rows))

    assert whole_scans(plan) == []
    assert plan.rows_touched() <= 12 * BATCH
