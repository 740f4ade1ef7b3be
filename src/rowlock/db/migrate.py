"""Migrations: bring the schema and its roles up to date, and wait for that."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta

import psycopg
from psycopg import errors

from rowlock.db.errors import PATIENCE, SAY_EVERY, first_line, is_transient
from rowlock.db.partitions import make_partitions
from rowlock.db.safe_logger import SafeLogger
from rowlock.db.session import AsyncConnection, Server, Session, arun, run
from rowlock.db.worker_connection import ReconnectingConnection
from rowlock.errors import Locked, RowlockError, SchemaMissing
from rowlock.store import roles
from rowlock.store import schema as schema_store
from rowlock.store.query import qualified
from rowlock.store.schema import Blocker, Migration

log = SafeLogger("rowlock.worker")


# A migration that waits for a reader of a table makes every claim and every settle wait behind it. So it gives up
# soon, lets them pass and tries again, for so long in all.
_LOCK_TIMEOUT = 0.5
_LOCKS_WITHIN = timedelta(seconds=60)
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
_MOST_NAMED = 5

_LEDGER = """
create schema if not exists "{schema}";
create table if not exists "{schema}".migrations (
    version     integer primary key,
    name        text not null,
    compatible  integer not null,
    applied_at  timestamptz not null default now()
);
"""
_RECORD = """insert into "{schema}".migrations (version, name, compatible) values ({version}, '{name}', {compatible});
"""


def migrate(
    connection: Session, schema: str, *, roles: bool = False, within: timedelta = _LOCKS_WITHIN
) -> list[Migration]:
    """Apply what is missing, in one transaction, and make the first partitions; returns what was applied.

    With `roles`, these are made, and given their rights in the same transaction. Locked when others keep a table of
    ours locked for as long as `within`.
    """
    if roles:
        make_roles(connection, schema)
    missing = _apply_at_last(connection, schema, roles=roles, within=within)
    make_partitions(connection, schema)
    return missing


def _apply_at_last(connection: Session, schema: str, *, roles: bool, within: timedelta) -> list[Migration]:
    began, pause, next_line = time.monotonic(), _FIRST_PAUSE, 0.0
    while True:
        try:
            return _apply(connection, schema, roles=roles)
        except (errors.LockNotAvailable, errors.DeadlockDetected) as error:
            held_by = _in_words(_blockers(connection, schema))
            waited = time.monotonic() - began
            if waited >= within.total_seconds():
                raise Locked(
                    f"schema {schema!r} is not migrated, and nothing in it has changed: for {waited:.0f} s others have "
                    f"kept a table of it locked; {held_by}; wait for their end, or end them with "
                    "select pg_terminate_backend(PID), then run: rowlock migrate"
                ) from error
            if time.monotonic() >= next_line:
                next_line = time.monotonic() + SAY_EVERY
                log.warning("the migration lets others pass and tries again; %s", held_by)
        time.sleep(pause * random.uniform(0.5, 1.0))  # jitter, not a secret
        pause = min(pause * 2, _LONGEST_PAUSE)


def _apply(connection: Session, schema: str, *, roles: bool) -> list[Migration]:
    """The advisory lock comes first: even CREATE … IF NOT EXISTS races with itself when ten processes start at once.

    Any login can take it, and keep it: nobody waits for it without end either.
    """
    with connection.transaction():
        connection.execute("select set_config('lock_timeout', %s, true)", [f"{int(_LOCK_TIMEOUT * 1000)}ms"])
        connection.execute("select pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"{schema}.migrate"])
        missing = pending(connection, schema)
        if missing:
            connection.execute(script(missing, schema).encode(), prepare=False)
        if roles:
            grant_rights(connection, schema)
    return missing


def _blockers(connection: Session, schema: str) -> list[Blocker]:
    query = schema_store.blockers(schema, held_for=timedelta(seconds=_LOCK_TIMEOUT), most=_MOST_NAMED)
    return run(connection.cursor(), query, schema)


def _in_words(blockers: Sequence[Blocker]) -> str:
    if not blockers:
        return "who has locked it has just ended"
    return "locks are held by " + ", ".join(
        f"PID {one.pid} ({one.name!r}, user {one.user}"
        + (f", {one.state}, for {one.seconds:.0f} s" if one.seconds is not None else "")
        + f", on {', '.join(one.tables)})"
        for one in blockers
    )


def pending(connection: Session, schema: str) -> list[Migration]:
    """The migrations that the database lacks."""
    applied = _version(connection, schema)
    return [migration for migration in schema_store.migrations() if migration.version > applied]


def script(missing: list[Migration], schema: str) -> str:
    """The SQL that applies these migrations and records them."""
    parts = [_LEDGER.format(schema=schema)]
    for migration in missing:
        facts = {"version": migration.version, "name": migration.name, "compatible": migration.compatible}
        parts += [migration.sql(schema), _RECORD.format(schema=schema, **facts)]
    return "\n".join(parts)


def _version(connection: Session, schema: str) -> int:
    found = connection.execute(
        "select pg_catalog.to_regclass(%s) is not null", [qualified(schema, "migrations")]
    ).fetchone()
    if found is None or not found[0]:
        return 0
    versions = run(connection.cursor(), schema_store.version(), schema)
    return versions[0][0] if versions else 0


async def wait_for_schema(server: Server | str, schema: str, *, deadline: timedelta) -> None:
    """Return when the schema is there; a worker that starts before `migrate` has run waits for it, within reason."""
    link = ReconnectingConnection(server, schema, name="rowlock start", deadline=deadline.total_seconds())
    patience, next_line = time.monotonic() + PATIENCE, 0.0
    try:
        while True:
            connection = await link.open()
            try:
                return await check_schema(connection, schema)
            except SchemaMissing as error:
                if time.monotonic() > patience:
                    raise
                if time.monotonic() >= next_line:
                    next_line = time.monotonic() + SAY_EVERY
                    log.warning("%s (waiting)", error)
            except psycopg.Error as error:
                if not is_transient(error):
                    raise
                await connection.close()
                log.warning("%s; trying again", first_line(error))
            await asyncio.sleep(1)
    finally:
        await link.close()


async def check_schema(connection: AsyncConnection, schema: str) -> None:
    """SchemaMissing unless this code can work on the schema as it is."""
    try:
        versions = await arun(connection.cursor(), schema_store.version(), schema)
    except (errors.UndefinedTable, errors.InvalidSchemaName):
        versions = []
    version, compatible = versions[0] if versions else (0, 0)
    unfit = schema_store.unfit(schema, version=version, compatible=compatible)
    if unfit is not None:
        raise SchemaMissing(unfit)


def make_roles(connection: Session, schema: str) -> None:
    """Make the roles that the server lacks; each in a transaction of its own, for they belong to all its databases."""
    lacking = run(connection.cursor(), roles.missing(schema), schema)
    for role in lacking:
        try:
            with suppress(errors.DuplicateObject, errors.UniqueViolation):  # somebody else was faster
                connection.execute(roles.creation([role]).encode())
        except errors.InsufficientPrivilege as error:
            raise RowlockError(
                f"this role may not make others: {error.diag.message_primary}; have somebody with CREATEROLE say\n"
                f"{roles.creation(lacking)}\nand run: rowlock migrate --roles"
            ) from error


def grant_rights(connection: Session, schema: str) -> None:
    """Give every role its rights, and no others, in the transaction that is open."""
    connection.execute(roles.grants(schema).encode(), prepare=False)


def roles_script(connection: Session, schema: str) -> str:
    """The SQL that all of this comes to."""
    return "\n".join([roles.creation(run(connection.cursor(), roles.missing(schema), schema)), roles.grants(schema)])
