"""Who acts, and why: the words that go into events."""

from __future__ import annotations

import getpass
import os
import socket
from typing import Final

from rowlock.model.names import check_text

_MOST_WORDS: Final = 2_000  # bytes of `by` or `why`: one event for each job carries them


def check_actor(by: str | None) -> str:
    """Who acts: the name given, else the user of this process and its host."""
    return f"{_user()}@{socket.gethostname()}" if by is None else check_text("by", by, limit=_MOST_WORDS)


def check_why(why: str | None) -> str | None:
    """Why they act."""
    return None if why is None else check_text("why", why, limit=_MOST_WORDS)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        return str(os.getuid())
