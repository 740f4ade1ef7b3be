"""`rowlock explain`: the sentence, the facts, what to do, and the exit code."""

from __future__ import annotations

import json
from datetime import timedelta

from rowlock import Rowlock
from rowlock.model.ids import new_id
from tests.cli.conftest import Type
from tests.cli.programs import Shop
from tests.engine import Engine
from tests.rows import put
from tests.worker.working import Db

LATER = """
from rowlock import Rowlock

app = Rowlock()

@app.task(name="send")
def send(y: int) -> None: ...
"""


def test_the_sentence_comes_first_then_the_facts_then_what_to_do(rowlock: Type, app: Rowlock) -> None:
    job = app.enqueue("send", x=1)
    app.queues.pause("default", duration=timedelta(hours=2), why="the bank is down", by="ann")

    said = rowlock("explain", str(job.id))

    first, *facts, also, do = said.out.splitlines()
    assert (said.code, said.err) == (0, "")
    assert first.startswith("Queue 'default' is paused by ann since ")
    assert first.endswith(": the bank is down.")
    assert [line.split()[0] for line in facts] == ["paused", "since", "until", "why", "task", "queue"]
    assert facts[0] == "  paused by  ann"
    assert facts[2].endswith(" (in 2 h)")
    assert also == "also: No live worker listens on queue 'default', nor does any worker live at all."
    assert do == "do: `rowlock queues resume default`"


def test_json_says_the_same(rowlock: Type, engine: Engine) -> None:
    [job] = engine.enqueue()

    said = rowlock("explain", job, "--json")

    document = json.loads(said.out)
    assert said.code == 0
    assert document.keys() == {"job", "state", "code", "says", "do", "facts", "also", "unknown", "at"}
    assert (document["job"], document["state"], document["code"]) == (job, "ready", "next")
    assert document["facts"]["free"] == 1


def test_a_job_that_is_not_there_is_explained_and_has_its_exit_code(rowlock: Type) -> None:
    job = new_id()

    in_words, in_json = rowlock("explain", job), rowlock("explain", job, "--json")

    assert (in_words.code, in_json.code) == (3, 3)
    assert in_words.out.startswith("There is no such job: its id was made at ")
    assert json.loads(in_json.out)["state"] is None


def test_what_is_no_id_is_wrong_usage(typed: Type) -> None:
    said = typed("explain", "42", "--url", "postgresql://nobody@127.0.0.1:1/none")

    assert said.code == 2
    assert "'42' is not the id of a job" in said.err


def test_with_an_app_the_arguments_are_held_against_its_code(rowlock: Type, shop: Shop, app: Rowlock) -> None:
    shop.write(
        "later.py", "from rowlock import Rowlock\napp = Rowlock()\n@app.task(name='send')\ndef send(y: int): ...\n"
    )
    job = app.enqueue("send", x=1)

    without = rowlock("explain", str(job.id))
    held_against = rowlock("explain", str(job.id), "--app", "later")

    assert "no longer fit" not in without.out
    assert "also: Its arguments no longer fit the code of this process: " in held_against.out


def test_a_pid_can_be_typed_as_it_is_printed(rowlock: Type, db: Db) -> None:
    worker = new_id()
    db.execute(
        """insert into rowlock.workers (id, host, pid, queues, slots, tasks, version, started_at, lease, lasts)
            values (%s, 'h', 1234567, '{default}', 1, '{t}', '1', now(), now() + interval '1 min', '1 min')""",
        [worker],
    )
    job = put(db, "running", worker=worker, begun=True, crashes=1234)

    said = rowlock("explain", str(job))

    facts = dict(line.split(maxsplit=1) for line in said.out.splitlines() if line.startswith("  "))
    assert (facts["pid"], facts["crashes"]) == ("1234567", "1,234")


def test_no_data_can_break_the_answer(rowlock: Type, db: Db) -> None:
    job = put(db, "cancelled", reason="two\nlines\x1b[31m", task="a\x07b", key="\u202eyek")

    said = rowlock("explain", str(job))

    assert said.out.splitlines()[0].endswith(": two\\nlines\\x1b[31m.")
    assert not {"\x1b", "\x07", "\u202e"} & set(said.out)
