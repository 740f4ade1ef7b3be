"""`rowlock stats` and `rowlock workers`; and that no data, wherever it stands, can break a table."""

from __future__ import annotations

import json
import signal
import sys
from uuid import uuid4

import psycopg
import pytest
from psycopg.rows import TupleRow
from rich.cells import cell_len

from rowlock import Rowlock
from rowlock.store import workers as worker_store
from tests.cli.conftest import Type
from tests.cli.programs import Shop
from tests.cli.terminals import Terminal
from tests.cli.test_text import HOSTILE
from tests.depth import deep
from tests.engine import Engine
from tests.waiting import until

Db = psycopg.Connection[TupleRow]


@deep
def test_stats_are_watched_until_ctrl_c(shop: Shop, app: Rowlock, url: str) -> None:
    with Terminal("stats", "--watch", folder=shop.folder, env={"ROWLOCK_URL": url}) as terminal:
        terminal.sees("connections")
        app.queues.pause("seen-later")
        terminal.sees("seen-later")
        terminal.process.send_signal(signal.SIGINT)
        code = terminal.ended()

    assert code == 0
    assert "Traceback" not in terminal.screen


def test_stats_are_watched_in_a_pipe_without_a_word_to_the_terminal(shop: Shop, url: str) -> None:
    program = shop.start("stats", "--watch", env={"ROWLOCK_URL": url})
    until(lambda: program.output.count("last hour") > 1)
    program.signal(signal.SIGINT)
    code = program.ended()

    assert (code, program.errors) == (0, "")
    assert "\x1b" not in program.output


def test_stats_show_queues_workers_and_the_database(rowlock: Type, app: Rowlock, engine: Engine, db: Db) -> None:
    db.execute(
        "insert into rowlock.minutes values (date_trunc('minute', now()) - interval '20 min', gen_random_uuid(), "
        "'default', 'shop.greet', 12350, 12345, 2, 0, 0, 1, 1, 0, 0, 0, 0)"
    )
    app.enqueue("shop.greet")

    in_words = rowlock("stats")
    in_json = rowlock("stats", "--json")

    assert in_words.code == 0, in_words.err
    for words in ("queue", "default", "fleet", "rescued", "database", "connections", "vacuum of jobs"):
        assert words in in_words.out
    assert "last hour: 12,345 succeeded, 2 failed, 0 cancelled, 0 tried again" in in_words.out
    document = json.loads(in_json.out)
    assert document["last_hour"]["succeeded"] == 12345
    assert document.keys() == {"at", "window", "queues", "tasks", "fleet", "database", "unknown", "pauses", "last_hour"}
    assert document["queues"]["default"]["runnable"]["value"] == 1
    assert [worker["id"] for worker in document["fleet"]["workers"]] == [engine.worker]


def test_what_a_role_may_not_learn_is_a_question_mark_with_its_reason(
    rowlock: Type, app: Rowlock, db: Db, url: str
) -> None:
    app.enqueue("shop.greet")
    role = f"looker_{uuid4().hex}"
    for grant in (
        f"create role {role}",
        f"grant usage on schema rowlock to {role}",
        f"grant select on all tables in schema rowlock to {role}",
        f"grant execute on function rowlock.now() to {role}",
        f"revoke select on rowlock.minutes, rowlock.workers from {role}",
    ):
        db.execute(grant.encode())

    in_words, in_json, workers = (
        rowlock(*command, "--url", f"{url}&options=-crole%3D{role}")
        for command in (["stats"], ["stats", "--json"], ["workers"])
    )

    assert in_words.code == 0, in_words.err
    assert "?" in in_words.out
    assert "permission denied for table minutes" in in_words.out
    assert {"rates", "workers"} <= json.loads(in_json.out)["unknown"].keys()
    assert workers.is_one_sentence
    assert "the workers could not be read: permission denied" in workers.err


def test_workers_are_listed_with_what_they_hold(rowlock: Type, app: Rowlock, engine: Engine) -> None:
    app.enqueue("shop.greet")
    engine.claim(1)

    in_words = rowlock("workers")
    in_json = rowlock("workers", "--json")

    header, line = in_words.out.splitlines()
    assert header.split() == ["host", "pid", "held", "lease", "started", "queues", "version", "id"]
    assert line.split()[:3] == ["test", "1", "1/1"]
    [worker] = json.loads(in_json.out)["workers"]
    assert worker.keys() == {
        "id", "host", "pid", "queues", "slots", "held", "lease_left", "started_at", "version", "condition", "stuck",
        "blocked", "blocked_by", "restarts", "fault", "failing", "failing_since",
    }  # fmt: skip
    assert (worker["id"], worker["held"]) == (engine.worker, 1)


def test_what_is_stuck_is_shown_where_there_is_any(rowlock: Type, engine: Engine) -> None:
    engine.run(worker_store.tell(worker=engine.worker, stuck=3, stopping=False))

    header, line = rowlock("workers").out.splitlines()

    assert header.split()[:5] == ["host", "pid", "held", "lease", "stuck"]
    assert "3" in line.split()


def test_a_worker_that_began_anew_says_how_often_and_why(rowlock: Type, engine: Engine, db: Db) -> None:
    db.execute("update rowlock.workers set restarts = 2, fault = 'OSError: postgresql://u:canary@h/d is gone'")

    said = rowlock("workers").out

    assert "restarted 2 times in a row after an internal error: OSError: postgresql://u:***@h/d is gone" in said
    assert "canary" not in said + rowlock("workers", "--json").out + rowlock("doctor").out


