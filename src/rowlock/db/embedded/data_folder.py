"""Data folder: what an embedded server keeps, its lock, and how it is made."""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from rowlock.db.embedded.binaries import Binaries
from rowlock.db.embedded.launch import Guarded, Identity, IdentityRefused, identities
from rowlock.errors import EmbeddedError

USER = "rowlock"
PORT = 5432
INITDB_LIMIT = timedelta(minutes=2)
LOG_BYTES = 8 * 1024 * 1024
# sun_path has 108 bytes, one of them for the NUL that ends it.
SOCKET_BYTES = 107


@dataclass(frozen=True)
class Postmaster:
    """What a running server has written into postmaster.pid."""

    pid: int
    port: int
    socket: Path
    ready: bool

    def alive(self) -> bool:
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        return True

    def works_in(self, folder: Path) -> bool:
        """Whether it is a server of this folder, and not some program that has its pid by now."""
        if not sys.platform.startswith("linux"):
            return self.alive()
        try:
            return Path(f"/proc/{self.pid}/cwd").resolve(strict=True) == folder.resolve()
        except OSError:
            return False


@dataclass(frozen=True)
class Log:
    """The server's log, opened for appending."""

    path: Path
    file: int
    start: int

    def tail(self, lines: int = 12) -> str:
        """Return the last lines that were written since it was opened."""
        said = self.path.read_bytes()[self.start :].decode(errors="replace").splitlines()
        return "\n".join(f"  {line}" for line in said[-lines:]) or "  (nothing)"


@dataclass(frozen=True)
class DataFolder:
    """``data`` is PostgreSQL's, ``run`` has its socket, ``server.log`` what it says; ``lock`` is held while it runs."""

    root: Path

    @property
    def data(self) -> Path:
        return self.root / "data"

    @property
    def run(self) -> Path:
        return self.root / "run"

    @property
    def log(self) -> Path:
        return self.root / "server.log"

    def make(self) -> None:
        """Make the folder where it does not exist yet."""
        if self.root.is_dir():
            return
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            # Others may pass through, because as root the server may have to run as another user;
            # everything in here is closed to them one by one.
            self.root.chmod(0o711)
        except OSError as error:
            raise self._unwritable(error) from None

    def lock(self) -> int | None:
        """Lock the folder and return the lock, or None if another process has it or runs a server here."""
        try:
            lock = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise self._unwritable(error) from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return None
        except OSError as error:
            os.close(lock)
            raise EmbeddedError(f"cannot lock {self.root} ({error.strerror}); use a folder on a local disk") from None
        return lock

    def _unwritable(self, error: OSError) -> EmbeddedError:
        return EmbeddedError(
            f"cannot write in {self.root} ({error.strerror}), where the embedded PostgreSQL is to live; "
            "choose a folder that is yours"
        )

    @contextmanager
    def open_log(self) -> Iterator[Log]:
        """Open the server's log; one that has grown large is set aside first."""
        with suppress(FileNotFoundError):
            if self.log.stat().st_size > LOG_BYTES:
                self.log.replace(self.log.with_suffix(".log.old"))
        file = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            yield Log(self.log, file, os.fstat(file).st_size)
        finally:
            os.close(file)

    def major(self) -> int | None:
        """Return the version of PostgreSQL that made the data, None if there are none yet."""
        try:
            return int((self.data / "PG_VERSION").read_text())
        except FileNotFoundError:
            return None
        except PermissionError:
            raise EmbeddedError(
                f"{self.data} belongs to another user; run as that one, or use another folder"
            ) from None

    def postmaster(self) -> Postmaster | None:
        """Return what the server here says of itself, None if there is none or it has only begun to start."""
        try:
            lines = os.fsdecode((self.data / "postmaster.pid").read_bytes()).splitlines()
            return Postmaster(int(lines[0]), int(lines[3]), Path(lines[4]), ready=lines[7].strip() == "ready")
        except (OSError, IndexError, ValueError):
            return None

    def clear_stale_postmaster(self) -> None:
        """Remove the postmaster.pid of a server that crashed; with the lock held, and nobody serving here by hand.

        PostgreSQL sees to most cases itself, but refuses to start if another process has the recorded pid by now;
        and whoever wants to attach would take the old file for a server that is ready.
        """
        (self.data / "postmaster.pid").unlink(missing_ok=True)

    def ensure_data(self, binaries: Binaries, *, log: Log, lock: int) -> Identity:
        """Make the data where there are none yet, and return who is to run the server on them."""
        refusal: IdentityRefused | None = None
        for identity in identities(self.data):
            if self.data.exists():
                return identity
            try:
                self._initdb(binaries, identity=identity, log=log, lock=lock)
            except IdentityRefused as error:
                refusal = error
            else:
                return identity
        raise refusal or AssertionError("there is always an identity to try")

    def _initdb(self, binaries: Binaries, *, identity: Identity, log: Log, lock: int) -> None:
        # Under another name until it is whole: an initdb that was killed leaves nothing that looks like data.
        unfinished = self.root / "data.new"
        for locale in _locales(binaries.major):
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir(mode=0o700)
            identity.own(unfinished)
            options = [f"--pgdata={unfinished}", f"--username={USER}", "--encoding=UTF8", "--auth=trust", *locale]
            initdb = Guarded(binaries.initdb, options, identity=identity, folder=unfinished, log=log.file, lock=lock)
            try:
                code = initdb.wait(INITDB_LIMIT)
            finally:
                initdb.stop()
            if code == 0:
                unfinished.rename(self.data)
                _sync(self.root)
                return
        raise EmbeddedError(
            f"initdb of PostgreSQL {binaries.major} failed in {self.root}:\n{log.tail()}\n"
            "fix that, or choose another folder"
        )

    def socket_folder(self, identity: Identity) -> tuple[Path, Path | None]:
        """Make the folder for the socket, closed to all others; and return it again if it is to be removed at the end.

        Whoever reaches the socket is superuser of the database, so the folder is its lock.
        """
        folder, passing = self.run, None
        # A comma separates hosts in an address, and there is no way to quote it.
        if len(os.fsencode(folder / f".s.PGSQL.{PORT}")) > SOCKET_BYTES or "," in str(folder):
            folder = passing = Path(tempfile.mkdtemp(prefix="rowlock-", dir=_short_folder()))
        else:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(mode=0o700)
        identity.own(folder)
        return folder, passing


def _locales(major: int) -> list[list[str]]:
    """The options for a database that sorts by code point and knows UTF-8's letters, best first."""
    if major >= 17:
        return [["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]]
    # Not every system has C.UTF-8 (musl, older macOS).
    return [["--locale=C.UTF-8"], ["--locale=C"]]


def _sync(folder: Path) -> None:
    # Without it a power cut could undo the rename, and the next start would clear the data away as unfinished.
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _short_folder() -> str:
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    # Root's is closed to the user that the server may have to run as.
    return runtime if os.geteuid() != 0 and os.access(runtime, os.W_OK) else "/tmp"  # noqa: S108 (mkdtemp is safe there)
