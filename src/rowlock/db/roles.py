"""Make the roles of a schema, and give each its rights."""

from __future__ import annotations

from contextlib import suppress

from psycopg import errors

from rowlock.db.session import Session, run
from rowlock.errors import RowlockError
from rowlock.store import roles


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


def script(connection: Session, schema: str) -> str:
    """The SQL that all of this comes to."""
    return "\n".join([roles.creation(run(connection.cursor(), roles.missing(schema), schema)), roles.grants(schema)])
