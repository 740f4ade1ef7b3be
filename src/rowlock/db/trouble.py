"""Trouble: what to do about an error of PostgreSQL's, and whether the statement or its surroundings are at fault."""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

import psycopg

from rowlock.db.session import Late


class Trouble(Enum):
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


class _Meaning(NamedTuple):
    trouble: Trouble
    blame: Blame


_GONE = _Meaning(Trouble.GONE, Blame.SURROUNDINGS)
_AGAIN = _Meaning(Trouble.AGAIN, Blame.SURROUNDINGS)
_FULL = _Meaning(Trouble.FULL, Blame.SURROUNDINGS)
_FULL_OR_LARGE = _Meaning(Trouble.FULL, Blame.UNCLEAR)
_REFUSED = _Meaning(Trouble.REFUSED, Blame.STATEMENT)
_MISSING = _Meaning(Trouble.ODD, Blame.SURROUNDINGS)
_UNCLEAR = _Meaning(Trouble.ODD, Blame.UNCLEAR)
_ODD = _Meaning(Trouble.ODD, Blame.STATEMENT)

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
    "57014": _Meaning(Trouble.AGAIN, Blame.UNCLEAR),  # cancelled by somebody; or by a time-out, as too slow
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
            return _Meaning(Trouble.GONE, Blame.UNCLEAR)
        return _GONE if isinstance(error, psycopg.OperationalError) else _ODD
    if (found := _BY_FUNCTION.get(error.diag.source_function or "")) is not None:
        return found
    return next((_MEANINGS[state[:end]] for end in range(len(state), 1, -1) if state[:end] in _MEANINGS), _ODD)


def trouble(error: psycopg.Error) -> Trouble:
    """What to do about an error."""
    return _meaning(error).trouble


def blame(error: psycopg.Error) -> Blame:
    """Whose fault an error is. A statement at fault may fail for ever, and hold up all that waits behind it."""
    return _meaning(error).blame


def broken(error: psycopg.Error) -> bool:
    """Whether it means that the connection is of no more use."""
    return trouble(error) is Trouble.GONE


def passes(error: Exception) -> bool:
    """Whether it is the server's trouble, and not what was said to it."""
    return isinstance(error, psycopg.Error) and trouble(error) in {Trouble.GONE, Trouble.AGAIN, Trouble.FULL}


def first_line(error: Exception) -> str:
    """The error in one line: libpq says more, a line for each address that it tried."""
    return str(error).strip().partition("\n")[0]
