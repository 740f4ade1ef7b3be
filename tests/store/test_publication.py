"""A publication for all tables, as change data capture and moves to another server make one."""

from __future__ import annotations

import psycopg
from psycopg.rows import TupleRow

from rowlock import Filter, Retry, Rowlock
from tests.worker.working import ended, one, work_off

Db = psycopg.Connection[TupleRow]


def test_jobs_are_run_retried_and_deleted_while_all_tables_are_published(app: Rowlock, db: Db) -> None:
    """PostgreSQL refuses to change a row of a published table by which subscribers could not find it."""
    failing = True

    @app.task(name="t", retry=Retry.none())
    async def t() -> None:
        if failing:
            raise ValueError("no")

    db.execute("create publication everything for all tables")
    job = t.enqueue()
    work_off(app, db)
    failed = ended(db)

    app.jobs.retry(Filter(ids=[job.id]))
    failing = False
    work_off(app, db)
    succeeded = ended(db)
    app.jobs.delete(Filter(ids=[job.id]))

    assert [row[1] for row in (*failed, *succeeded)] == ["failed", "succeeded"]
    assert ended(db) == []
    # Whatever else is ever changed.
    without = """select relname from pg_class where relnamespace = 'rowlock'::regnamespace and relkind in ('r', 'p')
        and relpersistence = 'p' and not exists (select from pg_index where indrelid = pg_class.oid and indisprimary)"""
    assert db.execute(without).fetchall() == []
    assert one(db, "show wal_level") in {"replica", "logical"}  # it is refused with either
