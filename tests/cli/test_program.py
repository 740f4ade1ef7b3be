"""`rowlock` as a whole: help, exit codes, completion, pipes, and the words for what is not there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import click
import psycopg
import pytest
from psycopg.rows import TupleRow

from rowlock import Rowlock
from rowlock.cli.program import program
from tests.cli.conftest import Type
from tests.cli.programs import Shop
from tests.depth import deep
from tests.waiting import until

Db = psycopg.Connection[TupleRow]

WITHOUT_JSON = {"completion", "demo", "worker"}  # a script, a show, and what runs until it is told to stop


def commands(
    group: click.Group = program, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command that does something, as it is typed."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


EVERY = dict(commands())


def test_one_command_is_run_without_the_code_of_the_others() -> None:
    asked = "import sys, rowlock.cli.program as p; p.program.commands['jobs']; print(*sorted(sys.modules))"

    loaded = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout.split()

    assert "rowlock.cli.jobs.change" in loaded
    assert {"rowlock.cli.worker", "rowlock.cli.dashboard", "rowlock.cli.bench", "rich"}.isdisjoint(loaded)


@pytest.mark.parametrize("path", EVERY, ids=" ".join)
def test_every_command_has_help_that_ends_with_its_exit_codes(typed: Type, path: tuple[str, ...]) -> None:
    said = typed(*path, "--help")

    assert said.code == 0
    assert f"Usage: rowlock {' '.join(path)}" in said.out
    assert "Exit codes: 0 " in said.out
    assert said.err == ""


def test_every_command_that_answers_has_json() -> None:
    without = {path for path, command in EVERY.items() if all(option.name != "as_json" for option in command.params)}

    assert {path[0] for path in without} <= WITHOUT_JSON | {"config"}


def test_help_is_shown_without_loading_what_draws() -> None:
    code = (
        "import sys\nfrom rowlock.cli import main\n"
        "try:\n    main(['jobs', '--help'])\nexcept SystemExit:\n    pass\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules} & {'rich', 'asyncpg', 'sqlalchemy', 'django'}))"
    )

    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert said.stdout.splitlines()[-1] == ""


# The words for what is not there

LOOKS = [
    ("jobs", "list"),
    ("jobs", "failures"),
    ("jobs", "show", "0198c0de-0000-7000-8000-000000000001"),
    ("jobs", "enqueue", "t"),
    ("jobs", "events"),
    ("jobs", "retry", "--all", "--yes"),
    ("queues", "list"),
    ("queues", "show", "mail"),
    ("queues", "pause", "mail"),
    ("tasks", "list"),
    ("tasks", "resume", "t"),
    ("workers",),
    ("stats",),
]


@pytest.mark.parametrize("command", LOOKS, ids=" ".join)
def test_a_database_without_our_schema_is_a_sentence_that_says_what_to_run(
    typed: Type, database_url: str, command: tuple[str, ...]
) -> None:
    said = typed(*command, "--url", database_url)

    assert said.is_one_sentence, said
    assert "run: rowlock migrate" in said.err


@pytest.mark.parametrize("command", LOOKS, ids=" ".join)
def test_a_database_that_is_down_is_a_sentence(typed: Type, command: tuple[str, ...]) -> None:
    said = typed(*command, "--url", "postgresql://me:secret@localhost:1/none")

    assert said.is_one_sentence, said
    assert "cannot reach the database postgresql://me:***@localhost:1/none" in said.err
    assert "secret" not in said.err


@pytest.mark.parametrize("command", [("jobs", "list"), ("stats",), ("bench",)], ids=" ".join)
def test_no_database_and_no_app_are_sentences(typed: Type, command: tuple[str, ...]) -> None:
    no_database = typed(*command)
    no_app = typed(*command, "--app", "nothing")

    assert no_database.is_one_sentence, no_database
    assert "--url URL" in no_database.err
    assert no_app.is_one_sentence, no_app
    assert "there is no module 'nothing'" in no_app.err


# Completion


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_the_shell(typed: Type, shell: str) -> None:
    said = typed("completion", shell)

    assert said.code == 0
    assert "_ROWLOCK_COMPLETE" in said.out


def test_the_script_is_one_that_bash_can_read(typed: Type) -> None:
    script = typed("completion", "bash").out

    read = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, check=False)

    assert (read.returncode, read.stderr) == (0, "")


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("rowlock jo", "jobs"),
        ("rowlock jobs re", "retry"),
        ("rowlock jobs run", "run-next"),
        ("rowlock jobs list --state fa", "failed"),
        ("rowlock jobs list --qu", "--queue"),
    ],
)
def test_commands_options_and_states_are_completed(shop: Shop, words: str, found: str) -> None:
    asked = {"_ROWLOCK_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}

    said = subprocess.run(
        [sys.executable, "-P", "-c", "from rowlock.cli import main; main()"],
        env={**os.environ, **asked},
        capture_output=True,
        text=True,
        check=False,
    )

    assert f"plain,{found}" in said.stdout.splitlines()


# Pipes and signals


@pytest.mark.parametrize("form", [(), pytest.param(("--json",), marks=deep)], ids=["words", "json"])
def test_a_reader_that_has_seen_enough_ends_it_quietly(
    shop: Shop, app: Rowlock, url: str, form: tuple[str, ...]
) -> None:
    app.enqueue_many(app.call("a.task.with.a.name", text="x" * 500) for _ in range(1_000))
    environment = {**os.environ, "ROWLOCK_URL": url}
    command = [sys.executable, "-P", "-m", "rowlock", "jobs", "list", "--limit", "1000", *form]
    process = subprocess.Popen(
        command, cwd=shop.folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stderr is not None

    with process:
        process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read()

    assert "Traceback" not in said
    assert "Exception" not in said
    assert "Broken pipe" not in said


def test_ctrl_c_ends_a_command_quietly_with_130(shop: Shop, app: Rowlock, url: str, db: Db) -> None:
    with db.transaction():
        db.execute("lock table rowlock.jobs in access exclusive mode")  # so that it waits
        program = shop.start("jobs", "list", env={"ROWLOCK_URL": url})
        with psycopg.connect(url, autocommit=True) as other:
            until(
                lambda: other.execute("select from pg_locks where not granted").fetchall(), what="a command that waits"
            )

        program.signal(signal.SIGINT)
        code = program.ended()

    assert code == 130
    assert program.out == []
    assert program.err == []


@deep
def test_the_terminal_is_asked_for_its_width(shop: Shop, app: Rowlock, url: str) -> None:
    app.enqueue("a_task_with_a_name_that_goes_on_and_on_and_on_until_it_fits_no_terminal_at_all")

    narrow = shop.run("jobs", "list", env={"ROWLOCK_URL": url, "COLUMNS": "60"})
    piped = shop.run("jobs", "list", env={"ROWLOCK_URL": url, "COLUMNS": ""})

    assert max(map(len, narrow.out)) <= 60
    assert "…" in narrow.output
    assert "no_terminal_at_all" in piped.output
    assert "\x1b" not in piped.output


def test_json_is_one_document_in_every_encoding(shop: Shop, app: Rowlock, url: str) -> None:
    app.enqueue("grüße", naïve="😀")

    latin = shop.run("jobs", "list", env={"ROWLOCK_URL": url, "PYTHONIOENCODING": "ascii"})
    document = shop.run("jobs", "list", "--json", env={"ROWLOCK_URL": url, "PYTHONIOENCODING": "ascii"})

    assert latin.process.returncode == 0, latin.errors
    assert r"gr\xfc\xdfe" in latin.output
    assert json.loads(document.output)["jobs"][0]["args"] == {"naïve": "😀"}
