"""The flight recorder: every version of every job, and every worker, in the order in which they came to be.

Triggers write it inside the transactions under test, so it holds what was committed and nothing else. The row lock
makes the versions of one job a line; what a crash of the server takes back, it takes back here too.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import psycopg

# On a session of its own: rowlock's have search_path = pg_catalog and no right to expect anything here.
_INSTALL = """
create schema recorder;
create table recorder.versions (
    seq bigint generated always as identity primary key,
    at timestamptz not null default clock_timestamp(), tx xid8 not null default pg_current_xact_id(),
    job uuid not null, state text not null, token uuid, worker uuid, failures integer, crashes integer, claims integer,
    reason text, result text
);
create index on recorder.versions (job, tx);
create table recorder.workers (id uuid primary key, host text, pid integer, at timestamptz default clock_timestamp());

create function recorder.version() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' then
        insert into recorder.versions (job, state, token, worker, failures, crashes, claims)
        values (old.id, 'left', old.token, old.worker, old.failures, old.crashes, old.claims);
    else
        insert into recorder.versions (job, state, token, worker, failures, crashes, claims)
        values (new.id, new.state, new.token, new.worker, new.failures, new.crashes, new.claims);
    end if;
    return null;
end $$;
create trigger recorder after insert or update or delete on rowlock.jobs
    for each row execute function recorder.version();

create function recorder.ending() returns trigger language plpgsql as $$
begin
    insert into recorder.versions (job, state, worker, failures, crashes, claims, reason, result)
    values (new.id, new.state, new.worker, new.failures, new.crashes, new.claims, new.reason, new.result #>> '{}');
    return null;
end $$;
create trigger recorder after insert on rowlock.history for each row execute function recorder.ending();

create function recorder.arrival() returns trigger language plpgsql as $$
begin
    insert into recorder.workers (id, host, pid) values (new.id, new.host, new.pid);
    return null;
end $$;
create trigger recorder after insert on rowlock.workers for each row execute function recorder.arrival();
"""

ENDED = frozenset({"succeeded", "failed", "cancelled"})


@dataclass(frozen=True, slots=True)
class Version:
    """A job as one transaction left it; `left` when it left the table of live jobs."""

    at: float
    state: str
    token: str | None
    worker: str | None
    failures: int
    crashes: int
    claims: int
    reason: str | None
    result: str | None


def install(connection: psycopg.Connection[Any]) -> None:
    """Record from now on."""
    connection.execute(_INSTALL)


def flights(connection: psycopg.Connection[Any]) -> dict[str, list[Version]]:
    """The versions of every job, by its id.

    What one transaction made and unmade was never there: a resend does that with a job that has ended since.
    """
    found: dict[str, list[Version]] = defaultdict(list)
    rows = connection.execute(
        """select job::text, extract(epoch from at)::float8, state, token::text, worker::text,
            failures, crashes, claims, reason, result
        from recorder.versions as version
        where not exists (
            select from recorder.versions as other
            where other.job = version.job and other.tx = version.tx
            having bool_or(state = 'ready' and claims = 0) and bool_or(state = 'left' and claims = 0)
                and not bool_or(state in ('succeeded', 'failed', 'cancelled'))
        )
        order by seq"""
    )
    for job, *version in rows:
        found[job].append(Version(*version))
    return found


def workers(connection: psycopg.Connection[Any]) -> dict[str, int]:
    """The process of every worker that ever registered, by its id."""
    return dict(connection.execute("select id::text, pid from recorder.workers").fetchall())


def timeline(versions: list[Version]) -> str:
    """A job's life, for whoever has to find out what went wrong."""
    return "\n".join(
        f"  {one.at:.3f} {one.state:<9} token {str(one.token)[:8]:<8} worker {str(one.worker)[:8]} "
        f"failures {one.failures} crashes {one.crashes} claims {one.claims} {one.reason or ''}"
        for one in versions
    )
