"""Checks of what operators' verbs are given: who acts and why, ids, limits, times."""

from __future__ import annotations

import getpass
import os
import socket
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Final
from uuid import UUID

from rowlock.errors import InvalidOption
from rowlock.model.filter import check_id
from rowlock.model.names import MAX_NAME, check_text, shown

_MOST_WORDS: Final = 2_000  # bytes of `by` or `why`: one event for each job carries them
_MOST_LISTED: Final = 1_000


def check_actor(by: str | None) -> str:
    """Who acts: the name given, else the user of this process and its host."""
    return f"{_user()}@{socket.gethostname()}" if by is None else check_text("by", by, limit=_MOST_WORDS)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        return str(os.getuid())


def check_why(why: str | None) -> str | None:
    """Why they act."""
    return None if why is None else check_text("why", why, limit=_MOST_WORDS)


def check_optional_id(job_id: UUID | str | None) -> UUID | None:
    """The id of a job, if one is given."""
    return None if job_id is None else check_id(job_id)


def check_optional_name(kind: str, name: str | None, limit: int = MAX_NAME) -> str | None:
    """The name of a queue, a task or a workflow, if one is given."""
    return None if name is None else check_text(kind, name, limit=limit)


def check_limit(limit: int) -> int:
    """How many rows to return at once."""
    if type(limit) is not int or not 1 <= limit <= _MOST_LISTED:
        raise InvalidOption(f"limit={shown(limit)} is out of range; use 1 to {_MOST_LISTED:,}, and before= for more")
    return limit


def enough_after(time_limit: timedelta | None) -> Callable[[], bool]:
    """A function that is true once so much time has passed from now on; without a limit it never is."""
    if time_limit is None:
        return lambda: False
    end = time.monotonic() + time_limit.total_seconds()
    return lambda: time.monotonic() >= end
