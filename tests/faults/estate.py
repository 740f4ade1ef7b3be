"""A database whose owner is nobody special, with our roles, and a login for each of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import uuid4

import psycopg
import pytest
from psycopg.rows import TupleRow

from rowlock import Rowlock
from rowlock.db.embedded.server import EmbeddedPostgres
from rowlock.store.roles import ROLES

Db = psycopg.Connection[TupleRow]

OWNER = "keeper"
STRANGER = "stranger"  # may connect, and is in no role of ours
LOGINS = {role.name: f"login_{role.name}" for role in ROLES}


@dataclass(frozen=True)
class Estate:
    """Addresses, by login."""

    admin: str

    def url(self, login: str) -> str:
        """The address for a login; the name of a role means its login."""
        return as_user(self.admin, LOGINS.get(login, login))

    @contextmanager
    def session(self, login: str) -> Iterator[Db]:
        """A bare session of a login, outside of any app."""
        with psycopg.connect(self.url(login), autocommit=True) as connection:
            yield connection

    @contextmanager
    def app(self, login: str) -> Iterator[Rowlock]:
        """An app that connects as a login."""
        with Rowlock(self.url(login)) as app:
            yield app


def as_user(url: str, name: str) -> str:
    before, at, after = url.partition("@")
    assert at, url
    return f"{before.partition('//')[0]}//{name}@{after}"


@pytest.fixture(scope="session")
def estate(server: EmbeddedPostgres) -> Estate:
    """One for all tests that leave nothing behind; it goes with its server."""
    database = f"estate_{uuid4().hex}"
    with psycopg.connect(server.url, autocommit=True) as admin:
        admin.execute(f"create role {OWNER} login createrole".encode())
        admin.execute(f"create database {database} owner {OWNER}".encode())
    estate = Estate(server.url_of(database))
    with estate.app(OWNER) as app:
        app.migrate(roles=True)
    with psycopg.connect(server.url, autocommit=True) as admin:
        for role, login in LOGINS.items():
            admin.execute(f"create role {login} login in role rowlock_{role}".encode())
        admin.execute(f"create role {STRANGER} login".encode())
    return estate


def make_expired_part(db: Db) -> str:
    """A part of history in which everything has expired."""
    first, after, name = db.execute(
        "select now()::date - 3, now()::date - 2, 'rowlock.history_' || to_char(now()::date - 3, 'YYYYMMDD')"
    ).fetchone() or ("", "", "")
    bounds = f"for values from ('{first}') to ('{after}')"
    db.execute(f"create table {name} partition of rowlock.history {bounds}".encode())
    return str(name)
