"""Partitions of history and events: made ahead of need, dropped when expired, without blocking anybody."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from functools import partial

from psycopg import errors, sql

from rowlock.db.safe_logger import SafeLogger
from rowlock.db.session import Session, converse, run
from rowlock.store import schema as schema_store
from rowlock.store.schema import LONGEST_RETENTION, PARTITIONED, Partition, Span

log = SafeLogger("rowlock.upkeep")

# A DDL statement that waits for a lock makes everyone behind it wait too; it gives up, and the next upkeep tries again.
_LOCK_TIMEOUT = "200ms"
# Dates differ by one around midnight.
_CLOCKS_AGREE = timedelta(days=1)


def make_partitions(connection: Session, schema: str, *, longest: timedelta = LONGEST_RETENTION) -> None:
    """Make every missing partition from today until a week past the longest retention."""
    with connection.transaction():
        converse(partial(run, connection.cursor(), schema=schema), schema_store.make_partitions(longest=longest))


def drop_partitions(connection: Session, schema: str, *, our_today: date | None = None) -> list[str]:
    """Drop the partitions whose last day has passed; returns their names.

    What is dropped cannot be brought back, so two clocks must agree that it is over: the database's, and ours
    (`our_today`, by default this machine's date). A server that was a month ahead for a minute would cost all history.
    """
    dropped = []
    today = _agreed(run(connection.cursor(), schema_store.today(), schema)[0], our_today or datetime.now(UTC).date())
    drop = _way_to_drop(connection, schema)
    try:
        for partitioned in PARTITIONED:
            for partition in run(connection.cursor(), schema_store.partitions(partitioned), schema):
                if partition.end <= today:
                    drop(connection, schema, partitioned.table, partition)
                    dropped.append(partition.name)
    except (errors.LockNotAvailable, errors.UndefinedTable, errors.ObjectNotInPrerequisiteState) as busy:
        # Readers hold it, or another worker drops the same one; either way it is gone or waits for the next upkeep.
        log.info("expired partitions stay for now: %s", busy.diag.message_primary)
    return dropped


def _agreed(theirs: date, ours: date) -> date:
    """The date by which to drop: the earlier one, where the two are more than a day apart."""
    if abs(theirs - ours) <= _CLOCKS_AGREE:
        return theirs
    log.warning(
        "the database's date is %s and this machine's %s: only what has expired by both is dropped; "
        "set the clock that is wrong",
        theirs,
        ours,
    )
    return min(theirs, ours)


def _way_to_drop(connection: Session, schema: str) -> Callable[[Session, str, str, Partition], None]:
    """A role that does not own the tables must have it done; and a pooler lends nothing outside of a transaction."""
    if connection.pooled or not run(connection.cursor(), schema_store.owned(), schema)[0]:
        return _have_dropped
    return _drop


def _have_dropped(connection: Session, schema: str, table: str, partition: Partition) -> None:
    span = Span(partition.start, (partition.end - partition.start).days)
    run(connection.cursor(), schema_store.drop(table, span), schema)


def _drop(connection: Session, schema: str, table: str, partition: Partition) -> None:
    """Detach, then drop: a plain DROP would wait for every reader, and every settle would wait behind it."""
    parent, part = sql.Identifier(schema, table), sql.Identifier(schema, partition.name)
    with _in_haste(connection):
        if partition.detaching is not None:
            how = sql.SQL("finalize") if partition.detaching else sql.SQL("concurrently")
            connection.execute(sql.SQL("alter table {} detach partition {} {}").format(parent, part, how))
        connection.execute(sql.SQL("drop table {}").format(part))


@contextmanager
def _in_haste(connection: Session) -> Iterator[None]:
    before = connection.execute("select current_setting('lock_timeout')").fetchone()
    connection.execute("select set_config('lock_timeout', %s, false)", [_LOCK_TIMEOUT])
    try:
        yield
    finally:
        connection.execute("select set_config('lock_timeout', %s, false)", before)
