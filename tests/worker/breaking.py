"""Rows that PostgreSQL fails to write, every time."""

from __future__ import annotations

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
