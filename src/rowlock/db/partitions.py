"""History and events by the day: parts made ahead of need, expired ones dropped, nobody blocked for long."""

from __future__ import annotations

import logging
from datetime import date, timedelta
from functools import partial

from psycopg import errors, sql

from rowlock.db.session import Connection, converse, run
from rowlock.store import schema as schema_store
from rowlock.store.query import Conversation
from rowlock.store.schema import LONGEST_RETENTION, PARTITIONED, Partition

log = logging.getLogger("rowlock.upkeep")

# A DDL statement that waits for a lock makes everyone behind it wait too; it gives up, and the next upkeep tries again.
_LOCK_TIMEOUT = "200ms"


def make_partitions(connection: Connection, schema: str, *, longest: timedelta = LONGEST_RETENTION) -> None:
    """Make every missing partition from today until a week past the longest retention."""
    _hold(connection, schema, schema_store.make_partitions(longest=longest))


def make_day(connection: Connection, schema: str, day: date) -> None:
    """Make the history partition of one day."""
    _hold(connection, schema, schema_store.make_parts(PARTITIONED[0], start=day, end=day + timedelta(days=1)))


def _hold(connection: Connection, schema: str, conversation: Conversation[None]) -> None:
    with connection.transaction():
        converse(partial(run, connection.cursor(), schema=schema), conversation)


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


def _drop(connection: Connection, schema: str, table: str, partition: Partition) -> None:
    """Detach, then drop: a plain DROP would wait for every reader, and every settle would wait behind it."""
    parent, part = sql.Identifier(schema, table), sql.Identifier(schema, partition.name)
    if partition.detaching is not None:
        how = sql.SQL("finalize") if partition.detaching else sql.SQL("concurrently")
        connection.execute(sql.SQL("alter table {} detach partition {} {}").format(parent, part, how))
    connection.execute(sql.SQL("drop table {}").format(part))
