"""Rows that PostgreSQL fails to write, every time."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from psycopg import AsyncCursor
from psycopg.rows import TupleRow

from rowlock.db import session, worker_connection
from rowlock.store.query import Query
from tests.worker.working import Db


def breaks(db: Db, table: str, when: str, state: str = "XX001", *, event: str = "insert or update") -> None:
    """Every write of such a row fails, as one whose TOAST block is lost."""
    db.execute(
        f"""create function public.broken() returns trigger language plpgsql as
        $$ begin raise exception 'unexpected chunk number' using errcode = '{state}'; end $$"""
    )
    db.execute(
        f"create trigger broken before {event} on rowlock.{table} for each row when ({when}) "
        "execute function public.broken()".encode()
    )


def is_late(monkeypatch: pytest.MonkeyPatch, name: str) -> Sequence[str]:
    """Every time workers send this statement, PostgreSQL ends it as too slow; returns it as often as it was sent."""
    sent: list[str] = []
    run = session.arun

    async def arun(cursor: AsyncCursor[TupleRow], query: Query[object], schema: str) -> list[object]:
        if query.name != name:
            return await run(cursor, query, schema)
        sent.append(name)
        await cursor.execute("set statement_timeout = 1")
        try:
            await cursor.execute("select pg_sleep(60)")
        finally:
            await cursor.execute("set statement_timeout = 0")
        raise AssertionError("PostgreSQL has not ended it")

    monkeypatch.setattr(worker_connection, "arun", arun)
    return sent
