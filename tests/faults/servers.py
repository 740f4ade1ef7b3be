"""PostgreSQL servers of a test's own, to be crashed, frozen, copied and promoted.

A new one is a copy of a data folder that already has the schema, and takes a fraction of a second. Nothing here waits
for the disk: a killed process loses nothing that it has written, only a machine does.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import psycopg

from rowlock.db.embedded.data_folder import USER, DataFolder
from rowlock.db.embedded.server import DATABASE, EmbeddedPostgres
from rowlock.db.migrate import migrate
from rowlock.db.session import connect
from rowlock.store.query import DEFAULT_SCHEMA
from tests.waiting import until

SETTINGS = {
    "fsync": "off",
    "shared_buffers": "32MB",
    "wal_sender_timeout": "0",
    "max_wal_size": "256MB",
    "dynamic_shared_memory_type": "mmap",  # in its own folder: what a killed server leaves goes with it
}
LIMIT = 60.0


class Cluster:
    """One server, at one address for as long as the test lasts, whatever happens to it."""

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self._server = EmbeddedPostgres(folder, settings={**SETTINGS, **(settings or {})})
        self._place = DataFolder(folder)
        self._url: str | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """The address of its database, also while it is down."""
        assert self._url is not None, "it has not been started yet"
        return self._url

    @property
    def socket(self) -> Path:
        """The folder of its socket."""
        postmaster = self._place.postmaster()
        assert postmaster is not None
        return postmaster.socket

    @property
    def log(self) -> str:
        """What it has said since it was made."""
        return self._place.log.read_text(errors="replace")

    def start(self) -> None:
        """Start it; it answers when this returns, after recovery if it had crashed."""
        self._server.start()
        assert self._url in {None, self._server.url}, f"a path too long for a socket: {self.folder}"
        self._url = self._server.url

    def stop(self) -> None:
        """Stop it in good order."""
        self._server.stop()

    def halt(self) -> None:
        """End it at once, as `pg_ctl stop -m immediate` does: the next start recovers."""
        self._end(signal.SIGQUIT)

    def kill(self) -> None:
        """SIGKILL to the postmaster: nobody tells the other processes, they find out."""
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> None:
        pid = self.pid
        file = os.pidfd_open(pid)
        try:
            signal.pidfd_send_signal(file, number)
            until(lambda: not _runs(pid), what="the end of the postmaster", limit=LIMIT)
            until(lambda: not self._server._running(), what="its guard to see it", limit=LIMIT)
        finally:
            os.close(file)

    @property
    def pid(self) -> int:
        """The postmaster's."""
        postmaster = self._place.postmaster()
        assert postmaster is not None, "no server runs"
        return postmaster.pid

    def connect(self) -> psycopg.Connection[tuple[object, ...]]:
        """A look into it, from outside the app."""
        return psycopg.connect(self.url, autocommit=True, connect_timeout=30)

    def backends(self, name: str = "rowlock %") -> list[int]:
        """The processes that serve sessions of such a name."""
        with self.connect() as connection:
            rows = connection.execute(
                "select pid from pg_stat_activity where application_name like %s and pid <> pg_backend_pid()", [name]
            )
            return [int(str(pid)) for (pid,) in rows]

    def kill_backend(self, pid: int) -> None:
        """SIGKILL to one backend: the server drops all sessions, recovers and goes on."""
        os.kill(pid, signal.SIGKILL)

    def walsenders(self) -> list[int]:
        """The processes that feed standbys."""
        with self.connect() as connection:
            return [int(str(pid)) for (pid,) in connection.execute("select pid from pg_stat_replication")]

    def promote(self) -> None:
        """Make a primary of a standby."""
        with self.connect() as connection:
            assert connection.execute("select pg_promote(true, 60)").fetchone() == (True,)


def _runs(pid: int) -> bool:
    """A process that waits to be reaped does not run any more."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except (FileNotFoundError, ProcessLookupError):
        return False


class Servers:
    """Makes servers for a test, and ends them after it."""

    def __init__(self, template: Path, folder: Path) -> None:
        self._template = template
        self._folder = folder
        self._made = 0
        self._after = ExitStack()

    def start(self, settings: Mapping[str, str] | None = None) -> Cluster:
        """A new server whose database has our schema."""
        return self._after.enter_context(Cluster(self._copy(), settings))

    def start_standby(self, primary: Cluster) -> Cluster:
        """An asynchronous standby: it began with the same data, and reads all that the primary has done since."""
        folder = self._copy()
        source = f"host={primary.socket} port={_port(primary)} user={USER} application_name=standby"
        signal_file = folder / "data" / "standby.signal"
        signal_file.touch(0o600)
        owner = (folder / "data").stat()
        os.chown(signal_file, owner.st_uid, owner.st_gid)
        standby = Cluster(folder, {"primary_conninfo": source, "hot_standby": "on"})
        self._after.enter_context(standby)
        until(primary.walsenders, what="a standby that follows", limit=LIMIT)
        return standby

    def _copy(self) -> Path:
        self._made += 1
        folder = self._folder / str(self._made)
        subprocess.run(["cp", "-a", "--reflink=auto", str(self._template), str(folder)], check=True)
        return folder

    def close(self) -> None:
        """End them all."""
        self._after.close()


def _port(cluster: Cluster) -> int:
    postmaster = DataFolder(cluster.folder).postmaster()
    assert postmaster is not None
    return postmaster.port


def make_template(folder: Path) -> None:
    """A data folder whose database has our schema, of a server that was stopped in good order."""
    with EmbeddedPostgres(folder, settings=SETTINGS) as server, connect(server.url, name="rowlock template") as session:
        migrate(session, DEFAULT_SCHEMA)


def several(*clusters: Cluster) -> str:
    """An address of several servers, of which the one that can be written to is meant."""
    sockets = ",".join(str(cluster.socket) for cluster in clusters)
    ports = ",".join(str(_port(cluster)) for cluster in clusters)
    return f"host={sockets} port={ports} user={USER} dbname={DATABASE} target_session_attrs=read-write"


@contextmanager
def frozen(pids: Sequence[int]) -> Iterator[None]:
    """These processes do nothing for a while."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            if _runs(pid):
                os.kill(pid, signal.SIGCONT)


# What PostgreSQL says in these tests although all is well: it is being killed, and clients go without goodbye.
EXPECTED = (
    "terminating connection",
    "the database system is",
    "canceling statement due to user request",
    "connection to client lost",
    "could not receive data from WAL stream",
    "could not connect to the primary server",
)


def complaints(log: str, expected: Sequence[str] = EXPECTED) -> list[str]:
    """The errors in a server's log that nothing in the test accounts for."""
    return [
        line
        for line in log.splitlines()
        if any(level in line for level in (" ERROR: ", " FATAL: ", " PANIC: ", "deadlock detected"))
        and not any(words in line for words in expected)
    ]
