"""A PgBouncer of the test's own: transaction pooling, on a Unix socket, gone with the test or with its process."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import DictRow, dict_row

from rowlock.db.embedded.launch import Guarded, identities
from rowlock.db.embedded.server import EmbeddedPostgres
from tests.waiting import until

PROGRAM = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin")
MISSING = "pgbouncer is not installed (Debian: apt-get install pgbouncer); nothing behind a pooler is tested"

_PORT = 6432
# As it comes, but for the pool: transaction pooling, and few connections to the server, so that clients must share.
_SETTINGS = {
    "pool_mode": "transaction",
    "default_pool_size": "3",
    "max_client_conn": "100",
    "auth_type": "any",
    "admin_users": "rowlock",
    "listen_addr": "",
    "listen_port": str(_PORT),
    "query_wait_timeout": "5",
    "server_login_retry": "1",
}


class PgBouncer:
    """One PgBouncer in front of one server; it can be killed and started again under the same address."""

    def __init__(self, server: EmbeddedPostgres, folder: Path, settings: Mapping[str, str]) -> None:
        self._server = server
        self._folder = folder
        self._settings = {**_SETTINGS, **settings}
        self._guarded: Guarded | None = None

    def url(self, direct: str) -> str:
        """The address by which a database of the server is reached through it."""
        database = quote(str(conninfo_to_dict(direct)["dbname"]), safe="")
        return f"postgresql://rowlock@/{database}?host={quote(str(self._folder), safe='')}&port={_PORT}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._write_settings()
        identity = next(identities(self._server.folder / "data"))
        identity.own(self._folder)
        log = os.open(self._folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        assert PROGRAM is not None, MISSING
        try:
            self._guarded = Guarded(
                Path(PROGRAM), [str(self._ini)], identity=identity, folder=self._folder, log=log, lock=log
            )
        finally:
            os.close(log)
        until(self._answers, what="an answer of PgBouncer")

    def kill(self) -> None:
        """End it at once, as a crash would: every client loses its connection."""
        guarded, self._guarded = self._guarded, None
        if guarded is not None:
            os.kill(self._pid(), signal.SIGKILL)
            guarded.wait(timedelta(seconds=30))
            guarded.stop()
            for left in (self._folder / "pid", self._folder / f".s.PGSQL.{_PORT}"):
                left.unlink(missing_ok=True)

    def show(self, what: str) -> list[DictRow]:
        """What its console shows: `pools`, `servers`, `clients`."""
        return self.order(f"show {what}")

    def order(self, command: str) -> list[DictRow]:
        """Say something on its console."""
        with self._console() as console:
            cursor = console.execute(command.encode())
            return cursor.fetchall() if cursor.description else []

    def _console(self) -> psycopg.Connection[DictRow]:
        # The console speaks only the simple protocol, and without transactions.
        return psycopg.connect(
            host=str(self._folder),
            port=_PORT,
            user="rowlock",
            dbname="pgbouncer",
            autocommit=True,
            row_factory=dict_row,
            cursor_factory=psycopg.ClientCursor,
        )

    def _answers(self) -> bool:
        assert self._guarded is not None
        assert self._guarded.ended() is None, f"PgBouncer has ended:\n{(self._folder / 'log').read_text()}"
        try:
            return bool(self.show("version"))
        except psycopg.OperationalError:
            return False

    def _pid(self) -> int:
        return int((self._folder / "pid").read_text())

    @property
    def _ini(self) -> Path:
        return self._folder / "pgbouncer.ini"

    def _write_settings(self) -> None:
        server: dict[str, Any] = conninfo_to_dict(self._server.url)
        settings = {
            **self._settings,
            "unix_socket_dir": str(self._folder),
            "pidfile": str(self._folder / "pid"),
        }
        lines = [f"{name} = {value}" for name, value in settings.items()]
        databases = f"* = host={server['host']} port={server['port']} user={server['user']}"
        self._ini.write_text("\n".join(["[databases]", databases, "[pgbouncer]", *lines, ""]), encoding="utf-8")


@contextmanager
def pgbouncer(server: EmbeddedPostgres, **settings: str) -> Iterator[PgBouncer]:
    """A running PgBouncer in front of this server."""
    with TemporaryDirectory(prefix="rowlock-") as folder:
        bouncer = PgBouncer(server, Path(folder), settings)
        try:
            bouncer.start()
            yield bouncer
        finally:
            bouncer.kill()
