"""One PostgreSQL server for each test process, one empty database for each test that asks."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import hypothesis
import psycopg
import pytest
from psycopg.rows import TupleRow

from rowlock import Rowlock
from rowlock.db.embedded import disposable
from rowlock.db.embedded.binaries import find_binaries
from rowlock.db.embedded.server import EmbeddedPostgres
from tests.databases import Databases
from tests.waiting import until

pytest_plugins = ["tests.faults.seeds", "tests.hangs", "tests.report", "tests.stress"]

# A shell that starts us in the background has us ignore Ctrl-C, and so would every process that we start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes is the machine's affair.
hypothesis.settings.register_profile("rowlock", deadline=None)
hypothesis.settings.load_profile("rowlock")

MEMORY = Path("/dev/shm")  # noqa: S108  only our servers' folders, each with a name of its own
# Three servers take half of it at most.
ROOM = 8 << 30


def servers_folder() -> Path:
    """Where the tests' servers have their data: in memory if there is room, for there a database is made in a sixth
    of the time (18 against 110 ms on ext4), and a quick run takes an eighth less.
    """
    in_memory = MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= ROOM
    return MEMORY if in_memory else Path(__file__).resolve().parents[1] / ".cache"


SERVERS = servers_folder()

_SETTINGS = {
    "autovacuum_naptime": "1h",  # else it would start a process for each of hundreds of databases once a minute
    "max_wal_size": "128MB",
    "dynamic_shared_memory_type": "mmap",  # in its own folder: what a killed server leaves goes with it
}


def pytest_collection_finish() -> None:
    """Keep the collector off all that was imported, which the leak guard had it go through after each test."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def server(worker_id: str) -> Iterator[EmbeddedPostgres]:
    """A server of this test process alone, with PostgreSQL's defaults but for fsync: its data need not outlive us."""
    clear_leftovers()
    # With our pid, so that two runs of the tests at once do not meet.
    folder = SERVERS / f"rowlock-test-pg-{find_binaries().major}-{worker_id}-{os.getpid()}"
    with EmbeddedPostgres(folder, settings=_SETTINGS) as running:
        change_setting(running, "fsync", "off")
        yield running
    remove_behind_us(folder)


@pytest.fixture
def durable(server: EmbeddedPostgres) -> Iterator[None]:
    """The server writes through to the disk, for tests that count how often."""
    change_setting(server, "fsync", "on")
    yield
    change_setting(server, "fsync", "off")


def change_setting(server: EmbeddedPostgres, name: str, value: str) -> None:
    """Change a setting of the server for all sessions, and wait until it is in force."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"alter system set {name} = '{value}'".encode())
        connection.execute("select pg_reload_conf()")
        until(lambda: connection.execute(f"show {name}".encode()).fetchone() == (value,))


def remove_behind_us(folder: Path) -> None:
    """Remove a server's folder without waiting for it: after hundreds of databases that takes two minutes."""
    gone = folder.rename(folder.with_name(folder.name.replace("-pg-", "-pg-gone-", 1)))
    # With no file of ours open, for whoever reads our output waits until the last one has closed it.
    subprocess.run(["/bin/sh", "-c", 'rm -rf "$0" <&- >&- 2>&- &', gone], check=True)


def clear_leftovers() -> None:
    """Remove the folders of test processes that were killed."""
    for folder in SERVERS.glob("rowlock-test-pg-*"):
        try:
            os.kill(int(folder.name.rpartition("-")[2]), 0)
        except ProcessLookupError:
            # Another test process was quicker, or it is another user's.
            with suppress(FileNotFoundError, PermissionError):
                remove_behind_us(folder)
        except PermissionError:
            continue


@pytest.fixture
def database_url(server: EmbeddedPostgres) -> str:
    """The address of an empty database that is this test's own; it goes with its server, for dropping costs more."""
    return disposable.create(server.url)


@pytest.fixture(scope="session")
def template(server: EmbeddedPostgres) -> Iterator[str]:
    """The address of a database with our schema, from which tests' databases are copied."""
    with disposable.migrated(server.url) as url:
        yield url


@pytest.fixture(scope="session")
def databases(server: EmbeddedPostgres, template: str) -> Iterator[Databases]:
    """Databases with our schema, which one test has after the other."""
    databases = Databases(server, template)
    yield databases
    databases.close()


@pytest.fixture
def url(databases: Databases) -> Iterator[str]:
    """The address of a database with our schema that is this test's own."""
    with databases.one() as url:
        yield url


@pytest.fixture
def app(url: str) -> Iterator[Rowlock]:
    """An app on a database of its own."""
    with Rowlock(url) as app:
        yield app


@pytest.fixture
def db(url: str) -> Iterator[psycopg.Connection[TupleRow]]:
    """A look into the app's database, from outside the app."""
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection
