"""The bulk verbs: what they change, how they ask, and how they are interrupted and go on."""

from __future__ import annotations

import json
import re
import shlex
import signal
from uuid import uuid4

import psycopg
import pytest
from psycopg.rows import TupleRow

from rowlock import Rowlock
from rowlock.model.outcome import Failed
from tests.cli.conftest import Type
from tests.cli.programs import Shop
from tests.cli.terminals import Terminal
from tests.depth import deep
from tests.engine import Engine
from tests.waiting import until

Db = psycopg.Connection[TupleRow]

VERBS = [["retry"], ["cancel"], ["delete"], ["move", "--to", "mail"], ["reprioritise", "--to", "3"], ["run-next"]]


@pytest.fixture
def ready(app: Rowlock) -> list[str]:
    """Three jobs that nobody has claimed."""
    return [str(job.id) for job in app.enqueue_many(app.call("shop.greet", n=n) for n in range(3))]


@pytest.fixture
def failed(ready: list[str], engine: Engine) -> list[str]:
    """Three jobs that have failed."""
    engine.settle(*engine.claim(3), outcome=Failed('{"type": "E", "message": ""}', "exhausted"))
    return ready


def states(db: Db) -> dict[str, str]:
    """The state of every job, by id."""
    return dict(
        db.execute(
            "select id::text, state from rowlock.jobs union all select id::text, state from rowlock.history"
        ).fetchall()
    )


def test_retry_makes_failed_jobs_ready_again(rowlock: Type, failed: list[str], db: Db) -> None:
    said = rowlock("jobs", "retry", "--state", "failed", "--yes")

    assert (said.code, said.out) == (0, "retried 3 jobs\n")
    assert states(db) == dict.fromkeys(failed, "ready")


def test_a_verb_that_changes_ended_jobs_tells_since_from_ended_since(rowlock: Type, failed: list[str]) -> None:
    looking = rowlock("jobs", "retry", "--since", "1h", "--dry-run")
    by_end = rowlock("jobs", "retry", "--since", "1h", "--ended-since", "1h", "--dry-run")
    of_live = rowlock("jobs", "cancel", "--since", "1h", "--yes")
    doing = rowlock("jobs", "retry", "--since", "1h", "--yes")

    assert looking.err == doing.err == "--since is when jobs were created; for when they ended, say --ended-since\n"
    assert (by_end.err, of_live.err) == ("", "no job was changed\n")
    assert doing.out == f"retried {len(failed)} jobs\n"


def test_cancel_ends_what_has_not_started_and_marks_what_runs(
    rowlock: Type, ready: list[str], engine: Engine, db: Db
) -> None:
    [running] = engine.claim(1)

    said = rowlock("jobs", "cancel", "--task", "shop.greet", "--yes")

    assert (said.code, said.out) == (0, "cancelled 3 jobs\n")
    assert states(db) == dict.fromkeys(ready, "cancelled") | {running.id: "running"}
    assert "cancelling" in rowlock("jobs", "list").out
    assert "running, cancelling" in rowlock("jobs", "show", running.id).out


def test_of_one_job_one_is_told_whether_it_was_cancelled(rowlock: Type, ready: list[str], engine: Engine) -> None:
    first, second = engine.claim(2)
    [waiting] = set(ready) - {first.id, second.id}
    engine.settle(second)

    told = [rowlock("jobs", "cancel", job, "--yes") for job in (waiting, first.id, second.id, str(uuid4()))]

    assert [(said.code, said.out) for said in told[:2]] == [(0, "cancelled 1 job\n")] * 2
    assert "its handler is told to stop" in told[1].err
    assert (told[2].code, told[2].err) == (3, f"too late: job {second.id} has ended as succeeded\n")
    assert told[3].code == 3
    assert "no job" in told[3].err


def test_delete_leaves_nothing_of_the_jobs_that_were_named(rowlock: Type, ready: list[str], db: Db) -> None:
    said = rowlock("jobs", "delete", ready[0], ready[2], "--yes")

    assert (said.code, said.out) == (0, "deleted 2 jobs\n")
    assert states(db) == {ready[1]: "ready"}


