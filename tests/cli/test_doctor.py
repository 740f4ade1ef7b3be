"""`rowlock doctor`: what it prints, and what a monitor reads from its exit code."""

from __future__ import annotations

import json

import pytest

from rowlock import Rowlock
from tests.cli.conftest import Type
from tests.test_doctor import register
from tests.worker.working import Db


def test_all_green_is_said_in_one_line_each_and_ends_well(rowlock: Type, app: Rowlock, durable: None) -> None:
    register(app)

    said = rowlock("doctor")

    assert (said.code, said.err) == (0, "")
    lines = said.out.splitlines()
    assert lines[0] == "locks"
    assert "  green  fsync                    on" in lines
    assert lines[-1].endswith(f": 0 red, 0 amber, {said.out.count('  green  ')} green")
    assert [line for line in lines if line != line.rstrip()] == []


def test_amber_and_red_have_exit_codes_of_their_own(rowlock: Type, app: Rowlock, db: Db, durable: None) -> None:
    amber, passed = rowlock("doctor"), rowlock("doctor", "--fail-on", "red")
    register(app)
    db.execute("drop index rowlock.jobs_ready")
    red = rowlock("doctor", "--fail-on", "red")

    assert [amber.code, passed.code, red.code] == [4, 0, 5]
    assert "  amber  live workers" in amber.out
    assert "do: rowlock worker --app MODULE" in amber.out
    assert "  red    objects" in red.out
    assert "index jobs_ready is missing" in red.out


def test_programs_get_one_document(rowlock: Type) -> None:
    said = rowlock("doctor", "--json", "--target", "5min")

    found = json.loads(said.out)
    assert said.code == 5  # the tests' server runs without fsync
    assert found["worst"] == "red"
    assert [finding["name"] for finding in found["findings"] if finding["level"] == "red"] == ["fsync"]
    assert said.out.isascii()


@pytest.mark.parametrize("target", ["0s", "soon", "-1h"])
def test_a_target_that_makes_no_sense_is_wrong_usage(rowlock: Type, target: str) -> None:
    said = rowlock("doctor", "--target", target)

    assert (said.code, said.out) == (2, "")


def test_a_database_without_our_schema_is_said_to_have_none(rowlock: Type, database_url: str) -> None:
    said = rowlock("doctor", "--url", database_url)

    assert said.is_one_sentence
    assert "run: rowlock migrate" in said.err


def test_no_data_can_break_or_repaint_it(rowlock: Type, db: Db, monkeypatch: pytest.MonkeyPatch) -> None:
    nasty = "\x1b[31mred\nred\u202e"
    db.execute("select rowlock.enqueue('t', queue => %s)", [nasty])
    db.execute(
        "insert into rowlock.pauses values ('task', %(t)s, null, %(t)s, %(t)s, now() - '2 days'::interval)",
        {"t": nasty},
    )
    monkeypatch.setenv("COLUMNS", "60")

    said = rowlock("doctor")

    assert said.code == 5
    assert "\\x1b[31mred\\nred\\u202e" in said.out
    assert all(line.isprintable() for line in said.out.split("\n"))
