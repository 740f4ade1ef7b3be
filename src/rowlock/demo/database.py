"""Database: the demo's own server, with an empty database and the demo's app on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rowlock.app.app import Rowlock
from rowlock.db.embedded.server import EmbeddedPostgres
from rowlock.db.errors import readable_errors
from rowlock.db.session import connect
from rowlock.demo.tasks import tasks
from rowlock.errors import EmbeddedError

DATABASE = "rowlock_demo"


@contextmanager
def demo_database(folder: Path) -> Iterator[tuple[EmbeddedPostgres, Rowlock, str]]:
    """A server in the folder, the demo's app on an empty database there, and its address."""
    with ExitStack() as stack:
        server = stack.enter_context(EmbeddedPostgres(folder))
        if not server.owner:
            raise EmbeddedError(f"something runs in {server.folder} already; end it, or give the demo another folder")
        # Nothing in here belongs in anyone's repository.
        (server.folder / ".gitignore").write_text("*\n", encoding="utf-8")
        url = _empty_database(server)
        app = stack.enter_context(Rowlock(url))
        stack.enter_context(readable_errors(app.database))
        app.include(tasks)
        app.migrate()
        yield server, app, url


def _empty_database(server: EmbeddedPostgres) -> str:
    """A database of the demo's own, recreated each time: whatever else lies in the folder is left alone."""
    with connect(server.url, name="rowlock demo") as connection:
        connection.execute(f"drop database if exists {DATABASE} with (force)")
        connection.execute(f"create database {DATABASE}")
    return server.url_of(DATABASE)
