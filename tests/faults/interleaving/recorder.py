"""A flight recorder: triggers of the test that copy every version of every job's rows, live and ended.

One row's versions are in order, because each waits for the one before; what was rolled back leaves nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import psycopg
from psycopg.rows import TupleRow

Db = psycopg.Connection[TupleRow]

_INSTALL = """
create schema recorder;
create table recorder.versions (
    seq bigint generated always as identity primary key, place text, job uuid, old jsonb, new jsonb
);
create function recorder.copy() returns trigger language plpgsql as $$
    begin
        insert into recorder.versions (place, job, old, new) values (
            tg_argv[0], coalesce(new.id, old.id),
            case when tg_op <> 'INSERT' then to_jsonb(old) end, case when tg_op <> 'DELETE' then to_jsonb(new) end
        );
        return null;
    end
$$;
create trigger recorder after insert or update or delete on rowlock.jobs
    for each row execute function recorder.copy('jobs');
create trigger recorder after insert or update or delete on rowlock.history
    for each row execute function recorder.copy('history');
-- A function, because it keeps its plans: to plan these deletes, partition by partition, takes longer than to run them.
create function recorder.clear() returns void language plpgsql as $$
    begin
        delete from rowlock.jobs; delete from rowlock.history; delete from rowlock.keys; delete from rowlock.workers;
        delete from rowlock.events; delete from rowlock.pauses; delete from rowlock.parked;
        delete from rowlock.schedules; delete from rowlock.firings;
        delete from rowlock.signals; delete from rowlock.steps;
        delete from recorder.versions;
    end
$$;
"""

_RIGHT_THE_CLOCK = """
create or replace function rowlock.now() returns timestamptz language sql stable parallel safe
    return statement_timestamp();
"""


class Version(NamedTuple):
    """A change of one row: what it was before, None when there was none, and what it is after."""

    place: str  # jobs, or history
    job: str
    old: dict[str, Any] | None
    new: dict[str, Any] | None

    def __str__(self) -> str:
        return f"{self.place:8} {_short(self.old)} → {_short(self.new)}"


def _short(row: dict[str, Any] | None) -> str:
    if row is None:
        return "nothing"
    facts = {name: row[name] for name in ("claims", "failures", "crashes", "reason", "cancel_at") if row.get(name)}
    token = "" if row.get("token") is None else f" {row['token'][-6:]}"
    return f"{row['state']}{token} {facts or ''}".rstrip()


def install(db: Db) -> None:
    """Record from now on."""
    db.execute(_INSTALL, prepare=False)


def clear(db: Db) -> None:
    """Empty the tables and the record: by deleting, which with a few rows in each is faster than truncating."""
    db.execute("select recorder.clear()")
    row = db.execute("select rowlock.now() <> statement_timestamp()").fetchone()
    if row and row[0]:
        db.execute(_RIGHT_THE_CLOCK)


def versions(db: Db) -> dict[str, list[Version]]:
    """Every job's versions, in order."""
    found: dict[str, list[Version]] = {}
    for place, job, old, new in db.execute("select place, job::text, old, new from recorder.versions order by seq"):
        found.setdefault(job, []).append(Version(place, job, old, new))
    return found
