"""Errors of PostgreSQL: what each means, who is at fault, and words for people."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple

import psycopg

from rowlock.db.safe_logger import SafeLogger
from rowlock.db.session import Late, Server, connect
from rowlock.errors import RowlockError
from rowlock.model.redact import redact_address

if TYPE_CHECKING:
    from rowlock.db.database import Database

log = SafeLogger("rowlock.worker")
# How long a process that starts waits for its server and its schema, and how often it says so, in seconds.
PATIENCE, SAY_EVERY = 60.0, 10.0


class ErrorKind(Enum):
    """What to do about an error."""

    GONE = auto()  # the connection is of no more use, as it is or where it leads: open a new one
    AGAIN = auto()  # somebody was in the way: say it again, after a moment
    FULL = auto()  # the server lacks room, memory or connections: say it again, after a while
    REFUSED = auto()  # it will never accept this
    ODD = auto()  # anything else, such as a schema that is not there: may pass when somebody restores it


class Blame(Enum):
    """Whose fault an error is, and so whether a job may ever pay for it."""

    SURROUNDINGS = auto()  # every statement would meet it: repeated for as long as it lasts
    UNCLEAR = auto()  # either: taken apart, but no job pays unless others could be written meanwhile
    STATEMENT = auto()  # most likely what it carries: taken apart, and the job alone pays after enough tries


def error_kind(error: psycopg.Error) -> ErrorKind:
    """What to do about an error."""
    return _meaning(error).kind


def blame(error: psycopg.Error) -> Blame:
    """Whose fault an error is. A statement at fault may fail forever, and hold up all that waits behind it."""
    return _meaning(error).blame


def is_connection_lost(error: psycopg.Error) -> bool:
    """Whether the connection is of no more use."""
    return error_kind(error) is ErrorKind.GONE


def is_transient(error: Exception) -> bool:
    """Whether the server is the cause, and not the statement: the same may work later."""
    return isinstance(error, psycopg.Error) and error_kind(error) in {ErrorKind.GONE, ErrorKind.AGAIN, ErrorKind.FULL}


def is_slow(error: Exception) -> bool:
    """Whether it took too long, for us or for the server."""
    return isinstance(error, Late | psycopg.errors.QueryCanceled)


def first_line(error: Exception) -> str:
    """The error in one line: libpq says more, a line for each address that it tried."""
    return str(error).strip().partition("\n")[0]


class _Meaning(NamedTuple):
    kind: ErrorKind
    blame: Blame


_GONE = _Meaning(ErrorKind.GONE, Blame.SURROUNDINGS)
_AGAIN = _Meaning(ErrorKind.AGAIN, Blame.SURROUNDINGS)
_FULL = _Meaning(ErrorKind.FULL, Blame.SURROUNDINGS)
_FULL_OR_LARGE = _Meaning(ErrorKind.FULL, Blame.UNCLEAR)
_REFUSED = _Meaning(ErrorKind.REFUSED, Blame.STATEMENT)
_MISSING = _Meaning(ErrorKind.ODD, Blame.SURROUNDINGS)
_UNCLEAR = _Meaning(ErrorKind.ODD, Blame.UNCLEAR)
_ODD = _Meaning(ErrorKind.ODD, Blame.STATEMENT)


# By the first characters of the SQLSTATE; the longest that fits decides.
_MEANINGS = {
    "08": _GONE,  # the connection has failed
    "22": _REFUSED,  # a value that PostgreSQL does not accept
    "23": _REFUSED,  # a value that breaks a rule of the table
    "25006": _GONE,  # read-only: after a failover this is a standby, and the primary is elsewhere
    "25P03": _GONE,  # we were silent in a transaction for too long, and the server has hung up
    "25P04": _GONE,  # the same, for a transaction as a whole
    "26000": _GONE,  # somebody has discarded what was prepared on it
    "28": _MISSING,  # not let in: no statement is
    "3D": _MISSING,  # no such database
    "3F": _MISSING,  # no such schema
    "40": _AGAIN,  # serialization failure, deadlock: another transaction was in the way
    "42": _MISSING,  # no such table or column, or no right to it: the same whatever the statement carries
    "53": _FULL,  # disk full, too many connections
    "53000": _FULL_OR_LARGE,  # some resource is not enough: for anybody, or for a statement of this size
    "53200": _FULL_OR_LARGE,  # out of memory, or of room for locks
    "53400": _FULL_OR_LARGE,  # a limit is reached, as that of temporary files
    "55": _MISSING,  # the table is not in a state for this: no replica identity, a part that is being detached
    "55P03": _AGAIN,  # lock timeout
    "57": _GONE,  # the server starts, stops, or has ended this session
    "57014": _Meaning(ErrorKind.AGAIN, Blame.UNCLEAR),  # cancelled by somebody; or by a time-out, as too slow
    "58": _UNCLEAR,  # the disk cannot be read or written: here, or anywhere
    "XX000": _UNCLEAR,  # a fault inside of PostgreSQL: of this statement, or of a table that is being changed
    "XX002": _UNCLEAR,  # an index is broken: all that comes to the same page of it fails
    # Everything else is odd, and most likely of the statement itself: 0A000, 21000 (the same row twice), 54000 (larger
    # than PostgreSQL can handle), P0001 (somebody's trigger), XX001 (a block with a row, or with its TOAST, is lost).
}
# Some are known by the function of PostgreSQL's that raises them: messages depend on the server's language.
_BY_FUNCTION = {
    "PreCommit_Notify": _AGAIN,  # 54000 at commit: the queue of notifications is full, one for the whole server
    # 0A000: prepared before a migration changed the type of what it returns. On this connection it never runs again.
    "RevalidateCachedQuery": _GONE,
}


def _meaning(error: psycopg.Error) -> _Meaning:
    state = error.sqlstate
    if state is None:  # not the server's word: the driver has lost the connection, or cannot send what it was given
        if isinstance(error, psycopg.DataError):
            return _REFUSED
        if isinstance(error, Late):
            return _Meaning(ErrorKind.GONE, Blame.UNCLEAR)
        return _GONE if isinstance(error, psycopg.OperationalError) else _ODD
    if (found := _BY_FUNCTION.get(error.diag.source_function or "")) is not None:
        return found
    return next((_MEANINGS[state[:end]] for end in range(len(state), 1, -1) if state[:end] in _MEANINGS), _ODD)


class Refused(Exception):  # by the server, not a fault of ours
    """PostgreSQL does not accept what a statement carries, or fails at it again and again."""

    def __init__(self, error: Exception, *, certain: bool = True) -> None:
        said = error.diag.message_primary if isinstance(error, psycopg.Error) else None
        super().__init__(said or first_line(error))
        self.certain = certain  # else the server may be what is wrong, and the same may be accepted later
        # The surroundings may be at fault, too: no job may pay for it unless others could be written meanwhile.
        self.unclear = isinstance(error, psycopg.Error) and blame(error) is Blame.UNCLEAR
        # It took too long, for which no single row is to blame.
        self.slow = is_slow(error)
        # A row for which no partition is there violates a check that has no name.
        self.lacks_partition = isinstance(error, psycopg.errors.CheckViolation) and error.diag.constraint_name is None


class Lost(Exception):  # as above
    """A query that is sent only once has failed; whether it took effect is not known."""

    def __init__(self, error: psycopg.Error) -> None:
        super().__init__(first_line(error))
        self.slow = is_slow(error)


class Unreachable(Exception):
    """The database does not respond now; it may later."""


def check_reachable(database: Database) -> Server:
    """Connect once, and return the server; an embedded one is started."""
    with readable_errors(database):
        server = database.server()
        connect(server, name="rowlock start", deadline=database.deadline.value.total_seconds()).close()
    return server


def wait_until_reachable(database: Database) -> Server:
    """The same, for a process that may start before its server: it waits as long as for a schema."""
    patience, next_line = time.monotonic() + PATIENCE, 0.0
    while True:
        try:
            return check_reachable(database)
        except RowlockError as error:
            cause = error.__cause__
            if not isinstance(cause, psycopg.Error) or not _may_come(cause) or time.monotonic() > patience:
                raise
            if time.monotonic() >= next_line:
                next_line = time.monotonic() + SAY_EVERY
                log.warning("%s (waiting)", error)
            time.sleep(1)


def _may_come(error: psycopg.Error) -> bool:
    """Whether the server may respond later. One that refuses this user, or lacks the database, will go on to do so."""
    said = str(error)
    return is_connection_lost(error) and ("FATAL" not in said or "starting up" in said or "shutting down" in said)


@contextmanager
def readable_errors(database: Database) -> Iterator[None]:
    """Turn errors of PostgreSQL, or of the way to it, into a RowlockError with a sentence."""
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
        case psycopg.OperationalError() if is_connection_lost(error):
            return f"cannot reach the database {where}: {said}; check the address, and that the server is up"
        case psycopg.ProgrammingError() if error.sqlstate is None:
            return f"{where} is not a database address: {said}; write postgresql://USER@HOST/NAME"
        case _:
            return f"PostgreSQL refuses in {where}: {said}; fix that and try again"


def _one_line(error: psycopg.Error) -> str:
    said = error.diag.message_primary or str(error)
    # libpq's words run over several lines: one for each address of a host, and a question after each.
    lines = (line.strip(" -\t") for line in redact_address(said).splitlines())
    return "; ".join(dict.fromkeys(line for line in lines if line and not line.endswith("?")))
