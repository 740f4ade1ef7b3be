"""Rows of jobs, put in as a test wants them, for tests about what is done with jobs and not about how they came."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow

from rowlock.model.ids import new_id

Db = psycopg.Connection[TupleRow]

LIVE = {"waiting", "ready", "running"}


def put(db: Db, state: str = "ready", **columns: Any) -> UUID:  # noqa: ANN401  whatever a column takes
    """One job, live or ended by its state; what is not said is plain. `error` is the type of its only error."""
    now = datetime.now(UTC)
    row: dict[str, Any] = {"id": new_id(), "queue": "default", "task": "t", "state": state, "attempts": 10, "args": {}}
    row |= {"run_at": now, "created_at": now}
    if state in LIVE:
        row |= {"waits_for": "code"} if state == "waiting" else {}
        row |= {"token": new_id(), "worker": new_id()} if state == "running" else {}
    else:
        counts = {"priority": 0, "failures": 1, "crashes": 0, "claims": 1}
        row |= counts | {"ended_at": now, "expires_on": now.date() + timedelta(days=7)}
    if error := columns.pop("error", None):
        facts = {"type": error, "message": "no", "attempt": 1, "worker": None, "started_at": None, "ended_at": None}
        row["errors"] = [json.dumps(facts)]
    row |= columns
    row["args"] = json.dumps(row["args"])
    text = sql.SQL("insert into {} ({}) values ({})").format(
        sql.Identifier("rowlock", "jobs" if state in LIVE else "history"),
        sql.SQL(", ").join(map(sql.Identifier, row)),
        sql.SQL(", ").join(sql.Placeholder(name) + sql.SQL("::json[]" * (name == "errors")) for name in row),
    )
    db.execute(text, row)
    if row.get("key") is not None and state in LIVE:
        db.execute("insert into rowlock.keys (key, task, job) values (%(key)s, %(task)s, %(id)s)", row)
    return UUID(row["id"])


def put_many(db: Db, count: int, state: str = "ready") -> None:
    """Many plain jobs of one state, and so with ids of one moment."""
    if state in LIVE:
        db.execute(
            """
            insert into rowlock.jobs (id, queue, task, state, attempts, run_at, created_at, args, waits_for)
            select rowlock.uuid7(), 'default', 't', %(state)s, 10, rowlock.now(), rowlock.now(), '{}',
                case when %(state)s = 'waiting' then 'pause' end
            from generate_series(1, %(count)s)
            """,
            {"state": state, "count": count},
        )
    else:
        db.execute(
            """
            insert into rowlock.history (
                id, queue, task, state, priority, failures, crashes, claims, attempts, run_at, created_at, ended_at,
                expires_on, args
            )
            select rowlock.uuid7(), 'default', 't', %(state)s, 0, 1, 0, 1, 10, rowlock.now(), rowlock.now(),
                rowlock.now(), (rowlock.now() at time zone 'UTC')::date + 1 + n %% 5, '{}'
            from generate_series(1, %(count)s) as n
            """,
            {"state": state, "count": count},
        )


def counts(db: Db) -> tuple[int, int]:
    """How many jobs live, and how many have ended."""
    row = db.execute("select (select count(*) from rowlock.jobs), (select count(*) from rowlock.history)").fetchone()
    assert row is not None
    return row[0], row[1]


def travel(db: Db, delta: timedelta) -> None:
    """Move the database's clock."""
    db.execute(
        sql.SQL(
            "create or replace function rowlock.now() returns timestamptz language sql stable parallel safe"
            " return statement_timestamp() + {}::interval"
        ).format(sql.Literal(f"{delta.total_seconds()} seconds"))
    )
