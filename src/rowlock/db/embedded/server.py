"""Embedded PostgreSQL server: for trying things out, for tests, and for the demo."""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

import psycopg

from rowlock.db.embedded.binaries import Binaries, find_binaries
from rowlock.db.embedded.data_folder import PORT, USER, DataFolder, Log, Postmaster
from rowlock.db.embedded.launch import Guarded
from rowlock.db.embedded.users import Users
from rowlock.errors import EmbeddedError

DATABASE = "rowlock"
# Most of it is for crash recovery; a healthy server is ready after a tenth of a second.
START_LIMIT = timedelta(minutes=1)
# What a server may take to end that another process has started: as long as its guard gives it.
STOP_LIMIT = timedelta(seconds=20)

# fsync and synchronous_commit are not here: a job that was accepted survives a power cut in embedded mode, too.
SETTINGS = {
    "listen_addresses": "",
    "port": str(PORT),
    "unix_socket_permissions": "0700",
    "max_connections": "200",
    "shared_buffers": "128MB",
    "max_wal_size": "1GB",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "cluster_name": "rowlock",
}


class EmbeddedPostgres:
    """A PostgreSQL server in ``folder``, started when asked and ended with the last process that uses it.

    A second process that starts it *attaches*: it uses the running server, ``owner`` is False, and its ``settings`` do
    not count. ``stop()`` lets go of the server; it ends when nobody is left, however each of them has ended.

    Cold start (initdb, start, ready, database made) on 2 cores: 1.1 s with PostgreSQL 18, 1.2 s with 15;
    on existing data 0.1 s.
    """

    def __init__(
        self, folder: Path | str, *, settings: Mapping[str, str] | None = None, binaries: Binaries | None = None
    ) -> None:
        self.folder = Path(folder).expanduser().resolve()
        self.owner = False
        self._settings = dict(settings or {})
        self._binaries = binaries
        self._place = DataFolder(self.folder)
        self._users = Users(self.folder)
        self._postmaster: Postmaster | None = None
        self._guarded: Guarded | None = None
        self._mutex = threading.Lock()
        _instances.add(self)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """The address of the database ``rowlock`` on the running server."""
        return self.url_of(DATABASE)

    def url_of(self, database: str) -> str:
        """Return the address of any database on the running server."""
        if self._postmaster is None:
            raise EmbeddedError(f"the embedded PostgreSQL in {self.folder} is not running; call start() first")
        socket, port = quote(os.fsencode(self._postmaster.socket), safe=""), self._postmaster.port
        return f"postgresql://{USER}@/{quote(database, safe='')}?host={socket}&port={port}"

    def start(self) -> None:
        """Start the server, or attach to it if another process runs it; do nothing if we have it already."""
        with self._mutex:
            if self._running():
                return
            self._let_go()
            self._place.make()
            deadline = time.monotonic() + START_LIMIT.total_seconds()
            while not (self._serve() or self._attach()):
                if time.monotonic() > deadline:
                    raise EmbeddedError(
                        f"another process has locked {self.folder}, but no server has become ready there "
                        f"within {START_LIMIT.total_seconds():.0f} s; look into {self._place.log}"
                    )
                time.sleep(0.01)

    def stop(self) -> None:
        """Let go of the server; the last one who does so ends it, and waits until it has ended."""
        with self._mutex:
            self._let_go()

    def _running(self) -> bool:
        if self._guarded is not None:
            return self._guarded.ended() is None
        # As for another's server: the same one must still be there.
        return self._postmaster is not None and self._postmaster == self._live_postmaster()

    def _live_postmaster(self) -> Postmaster | None:
        postmaster = self._place.postmaster()
        return postmaster if postmaster is not None and postmaster.ready and postmaster.alive() else None

    def _let_go(self) -> None:
        guarded, self._guarded = self._guarded, None
        self._postmaster = None
        self.owner = False
        is_last = self._users.is_last()
        self._users.let_go()
        if guarded is not None:
            atexit.unregister(self.stop)
            if is_last:
                guarded.stop()
            else:
                guarded.forget()
        elif is_last:
            self._await_end()
        if is_last:
            self._users.clear()
        self._users.leave()

    def _await_end(self) -> None:
        """Wait until guard and server, which another process has started, have let go of the folder."""
        deadline = time.monotonic() + STOP_LIMIT.total_seconds()
        while (lock := self._place.lock()) is None and time.monotonic() < deadline:
            time.sleep(0.01)
        if lock is not None:
            os.close(lock)

    def _attach(self) -> bool:
        self._postmaster = self._live_postmaster()
        if self._postmaster is None:
            return False
        if not self._users.join():  # it is on its way down
            self._postmaster = None
            return False
        try:
            self._ensure_database()
        except psycopg.OperationalError:
            # It is on its way down.
            self._postmaster = None
            self._users.leave()
        return self._postmaster is not None

    def _serve(self) -> bool:
        lock = self._place.lock()
        if lock is None:
            return False
        try:
            return self._serve_locked(lock)
        except (OSError, psycopg.OperationalError) as error:
            self._let_go()
            raise EmbeddedError(
                f"PostgreSQL cannot be run in {self.folder}: {error}; fix that, or choose another folder"
            ) from error
        except BaseException:
            self._let_go()
            raise
        finally:
            # The guard and the server hold the lock from here on.
            os.close(lock)

    def _serve_locked(self, lock: int) -> bool:
        postmaster = self._place.postmaster()
        if postmaster is not None and postmaster.works_in(self._place.data):
            # Somebody started it by hand, say with pg_ctl: attach to it.
            return False
        self._place.clear_stale_postmaster()
        with self._place.open_log() as log:
            self._guarded = self._launch(log=log, lock=lock)
            self._await_ready(self._guarded, log=log)
        self._ensure_database()
        self.owner = True
        atexit.register(self.stop)
        return True

    def _launch(self, *, log: Log, lock: int) -> Guarded:
        binaries = self._fitting_binaries()
        identity = self._place.ensure_data(binaries, log=log, lock=lock)
        socket, passing = self._place.socket_folder(identity)
        # In double quotes, because the setting is a list that is split at commas.
        quoted = '"' + str(socket).replace('"', '""') + '"'
        settings = {**SETTINGS, "unix_socket_directories": quoted, **self._settings}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        return Guarded(
            binaries.postgres,
            ["-D", str(self._place.data), *options],
            identity=identity,
            folder=self._place.data,
            log=log.file,
            lock=lock,
            sweep=passing,
            lifeline=self._users.begin(),
        )

    def _fitting_binaries(self) -> Binaries:
        major = self._place.major()
        binaries = self._binaries or find_binaries(major=major)
        if major is not None and major != binaries.major:
            raise EmbeddedError(
                f"the data in {self.folder} were made by PostgreSQL {major}, "
                f"but the server found in {binaries.folder} is PostgreSQL {binaries.major}; "
                f"set ROWLOCK_PG_BIN to the bin folder of PostgreSQL {major}, or choose another folder to start afresh"
            )
        return binaries

    def _await_ready(self, guarded: Guarded, *, log: Log) -> None:
        deadline = time.monotonic() + START_LIMIT.total_seconds()
        while guarded.ended() is None:
            self._postmaster = self._live_postmaster()
            if self._postmaster is not None:
                return
            if time.monotonic() > deadline:
                break
            time.sleep(0.005)
        raise EmbeddedError(
            f"PostgreSQL did not start in {self.folder}; its log ends with:\n{log.tail()}\n"
            "fix that, or choose another folder to start afresh"
        )

    def _ensure_database(self) -> None:
        with psycopg.connect(self.url_of("postgres"), autocommit=True, connect_timeout=10) as connection:
            if connection.execute("select from pg_database where datname = %s", [DATABASE]).fetchone() is None:
                # Whoever attaches in the same moment makes it, too.
                with suppress(psycopg.errors.DuplicateDatabase, psycopg.errors.UniqueViolation):
                    connection.execute(f"create database {DATABASE}")

    def _forked(self) -> None:
        # In a forked child: the server is the parent's. Were the lifeline kept open here, the server would outlive its
        # users, for a child need not use it; and the mutex may have been held by a thread that does not exist here.
        self._mutex = threading.Lock()
        guarded, self._guarded = self._guarded, None
        self.owner = False
        self._users.leave()
        if guarded is not None:
            guarded.forget()


_instances: weakref.WeakSet[EmbeddedPostgres] = weakref.WeakSet()
_registry: dict[Path, EmbeddedPostgres] = {}


def embedded(folder: Path | str) -> EmbeddedPostgres:
    """Return the running server of ``folder``, the same one for every caller in this process."""
    fresh = EmbeddedPostgres(folder)
    server = _registry.setdefault(fresh.folder, fresh)
    server.start()
    return server


def _after_fork() -> None:
    for server in list(_instances):
        server._forked()  # noqa: SLF001 (the class and its fork handler are one thing)


os.register_at_fork(after_in_child=_after_fork)
