"""Plans of what operators ask about workflows: a page costs a page, one workflow its steps, however many there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.rows import TupleRow

from rowlock.db.embedded import disposable
from rowlock.db.embedded.server import EmbeddedPostgres
from rowlock.model.filter import LIVE
from rowlock.model.ids import TOP, new_id
from rowlock.store import operations, upkeep
from rowlock.store.find.windows import WINDOW, Match
from rowlock.store.query import Query
from rowlock.store.workflows import records
from rowlock.store.workflows.records import WorkflowFilter
from tests.depth import deep
from tests.engine import Engine
from tests.rows import put_many
from tests.store.test_plans import Plan, Prepared
from tests.store.test_scan_plans import parts

pytestmark = deep  # its tables of thousands take seconds to make; test_plans.py has the statements of workers

Db = psycopg.Connection[TupleRow]

BATCH = 300
FEW, MANY = 2 * WINDOW, 60_000
ONLY = "where version is not null"
WHO: dict[str, Any] = {"actor": "me", "why": "so"}


@dataclass(frozen=True)
class World:
    """A database with so many live workflows, of two steps each, and so many that have ended; never analysed.

    Among them, and newer, are as many jobs of plain tasks.
    """

    engine: Engine
    live: Sequence[Match]
    ended: Sequence[Match]

    def explain(self, query: Query[Any]) -> Plan:
        """What a statement really does; and then it is undone."""
        with self.engine.connection.transaction(force_rollback=True):
            self.engine.connection.execute("deallocate all")
            return Prepared(self.engine, query).explain(query)


def made(url: str, count: int) -> World:
    with psycopg.connect(url, autocommit=True) as db:
        for table in ("jobs", "history", "events", "steps", "signals"):
            db.execute(f"vacuum analyze rowlock.{table}".encode())
        for table in ("rowlock.jobs", "rowlock.steps", *parts(db)):
            db.execute(f"alter table {table} set (autovacuum_enabled = off)".encode())
        put_many(db, count // 2)
        put_many(db, count // 2, "succeeded")
        for _ in range(4):
            _fill(db, count // 4)
            put_many(db, count // 4)
            put_many(db, count // 4, "succeeded")
        live = "select id::text, task, state, null, null from rowlock.jobs {} order by id desc limit %s"
        ended = "select id::text, task, state, expires_on, null from rowlock.history {} order by id desc limit %s"
        return World(
            Engine(url),
            [Match(*row) for row in db.execute(live.format(ONLY).encode(), [BATCH])],
            [Match(*row) for row in db.execute(ended.format(ONLY).encode(), [BATCH])],
        )


def _fill(db: Db, count: int) -> None:
    db.execute(
        """
        insert into rowlock.jobs (
            id, queue, task, state, attempts, run_at, created_at, expires_at, args, waits_for, version, claims, wakes_at
        )
        select
            rowlock.uuid7(), 'default', 'w', 'waiting', 1, rowlock.now(), rowlock.now(), rowlock.now(), '{}', 'signal',
            1, 1, 1
        from generate_series(1, %s)
        """,
        [count],
    )
    db.execute(
        """
        insert into rowlock.steps (job, key, position, kind, state, value, started_at, ended_at)
        select id, step, n, 'step', 'done', '1', rowlock.now(), rowlock.now()
        from rowlock.jobs cross join unnest('{a,b}'::text[]) with ordinality as step (step, n)
        where version is not null
        on conflict do nothing
        """
    )
    db.execute(
        """
        insert into rowlock.history (
            id, queue, task, state, priority, failures, crashes, claims, attempts, run_at, created_at, ended_at,
            expires_on, args, version, steps
        )
        select rowlock.uuid7(), 'default', 'w', 'failed', 0, 1, 0, 1, 1, rowlock.now(), rowlock.now(), rowlock.now(),
            (rowlock.now() at time zone 'UTC')::date + 1 + n %% 5, '{}', 1, folded
        from generate_series(1, %(count)s) as n
        cross join (select rowlock.folded(id) as folded from rowlock.jobs where version is not null limit 1) as one
        """,
        {"count": count},
    )


@pytest.fixture(scope="module")
def worlds(server: EmbeddedPostgres, template: str) -> Iterator[tuple[World, World]]:
    """A small one and a large one; nothing is left changed in them."""
    small, large = (made(disposable.create(server.url, template=template), count) for count in (FEW, MANY))
    yield small, large
    small.engine.close()
    large.engine.close()


def fork(found: Match) -> Query[Any]:
    return records.fork(UUID(found.id), new_id=new_id(), step="b", args=None, version=None, **WHO)


QUERIES: dict[str, Callable[[World], Query[Any]]] = {
    "all": lambda _: records.scan(WorkflowFilter(), before=TOP, limit=50),
    "none of which match": lambda _: records.scan(WorkflowFilter(workflow="no"), before=TOP, limit=50),
    "the steps of a live one": lambda world: records.steps(UUID(world.live[0].id)),
    "the steps of an ended one": lambda world: records.steps(UUID(world.ended[0].id)),
    "signals": lambda world: records.signals(UUID(world.ended[0].id)),
    "children": lambda world: records.children(UUID(world.live[0].id)),
    "fork of a live one": lambda world: fork(world.live[0]),
    "fork of an ended one": lambda world: fork(world.ended[0]),
    "retry": lambda world: operations.retry(world.ended, **WHO),
    "cancel": lambda world: operations.cancel(world.live, states=LIVE, keep=timedelta(days=1), **WHO),
    "expire, none of which may": lambda _: upkeep.expire(keep=timedelta(days=1)),
}


@pytest.mark.parametrize("name", QUERIES)
def test_a_statement_costs_the_same_among_few_workflows_and_among_many(name: str, worlds: tuple[World, World]) -> None:
    small, large = worlds

    few, many = (world.explain(QUERIES[name](world)) for world in (small, large))

    assert many.whole_scans() == []
    assert many.buffers <= few.buffers * 2 + 50
