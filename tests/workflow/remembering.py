"""Rows of workflows and of what they remember, put in as a test wants them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from psycopg import sql

from tests.rows import LIVE, Db, put
from tests.worker.working import one

MORNING = datetime(2026, 3, 1, 8, tzinfo=UTC)


def put_workflow(db: Db, state: str = "ready", **columns: Any) -> UUID:  # noqa: ANN401  whatever a column takes
    """A workflow that has begun, unless `claims` says otherwise; of one that has ended, history keeps no steps yet."""
    plain: dict[str, Any] = {"task": "shop.checkout", "version": 1, "attempts": 1, "claims": 1}
    if state == "waiting":
        plain |= {"waits_for": "signal", "wakes_at": 1}
    return put(db, state, **(plain | columns))


def put_step(db: Db, job: UUID, key: str, *, at: float = 0, took: float | None = 1, **columns: Any) -> None:  # noqa: ANN401  whatever a column takes
    """A step that was started so many seconds into the morning, and took so long; None: it has not ended."""
    started = MORNING + timedelta(seconds=at)
    row: dict[str, Any] = {"job": job, "key": key, "position": round(at), "kind": "step", "started_at": started}
    row |= {"state": "open"} if took is None else {"state": "done", "ended_at": started + timedelta(seconds=took)}
    row |= columns
    for name in ("input", "value", "error", "form"):
        if name in row:
            row[name] = json.dumps(row[name])
    _insert(db, "steps", row)


def put_signal(db: Db, job: UUID, name: str, number: int = 1, **columns: Any) -> None:  # noqa: ANN401  whatever a column takes
    """A signal that was stored for a workflow."""
    row: dict[str, Any] = {"job": job, "name": name, "number": number, "sent_at": MORNING} | columns
    if "payload" in row:
        row["payload"] = json.dumps(row["payload"])
    _insert(db, "signals", row)


def put_failure(db: Db, job: UUID, step: str | None, *, at: float) -> None:
    """The record that a workflow has failed, of this step."""
    put_step(db, job, "failure", at=at, took=0, kind="failure", value={"step": step})


def end(db: Db, job: UUID, state: str = "failed", **columns: Any) -> None:  # noqa: ANN401  whatever a column takes
    """End a live workflow as its worker would: its steps and signals are folded into its row in history."""
    [row] = db.execute(
        """
        delete from rowlock.jobs where id = %s
        returning queue, task, args, key, tags, priority, version, parent, claims, attempts, created_at, started_at
        """,
        [job],
    ).fetchall()
    names = (
        *("queue", "task", "args", "key", "tags", "priority", "version", "parent", "claims", "attempts"),
        *("created_at", "started_at"),
    )
    put(db, state, id=str(job), **(dict(zip(names, row, strict=True)) | columns))
    db.execute("update rowlock.history set steps = (select rowlock.folded(id)) where id = %s", [job])
    db.execute("delete from rowlock.steps where job = %s", [job])
    db.execute("delete from rowlock.signals where job = %s", [job])
    db.execute("update rowlock.keys set until = rowlock.now() + interval '7 days' where job = %s", [job])


def row_of(db: Db, job: UUID, *columns: str) -> tuple[Any, ...]:
    """Some columns of a job's row, live or ended."""
    table = "jobs" if one(db, "select exists (select from rowlock.jobs where id = %s)", job) else "history"
    text = sql.SQL("select {} from {} where id = %s").format(
        sql.SQL(", ").join(map(sql.Identifier, columns)), sql.Identifier("rowlock", table)
    )
    [row] = db.execute(text, [job]).fetchall()
    return row


def is_live(db: Db, job: UUID) -> bool:
    state = row_of(db, job, "state")[0]
    return state in LIVE


def keys_of(db: Db, job: UUID) -> list[str]:
    """The keys of the steps that a live workflow remembers, in the order in which they were started."""
    rows = db.execute("select key from rowlock.steps where job = %s order by started_at, position, key", [job])
    return [key for (key,) in rows]


def _insert(db: Db, table: str, row: dict[str, Any]) -> None:
    text = sql.SQL("insert into {} ({}) values ({})").format(
        sql.Identifier("rowlock", table),
        sql.SQL(", ").join(map(sql.Identifier, row)),
        sql.SQL(", ").join(map(sql.Placeholder, row)),
    )
    db.execute(text, row)
