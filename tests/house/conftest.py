"""What the house rules share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import psycopg
import pytest

from rowlock.db.embedded.server import EmbeddedPostgres
from rowlock.db.migrate import migrate
from rowlock.db.session import Connection, connect


class House(NamedTuple):
    """A session of ours, and the name of our schema in it."""

    connection: Connection
    schema: str


@pytest.fixture(scope="session", params=["rowlock", "a_custom_schema"])
def house(server: EmbeddedPostgres, request: pytest.FixtureRequest) -> Iterator[House]:
    """One for all tests that leave nothing behind."""
    name: str = request.param
    with psycopg.connect(server.url, autocommit=True) as admin:
        admin.execute(f"create database house_{name}")
        with connect(server.url_of(f"house_{name}"), name="house") as connection:
            migrate(connection, name)
            yield House(connection, name)
        admin.execute(f"drop database house_{name} with (force)")
