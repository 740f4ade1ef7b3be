"""Whether the database can be reached, and what is in the way, in words for the person at the keyboard."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from rowlock.db.database import Database
from rowlock.db.session import Server, connect
from rowlock.db.trouble import broken
from rowlock.errors import RowlockError
from rowlock.model.redact_url import redact_address


def reach(database: Database) -> Server:
    """The server of a database that has just answered; starts it if it is embedded."""
    with in_words(database):
        server = database.server()
        connect(server, name="rowlock start", deadline=database.deadline.value.total_seconds()).close()
    return server


@contextmanager
def in_words(database: Database) -> Iterator[None]:
    """Inside it, whatever PostgreSQL or the way to it refuses becomes a RowlockError with a sentence."""
    try:
        yield
    except psycopg.Error as error:
        raise RowlockError(_sentence(error, database)) from error


def _sentence(error: psycopg.Error, database: Database) -> str:
    said = _one_line(error)
    where = f"{database.address} (from {database.address.source})"
    match error:
        case psycopg.errors.InsufficientPrivilege():
            return f"PostgreSQL refuses in {where}: {said}; give this role the right, or run as the schema's owner"
        case psycopg.OperationalError() if broken(error):
            return f"cannot reach the database {where}: {said}; check the address, and that the server is up"
        case psycopg.ProgrammingError() if error.sqlstate is None:
            return f"{where} is no database address: {said}; write postgresql://USER@HOST/NAME"
        case _:
            return f"PostgreSQL refuses in {where}: {said}; mend that and try again"


def _one_line(error: psycopg.Error) -> str:
    said = error.diag.message_primary or str(error)
    # libpq's words run over several lines: one for each address of a host, and a question after each.
    lines = (line.strip(" -\t") for line in redact_address(said).splitlines())
    return "; ".join(dict.fromkeys(line for line in lines if line and not line.endswith("?")))