def test_a_worker_that_tries_again_and_again_says_what_and_for_how_long(rowlock: Type, engine: Engine, db: Db) -> None:
    failing = "rowlock settle: job_settle failed (postgresql://u:canary@h/d)"
    db.execute("update rowlock.workers set failing = %s, failing_since = now() - interval '5 min'", [failing])

    said = rowlock("workers").out

    assert (
        "has been trying again and again for 5 min: rowlock settle: job_settle failed (postgresql://u:***@h/d" in said
    )
    assert "canary" not in said + rowlock("workers", "--json").out + rowlock("doctor").out


def test_no_worker_at_all_is_said_with_what_to_do(rowlock: Type) -> None:
    said = rowlock("workers")

    assert (said.code, said.out) == (0, "")
    assert "rowlock worker --app" in said.err


# Hostile data. PostgreSQL holds no NUL and no half characters.

NASTY = [text for text in HOSTILE if "\x00" not in text and "\ud800" not in text]
LOOKS = [
    ["jobs", "list"],
    ["jobs", "show", "{job}"],
    ["jobs", "show", "{ended}"],
    ["jobs", "events"],
    ["jobs", "delete", "--all", "--dry-run"],
    ["queues", "list"],
    ["queues", "show", "{nasty}"],
    ["tasks", "list"],
    ["workers"],
    ["stats"],
]


@pytest.fixture(params=NASTY, ids=ascii)
def nasty(request: pytest.FixtureRequest) -> str:
    text: str = request.param
    return text


@pytest.fixture
def ids(app: Rowlock, db: Db, nasty: str) -> dict[str, str]:
    """A live and an ended job, an event, a worker and pauses, with this text wherever text can stand."""
    error = json.dumps(
        {"type": nasty, "message": nasty, "traceback": nasty, "attempt": 1, "worker": None}
        | {"started_at": None, "ended_at": None}
    )
    facts = {"t": nasty, "args": json.dumps({nasty: nasty}), "error": error, "result": json.dumps(nasty)}
    [[job]] = db.execute(
        """
        insert into rowlock.jobs (id, queue, task, state, attempts, run_at, created_at, args, key, tags, waits_for,
            reason, errors, progress)
        values (rowlock.uuid7(), %(t)s, %(t)s, 'waiting', 1, now(), now(), %(args)s, %(t)s, array[%(t)s], 'code',
            %(t)s, array[%(error)s::json], json_build_object('share', 0.5, 'note', %(t)s, 'at', now()))
        returning id::text
        """,
        facts,
    ).fetchall()
    [[ended]] = db.execute(
        """
        insert into rowlock.history (id, queue, task, state, priority, failures, crashes, claims, attempts, run_at,
            created_at, ended_at, expires_on, args, result, key, tags, reason, errors)
        values (rowlock.uuid7(), %(t)s, %(t)s, 'failed', 0, 1, 0, 1, 1, now(), now(), now(), now() + '1 day', %(args)s,
            %(result)s, %(t)s, array[%(t)s], %(t)s, array[%(error)s::json])
        returning id::text
        """,
        facts,
    ).fetchall()
    db.execute(
        "insert into rowlock.events (kind, job, actor, details) values (%(t)s, %(job)s, %(t)s, %(args)s)",
        facts | {"job": job},
    )
    db.execute("insert into rowlock.pauses values ('queue', %(t)s, null, %(t)s, %(t)s, now())", facts)
    db.execute("insert into rowlock.pauses values ('task', %(t)s, null, %(t)s, %(t)s, now())", facts)
    db.execute(
        """
        insert into rowlock.workers (id, host, pid, queues, slots, tasks, version, started_at, lease, lasts)
        values (gen_random_uuid(), %(t)s, 1, array[%(t)s], 1, '{}', %(t)s, now(), now() + '1 minute', '1 minute')
        """,
        facts,
    )
    return {"job": job, "ended": ended, "nasty": nasty}


@deep
def test_no_data_can_break_or_repaint_what_a_command_prints(
    rowlock: Type, ids: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for look in LOOKS:
        command = [word.format(**ids) for word in look]
        for width in ("60", "200"):
            monkeypatch.setenv("COLUMNS", width)

            said = rowlock(*command)

            assert said.code == 0, (look, said.err)
            assert said.out
            assert all(line.isprintable() or line.replace("\t", " ").isprintable() for line in said.out.split("\n"))
            if look[:2] != ["jobs", "show"]:  # whose arguments and tracebacks are shown as long as they are
                assert max(map(cell_len, said.out.split("\n"))) <= int(width), look


def test_no_data_can_break_json(rowlock: Type, ids: dict[str, str]) -> None:
    for look in LOOKS:
        said = rowlock(*(word.format(**ids) for word in look), "--json")

        assert said.code == 0, (look, said.err)
        assert said.out.isascii()
        assert any(ids["nasty"] in text for text in _texts(json.loads(said.out))), look


def _texts(document: object) -> list[str]:
    """Every text in a document, names and values."""
    match document:
        case str():
            return [document]
        case dict():
            return [text for name, value in document.items() for text in (name, *_texts(value))]
        case list():
            return [text for value in document for text in _texts(value)]
        case _:
            return []


def test_numbers_that_python_cannot_hold_do_not_break_json(rowlock: Type, db: Db) -> None:
    db.execute("select rowlock.enqueue('t', %s)", ['{"big": 1e999, "long": ' + "9" * 5000 + "}"])

    said = rowlock("jobs", "list", "--json")

    [job] = json.loads(said.out, parse_constant=lambda word: sys.exit(f"{word} is no JSON"))["jobs"]
    assert job["task"] == "t"
