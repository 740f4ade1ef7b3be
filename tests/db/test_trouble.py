"""Every class of PostgreSQL's errors has one answer."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import errors

from rowlock.db.errors import Blame, ErrorKind, blame, error_kind, first_line
from rowlock.db.session import Late


@pytest.mark.parametrize(
    ("state", "answer"),
    [
        ("40001", ErrorKind.AGAIN),
        ("40P01", ErrorKind.AGAIN),
        ("55P03", ErrorKind.AGAIN),
        ("57014", ErrorKind.AGAIN),
        ("57P01", ErrorKind.GONE),
        ("57P02", ErrorKind.GONE),
        ("57P03", ErrorKind.GONE),
        ("57P05", ErrorKind.GONE),
        ("08000", ErrorKind.GONE),
        ("08006", ErrorKind.GONE),
        ("25006", ErrorKind.GONE),
        ("53000", ErrorKind.FULL),
        ("53100", ErrorKind.FULL),
        ("53200", ErrorKind.FULL),
        ("53300", ErrorKind.FULL),
        ("22P05", ErrorKind.REFUSED),
        ("23505", ErrorKind.REFUSED),
        ("23514", ErrorKind.REFUSED),
        ("42P01", ErrorKind.ODD),
        ("42501", ErrorKind.ODD),
        ("25P03", ErrorKind.GONE),
        ("XX000", ErrorKind.ODD),
    ],
)
def test_an_error_of_the_servers_is_known_by_its_state(state: str, answer: ErrorKind) -> None:
    assert error_kind(errors.lookup(state)()) is answer


@pytest.mark.parametrize(
    ("states", "whose"),
    [
        ("08006 25006 28000 3D000 40001 42P01 42501 53100 53300 55000 55P03 57P01", Blame.SURROUNDINGS),
        ("53000 53200 53400 57014 58030 58P01 XX000 XX002", Blame.UNCLEAR),
        ("0A000 21000 22P05 23505 54000 54001 P0001 XX001", Blame.STATEMENT),
    ],
)
def test_an_error_of_the_servers_is_the_statements_fault_or_not(states: str, whose: Blame) -> None:
    assert {state: blame(errors.lookup(state)()) for state in states.split()} == dict.fromkeys(states.split(), whose)


def test_what_is_too_late_may_be_too_large_or_the_server_too_slow() -> None:
    assert blame(Late("no answer")) is Blame.UNCLEAR
    assert blame(psycopg.OperationalError("server closed the connection unexpectedly")) is Blame.SURROUNDINGS
    assert blame(psycopg.DataError("a NUL")) is Blame.STATEMENT


def test_a_connection_that_broke_without_a_word_is_gone() -> None:
    assert error_kind(psycopg.OperationalError("server closed the connection unexpectedly")) is ErrorKind.GONE


def test_a_fault_of_the_drivers_user_is_not_a_broken_connection() -> None:
    assert (
        error_kind(psycopg.ProgrammingError("the query has 2 placeholders but 1 parameters were passed"))
        is ErrorKind.ODD
    )


def test_an_error_is_told_in_one_line() -> None:
    assert first_line(psycopg.OperationalError("refused\n\tIs the server running?\n")) == "refused"
