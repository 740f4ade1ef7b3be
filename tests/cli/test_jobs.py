"""`rowlock jobs list`, `show`, `enqueue` and `events`: what they find, how it reads, and what they refuse."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from uuid import uuid4

import click
import psycopg
import pytest
from psycopg.rows import TupleRow

from rowlock import Rowlock
from rowlock.cli.program import program
from rowlock.model.outcome import Failed, Succeeded
from tests.cli.conftest import Type
from tests.cli.programs import Shop
from tests.engine import Engine
from tests.rows import put
from tests.workflow.remembering import put_step, put_workflow

Db = psycopg.Connection[TupleRow]

FAILURE = json.dumps(
    {"type": "builtins.ConnectionError", "message": "bank is away", "traceback": "Traceback: the bank"}
)


@dataclass(frozen=True)
class World:
    """One job of each kind, by id."""

    failed: str
    succeeded: str
    running: str
    ready: str
    delayed: str


@pytest.fixture
def world(app: Rowlock, engine: Engine) -> World:
    made = [
        app.call("shop.charge", order=7, by="card"),
        app.call("shop.greet", name="Ada"),
        app.call("shop.linger"),
    ]
    failed, succeeded, running = (str(job.id) for job in app.enqueue_many(made))
    first, second, _held = engine.claim(3)
    engine.settle(first, outcome=Failed(FAILURE, "exhausted"))
    engine.settle(second, outcome=Succeeded('"hello Ada"'))
    ready = app.task(name="shop.mail", queue="mail")(mail).using(key="k", tags=["slow"], priority=3).enqueue(to="Eve")
    delayed = app.tasks.get("shop.mail").using(delay=timedelta(hours=2)).enqueue(to="Bob")  # type: ignore[union-attr]
    return World(failed, succeeded, running, str(ready.id), str(delayed.id))


def mail(to: str) -> None:
    """Nothing: nobody runs it."""


def listed(rowlock: Type, *options: str) -> list[str]:
    """The ids that `jobs list` finds with these options."""
    said = rowlock("jobs", "list", "--json", *options)
    assert said.code == 0, said.err
    return [job["id"] for job in json.loads(said.out)["jobs"]]


# list


def test_jobs_are_listed_newest_first_with_what_one_wants_to_know(rowlock: Type, world: World) -> None:
    said = rowlock("jobs", "list")

    header, *lines = said.out.splitlines()
    assert said.code == 0, said.err
    assert header.split() == ["id", "state", "task", "queue", "created", "tries", "note"]
    assert [line.split()[0] for line in lines] == [
        world.delayed,
        world.ready,
        world.running,
        world.succeeded,
        world.failed,
    ]
    assert [line.split()[1] for line in lines] == ["ready", "ready", "running", "succeeded", "failed"]
    assert "due in 2 h" in lines[0]
    assert "since" in lines[2]
    assert "builtins.ConnectionError: bank is away; exhausted" in lines[4]
    assert "  1/10" in lines[3]  # it succeeded in its first attempt


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (["--state", "failed"], ["failed"]),
        (["--state", "failed", "--state", "running"], ["running", "failed"]),
        (["--queue", "mail"], ["delayed", "ready"]),
        (["--task", "shop.greet"], ["succeeded"]),
        (["--tag", "slow"], ["ready"]),
        (["--key", "k"], ["ready"]),
        (["--arg", "order=7"], ["failed"]),
        (["--arg", "order=7", "--arg", "by=card"], ["failed"]),
        (["--arg", 'order="7"'], []),
        (["--error", "ConnectionError"], ["failed"]),
        (["--reason", "exhausted"], ["failed"]),
        (["--since", "1h"], ["delayed", "ready", "running", "succeeded", "failed"]),
        (["--until", "1h"], []),
        (["--since", "2020-01-01T00:00Z", "--until", "2020-02-01T00:00Z"], []),
        (["--queue", "mail", "--state", "running"], []),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_every_filter_finds_what_it_names(rowlock: Type, world: World, options: list[str], found: list[str]) -> None:
    assert listed(rowlock, *options) == [getattr(world, name) for name in found]


def test_ids_are_a_filter_too(rowlock: Type, world: World) -> None:
    assert listed(rowlock, world.ready, world.failed) == [world.ready, world.failed]
    assert listed(rowlock, world.ready, world.failed, "--state", "failed") == [world.failed]
    assert listed(rowlock, str(uuid4())) == []


def test_pages_follow_one_another_by_the_command_that_each_one_prints(rowlock: Type, world: World) -> None:
    everything = listed(rowlock)

    seen, command = [], ["jobs", "list", "--limit", "2"]
    while command:
        said = rowlock(*command)
        seen += [line.split()[0] for line in said.out.splitlines()[1:]]
        more = re.search(r"^more: rowlock (.*)$", said.err, re.MULTILINE)
        command = shlex.split(more[1]) if more else []

    assert seen == everything
    assert len(seen) == 5


def test_the_json_of_a_list_is_one_document_with_stable_keys(rowlock: Type, world: World) -> None:
    said = rowlock("jobs", "list", "--json", "--limit", "1")

    document = json.loads(said.out)
    assert said.err == ""
    assert document.keys() == {"jobs", "next"}
    assert document["next"] == world.delayed
    assert {"id", "task", "queue", "state", "run_at", "created_at", "args", "errors"} <= document["jobs"][0].keys()


def test_of_ended_jobs_since_is_told_from_ended_since(rowlock: Type, world: World) -> None:
    by_creation = rowlock("jobs", "list", "--state", "failed", "--since", "1h")
    by_end = rowlock("jobs", "list", "--state", "failed", "--ended-since", "1h")
    counted = rowlock("jobs", "failures", "--since", "1h")

    hint = "--since is when jobs were created; for when they ended, say --ended-since\n"
    assert (by_creation.err, by_end.err, counted.err.startswith(hint)) == (hint, "", True)


def test_an_empty_list_is_an_answer(rowlock: Type) -> None:
    in_words = rowlock("jobs", "list")
    in_json = rowlock("jobs", "list", "--json")

    assert (in_words.code, in_words.out, in_words.err) == (0, "", "no job matches\n")
    assert (in_json.code, json.loads(in_json.out)) == (0, {"jobs": [], "next": None})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["not-an-id"], "is not the id of a job"),
        (["--state", "done"], "'done' is not one of"),
        (["--arg", "order"], "write NAME=VALUE"),
        (["--arg", "a=1", "--arg", "a=2"], "'a' is given twice"),
        (["--since", "yesterday"], "is not a time; write a length of time, 2h or 3d, or 2026-03-01T08:00Z"),
        (["--since", "2026-03-01"], "has no time zone"),
        (["--since", "1h", "--until", "2h"], "between them there is nothing"),
        (["--limit", "0"], "0 is not in the range"),
        (["--before", "x"], "id 'x' is not a UUID"),
        (["--queue", ""], "use 1 to 200"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_filter_is_wrong_usage(rowlock: Type, options: list[str], words: str) -> None:
    said = rowlock("jobs", "list", *options)

    assert said.code == 2
    assert words in said.err
    assert said.out == ""


@pytest.mark.parametrize(
    "text",
    [
        "'; drop table rowlock.jobs; --",
        "%s %(x)s :name",
        "{} {0}",
        "$(id)",
        '"',
        "\\",
        "\x1b[2J",
        "\u202e",
        "a\nb",
        "ü😀",
    ],
    ids=ascii,
)
def test_what_is_typed_is_data_and_nothing_else(rowlock: Type, app: Rowlock, db: Db, text: str) -> None:
    db.execute(
        "select rowlock.enqueue(%(t)s, json_build_object(%(t)s::text, %(t)s::text), queue => %(t)s, key => %(t)s,"
        " tags => array[%(t)s])",
        {"t": text},
    )
    app.enqueue("innocent")

    by_each = [listed(rowlock, option, text) for option in ("--task", "--queue", "--tag", "--key")]
    by_argument = listed(rowlock, "--arg", f"{text}={json.dumps(text)}")
    by_others = [listed(rowlock, option, text) for option in ("--error", "--reason")]
    deleted = rowlock("jobs", "delete", "--task", text, "--yes", "--by", text, "--why", text)

    assert [len(found) for found in (*by_each, by_argument)] == [1] * 5
    assert by_others == [[], []]
    assert deleted.code == 0, deleted.err
    assert deleted.out == "deleted 1 job\n"
    assert db.execute("select task from rowlock.jobs").fetchall() == [("innocent",)]
    assert db.execute("select actor, details ->> 'why' from rowlock.events").fetchall() == [(text, text)]


# Parts of ids


def test_in_a_narrow_terminal_the_error_is_there_and_ids_are_their_ends(
    rowlock: Type, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")

    failed = rowlock("jobs", "list", "--state", "failed").out.splitlines()
    every = rowlock("jobs", "list").out.splitlines()

    assert failed[0].split() == ["id", "task", "queue", "ended", "tries", "note"]
    assert every[0].split()[:2] == ["id", "state"]
    assert every[0].split()[-1] == "note"
    assert failed[1].split()[:2] == [world.failed[-8:], "shop.charge"]
    assert "builtins.ConnectionE" in failed[1]
    assert max(map(len, [*failed, *every])) <= 80


def test_in_a_narrow_terminal_events_name_their_job(
    rowlock: Type, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    rowlock("jobs", "reprioritise", "--to", "2", world.ready, "--yes", "--by", "ada")
    monkeypatch.setenv("COLUMNS", "80")

    head, line = rowlock("jobs", "events").out.splitlines()

    assert {"job", "details"} <= {*head.split()}
    assert world.ready[-8:] in line.split()
    assert len(line) <= 80


def taking_ids() -> Iterator[tuple[str, ...]]:
    """The commands that take the id of a job."""
    for path, command in every_command(program):
        if {"ids", "job_id", "target"} & {one.name for one in command.params if isinstance(one, click.Argument)}:
            yield path


def every_command(group: click.Group, *path: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from every_command(command, *path, name)
        else:
            yield (*path, name), command


# What else these commands have to be told.
NEEDED: dict[tuple[str, ...], list[str]] = {
    ("jobs", "cancel"): ["--yes"],
    ("jobs", "delete"): ["--yes"],
    ("jobs", "edit"): ["--arg", "a=1"],
    ("jobs", "move"): ["--to", "mail", "--yes"],
    ("jobs", "reprioritise"): ["--to", "3", "--yes"],
    ("jobs", "retry"): ["--yes"],
    ("jobs", "run-next"): ["--yes"],
    ("workflows", "fork"): ["--from-step", "reserve"],
    ("workflows", "signal"): ["approved"],
}


@pytest.mark.parametrize("command", [*taking_ids()], ids=" ".join)
def test_a_part_of_an_id_is_enough(rowlock: Type, db: Db, command: tuple[str, ...]) -> None:
    others = [put_workflow(db) for _ in range(2)]
    meant = put_workflow(db, "waiting")
    put_step(db, meant, "reserve")

    said = rowlock(*command, str(meant)[-8:], *NEEDED.get(command, []), "--json")

    assert said.code != 2, said.err
    assert "no job's id" not in said.err
    assert not [other for other in others if str(other) in said.out + said.err]


def test_a_part_that_fits_several_ids_lists_them(rowlock: Type, world: World) -> None:
    ambiguous = rowlock("jobs", "show", f"{world.failed[:13]}…")  # as cut off
    none = rowlock("jobs", "show", "ffffffff")
    short = rowlock("jobs", "show", "abc")

    assert ambiguous.is_one_sentence
    assert world.succeeded in ambiguous.err
    assert world.failed in ambiguous.err
    assert none.code == 3
    assert "4 or more digits" in short.err
    assert short.code == 2


# show


def test_show_tells_everything_about_a_job(rowlock: Type, world: World) -> None:
    rowlock("jobs", "retry", world.failed, "--yes", "--by", "ada", "--why", "the bank is back")

    said = rowlock("jobs", "show", world.failed)

    assert said.code == 0, said.err
    for words in (
        world.failed,
        "shop.charge",
        "0 of 10, 1 claim, 0 crashes",
        '"order": 7',
        "builtins.ConnectionError",
        "Traceback: the bank",
        "retried",
        "the bank is back",
    ):
        assert words in said.out
    assert re.search(r"^created +\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ \(.*(ago|now)\)", said.out, re.MULTILINE)


def test_show_gives_the_result_of_a_job_that_succeeded(rowlock: Type, world: World) -> None:
    in_words = rowlock("jobs", "show", world.succeeded)
    in_json = rowlock("jobs", "show", world.succeeded, "--json")

    assert '"hello Ada"' in in_words.out
    assert json.loads(in_json.out)["job"]["result"] == "hello Ada"
    assert json.loads(in_json.out).keys() == {"job", "events"}


def test_secrets_are_masked_unless_they_are_asked_for(rowlock: Type, db: Db) -> None:
    address = "https://ann:canary@bank.example/pay"
    job = put(db, "failed", task="pay", args={"url": address}, error="OSError", reason="exhausted")
    db.execute(
        """with changed as (
            update rowlock.history
            set result = args,
                errors = array[replace(errors[1]::text, '"no"', (args -> 'url')::text)::json]
        )
        insert into rowlock.events (kind, job, actor, details)
            select 'edited', id, 'ann', json_build_object('before', args) from rowlock.history""",
    )
    commands = [("jobs", "show", job), ("jobs", "list"), ("jobs", "events", job), ("explain", job)]

    shown = [rowlock(*map(str, command), *how) for command in commands for how in ((), ("--json",))]
    revealed = [rowlock(*map(str, command), "--reveal", "--json").out for command in commands[:-1]]

    assert [said.err for said in shown if said.code or "canary" in said.out] == []
    assert [text for text in revealed if "canary" not in text] == []


def test_secrets_are_masked_in_schedules_workflows_previews_and_pauses_too(rowlock: Type, app: Rowlock, db: Db) -> None:
    address = "https://ann:canary@bank.example/pay"
    app.schedules.add("nightly", app.call("pay", url=address), "@daily", why=f"for {address}")
    app.queues.pause("mail", why=f"{address} is away")
    app.tasks.pause("pay", why=f"{address} is away")
    put(db, "failed", task="flow", version=1, reason=f"{address} said no")
    put(db, "ready", task="pay", queue="mail", args={"url": address})
    revealing = [("schedules", "show", "nightly"), ("schedules", "list"), ("workflows", "list")]
    others = [
        ("stats",),
        ("queues", "list"),
        ("queues", "show", "mail"),
        ("tasks", "list"),
        ("jobs", "cancel", "--all", "--dry-run"),
    ]

    shown = [rowlock(*command, *how) for command in (*revealing, *others) for how in ((), ("--json",))]
    revealed = [rowlock(*command, "--reveal", "--json").out for command in revealing]

    assert [said for said in shown if said.code or "canary" in said.out] == []
    assert [text for text in revealed if "canary" not in text] == []


def test_secrets_are_masked_in_what_changes_of_schedules_and_the_doctor_say(
    rowlock: Type, app: Rowlock, db: Db
) -> None:
    address = "https://ann:canary@bank.example/pay"
    app.tasks.pause("pay", why=f"{address} is away")
    db.execute("update rowlock.pauses set at = at - interval '2 days'")
    changes = [
        ("add", "nightly", "pay", "--cron", "@daily", "--arg", f"url={address}"),
        ("edit", "nightly", "--queue", "slow", "--why", address),
        ("pause", "nightly", "--why", f"{address} is away"),
        ("resume", "nightly"),
        ("remove", "nightly"),
    ]

    changed = [rowlock("schedules", *change, "--json") for change in changes]
    examined = [rowlock("doctor", *how) for how in ((), ("--json",))]

    assert [said for said in changed if said.code or "canary" in said.out or "bank" not in said.out] == []
    assert [said for said in examined if "canary" in said.out or "is away" not in said.out] == []


def test_times_in_events_are_in_utc_to_the_second_as_all_others(rowlock: Type, db: Db) -> None:
    details = json.dumps({"run_at": "2026-11-19T02:06:36.791836+02:00", "why": "since 2026-11-19"})
    db.execute("insert into rowlock.events (kind, actor, details) values ('cancelled', 'ann', %s)", [details])

    said = rowlock("jobs", "events")

    assert "run_at 2026-11-19T00:06:36Z, why since 2026-11-19" in said.out


def test_a_job_that_does_not_exist_is_exit_code_3(rowlock: Type) -> None:
    missing = str(uuid4())

    said = rowlock("jobs", "show", missing)

    assert said.code == 3
    assert said.out == ""
    assert missing in said.err
    assert said.err.count("\n") == 1


# enqueue


def test_a_workflow_is_enqueued_with_the_version_behind_its_name(rowlock: Type, db: Db) -> None:
    made = rowlock("jobs", "enqueue", "shop.checkout@2", "--arg", "order=7")
    wrong = rowlock("jobs", "enqueue", "shop.checkout@x")

    assert (made.code, wrong.code) == (0, 2)
    assert "contains '@'" in wrong.err
    assert db.execute("select task, version, attempts, args from rowlock.jobs").fetchall() == [
        ("shop.checkout", 2, 1, {"order": 7})
    ]


def test_a_job_can_be_enqueued_by_name_alone(rowlock: Type, db: Db) -> None:
    said = rowlock(
        *("jobs", "enqueue", "no.such_task", "--arg", "n=3", "--arg", "name=Ada", "--arg", 'text="3"'),
        *("--queue", "mail", "--priority", "2", "--delay", "2h", "--key", "k", "--tag", "a", "--tag", "b"),
    )

    rows = db.execute(
        """
        select id::text, task, queue, priority, key, tags, args, run_at - created_at > '1 hour 59 minutes'
        from rowlock.jobs
        """
    ).fetchall()
    args = {"n": 3, "name": "Ada", "text": "3"}
    assert said.code == 0, said.err
    assert rows == [(said.out.strip(), "no.such_task", "mail", 2, "k", ["a", "b"], args, True)]


def test_arguments_can_be_given_as_one_json_object(rowlock: Type, db: Db) -> None:
    said = rowlock("jobs", "enqueue", "t", "--args", '{"n": [1, {"x": null}]}', "--json")

    document = json.loads(said.out)
    assert document == {"id": document["id"], "task": "t", "queue": "default", "created": True}
    assert db.execute("select args from rowlock.jobs").fetchall() == [({"n": [1, {"x": None}]},)]


def test_with_an_app_the_task_gives_its_defaults_and_its_arguments_must_fit(rowlock: Type, shop: Shop, db: Db) -> None:
    shop.write(
        "post.py",
        "from datetime import date\nfrom rowlock import Rowlock\napp = Rowlock()\n\n"
        "@app.task(queue='post')\ndef send(to: str, on: date, copies: int = 1) -> None: ...\n",
    )

    fits = rowlock("jobs", "enqueue", "post.send", "--app", "post", "--arg", "to=Ada", "--arg", "on=2026-03-01")
    wrong = rowlock("jobs", "enqueue", "post.send", "--app", "post", "--arg", "to=Ada", "--arg", "on=never")
    missing = rowlock("jobs", "enqueue", "post.send", "--app", "post", "--arg", "to=Ada")
    unknown = rowlock("jobs", "enqueue", "post.sned", "--app", "post")

    assert fits.code == 0, fits.err
    assert db.execute("select queue, args from rowlock.jobs").fetchall() == [
        ("post", {"to": "Ada", "on": "2026-03-01"})
    ]
    assert (wrong.code, missing.code, unknown.code) == (2, 2, 1)
    assert "on" in wrong.err
    assert "on" in missing.err
    assert "did you mean post.send?" in unknown.err


def test_a_key_that_is_held_answers_the_job_that_holds_it(rowlock: Type) -> None:
    first = rowlock("jobs", "enqueue", "t", "--key", "k")
    second = rowlock("jobs", "enqueue", "t", "--key", "k")

    assert first.out == second.out
    assert second.code == 0
    assert "nothing was enqueued" in second.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--args", "[1]"], "must be a JSON object"),
        (["--args", "{"], "is no JSON"),
        (["--args", "{}", "--arg", "a=1"], "not both"),
        (["--delay", "1h", "--run-at", "2026-03-01T08:00Z"], "not both"),
        (["--queue", "a,b"], "contains '*', ',' or '='"),
        (["--priority", "9"], "9 is not in the range"),
        (["--tag", ""], "use 1 to 100"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_job_that_cannot_be_is_wrong_usage(rowlock: Type, db: Db, options: list[str], words: str) -> None:
    said = rowlock("jobs", "enqueue", "t", *options)

    assert said.code == 2
    assert words in said.err
    assert db.execute("select from rowlock.jobs").fetchall() == []


# events


def test_events_come_in_pages_too(rowlock: Type, world: World) -> None:
    for priority in ("1", "2", "3"):
        rowlock("jobs", "reprioritise", "--to", priority, world.ready, "--yes", "--by", "ada")

    seen, command = [], ["jobs", "events", world.ready, "--limit", "1", "--json"]
    while command:
        document = json.loads(rowlock(*command).out)
        seen += document["events"]
        command = [*command[:6], "--before", document["next"]] if document["next"] else []
    in_words = rowlock("jobs", "events", "--limit", "2")

    assert [event["kind"] for event in seen] == ["reprioritised"] * 3
    assert len({event["id"] for event in seen}) == 3
    assert {event["actor"] for event in seen} == {"ada"}
    assert len(in_words.out.splitlines()) == 3
    assert "more: rowlock jobs events --limit 2 --before" in in_words.err


def test_failures_are_counted_by_task_and_error_and_show_no_secret(rowlock: Type, db: Db) -> None:
    # Without its digits nobody would know it for a key.
    secrets = [f"AKIA12345678901{name}" for name in ("HORSE", "STAPL", "BATTE")]
    messages = [f"order {n}: cannot log in with {secret}" for n, secret in enumerate(secrets)]
    errors = [json.dumps({"type": "PermissionError", "message": message, "attempt": 1}) for message in messages]
    *_, last = [put(db, "failed", task="shop.charge", errors=[error]) for error in errors]

    table = rowlock("jobs", "failures", "--ended-since", "1h")
    in_json = json.loads(rowlock("jobs", "failures", "--json").out)
    revealed = rowlock("jobs", "failures", "--json", "--reveal")
    bounded = rowlock("jobs", "failures", "--most", "2")

    assert table.out.splitlines()[0].split() == ["jobs", "task", "error", "first", "last", "latest", "job"]
    assert "3  shop.charge  PermissionError: order #: cannot log in with ***" in table.out
    assert str(last)[-8:] in table.out
    assert (in_json["groups"][0]["count"], in_json["groups"][0]["example"], in_json["back_to"]) == (3, str(last), None)
    assert "order 2: cannot log in with ***" in in_json["groups"][0]["message"]
    assert secrets[-1] in revealed.out
    assert "counted the 2 failed jobs that ended last, back to" in bounded.err
    assert rowlock("jobs", "failures", "--task", "none").err == "no job that has failed matches\n"
    assert rowlock("jobs", "failures", "--state", "ready").code == 2
