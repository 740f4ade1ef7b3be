"""`rowlock queues` and `rowlock tasks`: counts, pauses and their ends."""

from __future__ import annotations

import json
from datetime import timedelta

import psycopg
import pytest
from psycopg.rows import TupleRow

from rowlock import Rowlock
from rowlock.cli.shared import pause_options
from rowlock.model.pause import Pause
from tests.cli.conftest import Type
from tests.cli.programs import Shop
from tests.engine import Engine

Db = psycopg.Connection[TupleRow]


@pytest.fixture
def jobs(app: Rowlock) -> None:
    """Two jobs on the queue `default`, and one on `mail`."""
    app.enqueue("shop.greet")
    app.enqueue("shop.greet")
    app.task(name="shop.mail", queue="mail")(nothing).enqueue()


def nothing() -> None:
    """Nobody runs it."""


def pauses_of(app: Rowlock, kind: str) -> tuple[Pause, ...]:
    return app.queues.pauses() if kind == "queue" else app.tasks.pauses()


def row(table: str, name: str) -> list[str]:
    """The cells of one row."""
    [line] = [line for line in table.splitlines() if line.split()[:1] == [name]]
    return line.split()


@pytest.mark.usefixtures("jobs")
def test_queues_are_listed_with_what_is_in_them(rowlock: Type, engine: Engine) -> None:
    engine.claim(1)

    in_words = rowlock("queues", "list")
    in_json = rowlock("queues", "list", "--json")

    assert in_words.code == 0, in_words.err
    assert in_words.out.split()[:4] == ["queue", "due", "oldest", "running"]
    assert row(in_words.out, "default")[1] == "1"
    queues = {queue["name"]: queue for queue in json.loads(in_json.out)["queues"]}
    assert queues["default"]["running"] == {"value": 1, "more": False}
    assert queues["mail"]["runnable"] == {"value": 1, "more": False}
    assert queues["mail"]["pause"] is None


@pytest.mark.usefixtures("jobs")
def test_a_queue_is_paused_for_a_while_with_a_reason_that_others_see(rowlock: Type) -> None:
    said = rowlock("queues", "pause", "mail", "--for", "2h", "--why", "moving house", "--by", "ada")
    listed = rowlock("queues", "list")
    shown = rowlock("queues", "show", "mail")

    assert said.code == 0, said.err
    assert said.out.startswith("queue mail is paused until 20")
    assert "(in 2 h)" in said.out
    assert "until 20" in " ".join(row(listed.out, "mail"))
    assert "ada" in shown.out
    assert "moving house" in shown.out


@pytest.mark.parametrize("kind", ["queue", "task"])
def test_a_pause_ends_when_it_is_resumed_and_only_once(rowlock: Type, app: Rowlock, kind: str) -> None:
    paused = rowlock(f"{kind}s", "pause", "some", "--anyway", "--json")
    pauses = pauses_of(app, kind)
    resumed = rowlock(f"{kind}s", "resume", "some", "--json")
    again = rowlock(f"{kind}s", "resume", "some")

    assert json.loads(paused.out)["pause"][kind] == "some"
    assert json.loads(paused.out)["pause"]["until"] is None
    assert [getattr(pause, kind) for pause in pauses] == ["some"]
    assert json.loads(resumed.out) == {"resumed": True}
    assert pauses_of(app, kind) == ()
    assert (again.code, again.out, again.err) == (3, "", f"{kind} some was not paused\n")


@pytest.mark.usefixtures("jobs")
@pytest.mark.parametrize(("kind", "meant"), [("queue", "mail"), ("task", "shop.greet")])
def test_a_pause_of_a_name_that_nobody_uses_is_refused(rowlock: Type, app: Rowlock, kind: str, meant: str) -> None:
    refused = rowlock(f"{kind}s", "pause", f"{meant}s", "--app", "shop")

    assert refused.is_one_sentence
    assert f"did you mean {meant}? (--anyway" in refused.err
    assert pauses_of(app, kind) == ()


