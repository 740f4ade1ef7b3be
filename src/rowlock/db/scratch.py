"""A schema for a while: made for one use and dropped after it, and never one that somebody else has made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from psycopg import sql

from rowlock.db.migrate import migrate
from rowlock.db.session import Connection, Server, connect
from rowlock.errors import RowlockError

# What a schema of ours is known by, should its maker have been killed before the end.
_MARK = "a scratch schema of Rowlock, dropped without asking"


@contextmanager
def scratch(server: Server | str, schema: str) -> Iterator[None]:
    """Inside it there is this schema, migrated and empty; RowlockError if the name is taken or just in use."""
    name = f"rowlock {schema}"
    with _alone(server, schema, name), connect(server, name=name) as connection:
        _drop(connection, schema)
        try:
            with connection.transaction():  # with its mark or not at all: else nobody could tell whose it is
                connection.execute(sql.SQL("create schema {}").format(sql.Identifier(schema)))
                connection.execute(
                    sql.SQL("comment on schema {} is {}").format(sql.Identifier(schema), sql.Literal(_MARK))
                )
            migrate(connection, schema)
            yield
        finally:
            with connect(server, name=name) as again:  # whoever interrupts a statement ends its connection
                _drop(again, schema)


@contextmanager
def _alone(server: Server | str, schema: str, name: str) -> Iterator[None]:
    """A second one at the same time must not drop the first one's schema.

    The lock is a transaction's, which has written and read nothing and so holds nothing else: behind a pooler a session
    is nobody's own.
    """
    with connect(server, name=name) as connection, connection.transaction():
        lock = connection.execute("select pg_try_advisory_xact_lock(hashtextextended(%s, 0))", [f"{schema}.scratch"])
        if lock.fetchone() != (True,):
            raise RowlockError(
                f"schema {schema!r} is in use by another process like this one; try again when it is done"
            )
        yield


def _drop(connection: Connection, schema: str) -> None:
    found = connection.execute(
        "select obj_description(oid, 'pg_namespace') from pg_namespace where nspname = %s", [schema]
    ).fetchone()
    if found is None:
        return
    if found != (_MARK,):
        raise RowlockError(
            f"there is a schema {schema!r} that this command did not make, and it would have to be dropped; "
            "rename that one, or use another database"
        )
    connection.execute(sql.SQL("drop schema {} cascade").format(sql.Identifier(schema)))
