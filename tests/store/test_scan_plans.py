"""Plans of operators' statements: a window costs a window, and a verb its jobs, however many others there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.rows import TupleRow

from rowlock import Filter
from rowlock.db.embedded import disposable
from rowlock.db.embedded.server import EmbeddedPostgres
from rowlock.model.filter import ENDED, LIVE
from rowlock.model.ids import NIL, TOP
from rowlock.store import events, operations, pauses
from rowlock.store.find import windows
from rowlock.store.find.windows import WINDOW, Match
from rowlock.store.query import Query
from tests.depth import deep
from tests.engine import Engine
from tests.rows import put_many
from tests.store.test_plans import Plan, Prepared

pytestmark = deep  # its tables of thousands take seconds to make; test_plans.py has the statements of workers

BATCH = 500
FEW, MANY = 2 * WINDOW, 200_000

TOMORROW = datetime.now(UTC) + timedelta(days=1)

LOOK: dict[str, Any] = {"before": TOP, "down_to": NIL, "limit": WINDOW, "whole": False}
WHO: dict[str, Any] = {"actor": "me", "why": "so"}


@dataclass(frozen=True)
class World:
    """A database with so many live jobs, and so many that went well, and twice as many as a batch that did not.

    It is vacuumed while it is empty and not analysed after it is full: as wrong as statistics can be.
    """

    engine: Engine
    live: Sequence[Match]
    waiting: Sequence[Match]
    trouble: Sequence[Match]

    def explain(self, query: Query[Any]) -> Plan:
        """What a statement really does; and then it is undone."""
        with self.engine.connection.transaction(force_rollback=True):
            self.engine.connection.execute("deallocate all")
            return Prepared(self.engine, query).explain(query)


def made(url: str, count: int) -> World:
    with psycopg.connect(url, autocommit=True) as db:
        for table in ("jobs", "history", "events"):
            db.execute(f"vacuum analyze rowlock.{table}".encode())
        db.execute("alter table rowlock.jobs set (autovacuum_enabled = off)")
        for part in parts(db):
            db.execute(f"alter table {part} set (autovacuum_enabled = off)".encode())
        put_many(db, count)
        put_many(db, count // 2, "succeeded")
        put_many(db, BATCH, "failed")
        put_many(db, BATCH, "waiting")
        put_many(db, count // 2, "succeeded")
        put_many(db, BATCH, "cancelled")
        put_many(db, BATCH)
        live = "select id::text, task, state, null, null from rowlock.jobs where state = %s order by id desc limit %s"
        trouble = (
            "select id::text, task, state, expires_on, null from rowlock.history where state = 'failed' order by id"
        )
        db.execute(
            """
            insert into rowlock.events (kind, job, actor, details)
            select 'moved', id, 'me', '{}' from rowlock.jobs where state = 'ready'
            """
        )
        return World(
            Engine(url),
            [Match(*row) for row in db.execute(live.encode(), ["ready", BATCH])],
            [Match(*row) for row in db.execute(live.encode(), ["waiting", BATCH])],
            [Match(*row) for row in db.execute(trouble.encode())],
        )


def parts(db: psycopg.Connection[TupleRow]) -> list[str]:
    query = "select inhrelid::regclass::text from pg_inherits where inhparent = any(%s::regclass[])"
    return [name for (name,) in db.execute(query, [["rowlock.history", "rowlock.events"]])]


@pytest.fixture(scope="module")
def worlds(server: EmbeddedPostgres, template: str) -> Iterator[tuple[World, World]]:
    """A small one and a large one; nothing is left changed in them."""
    small, large = (made(disposable.create(server.url, template=template), count) for count in (FEW, MANY))
    yield small, large
    small.engine.close()
    large.engine.close()


QUERIES: dict[str, Callable[[World], Query[Any]]] = {
    "all live": lambda _: windows.scan_live(Filter(), states=LIVE, ids=None, **LOOK),
    "live, none of which match": lambda _: windows.scan_live(Filter(tag="no"), states=LIVE, ids=None, **LOOK),
    "live by id": lambda world: windows.scan_live(Filter(), states=LIVE, ids=[row.id for row in world.live], **LOOK),
    "all ended": lambda _: windows.scan_ended(Filter(), states=ENDED, ids=None, **LOOK),
    "ended, none of which match": lambda _: windows.scan_ended(Filter(args={"x": 1}), states=ENDED, ids=None, **LOOK),
    "ended by id": lambda world: windows.scan_ended(
        Filter(), states=ENDED, ids=[row.id for row in world.trouble], **LOOK
    ),
    "failed": lambda _: windows.scan_ended(Filter(), states=frozenset({"failed"}), ids=None, **LOOK),
    "failed lately": lambda _: windows.scan_ended(
        Filter(ended_after=datetime.now(UTC) + timedelta(days=1)), states=frozenset({"failed"}), ids=None, **LOOK
    ),
    "latest to end": lambda _: windows.scan_ended(Filter(), states=ENDED, ids=None, end=TOMORROW, **LOOK),
    "latest to fail": lambda _: windows.scan_ended(
        Filter(args={"x": 1}), states=frozenset({"failed"}), ids=None, end=TOMORROW, **LOOK
    ),
    "retry": lambda world: operations.retry(world.trouble, **WHO),
    "cancel": lambda world: operations.cancel(world.live, states=LIVE, keep=timedelta(days=1), **WHO),
    "delete": lambda world: operations.delete(world.live, **WHO),
    "delete ended": lambda world: operations.delete_ended(world.trouble, **WHO),
    "move": lambda world: operations.move(world.live, queue="other", **WHO),
    "reprioritise": lambda world: operations.reprioritise(world.live, priority=-1, **WHO),
    "run next": lambda world: operations.run_next(world.live, **WHO),
    "release": lambda _: pauses.release("t"),
    "what pauses left": lambda _: pauses.expire(actor="me"),
    "events": lambda _: events.latest(limit=100),
    "events of a job": lambda world: events.latest(limit=100, job=world.live[0].id),
    "events by somebody": lambda _: events.scan(
        kind="moved", actor="nobody", job=None, before=None, limit=50, window=BATCH
    ),
    "events of a job by somebody": lambda world: events.scan(
        kind=None, actor="me", job=UUID(world.live[0].id), before=None, limit=50
    ),
}


@pytest.mark.parametrize("name", QUERIES)
def test_a_statement_costs_the_same_among_few_jobs_and_among_many(name: str, worlds: tuple[World, World]) -> None:
    small, large = worlds

    few, many = (world.explain(QUERIES[name](world)) for world in (small, large))

    assert many.whole_scans() == []
    # Fifty times as many jobs make each index one level higher, no more.
    assert many.buffers <= few.buffers * 2 + 50


def test_the_test_would_notice_a_look_that_reads_everything(worlds: tuple[World, World]) -> None:
    everything = windows.scan_live(Filter(), states=LIVE, ids=None, **LOOK | {"limit": MANY})
    everything.params["window"] = str(MANY)  # type: ignore[index]  # a dict, and this test's own

    few, many = (world.explain(everything) for world in worlds)

    assert many.buffers > few.buffers * 2 + 50
