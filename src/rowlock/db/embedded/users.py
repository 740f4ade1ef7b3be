"""Users: the processes that use one embedded server, which ends with the last of them.

Each holds the writing end of a named pipe whose reader is the guard: the kernel closes it for whoever is killed, and
when nobody holds it any more, the guard reads its end and stops the server. A lock that all of them share tells one who
stops in good order whether others are there; while the last one stops the server, it keeps new ones out.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Users:
    """One process's place among the users of the server in a folder."""

    root: Path
    _held: list[int] = field(default_factory=list)  # the lock, and the end of the pipe

    @property
    def _pipe(self) -> Path:
        return self.root / "users"

    def begin(self) -> int:
        """Make the pipe, join as the first, and return the guard's end; with the folder's lock held."""
        self.leave()
        self._pipe.unlink(missing_ok=True)
        os.mkfifo(self._pipe, 0o600)
        reader = os.open(self._pipe, os.O_RDONLY | os.O_NONBLOCK)
        os.set_blocking(reader, True)
        self.join()
        return reader

    def join(self) -> bool:
        """Become one of them; False if the last one is just about to stop the server, or its guard is gone."""
        self.leave()
        try:
            self._held.append(os.open(self.root / "users.lock", os.O_RDWR | os.O_CREAT, 0o600))
            fcntl.flock(self._held[0], fcntl.LOCK_SH | fcntl.LOCK_NB)
            self._held.append(os.open(self._pipe, os.O_WRONLY | os.O_NONBLOCK))
        except (FileNotFoundError, PermissionError):  # somebody started it by hand, or it is another user's
            self.leave()
        except OSError:
            self.leave()
            return False
        return True

    def is_last(self) -> bool:
        """Whether nobody else uses it. If so, nobody comes until we have left."""
        if not self._held:
            return False
        try:
            fcntl.flock(self._held[0], fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def let_go(self) -> None:
        """Let the guard stop the server, and keep others out until we have left."""
        with suppress(IndexError):
            os.close(self._held.pop(1))

    def clear(self) -> None:
        """Remove the pipe, once the last one has stopped the server: who copies the folder would stumble over it."""
        self._pipe.unlink(missing_ok=True)

    def leave(self) -> None:
        """Be none of them any more. In a forked child, too, which has copies of what its parent goes on to hold."""
        while self._held:
            os.close(self._held.pop())
