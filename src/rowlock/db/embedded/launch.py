"""Launch of a PostgreSQL program: under guard, and never as root."""

from __future__ import annotations

import contextlib
import os
import pwd
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from rowlock.db.embedded import guard
from rowlock.errors import EmbeddedError


class IdentityRefused(EmbeddedError):
    """The machine does not let us take on that identity; another one may do."""


@dataclass(frozen=True)
class Identity:
    """Who a PostgreSQL program runs as: it refuses to run as root."""

    kind: str  # same, namespace or user: see guard.become
    uid: int
    gid: int

    @property
    def word(self) -> str:
        return f"{self.kind}:{self.uid}:{self.gid}"

    def __str__(self) -> str:
        return "root inside a user namespace" if self.kind == "namespace" else f"the user {_name(self.uid)}"

    def own(self, path: Path) -> None:
        """Hand a file or folder that we just made to this identity."""
        if self.kind == "user":
            os.chown(path, self.uid, self.gid)


def identities(data: Path) -> Iterator[Identity]:
    """Say who may run PostgreSQL on this data folder, best first: its owner, where it exists already.

    As root that is a user namespace, in which the files stay root's and no other user is involved. Containers often
    refuse it; there an unprivileged user that the system already has must do.
    """
    if os.geteuid() != 0:
        yield Identity("same", os.geteuid(), os.getegid())
        return
    owner = data.stat() if data.exists() else None
    if owner is not None and owner.st_uid != 0:
        yield Identity("user", owner.st_uid, owner.st_gid)
        return
    user = _unprivileged_user()
    yield Identity("namespace", user.pw_uid, user.pw_gid)
    if owner is None:
        yield Identity("user", user.pw_uid, user.pw_gid)


def _unprivileged_user() -> pwd.struct_passwd:
    # Inside a namespace it has to be one that the system knows, too: initdb looks its own name up.
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise EmbeddedError(
        "PostgreSQL does not run as root, and this system has neither a user postgres nor a user nobody; "
        "add one, or run Rowlock as another user than root"
    )


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


class Guarded:
    """A PostgreSQL program that ends with us, on ``stop()`` or by itself."""

    def __init__(
        self,
        program: Path,
        options: Sequence[str],
        *,
        identity: Identity,
        folder: Path,
        log: int,
        lock: int,
        sweep: Path | None = None,
        lifeline: int | None = None,
    ) -> None:
        """It ends when the other end of `lifeline` is closed, which is the caller's; without one, when we end."""
        self._identity = identity
        self._folder = folder
        self._program = program
        self._lifeline: int | None = None
        if lifeline is None:
            reader, self._lifeline = os.pipe()
        else:
            reader = lifeline
        try:
            self._process = subprocess.Popen(
                [_python(), "-I", "-S", guard.__file__, identity.word, folder, str(sweep or ""), program, *options],
                stdin=reader,
                stdout=log,
                stderr=log,
                # Guard and server hold the folder's lock for as long as one of them lives, also if we are killed.
                pass_fds=[lock],
                cwd="/",
                env=_environment(),
                # Ctrl-C in a terminal is for us; the server must outlive it until we are done with it.
                start_new_session=True,
            )
        except BaseException:
            self._cut()
            raise
        finally:
            os.close(reader)

    def ended(self) -> int | None:
        """Return the exit code if the program has ended, None if it still runs."""
        return self._understood(self._process.poll())

    def wait(self, limit: timedelta) -> int | None:
        """Wait for the program to end, and return its exit code; None if it takes longer."""
        try:
            return self._understood(self._process.wait(limit.total_seconds()))
        except subprocess.TimeoutExpired:
            return None

    def stop(self) -> None:
        """End the program, whose lifeline is cut by now if it is not ours, and wait until it is gone."""
        self._cut()
        # A little longer than the guard itself needs before it uses force.
        patience = 5 + sum(seconds or 0 for _, seconds in guard.REQUESTS)
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def forget(self) -> None:
        """Let go of a program that goes on: that of the process we were forked from, or one that others use."""
        self._cut()
        self._process.returncode = 0  # else its finaliser would warn that the program still runs

    def _cut(self) -> None:
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None

    def _understood(self, code: int | None) -> int | None:
        match code:
            case guard.REFUSED:
                raise IdentityRefused(
                    f"this machine does not let root run PostgreSQL as {self._identity}; "
                    "run Rowlock as another user than root, or remove the folder if it can be made again"
                )
            case guard.FOLDER_CLOSED:
                raise EmbeddedError(
                    f"PostgreSQL would run as {self._identity}, which cannot write in {self._folder} "
                    "or pass through a folder above it; choose one that this user can reach, such as one in /var/lib"
                )
            case guard.PROGRAM_CLOSED:
                raise EmbeddedError(
                    f"PostgreSQL would run as {self._identity}, which may not run {self._program}; "
                    "install PostgreSQL for the whole system (Debian: apt-get install postgresql) "
                    "and set ROWLOCK_PG_BIN to its bin folder"
                )
            case _:
                return code


def _python() -> str:
    if not sys.executable:
        raise EmbeddedError(
            "this Python does not know its own path, so the embedded PostgreSQL cannot be guarded; set sys.executable"
        )
    return sys.executable


def _environment() -> dict[str, str]:
    # PGPORT, PGDATA and their like would change what our options mean; a locale that is not installed fails the start.
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG"))}
    return {**kept, "LC_ALL": "C"}
