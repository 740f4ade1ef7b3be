"""Plans: claim and settle cost their batch, whatever the planner believes about the table.

A queue's statistics are always wrong. The worst state is a normal one: vacuumed while empty, statements prepared, then
a flood. So they are prepared on an empty, vacuumed table and measured after it was loaded, and never analysed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.rows import TupleRow

from rowlock.db.session import Session, connect
from rowlock.model.outcome import Ended, Retried, Returned, Succeeded
from rowlock.model.row import ClaimedJob
from rowlock.store import claim as claim_store
from rowlock.store import clock, queues, upkeep, workers
from rowlock.store import settle as settle_store
from rowlock.store.claim import PRIORITIES, Lane
from rowlock.store.query import Query, numbered, statement
from tests.engine import Engine
from tests.house.reading import Statement, statements
from tests.rows import travel

Db = psycopg.Connection[TupleRow]
FLOOD = 20_000
BATCH = 500
NIL = "00000000-0000-0000-0000-000000000000"


class Prepared:
    """A statement of ours, prepared under a name, so that EXPLAIN can look at the plan a worker's session would use."""

    def __init__(self, engine: Engine, query: Query[Any]) -> None:
        self.engine = engine
        self.name = f"p_{query.name}"
        text = statement(query.name, "rowlock")
        self.parameters = list(dict.fromkeys(re.findall(r"%\((\w+)\)s", text)))
        for number, parameter in enumerate(self.parameters, 1):
            text = text.replace(f"%({parameter})s", f"${number}")
        engine.connection.execute(f"prepare {self.name} as {text}".replace("%%", "%").encode())

    def explain(self, query: Query[Any]) -> Plan:
        """Run it, really, and say what it did."""
        values = sql.SQL(", ").join(sql.Literal(query.params[parameter]) for parameter in self.parameters)
        text = sql.SQL("explain (analyze, buffers, format json) execute {}({})").format(
            sql.Identifier(self.name), values
        )
        row = self.engine.connection.execute(text).fetchone()
        assert row is not None
        return Plan(json.loads(row[0])[0]["Plan"])


class Plan:
    def __init__(self, root: dict[str, Any]) -> None:
        self.nodes = list(_walk(root))
        self.buffers = root["Shared Hit Blocks"] + root["Shared Read Blocks"]

    def rows_touched(self) -> float:
        """Rows that scans of tables and CTEs gave or threw away: n² shows here, on any machine."""
        scans = [node for node in self.nodes if "Scan" in node["Node Type"]]
        gone = ("Rows Removed by Filter", "Rows Removed by Join Filter")
        return sum(
            float(node["Actual Loops"] * (node["Actual Rows"] + sum(node.get(kind, 0) for kind in gone)))
            for node in scans
        )

    def whole_scans(self) -> list[str]:
        """Scans that read a table without an index condition."""
        return [
            f"{node['Node Type']} on {node.get('Relation Name')}"
            for node in self.nodes
            if node.get("Relation Name") == "jobs" and reads_all(node)
        ]


