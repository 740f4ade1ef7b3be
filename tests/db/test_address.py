"""Which database: the argument, else $ROWLOCK_URL, else $DATABASE_URL; and what its name may be."""

from __future__ import annotations

from pathlib import Path

import pytest

from rowlock import Rowlock
from rowlock.db.address import Address, find_address
from rowlock.errors import InvalidOption, NotConfigured
from rowlock.model.redact import redact_address

URL = "postgresql://ada@db.example/app"
NOTHING: dict[str, str] = {}


def test_the_argument_wins_over_the_environment() -> None:
    environment = {"ROWLOCK_URL": "postgresql://one", "DATABASE_URL": "postgresql://two"}

    assert find_address(URL, None, environment) == Address("url=", conninfo=URL)


def test_our_own_variable_wins_over_the_common_one() -> None:
    environment = {"ROWLOCK_URL": URL, "DATABASE_URL": "postgresql://two"}

    assert find_address(None, None, environment) == Address("$ROWLOCK_URL", conninfo=URL)


def test_the_common_variable_serves_when_ours_is_not_set_or_empty() -> None:
    assert find_address(None, None, {"DATABASE_URL": URL}) == Address("$DATABASE_URL", conninfo=URL)
    assert find_address(None, None, {"ROWLOCK_URL": "", "DATABASE_URL": URL}) == Address("$DATABASE_URL", conninfo=URL)


def test_without_any_the_sentence_says_what_to_set() -> None:
    with pytest.raises(NotConfigured, match=r"pass Rowlock\(url=…\), set \$ROWLOCK_URL or \$DATABASE_URL"):
        find_address(None, None, NOTHING)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("postgresql://a@b/c", "postgresql://a@b/c"),
        ("postgres://a@b/c", "postgresql://a@b/c"),
        ("postgresql+psycopg://a:p@b:5433/c?sslmode=require", "postgresql://a:p@b:5433/c?sslmode=require"),
        ("postgresql+asyncpg://a@b/c", "postgresql://a@b/c"),
        ("POSTGRESQL://a@b/c", "postgresql://a@b/c"),
        ("postgresql:///c?host=/run/pg", "postgresql:///c?host=/run/pg"),
        ("host=b dbname=c user=a", "host=b dbname=c user=a"),
        ("service=jobs", "service=jobs"),
    ],
)
def test_an_address_may_be_written_in_any_common_form(given: str, meant: str) -> None:
    assert find_address(given, None, NOTHING).conninfo == meant


@pytest.mark.parametrize(
    "given", ["mysql://a@b/c", "sqlite:///jobs.db", "redis://b", "https://b/c", "mysql+pymysql://b"]
)
def test_another_scheme_is_refused_naming_where_it_came_from(given: str) -> None:
    with pytest.raises(NotConfigured, match=r"^\$ROWLOCK_URL is a \w+ address; Rowlock runs on PostgreSQL"):
        find_address(None, None, {"ROWLOCK_URL": given})


@pytest.mark.parametrize("given", ["localhost", "db/app", "  ", "5432"])
def test_what_is_no_address_is_refused_naming_where_it_came_from(given: str) -> None:
    with pytest.raises(NotConfigured, match=r"^\$DATABASE_URL .* is not a database address; write postgresql://"):
        find_address(None, None, {"DATABASE_URL": given})


def test_a_private_server_is_named_by_its_folder() -> None:
    assert find_address("embedded:.rowlock", None, NOTHING) == Address("url=", folder=Path(".rowlock"))
    assert find_address(None, ".rowlock", {"ROWLOCK_URL": URL}) == Address("embedded=", folder=Path(".rowlock"))
    assert str(find_address("embedded:/srv/jobs", None, NOTHING)) == "embedded:/srv/jobs"


def test_a_private_server_without_a_folder_is_refused() -> None:
    with pytest.raises(NotConfigured, match=r"^\$ROWLOCK_URL names no folder; write embedded:FOLDER"):
        find_address(None, None, {"ROWLOCK_URL": "embedded:"})


def test_an_app_takes_an_address_or_a_folder() -> None:
    with pytest.raises(InvalidOption, match="not both"):
        Rowlock(URL, embedded=".rowlock")


def test_making_an_app_looks_for_no_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROWLOCK_URL", raising=False)
    monkeypatch.delenv("DATABASE_URL", raising=False)
    app = Rowlock()

    with pytest.raises(NotConfigured):
        app.task(name="t")(lambda: None).enqueue()


@pytest.mark.parametrize(
    ("conninfo", "shown"),
    [
        ("postgresql://ada@b/c", "postgresql://ada@b/c"),
        ("postgresql://ada:secret@b/c", "postgresql://ada:***@b/c"),
        ("postgresql://ada:sec/ret@b/c", "postgresql://ada:***@b/c"),
        ("postgresql://:secret@b/c", "postgresql://:***@b/c"),
        ("host=b password=secret dbname=c", "host=b password=*** dbname=c"),
    ],
)
def test_a_shown_address_hides_the_password_and_nothing_else(conninfo: str, shown: str) -> None:
    assert redact_address(conninfo) == shown


@pytest.mark.parametrize(
    "conninfo",
    [
        "postgresql://b/c?user=ada&password=secret",
        "host=b password='sesame secret' dbname=c",
        "host=b password = secret dbname=c",
        "postgresql://ada:ses@me@secret@b/c",
    ],
)
def test_a_shown_address_never_holds_the_password(conninfo: str) -> None:
    assert "secret" not in redact_address(conninfo)
    assert "secret" not in str(Address("url=", conninfo=conninfo))