def test_move_reprioritise_and_run_next_change_where_jobs_stand(rowlock: Type, ready: list[str], db: Db) -> None:
    moved = rowlock("jobs", "move", "--to", "mail", ready[0], "--yes")
    lowered = rowlock("jobs", "reprioritise", "--to", "-4", ready[1], "--yes")
    hurried = rowlock("jobs", "run-next", ready[2], "--yes")

    assert [moved.out, lowered.out, hurried.out] == ["moved 1 job\n", "reprioritised 1 job\n", "put first: 1 job\n"]
    stands = db.execute("select queue, priority from rowlock.jobs order by id").fetchall()
    assert stands == [("mail", 0), ("default", -4), ("default", 4)]


def test_who_and_why_are_in_the_events(rowlock: Type, ready: list[str], db: Db) -> None:
    rowlock("jobs", "cancel", ready[0], "--yes", "--by", "ada", "--why", "a mistake")

    events = db.execute("select kind, actor, details ->> 'why' from rowlock.events").fetchall()
    assert events == [("cancelled", "ada", "a mistake")]


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb[0])
def test_every_verb_answers_in_json(rowlock: Type, ready: list[str], engine: Engine, verb: list[str]) -> None:
    if verb == ["retry"]:
        engine.settle(*engine.claim(3), outcome=Failed('{"type": "E", "message": ""}', "exhausted"))

    preview = rowlock("jobs", *verb, "--all", "--dry-run", "--json")
    done = rowlock("jobs", *verb, "--all", "--yes", "--json")

    name = verb[0].replace("-", "_")
    assert (preview.code, done.code) == (0, 0), preview.err + done.err
    assert json.loads(done.out) == {"verb": name, "changed": 3, "passed_over": 0, "before": None}
    document = json.loads(preview.out)
    assert document.keys() == {"verb", "count", "passed_over", "capped", "tasks", "states", "samples"}
    assert (document["count"], document["tasks"]) == (3, {"shop.greet": 3})


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb[0])
def test_a_verb_without_a_filter_is_refused_unless_all_is_said(
    rowlock: Type, ready: list[str], verb: list[str], db: Db
) -> None:
    nothing = rowlock("jobs", *verb, "--yes")
    both = rowlock("jobs", *verb, "--yes", "--all", ready[0])

    assert (nothing.code, both.code) == (2, 2)
    assert "say --all" in nothing.err
    assert "not both" in both.err
    assert states(db) == dict.fromkeys(ready, "ready")


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb[0])
def test_a_verb_that_nobody_can_be_asked_about_is_refused(
    rowlock: Type, ready: list[str], verb: list[str], db: Db
) -> None:
    said = rowlock("jobs", *verb, "--queue", "default")

    assert said.code == 2
    assert "say --yes" in said.err
    assert states(db) == dict.fromkeys(ready, "ready")


def test_a_dry_run_shows_what_it_would_change_and_changes_nothing(rowlock: Type, ready: list[str], db: Db) -> None:
    said = rowlock("jobs", "delete", "--queue", "default", "--dry-run")

    assert said.code == 0
    assert said.out.startswith("delete would change 3 jobs\n")
    assert "shop.greet 3" in said.out
    assert "ready 3" in said.out
    assert ready[0] in said.out
    assert states(db) == dict.fromkeys(ready, "ready")


@pytest.mark.parametrize("how", ["--yes", "--dry-run"])
def test_a_verb_that_finds_nothing_is_exit_code_3(rowlock: Type, ready: list[str], how: str) -> None:
    in_words = rowlock("jobs", "cancel", "--queue", "nowhere", how)
    in_json = rowlock("jobs", "cancel", "--queue", "nowhere", how, "--json")

    assert (in_words.code, in_json.code) == (3, 3)
    assert in_words.out == ""
    assert in_words.err.count("\n") == 1
    assert json.loads(in_json.out)["verb"] == "cancel"