def _walk(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from _walk(child)


@pytest.fixture
def engine(url: str, db: Db) -> Iterator[Engine]:
    """A session whose statements meet a table that was vacuumed while it was empty, and will not be analysed."""
    db.execute("alter table rowlock.jobs set (autovacuum_enabled = off)")
    db.execute("vacuum analyze rowlock.jobs")
    engine = Engine(url)
    yield engine
    engine.close()


# Statements that may read a whole index of jobs → why.
WALKS = {
    "job_live": "it is for tests that ask what there is",
    "job_orphans": "it looks for jobs whose worker is on no book: once a minute, one worker for all",
    "job_outline": "a list of the latest, which ends at its limit",
    "lane_count": "it hops from queue to queue, and this is its first hop",
    "lane_list": "it hops from queue to queue, and this is its first hop",
    "parked_count": "it hops from queue to queue, and this is its first hop",
    "running_count": "only running jobs are in that index",
    "suspect_wait": "only suspects are in that index",
    "waiting_count": "it hops from kind to kind, and this is its first hop",
}


@pytest.mark.parametrize("upkeep", ["vacuum", "vacuum analyze"])
def test_no_statement_reads_all_jobs_whatever_was_known_when_it_was_planned(url: str, db: Db, upkeep: str) -> None:
    """A join to jobs, or an order that another index has, makes a plan for an empty table that reads all of it."""
    for table in ("jobs", "workers"):
        db.execute(f"{upkeep} rowlock.{table}")

    with connect(url, name="rowlock test", engine=True) as session:
        walks = {one.name for one in statements() if walks_jobs(session, one)}

    assert walks == WALKS.keys()


def walks_jobs(session: Session, one: Statement) -> bool:
    """Whether the plan of a statement reads jobs, or an index of it, from one end to the other."""
    text, names = numbered(one.name, "rowlock")
    if not re.match(r"\s*(with|select|insert|update|delete)\b", one.bare):
        return False
    types, nothing = (f"({', '.join([word] * len(names))})" if names else "" for word in ("text", "null"))
    session.execute(f"prepare p_{one.name} {types} as {text}".encode())
    [(root,)] = session.execute(f"explain (format json) execute p_{one.name}{nothing}".encode()).fetchall()
    nodes = _walk(json.loads(root)[0]["Plan"])
    return any(node.get("Relation Name") == "jobs" and reads_all(node) for node in nodes)


def reads_all(node: dict[str, Any]) -> bool:
    return node["Node Type"] in {"Seq Scan", "Index Scan", "Index Only Scan"} and "Index Cond" not in node


def flood(db: Db) -> None:
    """Many due jobs in one lane."""
    load(db, FLOOD)


def lopsided(db: Db) -> None:
    """Nearly everything runs or waits, and the due jobs are few and of the lowest priority."""
    load(db, FLOOD, state="running")
    load(db, FLOOD, priority=4, run_at="rowlock.now() + interval '1 day'")
    load(db, 2 * BATCH, priority=-4)


def load(db: Db, count: int, *, state: str = "ready", priority: int = 0, run_at: str = "rowlock.now()") -> None:
    running = state == "running"
    db.execute(
        f"""insert into rowlock.jobs
            (id, queue, task, state, priority, attempts, run_at, created_at, args, token, worker)
        select rowlock.uuid7(), 'default', 't', '{state}', {priority}, 10, {run_at}, rowlock.now(), '{{}}',
            {"gen_random_uuid(), gen_random_uuid()" if running else "null, null"}
        from generate_series(1, {count})""".encode()
    )


def claim_query(engine: Engine, *, limit: int = BATCH, floor: ClaimedJob | None = None) -> Query[ClaimedJob]:
    lanes = [Lane("default", priority) for priority in PRIORITIES]
    if floor is not None:
        lanes[PRIORITIES.index(floor.priority)] = Lane("default", floor.priority, floor.run_at, floor.id)
    return claim_store.claim(lanes=lanes, limit=limit, worker=engine.worker)


def settle_query(rows: Sequence[ClaimedJob]) -> Query[str]:
    ended: list[tuple[ClaimedJob, Ended, timedelta | None]] = [(row, Succeeded("1"), timedelta(days=1)) for row in rows]
    return settle_store.settle_jobs(ended)


def return_query(rows: Sequence[ClaimedJob]) -> Query[str]:
    returned: list[tuple[ClaimedJob, Returned]] = [(row, Retried("{}", timedelta(hours=1))) for row in rows]
    return settle_store.return_jobs(returned)


@pytest.mark.parametrize("state", [flood, lopsided])
def test_a_claim_prepared_on_an_empty_table_costs_its_batch(
    engine: Engine, db: Db, state: Callable[[Db], None]
) -> None:
    claim = Prepared(engine, claim_query(engine))
    for _ in range(6):  # so that a generic plan would be settled on by now, were it allowed
        claim.explain(claim_query(engine))
    state(db)

    plan = claim.explain(claim_query(engine))

    assert plan.whole_scans() == []
    assert plan.rows_touched() <= 8 * BATCH
    assert db.execute("select count(*) from rowlock.jobs where worker = %s", [engine.worker]).fetchone() == (BATCH,)


@pytest.mark.parametrize("state", [flood, lopsided])
@pytest.mark.parametrize("query", [settle_query, return_query])
def test_a_settle_prepared_on_an_empty_table_costs_its_batch(
    engine: Engine, db: Db, query: Callable[[Sequence[ClaimedJob]], Query[str]], state: Callable[[Db], None]
) -> None:
    nobody = ClaimedJob(NIL, NIL, "t", "{}", "default", 0, "", 0, 0, 0, 1, None, False, None, None)
    settle = Prepared(engine, query([nobody]))
    for _ in range(6):
        settle.explain(query([nobody]))
    state(db)
    rows = engine.claim(BATCH)

    plan = settle.explain(query(rows))

    assert plan.whole_scans() == []
    assert plan.rows_touched() <= 12 * BATCH
    assert db.execute(
        "select count(*) from rowlock.jobs where worker = %s and state = 'running'", [engine.worker]
    ).fetchone() == (0,)


def test_a_claim_does_not_read_the_delayed_backlog(engine: Engine, db: Db) -> None:
    claim = Prepared(engine, claim_query(engine))
    load(db, FLOOD // 4, priority=-4)
    alone = claim.explain(claim_query(engine, limit=50)).buffers
    load(db, 2 * FLOOD, priority=4, run_at="rowlock.now() + interval '1 day'")

    behind = claim.explain(claim_query(engine, limit=50)).buffers

    assert behind <= alone * 1.1


def test_under_a_held_snapshot_a_claim_does_not_walk_the_dead(engine: Engine, db: Db, url: str) -> None:
    """Vacuum cannot remove what the held snapshot might see; the floor is above it."""
    with psycopg.connect(url) as holder:
        holder.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        holder.execute("select count(*) from rowlock.jobs")
        load(db, FLOOD)
        last = None
        while rows := engine.claim(1_000):
            engine.settle(*rows)
            last = max(rows, key=lambda row: (row.run_at, row.id))
        load(db, 100)
        assert last is not None
        claim = Prepared(engine, claim_query(engine))

        from_floor = claim.explain(claim_query(engine, limit=10, floor=last)).buffers
        from_bottom = claim.explain(claim_query(engine, limit=10)).buffers

    assert from_floor < 250
    assert from_bottom > 10 * from_floor  # else this test proves nothing


@pytest.mark.parametrize("look", [workers.held, workers.hand_back])
def test_under_a_held_snapshot_what_a_worker_holds_is_found_without_a_walk_over_all_that_it_ever_claimed(
    engine: Engine, db: Db, url: str, look: Callable[..., Query[Any]]
) -> None:
    prepared = Prepared(engine, look(worker=engine.worker))
    for _ in range(6):
        prepared.explain(look(worker=engine.worker))
    travel(db, -timedelta(hours=1))
    load(db, FLOOD // 4)
    [old] = engine.claim(1)
    with psycopg.connect(url) as holder:
        holder.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        holder.execute("select count(*) from rowlock.jobs")
        while rows := engine.claim(1_000):
            engine.settle(*rows)
        travel(db, timedelta(0))
        [seen] = engine.run(workers.held(worker=engine.worker))
        load(db, 2)
        engine.claim()

        whole = prepared.explain(workers.held(worker=engine.worker)) if look is workers.held else None
        plan = prepared.explain(look(worker=engine.worker, seen=seen))

    assert list(seen.attempts) == [(old.id, old.token)]
    assert plan.rows_touched() <= 30
    assert plan.buffers < 100
    assert whole is None or whole.buffers > 10 * plan.buffers  # else this test proves nothing


def test_a_worker_that_starts_looks_at_few_jobs_to_see_whether_the_clock_was_set_back(engine: Engine, db: Db) -> None:
    query = clock.compare_with_jobs(queues=["default", "other"])
    compare = Prepared(engine, query)
    load(db, FLOOD)
    load(db, FLOOD, run_at="rowlock.now() + interval '1 day'")

    plan = compare.explain(query)

    assert engine.run(query) == [None]
    assert plan.whole_scans() == []
    assert plan.rows_touched() <= 5_000


def test_taking_up_reads_none_of_the_jobs_that_this_worker_refuses(engine: Engine, db: Db) -> None:
    query = claim_store.take_up(queues=["default"], tasks=["t", "u@2"], limit=BATCH, worker=engine.worker)
    take_up = Prepared(engine, query)
    for _ in range(6):
        take_up.explain(query)
    refuse(db, FLOOD, reason="changed code", worker=engine.worker)
    refuse(db, 5, reason="unknown task", worker=engine.worker)

    plan = take_up.explain(query)

    assert db.execute("select count(*) from rowlock.jobs where state = 'running'").fetchone() == (5,)
    assert plan.whole_scans() == []
    assert plan.rows_touched() <= 60


def refuse(db: Db, count: int, *, reason: str, worker: str) -> None:
    """Many jobs that this worker has refused."""
    db.execute(
        """insert into rowlock.jobs
            (id, queue, task, state, waits_for, reason, worker, attempts, run_at, created_at, args)
        select rowlock.uuid7(), 'default', 't', 'waiting', 'code', %s, %s, 10, rowlock.now(), rowlock.now(), '{}'
        from generate_series(1, %s)""",
        [reason, worker, count],
    )


def test_a_look_for_new_queues_walks_none_of_those_that_are_known(engine: Engine, db: Db) -> None:
    look = Prepared(engine, queues.used())
    for _ in range(6):
        look.explain(queues.used())
    flood(db)
    db.execute("update rowlock.jobs set queue = 'a'")  # each leaves a dead row in the other
    engine.enqueue(queue="zoo")

    plan = look.explain(queues.used(["default", "a"]))

    assert engine.run(queues.used(["default", "a"])) == ["zoo"]
    assert engine.run(queues.used(["b", "zoo"])) == ["a"]
    assert plan.rows_touched() <= 30
    assert plan.buffers < 50


def test_what_was_claimed_before_the_clock_was_set_back_and_after_is_found(engine: Engine, db: Db) -> None:
    engine.enqueue(3)
    travel(db, timedelta(hours=1))
    first = engine.claim(1)
    [seen] = engine.run(workers.held(worker=engine.worker))
    second = engine.claim(1)
    travel(db, timedelta(0))
    third = engine.claim(1)

    [held] = engine.run(workers.held(worker=engine.worker, seen=seen))

    assert sorted(held.attempts) == sorted((row.id, row.token) for row in (*first, *second, *third))


def test_a_sweep_for_expired_jobs_costs_what_has_expired(engine: Engine, db: Db) -> None:
    sweep = Prepared(engine, upkeep.expire(keep=timedelta(days=1)))
    flood(db)
    db.execute("update rowlock.jobs set expires_at = rowlock.now() + interval '1 day'")
    load(db, BATCH)
    db.execute("update rowlock.jobs set expires_at = rowlock.now() where expires_at is null")

    plan = sweep.explain(upkeep.expire(keep=timedelta(days=1)))
    nothing = sweep.explain(upkeep.expire(keep=timedelta(days=1)))

    assert plan.whole_scans() == []
    assert plan.rows_touched() < 10 * BATCH
    assert nothing.rows_touched() <= 1
    assert {node.get("Index Name") for node in nothing.nodes} >= {"jobs_expiring"}
