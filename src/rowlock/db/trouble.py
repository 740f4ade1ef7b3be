"""What an error of PostgreSQL's means for whoever met it: say it again, open a new connection, wait, or give up."""

from __future__ import annotations

from enum import Enum, auto

import psycopg

from rowlock.db.session import Late


class Trouble(Enum):
    """What to do about an error."""

    GONE = auto()  # the connection is of no more use, as it is or where it leads: open a new one
    AGAIN = auto()  # somebody was in the way: say it again, after a moment
    FULL = auto()  # the server lacks room, memory or connections: say it again, after a while
    REFUSED = auto()  # it will never accept this
    ODD = auto()  # anything else, such as a schema that is not there: may pass when somebody restores it


# By the first characters of the SQLSTATE, the longest first.
_TROUBLES = {
    "25006": Trouble.GONE,  # read-only: after a failover this is a standby, and the primary is elsewhere
    "40001": Trouble.AGAIN,  # serialization failure
    "40P01": Trouble.AGAIN,  # deadlock
    "55P03": Trouble.AGAIN,  # lock timeout
    "57014": Trouble.AGAIN,  # cancelled by somebody, or by a timeout
    "57P": Trouble.GONE,  # terminated, shutting down, starting up
    "08": Trouble.GONE,
    "26000": Trouble.GONE,  # somebody has discarded what was prepared on it
    "53": Trouble.FULL,
    "22": Trouble.REFUSED,
    "23": Trouble.REFUSED,
}


def trouble(error: psycopg.Error) -> Trouble:
    """What an error means."""
    state = error.sqlstate
    if state is None:  # not the server's word: the driver has lost the connection, or cannot send what it was given
        if isinstance(error, psycopg.DataError):
            return Trouble.REFUSED
        return Trouble.GONE if isinstance(error, psycopg.OperationalError) else Trouble.ODD
    if _is_outdated(error):
        return Trouble.GONE
    return next((trouble for start, trouble in _TROUBLES.items() if state.startswith(start)), Trouble.ODD)


def _is_outdated(error: psycopg.Error) -> bool:
    """Whether the statement was prepared before a migration changed the type of what it returns.

    It has not run, and never will on this connection. The message depends on the server's language; this does not.
    """
    return error.sqlstate == "0A000" and error.diag.source_function == "RevalidateCachedQuery"


# A schema, a table or a right is missing: the same for every statement, whatever it carries.
_SURROUNDINGS = ("28", "3D", "3F", "42")
# Cancelled, by statement_timeout perhaps, or not enough memory: either may be due to the statement's size.
_SIZE = ("57014", "53000", "53200", "53400")


def is_suspect(error: psycopg.Error) -> bool:
    """Whether the statement itself may be what is wrong: it is too slow, too large, or meets a row that is broken.

    Sent again as it stands, it might fail for ever, and everything that waits behind it.
    """
    if isinstance(error, Late):
        return True
    state = error.sqlstate
    if state is None:
        return trouble(error) is Trouble.ODD
    return state in _SIZE or (trouble(error) is Trouble.ODD and not state.startswith(_SURROUNDINGS))


def broken(error: psycopg.Error) -> bool:
    """Whether it means that the connection is of no more use."""
    return trouble(error) is Trouble.GONE


def passes(error: Exception) -> bool:
    """Whether it is the server's trouble, and not what was said to it."""
    return isinstance(error, psycopg.Error) and trouble(error) in {Trouble.GONE, Trouble.AGAIN, Trouble.FULL}


def first_line(error: Exception) -> str:
    """The error in one line: libpq says more, a line for each address that it tried."""
    return str(error).strip().partition("\n")[0]
