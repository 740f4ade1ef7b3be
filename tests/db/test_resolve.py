"""Host names become addresses before psycopg looks them up; the names stay, and so does all that is no name."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from rowlock.db.address import with_host_addresses

ADDRESSES = {"one": ["10.0.0.1"], "two": ["10.0.0.2", "fd00::2"]}


@pytest.fixture(autouse=True)
def _names(monkeypatch: pytest.MonkeyPatch) -> None:
    def look_up(host: str, port: str, **_: Any) -> list[tuple[Any, ...]]:  # noqa: ANN401  socket's own
        if host not in ADDRESSES:
            raise socket.gaierror("unknown name")
        return [(None, None, None, "", (address, port)) for address in ADDRESSES[host]]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    for name in ("PGHOST", "PGHOSTADDR", "PGPORT", "PGSERVICE"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("conninfo", "expected"),
    [
        ("postgresql://one:5433/x?sslmode=verify-full", ("one", "10.0.0.1", "5433")),
        ("host=two", ("two,two", "10.0.0.2,fd00::2", None)),
        (
            "host=one,/tmp,two,10.0.0.9, port=1,2,3,4,5",
            ("one,/tmp,two,two,10.0.0.9,", "10.0.0.1,,10.0.0.2,fd00::2,10.0.0.9,", "1,2,3,3,4,5"),
        ),
        ("host=gone,one port=1,2", ("one", "10.0.0.1", "2")),
        ("host=one hostaddr=10.0.0.7", ("one", "10.0.0.7", None)),
        ("host=one target_session_attrs=prefer-standby", ("one", "10.0.0.1", None)),
    ],
)
def test_names_get_an_address_each(conninfo: str, expected: tuple[str | None, ...]) -> None:
    before, after = conninfo_to_dict(conninfo), conninfo_to_dict(asyncio.run(with_host_addresses(conninfo)))

    assert tuple(after.pop(name, None) for name in ("host", "hostaddr", "port")) == expected
    assert after.items() <= before.items()


@pytest.mark.parametrize(
    "conninfo", ["", "dbname=x", "host=/run/pg", "host=10.0.0.1,fd00::2", "service=shop host=one", "host=@abstract"]
)
def test_what_has_no_name_stays_as_it_is(conninfo: str) -> None:
    assert asyncio.run(with_host_addresses(conninfo)) == conninfo


def test_a_name_from_the_environment_is_looked_up_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGHOST", "one")

    assert conninfo_to_dict(asyncio.run(with_host_addresses("dbname=x"))) == {
        "dbname": "x",
        "host": "one",
        "hostaddr": "10.0.0.1",
    }


def test_names_that_nobody_knows_are_the_drivers_error() -> None:
    with pytest.raises(psycopg.OperationalError, match="gone"):
        asyncio.run(with_host_addresses("host=gone"))
