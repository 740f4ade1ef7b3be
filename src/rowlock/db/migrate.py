"""Bring the schema up to date, and say whether it is."""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import timedelta

import psycopg
from psycopg import errors

from rowlock.db.link import Link
from rowlock.db.partitions import make_partitions
from rowlock.db.roles import grant_rights, make_roles
from rowlock.db.session import AsyncConnection, Server, Session, arun, run
from rowlock.db.trouble import first_line, passes
from rowlock.errors import SchemaMissing
from rowlock.store import schema as schema_store
from rowlock.store.query import qualified
from rowlock.store.schema import Migration

log = logging.getLogger("rowlock.worker")

PATIENCE = 60.0
SAY_EVERY = 10.0  # a line while a worker waits

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


def migrate(connection: Session, schema: str, *, roles: bool = False) -> list[Migration]:
    """Apply what is missing, in one transaction, and make the first partitions; answers what was applied.

    The lock comes first: even CREATE … IF NOT EXISTS races with itself when ten processes start at once. With `roles`,
    these are made, and given their rights in the same transaction.
    """
    if roles:
        make_roles(connection, schema)
    with connection.transaction():
        connection.execute("select pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"{schema}.migrate"])
        missing = pending(connection, schema)
        if missing:
            connection.execute(script(missing, schema).encode(), prepare=False)
        if roles:
            grant_rights(connection, schema)
    make_partitions(connection, schema)
    return missing


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
    link = Link(server, schema, name="rowlock start", deadline=deadline.total_seconds())
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
                if not passes(error):
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
    ours = schema_store.newest()
    if version < ours:
        missing = ", ".join(f"{m.version:04d}_{m.name}" for m in schema_store.migrations() if m.version > version)
        raise SchemaMissing(f"schema {schema!r} lacks migrations {missing}; run: rowlock migrate")
    if compatible > ours:
        raise SchemaMissing(
            f"schema {schema!r} is at version {version} and needs code for version {compatible} or later, "
            f"this Rowlock is for {ours}; upgrade it"
        )
