"""Every class of PostgreSQL's errors has one answer."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import errors

from rowlock.db.trouble import Trouble, first_line, trouble


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
        ("XX000", Trouble.ODD),
    ],
)
def test_an_error_of_the_servers_is_known_by_its_state(state: str, answer: Trouble) -> None:
    assert trouble(errors.lookup(state)()) is answer


def test_a_connection_that_broke_without_a_word_is_gone() -> None:
    assert trouble(psycopg.OperationalError("server closed the connection unexpectedly")) is Trouble.GONE


def test_a_fault_of_the_drivers_user_is_not_a_broken_connection() -> None:
    assert trouble(psycopg.ProgrammingError("the query has 2 placeholders but 1 parameters were passed")) is Trouble.ODD


def test_an_error_is_told_in_one_line() -> None:
    assert first_line(psycopg.OperationalError("refused\n\tIs the server running?\n")) == "refused"