@pytest.mark.parametrize("kind", ["queue", "task"])
def test_a_pause_does_not_wait_to_learn_whether_its_name_is_used(
    rowlock: Type, app: Rowlock, db: Db, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(pause_options, "_LOOKING", timedelta(seconds=0.2))
    with db.transaction():
        db.execute("lock table rowlock.history in access exclusive mode")
        said = rowlock(f"{kind}s", "pause", "forgotten")

    assert said.code == 0, said.err
    assert said.err == f"whether anything uses {kind} forgotten could not be learned in time\n"
    assert [getattr(pause, kind) for pause in pauses_of(app, kind)] == ["forgotten"]


@pytest.mark.usefixtures("jobs")
@pytest.mark.parametrize(("kind", "name"), [("queue", "mail"), ("task", "shop.mail")])
def test_a_name_with_live_jobs_is_paused_without_a_look_into_history(
    rowlock: Type, app: Rowlock, db: Db, kind: str, name: str
) -> None:
    with db.transaction():
        db.execute("lock table rowlock.history in access exclusive mode")
        said = rowlock(f"{kind}s", "pause", name)

    assert (said.code, said.err) == (0, "")
    assert [getattr(pause, kind) for pause in pauses_of(app, kind)] == [name]


def test_a_queue_that_only_a_task_of_the_app_names_can_be_paused(rowlock: Type, shop: Shop, app: Rowlock) -> None:
    shop.write("later.py", "from shop import app\n\n\n@app.task(queue='brandnew')\ndef later() -> None: ...\n")
    shop.write("both.py", "from shop import app\n\napp.imports = ('later',)\n")

    said = rowlock("queues", "pause", "brandnew", "--app", "both")

    assert said.code == 0, said.err
    assert [pause.queue for pause in app.queues.pauses()] == ["brandnew"]


def test_a_pause_can_name_its_end(rowlock: Type, app: Rowlock) -> None:
    said = rowlock("tasks", "pause", "shop.greet", "--app", "shop", "--until", "2999-01-01T00:00Z")

    assert said.out.startswith("task shop.greet is paused until 2999-01-01T00:00:00Z")
    assert [(pause.task, pause.until and pause.until.year) for pause in app.tasks.pauses()] == [("shop.greet", 2999)]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--for", "2h", "--until", "2999-01-01T00:00Z"], "not both"),
        (["--for", "soon"], "write 90s, 15min, 2h, 3d or 1w"),
        (["--for", "0s"], "would pause nothing"),
        (["--until", "2999-01-01"], "has no time zone"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_pause_that_cannot_be_is_wrong_usage(rowlock: Type, app: Rowlock, options: list[str], words: str) -> None:
    said = rowlock("queues", "pause", "mail", *options)

    assert said.code == 2
    assert words in said.err
    assert app.queues.pauses() == ()


@pytest.mark.usefixtures("jobs")
def test_a_queue_is_shown_with_the_workers_that_look_into_it(rowlock: Type, engine: Engine) -> None:
    looked_into = rowlock("queues", "show", "default", "--json")
    left_alone = rowlock("queues", "show", "mail")
    unknown = rowlock("queues", "show", "nowhere")

    document = json.loads(looked_into.out)
    assert document.keys() == {"queue", "workers"}
    assert [worker["id"] for worker in document["workers"]] == [engine.worker]
    assert "no worker looks into it" in left_alone.out
    assert unknown.code == 3
    assert "'nowhere'" in unknown.err


def test_tasks_are_listed_with_their_pauses(rowlock: Type) -> None:
    rowlock("tasks", "pause", "shop.greet", "--app", "shop", "--by", "ada")

    in_words = rowlock("tasks", "list")
    in_json = rowlock("tasks", "list", "--json")

    assert "by ada, until it is resumed" in " ".join(row(in_words.out, "shop.greet"))
    [task] = json.loads(in_json.out)["tasks"]
    assert task["name"] == "shop.greet"
    assert {"rates", "durations", "failed", "paused", "pause"} <= task.keys()
