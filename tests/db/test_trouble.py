"""Every class of PostgreSQL's errors has one answer."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import errors

from rowlock.db.session import Late
from rowlock.db.trouble import Blame, Trouble, blame, first_line, trouble


@pytest.mark.parametrize(
    ("state", "answer"),
    [
        ("40001", Trouble.AGAIN),
        ("40P01", Trouble.AGAIN),
        ("55P03", Trouble.AGAIN),
        ("57014", Trouble.AGAIN),
        ("57P01", Trouble.GONE),
        ("57P02", Trouble.GONE),
        ("57P03", Trouble.GONE),
        ("57P05", Trouble.GONE),
        ("08000", Trouble.GONE),
        ("08006", Trouble.GONE),
        ("25006", Trouble.GONE),
        ("53000", Trouble.FULL),
        ("53100", Trouble.FULL),
        ("53200", Trouble.FULL),
        ("53300", Trouble.FULL),
        ("22P05", Trouble.REFUSED),
        ("23505", Trouble.REFUSED),
        ("23514", Trouble.REFUSED),
        ("42P01", Trouble.ODD),
        ("42501", Trouble.ODD),
        ("25P03", Trouble.GONE),
        ("XX000", Trouble.ODD),
    ],
)
def test_an_error_of_the_servers_is_known_by_its_state(state: str, answer: Trouble) -> None:
    assert trouble(errors.lookup(state)()) is answer


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
    assert trouble(psycopg.OperationalError("server closed the connection unexpectedly")) is Trouble.GONE


def test_a_fault_of_the_drivers_user_is_not_a_broken_connection() -> None:
    assert trouble(psycopg.ProgrammingError("the query has 2 placeholders but 1 parameters were passed")) is Trouble.ODD


def test_an_error_is_told_in_one_line() -> None:
    assert first_line(psycopg.OperationalError("refused\n\tIs the server running?\n")) == "refused"
