"""Jobs with keys: a task to make them of, and what there is of them."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import psycopg
from psycopg.rows import TupleRow

from rowlock import Key, Rowlock, Task

Db = psycopg.Connection[TupleRow]
T = Task[[int], None]

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
HOURLY = Key("k", period=HOUR)
REPLACE = Key("k", taken="replace")
DEBOUNCE = Key("k", taken="debounce", at_most=HOUR)


def declared(app: Rowlock, name: str) -> T:
    """A task that is given a number, by which its jobs are known."""

    def work(n: int) -> None:
        return None

    return app.task(name=name)(work)


def live(db: Db) -> list[tuple[UUID, int, str | None]]:
    """Live jobs, the number each was given, and their keys."""
    query = "select id, (args ->> 'n')::int, key from rowlock.jobs order by id"
    return db.execute(query.encode()).fetchall()


def holders(db: Db) -> dict[str, UUID]:
    """Keys, and the jobs that hold them."""
    return dict(db.execute("select key, job from rowlock.keys").fetchall())
