"""The database that benchmarks run on: found, checked, set up, cleared between rounds, and left as it was."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
from psycopg.abc import Query

from benchmarks.measure import Broken
from benchmarks.tasks import SCHEMA, app
from rowlock import Call
from rowlock.db.embedded.binaries import find_binaries
from rowlock.db.embedded.server import embedded
from rowlock.db.session import connect

# By major version: data of one cannot be read by another.
FOLDER = Path(__file__).resolve().parents[1] / ".cache" / "bench-pg"


class Arena:
    """A schema of our own on the database, and a connection for what happens beside the measuring."""

    def __init__(self, conninfo: str) -> None:
        self.conninfo = conninfo
        self.connection = connect(conninfo, name="bench")

    def ask(self, query: Query) -> Any:  # noqa: ANN401  whatever the column holds
        """The first column of the first row."""
        row = self.connection.execute(query).fetchone()
        return None if row is None else row[0]

    @property
    def version(self) -> str:
        """The server's version, without what the packagers added."""
        return str(self.ask("show server_version")).split()[0]

    def clear(self) -> None:
        """Forget every job, ended ones included."""
        self.connection.execute(
            f"truncate {SCHEMA}.jobs, {SCHEMA}.history, {SCHEMA}.keys, {SCHEMA}.steps, {SCHEMA}.signals"
        )

    def calm(self) -> None:
        """Do now what would else happen during one round and not during another."""
        self.connection.execute(f"vacuum {SCHEMA}.jobs, {SCHEMA}.history, {SCHEMA}.steps")
        with suppress(psycopg.errors.InsufficientPrivilege):
            self.connection.execute("checkpoint")

    def fill(self, calls: list[Call[Any]]) -> None:
        """Start a round: nothing there but these calls, enqueued and on disk."""
        self.clear()
        self.add(calls)

    def add(self, calls: list[Call[Any]]) -> None:
        """Enqueue these calls beside what is there, and let the dust settle."""
        app.enqueue_many(calls)
        self.calm()

    def drained(self) -> bool:
        """Whether no job is left; walks over dead rows, so not a question to ask all the time."""
        return not self.ask(f"select exists (select from {SCHEMA}.jobs)")

    def verify(self, count: int, *, steps: int | None = None) -> None:
        """Broken unless so many jobs ended, each once and well; workflows with so many steps each."""
        row = self.connection.execute(
            f"""
            select
                (select count(*) from {SCHEMA}.jobs), count(*), count(distinct id),
                count(*) filter (where state = 'succeeded')
            from {SCHEMA}.history
            """
        ).fetchone()
        if row != (0, count, count, count):
            raise Broken(f"{count} jobs should have succeeded, once each; left, ended, distinct, succeeded are {row}")
        if steps is not None and (found := self._steps()) != {steps}:
            raise Broken(f"each workflow should have {steps} steps; they have {found}")

    def _steps(self) -> set[int]:
        """How many steps ended workflows have."""
        counted = self.connection.execute(
            f"select distinct coalesce(json_array_length(steps -> 'steps'), 0) from {SCHEMA}.history"
        )
        return {row[0] for row in counted}


@contextmanager
def arena() -> Iterator[Arena]:
    """The database of $ROWLOCK_URL, else an embedded one in .cache; our schema there is dropped before and after."""
    if not os.environ.get("ROWLOCK_URL"):
        os.environ["ROWLOCK_URL"] = embedded(FOLDER / str(find_binaries().major)).url
    # In the environment, because that is where the apps of the worker processes look.
    os.environ["ROWLOCK_URL"] = app.database.conninfo()
    ground = Arena(os.environ["ROWLOCK_URL"])
    with ground.connection:
        _take(ground)
        _check_durable(ground)
        _drop(ground)
        app.migrate()
        try:
            yield ground
        finally:
            app.close()
            _drop(ground)


def _take(ground: Arena) -> None:
    """Two runs on one database would drop each other's schema, and measure each other."""
    if not ground.ask(f"select pg_try_advisory_lock(hashtextextended('{SCHEMA}', 0))"):
        raise Broken("another benchmark is running on this database; wait for it, or name another with ROWLOCK_URL")


def _check_durable(ground: Arena) -> None:
    for setting in ("fsync", "synchronous_commit"):
        if ground.ask(f"show {setting}") == "off":
            raise Broken(
                f"{setting} is off on this database: its figures would be of jobs that a crash can lose; "
                "turn it on, or unset ROWLOCK_URL to use an embedded server"
            )


def _drop(ground: Arena) -> None:
    ground.connection.execute("set client_min_messages = warning")
    ground.connection.execute(f"drop schema if exists {SCHEMA} cascade")
