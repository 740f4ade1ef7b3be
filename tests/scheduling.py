"""Schedules in a test's database, and a clock for them that the test sets."""

from __future__ import annotations

from datetime import datetime, timedelta

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow

Db = psycopg.Connection[TupleRow]

_FACTS = {
    "task": "t",
    "args": "{}",
    "queue": "default",
    "priority": 2,
    "attempts": 3,
    "jitter": timedelta(0),
    "overlap": "skip",
    "catch_up": 1,
    "at_boot": False,
}


def add(db: Db, name: str = "s", *, due: str = "-1 minute", count: int | None = None, **facts: object) -> None:
    """A schedule whose next slot is so far off, or came a minute ago; or many of them, `s0001` and so on."""
    every = {} if "cron" in facts else {"every": timedelta(minutes=1)}
    columns = {**_FACTS, **every, **facts}
    statement = sql.SQL(
        """
        insert into rowlock.schedules (name, next_at, created_at, {columns})
        select
            %(name)s || case when %(count)s::integer is null then '' else lpad(n::text, 4, '0') end,
            date_trunc('second', rowlock.now()) + %(due)s::interval, rowlock.now(), {values}
        from generate_series(1, coalesce(%(count)s::integer, 1)) as n
        """
    ).format(
        columns=sql.SQL(", ").join(map(sql.Identifier, columns)),
        values=sql.SQL(", ").join(map(sql.Placeholder, columns)),
    )
    db.execute(statement, {**columns, "name": name, "due": due, "count": count})


class Clock:
    """The database's clock, which stands still until it is set; in a table, so that setting it locks nobody out."""

    def __init__(self, db: Db, at: datetime) -> None:
        self._db = db
        self.at = at
        db.execute("create table public.clock (at timestamptz not null)")
        db.execute("insert into public.clock values (%s)", [at])
        db.execute("grant usage on schema public to public; grant select on public.clock to public")
        db.execute(
            "create or replace function rowlock.now() returns timestamptz language sql stable parallel safe"
            " return (select at from public.clock)"
        )
        # Parts are made from today on, and today may be long after.
        db.execute(
            "select rowlock.make_part('history', day::date, 1)"
            " from generate_series(%s::date, %s::date + 9, '1 day') as day"
            " where to_regclass('rowlock.' || rowlock.part_name('history', day::date, 1)) is null",
            [at, at],
        )

    def go(self, by: timedelta) -> None:
        """On, or back."""
        self.at += by
        self._db.execute("update public.clock set at = %s", [self.at])
