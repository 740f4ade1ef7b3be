"""`rowlock schedules`: every command, in words and in JSON, and what is said when something is wrong."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest
from psycopg.rows import TupleRow

from rowlock import Rowlock
from tests.cli.conftest import Type
from tests.cli.programs import Typed

Db = psycopg.Connection[TupleRow]

NIGHTLY = ["nightly", "shop.greet", "--cron", "0 3 * * *", "--tz", "Europe/Paris", "--arg", "name=ada"]


@pytest.fixture
def nightly(rowlock: Type) -> Typed:
    return rowlock("schedules", "add", *NIGHTLY, "--by", "ann")


def test_a_schedule_is_added_and_listed(rowlock: Type, nightly: Typed) -> None:
    rowlock("schedules", "add", "sync", "shop.sync", "--every", "1h30min")

    listed = rowlock("schedules", "list")
    in_json = rowlock("schedules", "list", "--json")

    assert nightly.out.startswith("schedule nightly is added; it first runs at 20")
    assert "03:00)" in nightly.out
    head, first, second = listed.out.splitlines()
    assert head.split()[:4] == ["schedule", "rule", "zone", "task"]
    assert first.split()[:8] == ["nightly", "0", "3", "*", "*", "*", "Europe/Paris", "shop.greet"]
    assert second.split()[:4] == ["sync", "every", "1h30min", "shop.sync"]
    assert first.split()[-1] == second.split()[-1] == "active"
    assert [schedule["args"] for schedule in json.loads(in_json.out)["schedules"]] == [{"name": "ada"}, {}]


def test_a_schedule_of_a_workflow_says_its_version(rowlock: Type) -> None:
    rowlock("schedules", "add", "nightly", "shop.checkout@2", "--every", "1h")

    listed = rowlock("schedules", "list")
    shown = json.loads(rowlock("schedules", "show", "nightly", "--json").out)["schedule"]

    assert listed.out.splitlines()[1].split()[:4] == ["nightly", "every", "1h", "shop.checkout@2"]
    assert (shown["task"], shown["version"]) == ("shop.checkout", 2)


def test_in_a_narrow_terminal_slots_name_their_job(
    rowlock: Type, nightly: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = rowlock("schedules", "run-now", "nightly", "--why", "asked").out.strip()
    monkeypatch.setenv("COLUMNS", "80")

    lines = rowlock("schedules", "show", "nightly").out.splitlines()

    slot = lines[next(n for n, line in enumerate(lines) if line.startswith("latest slots")) + 2]
    assert job[-8:] in slot.split()


def test_everything_about_one_is_shown(rowlock: Type, nightly: Typed, app: Rowlock) -> None:
    assert nightly.code == 0
    job = rowlock("schedules", "run-now", "nightly", "--why", "the numbers were wrong").out.strip()
    rowlock("schedules", "pause", "nightly", "--for", "2h", "--why", "august", "--by", "bob")

    shown = rowlock("schedules", "show", "nightly")
    in_json = json.loads(rowlock("schedules", "show", "nightly", "--json").out)

    for said in (
        "every day at 03:00, Europe/Paris",
        "added by an operator",
        "paused until 20",
        "bob, ",
        "august",
        '"name": "ada"',
        "fired: asked",
        f"live jobs  {job}",
    ):
        assert said in shown.out, said
    assert [firing["job"] for firing in in_json["firings"]] == [job]
    assert in_json["schedule"]["paused_by"] == "bob"


def test_an_edit_of_what_code_declares_is_shown_beside_it(rowlock: Type, app: Rowlock, db: Db) -> None:
    declare(db, "report", rule="0 3 * * *", queue="reports")

    said = rowlock(
        "schedules", "edit", "report", "--cron", "30 4 * * *", "--queue", "slow", "--by", "ann", "--why", "so"
    )
    shown = rowlock("schedules", "show", "report")
    listed = rowlock("schedules", "list")
    rowlock("schedules", "edit", "report", "--reset")

    assert said.out.startswith("schedule report next runs at 20")
    assert "04:30)" in said.out
    assert "edited by ann" in shown.out
    assert ["rule", "0", "3", "*", "*", "*", "30", "4", "*", "*", "*"] in [
        line.split() for line in shown.out.splitlines()
    ]
    assert ["queue", "reports", "slow"] in [line.split() for line in shown.out.splitlines()]
    assert listed.out.splitlines()[1].endswith("active, edited")
    assert app.schedules.get("report").cron == "0 3 * * *"


def test_the_next_slots_are_told_on_both_clocks(rowlock: Type, nightly: Typed) -> None:
    assert nightly.code == 0
    rowlock("schedules", "pause", "nightly")

    said = rowlock("schedules", "next", "nightly", "--count", "3")
    in_json = json.loads(rowlock("schedules", "next", "nightly", "--json").out)

    assert len(said.out.splitlines()) == 4
    assert all("03:00" in line for line in said.out.splitlines()[1:])
    assert "it is paused until it is resumed" in said.err
    assert len(in_json["slots"]) == 5


def test_a_pause_ends_when_it_is_resumed_and_only_once(rowlock: Type, nightly: Typed) -> None:
    assert nightly.code == 0
    paused = rowlock("schedules", "pause", "nightly", "--json")
    resumed = rowlock("schedules", "resume", "nightly")
    again = rowlock("schedules", "resume", "nightly")

    assert json.loads(paused.out)["schedule"]["paused_until"] is None
    assert resumed.out.startswith("schedule nightly goes on at 20")
    assert (again.code, again.err) == (3, "schedule nightly was not paused\n")


def test_a_schedule_is_removed_and_what_code_declared_may_come_back(rowlock: Type, nightly: Typed, db: Db) -> None:
    assert nightly.code == 0
    declare(db, "report", rule="0 3 * * *")

    own = rowlock("schedules", "remove", "nightly")
    declared = rowlock("schedules", "remove", "report")
    empty = rowlock("schedules", "list")

    assert (own.code, own.out, own.err) == (0, "schedule nightly is removed\n", "")
    assert (declared.code, declared.out) == (0, "schedule report is removed\n")
    assert "brings it back" in declared.err
    assert (empty.code, empty.out) == (0, "")
    assert "no schedule" in empty.err


def test_a_fault_in_an_expression_is_pointed_at(rowlock: Type) -> None:
    said = rowlock("schedules", "add", "bad", "shop.greet", "--cron", "0 25 * * *")

    [expression, caret] = said.err.splitlines()[-2:]
    assert said.code == 2
    assert "'25' is out of 0 to 23" in said.err
    assert expression[caret.index("^") :].startswith("25")


WRONG = {
    "no rule": (["add", "n", "shop.greet"], 2, "give --cron or --every"),
    "two rules": (["add", "n", "shop.greet", "--cron", "@daily", "--every", "5m"], 2, "not both"),
    "no zone": (["add", "n", "shop.greet", "--cron", "@daily", "--tz", "Europe/Pari"], 2, "Europe/Paris"),
    "zone of an interval": (["add", "n", "shop.greet", "--every", "5m", "--tz", "UTC"], 2, "interval"),
    "catch-up": (["add", "n", "shop.greet", "--every", "5m", "--catch-up", "some"], 2, "last, none, a number"),
    "arguments that do not fit": (["add", "n", "shop.greet", "--every", "5m", "--app", "shop"], 2, "name"),
    "unknown task": (["add", "n", "shop.gret", "--every", "5m", "--app", "shop"], 1, "did you mean shop.greet"),
    "taken": (["add", *NIGHTLY], 1, "there is a schedule 'nightly' already"),
    "missing": (["show", "nightli"], 3, "did you mean 'nightly'?"),
    "nothing to change": (["edit", "nightly"], 2, "nothing to change"),
    "nothing to reset": (["edit", "nightly", "--reset"], 1, "nothing to go back to"),
    "new arguments": (["edit", "nightly", "--arg", "nam=x", "--app", "shop"], 2, "nam"),
    "past": (["pause", "nightly", "--until", "2020-01-01T00:00Z"], 2, "is past already"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said_in_a_sentence(rowlock: Type, nightly: Typed, case: str) -> None:
    assert nightly.code == 0
    command, code, sentence = WRONG[case]

    said = rowlock("schedules", *command)

    assert (said.code, said.out) == (code, "")
    assert sentence in said.err


def test_arguments_of_a_known_task_are_what_its_worker_makes_of_them(rowlock: Type, app: Rowlock) -> None:
    added = rowlock(
        "schedules", "add", "n", "shop.greet", "--every", "5m", "--args", '{"name": "ada"}', "--app", "shop"
    )
    edited = rowlock("schedules", "edit", "n", "--arg", "name=bob", "--app", "shop", "--json")

    assert added.code == 0, added.err
    assert json.loads(edited.out)["schedule"]["args"] == {"name": "bob"}
    assert app.schedules.get("n").args == {"name": "bob"}


def test_every_policy_can_be_typed(rowlock: Type, app: Rowlock) -> None:
    options = [
        "--jitter",
        "30s",
        "--overlap",
        "allow",
        "--catch-up",
        "5",
        "--at-boot",
        "--queue",
        "q",
        "--priority",
        "3",
    ]
    more = ["--expires", "1h", "--attempts", "2", "--tag", "a", "--tag", "b"]

    said = rowlock("schedules", "add", "n", "t", "--every", "5m", *options, *more)

    schedule = app.schedules.get("n")
    assert said.code == 0, said.err
    assert (schedule.jitter.seconds, schedule.overlap, schedule.catch_up, schedule.at_boot) == (30, "allow", 5, True)
    assert (schedule.queue, schedule.priority, schedule.attempts, schedule.tags) == ("q", 3, 2, ("a", "b"))
    assert schedule.expires is not None


def declare(db: Db, name: str, **facts: Any) -> None:  # noqa: ANN401  columns
    """A schedule that a worker declared some time ago."""
    declared = {"name": name, "cron": facts["rule"], "tz": None, "every": None, "task": "shop.report", "args": "{}"}
    declared |= {"queue": facts.get("queue", "default"), "priority": 0, "attempts": 10, "expires": None, "tags": []}
    declared |= {"jitter": 0, "overlap": "skip", "catch_up": 1, "at_boot": False}
    db.execute(
        """
        insert into rowlock.schedules (name, cron, task, args, queue, priority, attempts, jitter, overlap, catch_up,
            at_boot, declared, next_at, created_at)
        values (%s, %s, 'shop.report', '{}', %s, 0, 10, '0', 'skip', 1, false, %s, now() + '1 hour', now())
        """,
        [name, facts["rule"], declared["queue"], json.dumps(declared)],
    )
