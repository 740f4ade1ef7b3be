"""`rowlock migrate`, and what every command says when the database or the app is not there."""

from __future__ import annotations

import psycopg
import pytest

from rowlock.store.schema import migrations
from tests.cli.conftest import Type
from tests.cli.programs import Shop

NEWEST = f"{migrations()[-1].version:04d}_{migrations()[-1].name}"


def tables(url: str, schema: str = "rowlock") -> int:
    """How many tables a schema has."""
    with psycopg.connect(url) as connection:
        row = connection.execute(
            "select count(*) from pg_class where relnamespace = to_regnamespace(%s) and relkind in ('r', 'p')", [schema]
        ).fetchone()
    assert row is not None
    count: int = row[0]
    return count


def test_migrate_applies_what_is_missing_and_then_finds_nothing_to_do(shop: Shop, database_url: str) -> None:
    first = shop.run("migrate", "--url", database_url)
    second = shop.run("migrate", env={"ROWLOCK_URL": database_url})

    assert first.process.returncode == 0, first.errors
    assert f"applied {NEWEST}" in first.out
    assert tables(database_url) > 0
    assert second.process.returncode == 0, second.errors
    assert len(second.out) == 1
    assert "up to date" in second.output


def test_the_sql_that_is_printed_changes_nothing_and_is_all_that_it_takes(shop: Shop, database_url: str) -> None:
    printed = shop.run("migrate", "--sql", "--url", database_url)
    before = tables(database_url)
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(printed.output.encode())

    again = shop.run("migrate", "--sql", "--url", database_url)

    assert printed.process.returncode == 0, printed.errors
    assert before == 0
    assert tables(database_url) > 0
    assert again.process.returncode == 0
    assert again.out == []
    assert "up to date" in again.errors


def test_database_and_schema_come_from_the_app_unless_the_command_line_names_others(
    shop: Shop, database_url: str
) -> None:
    shop.write("ours.py", f"from rowlock import Rowlock\napp = Rowlock({database_url!r}, schema='ours')")
    shop.write(
        "down.py", "from rowlock import Rowlock\nqueue = Rowlock('postgresql://localhost:1/none', schema='ours')"
    )

    by_app = shop.run("migrate", "--app", "ours")
    by_hand = shop.run("migrate", "--app", "down:queue", "--url", database_url, "--schema", "theirs")

    assert by_app.process.returncode == 0, by_app.errors
    assert by_hand.process.returncode == 0, by_hand.errors
    assert tables(database_url, "ours") > 0
    assert tables(database_url, "theirs") > 0
    assert tables(database_url, "rowlock") == 0


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgresql://localhost:1/none", "cannot reach the database postgresql://localhost:1/none (from --url)"),
        ("postgresql://me:secret@localhost:1/none", "postgresql://me:***@localhost:1/none"),
        ("postgresql://localhost/none?no=such", "write postgresql://USER@HOST/NAME"),
        ("postgresql://me:secret@[::1/none", "write postgresql://USER@HOST/NAME"),
        ("mysql://localhost/none", "Rowlock runs on PostgreSQL"),
        ("somewhere", "write postgresql://USER@HOST/NAME"),
        ("", "set $ROWLOCK_URL"),
    ],
)
def test_a_wrong_url_or_a_database_that_is_down_is_one_sentence(typed: Type, url: str, words: str) -> None:
    said = typed("migrate", "--url", url)

    assert said.is_one_sentence, said
    assert words in said.err
    assert "secret" not in said.err


def test_a_database_that_does_not_exist_is_one_sentence(shop: Shop, database_url: str) -> None:
    program = shop.run("migrate", "--url", database_url.replace("test_", "nowhere_"))

    assert program.is_one_sentence, program.errors
    assert "does not exist" in program.errors


@pytest.mark.parametrize(
    ("app", "words"),
    [
        ("nothing", "there is no module 'nothing'"),
        ("nothing.at.all:app", "there is no module 'nothing'"),
        ("shop.cellar", "there is no module 'shop.cellar'"),
        ("shop:queue", "module 'shop' has no 'queue'; write --app shop:app"),
        ("shop:asyncio", "shop:asyncio is a module, not a Rowlock; write --app shop:app"),
        ("shop.py:app", "write --app shop:app"),
        ("empty", "module 'empty' has no 'app'; write app = Rowlock(…) there"),
        ("needs", "module 'needs' needs 'no_such_library'"),
        ("broken", "module 'broken' cannot be imported: ZeroDivisionError: division by zero"),
        ("crooked", "module 'crooked' cannot be imported: SyntaxError"),
    ],
)
def test_a_missing_app_is_one_sentence_that_says_what_is_missing(typed: Type, shop: Shop, app: str, words: str) -> None:
    shop.write("empty.py", "")
    shop.write("needs.py", "import no_such_library")
    shop.write("broken.py", "\n1 / 0")
    shop.write("crooked.py", "def")

    said = typed("migrate", "--app", app)

    assert said.is_one_sentence, said
    assert words in said.err


def test_a_traceback_is_shown_when_it_is_asked_for(shop: Shop) -> None:
    shop.write("broken.py", "\n1 / 0")

    program = shop.run("migrate", "--app", "broken", "--debug")

    assert program.process.returncode == 1
    assert "Traceback" in program.errors
    assert "ZeroDivisionError" in program.errors


def test_two_databases_at_once_are_wrong_usage(typed: Type) -> None:
    said = typed("migrate", "--url", "postgresql://localhost:1/none", "--embedded", "here")

    assert said.code == 2
    assert "give one of them" in said.err