def test_states_that_a_verb_cannot_change_are_wrong_usage(rowlock: Type, ready: list[str]) -> None:
    said = rowlock("jobs", "retry", "--state", "running", "--yes")

    assert said.code == 2
    assert "use run_next" in said.err


# At a terminal


def test_at_a_terminal_it_shows_what_it_will_hit_and_asks(shop: Shop, url: str, ready: list[str], db: Db) -> None:
    with Terminal("jobs", "cancel", "--all", folder=shop.folder, env={"ROWLOCK_URL": url}) as terminal:
        terminal.sees("cancel 3 jobs? [y/N]")
        before = states(db)
        terminal.types("y\n")
        code = terminal.ended()

    assert "shop.greet 3" in terminal.screen
    assert before == dict.fromkeys(ready, "ready")
    assert "cancelled 3 jobs" in terminal.screen
    assert code == 0
    assert states(db) == dict.fromkeys(ready, "cancelled")


@pytest.mark.parametrize(("answer", "code"), [("n\n", 1), ("\n", 1), ("\x04", 130)], ids=ascii)
def test_anything_but_yes_changes_nothing(
    shop: Shop, url: str, ready: list[str], db: Db, *, answer: str, code: int
) -> None:
    with Terminal("jobs", "delete", "--all", folder=shop.folder, env={"ROWLOCK_URL": url}) as terminal:
        terminal.sees("delete 3 jobs? [y/N]")
        terminal.types(answer)
        ended = terminal.ended()

    assert ended == code
    assert "Traceback" not in terminal.screen
    assert states(db) == dict.fromkeys(ready, "ready")


# Interrupted


HELD_UP = """
create function rowlock.hold_up() returns trigger language plpgsql as $$
begin
    if new.job = '{job}' then
        perform pg_advisory_xact_lock(42);
    end if;
    return new;
end
$$;
create trigger hold_up before insert on rowlock.events for each row execute function rowlock.hold_up();
"""


@deep
def test_an_interrupted_verb_says_how_far_it_came_and_goes_on_from_there(
    shop: Shop, app: Rowlock, url: str, db: Db
) -> None:
    jobs = app.enqueue_many(app.call("shop.greet") for _ in range(5_000))
    db.execute(HELD_UP.format(job=jobs[0].id).encode())  # the oldest, and so in the last window
    db.execute("select pg_advisory_lock(42)")
    program = shop.start("jobs", "cancel", "--task", "shop.greet", "--yes", "--json", env={"ROWLOCK_URL": url})
    until(lambda: db.execute("select from pg_locks where locktype = 'advisory' and not granted").fetchall())

    program.signal(signal.SIGINT)
    code = program.ended()
    db.execute("select pg_advisory_unlock(42)")
    so_far = len([state for state in states(db).values() if state == "cancelled"])
    [command] = re.findall(r"go on with:\n  rowlock (.*)", program.errors)
    rest = shop.run(*shlex.split(command), env={"ROWLOCK_URL": url})

    assert code == 130, program.errors
    assert 0 < so_far < 5_000
    assert f"cancelled {so_far:,} jobs" in program.errors
    assert json.loads(program.output)["changed"] == so_far
    assert "--before" in command
    assert rest.process.returncode == 0, rest.errors
    assert json.loads(rest.output)["changed"] == 5_000 - so_far
    assert set(states(db).values()) == {"cancelled"}
    assert db.execute("select count(*), count(distinct job) from rowlock.events").fetchall() == [(5_000, 5_000)]


def test_a_password_that_was_typed_is_not_repeated(rowlock: Type, url: str, ready: list[str]) -> None:
    with_password = re.sub(r"//(\w+)@", r"//\1:secret@", url)

    said = rowlock("jobs", "list", "--limit", "1", "--url", with_password)

    assert "secret" in with_password
    assert said.code == 0, said.err
    assert "more: rowlock jobs list" in said.err
    assert "secret" not in said.out + said.err
