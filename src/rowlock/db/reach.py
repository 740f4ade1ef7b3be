"""Whether the database can be reached, and what is in the way, in words for the person at the keyboard."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from rowlock.db.database import Database
from rowlock.db.migrate import PATIENCE, SAY_EVERY
from rowlock.db.session import Server, connect
from rowlock.db.trouble import broken
from rowlock.errors import RowlockError
from rowlock.model.redact_url import redact_address

log = logging.getLogger("rowlock.worker")


def reach(database: Database) -> Server:
    """The server of a database that has just answered; starts it if it is embedded."""
    with in_words(database):
        server = database.server()
        connect(server, name="rowlock start", deadline=database.deadline.value.total_seconds()).close()
    return server


def reach_at_last(database: Database) -> Server:
    """The same, for one that may be started before its server is: it waits, as long as for a schema."""
    patience, next_line = time.monotonic() + PATIENCE, 0.0
    while True:
        try:
            return reach(database)
        except RowlockError as error:
            cause = error.__cause__
            if not isinstance(cause, psycopg.Error) or not _may_come(cause) or time.monotonic() > patience:
                raise
            if time.monotonic() >= next_line:
                next_line = time.monotonic() + SAY_EVERY
                log.warning("%s (waiting)", error)
            time.sleep(1)


def _may_come(error: psycopg.Error) -> bool:
    """Whether nobody has answered yet. One who refuses this user, or knows no such database, will do so for ever."""
    said = str(error)
    return broken(error) and ("FATAL" not in said or "starting up" in said or "shutting down" in said)


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
            return f"PostgreSQL refuses in {where}: {said}; fix that and try again"


def _one_line(error: psycopg.Error) -> str:
    said = error.diag.message_primary or str(error)
    # libpq's words run over several lines: one for each address of a host, and a question after each.
    lines = (line.strip(" -\t") for line in redact_address(said).splitlines())
    return "; ".join(dict.fromkeys(line for line in lines if line and not line.endswith("?")))
