"""History and events by the day: parts made ahead of need, expired ones dropped, nobody blocked for long."""

from __future__ import annotations

import logging
from datetime import date, timedelta

from psycopg import errors, sql

from rowlock.db.session import Connection, run
from rowlock.store import schema as schema_store
from rowlock.store.schema import PARTITIONED, Partition, Partitioned

log = logging.getLogger("rowlock.upkeep")

LONGEST_RETENTION = timedelta(days=30)
_MARGIN = timedelta(days=7)
# A DDL statement that waits for a lock makes everyone behind it wait too; it gives up, and the next upkeep tries again.
_LOCK_TIMEOUT = "200ms"


def make_partitions(connection: Connection, schema: str, *, longest: timedelta = LONGEST_RETENTION) -> None:
    """Make every missing partition from today until a week past the longest retention."""
    ahead = max(
        longest, timedelta(days=max(run(connection.cursor(), schema_store.longest_retention(), schema), default=0))
    )
    today = run(connection.cursor(), schema_store.today(), schema)[0]
    for partitioned in PARTITIONED:
        _make(connection, schema, partitioned, start=today, end=today + ahead + _MARGIN)


def make_day(connection: Connection, schema: str, day: date) -> None:
    """Make the history partition of one day."""
    _make(connection, schema, PARTITIONED[0], start=day, end=day + timedelta(days=1))


def drop_partitions(connection: Connection, schema: str) -> list[str]:
    """Drop the partitions whose last day has passed; answers their names."""
    dropped = []
    today = run(connection.cursor(), schema_store.today(), schema)[0]
    connection.execute("select set_config('lock_timeout', %s, false)", [_LOCK_TIMEOUT])
    try:
        for partitioned in PARTITIONED:
            for partition in run(connection.cursor(), schema_store.partitions(partitioned), schema):
                if partition.end <= today:
                    _drop(connection, schema, partitioned.table, partition)
                    dropped.append(partition.name)
    except (errors.LockNotAvailable, errors.UndefinedTable, errors.ObjectNotInPrerequisiteState) as busy:
        # Readers hold it, or another worker drops the same one; either way it is gone or waits for the next upkeep.
        log.info("expired partitions stay for now: %s", busy.diag.message_primary)
    finally:
        connection.execute("select set_config('lock_timeout', '0', false)")
    return dropped


def _make(connection: Connection, schema: str, partitioned: Partitioned, *, start: date, end: date) -> None:
    """Create each part standalone, then attach it: CREATE … PARTITION OF waits for readers and blocks settles."""
    with connection.transaction():
        connection.execute("select pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"{schema}.partitions"])
        there = {part.name for part in run(connection.cursor(), schema_store.partitions(partitioned), schema)}
        parent = sql.Identifier(schema, partitioned.table)
        for name, first, last in partitioned.parts(start=start, end=end):
            if name in there:
                continue
            part = sql.Identifier(schema, name)
            connection.execute(sql.SQL("create table {} (like {} including all)").format(part, parent))
            connection.execute(
                sql.SQL("alter table {} attach partition {} for values from ({}) to ({})").format(
                    parent, part, sql.Literal(str(first)), sql.Literal(str(last))
                )
            )


def _drop(connection: Connection, schema: str, table: str, partition: Partition) -> None:
    """Detach, then drop: a plain DROP would wait for every reader, and every settle would wait behind it."""
    parent, part = sql.Identifier(schema, table), sql.Identifier(schema, partition.name)
    if partition.detaching is not None:
        how = sql.SQL("finalize") if partition.detaching else sql.SQL("concurrently")
        connection.execute(sql.SQL("alter table {} detach partition {} {}").format(parent, part, how))
    connection.execute(sql.SQL("drop table {}").format(part))
