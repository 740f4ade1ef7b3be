"""`rowlock workflows signal`: what is sent, and what is said of it."""

from __future__ import annotations

import json
from uuid import uuid4

import pytest

from tests.cli.conftest import Type
from tests.rows import Db, put
from tests.workflow.remembering import end, put_workflow, row_of


def stored(db: Db) -> list[tuple[object, ...]]:
    return db.execute("select job, name, payload, key from rowlock.signals order by number").fetchall()


def test_a_signal_is_sent_by_id_and_by_key(rowlock: Type, db: Db) -> None:
    job = put_workflow(db, "waiting", key="order-7")

    by_id = rowlock("workflows", "signal", str(job), "approved", "--payload", '{"by": "ada", "n": 3}')
    by_key = rowlock("workflows", "signal", "order-7", "paid", "--key", "webhook-77", "--json")

    assert (by_id.code, by_id.out) == (0, f"signal approved is stored for {job}\n")
    assert json.loads(by_key.out) == {"target": "order-7", "signal": "paid", "key": "webhook-77", "sent": True}
    assert stored(db) == [(job, "approved", {"by": "ada", "n": 3}, None), (job, "paid", None, "webhook-77")]
    assert row_of(db, job, "state", "wakes") == ("ready", 2)


def test_a_part_of_an_id_is_tried_when_it_is_no_key(rowlock: Type, db: Db) -> None:
    by_id, other = put_workflow(db, "waiting"), put_workflow(db, "waiting")
    by_key = put_workflow(db, "waiting", key=str(other)[-8:])

    meant = rowlock("workflows", "signal", str(by_id)[-8:], "approved")
    key_first = rowlock("workflows", "signal", str(other)[-8:], "approved")
    short = rowlock("workflows", "signal", str(by_id)[-7:], "approved")

    assert meant.out == f"signal approved is stored for {by_id}\n"
    assert key_first.code == 0
    assert [job for job, *_ in stored(db)] == [by_id, by_key]
    assert (short.code, "no workflow has the key" in short.err) == (3, True)


def test_a_duplicate_is_no_error_and_is_told(rowlock: Type, db: Db) -> None:
    job = put_workflow(db)
    rowlock("workflows", "signal", str(job), "paid", "--key", "k")

    again = rowlock("workflows", "signal", str(job), "paid", "--key", "k")
    in_json = rowlock("workflows", "signal", str(job), "paid", "--key", "k", "--json")

    assert (again.code, again.out) == (0, "a signal with the key 'k' was sent before; nothing was stored\n")
    assert json.loads(in_json.out)["sent"] is False
    assert len(stored(db)) == 1


def test_a_workflow_that_has_ended_and_one_that_is_not_there_are_nothing_that_matches(rowlock: Type, db: Db) -> None:
    job, nobody = put_workflow(db), uuid4()
    end(db, job, "succeeded")

    late = rowlock("workflows", "signal", str(job), "paid")
    lost = rowlock("workflows", "signal", str(nobody), "paid")
    unheard = rowlock("workflows", "signal", "order-7", "paid")

    assert late.code == lost.code == unheard.code == 3
    assert late.err == f"workflow {job} has ended (succeeded) and takes no more signals; 'paid' was not stored\n"
    assert f"no job {nobody}" in lost.err
    assert "no workflow has the key 'order-7'" in unheard.err


def test_a_plain_job_takes_no_signals(rowlock: Type, db: Db) -> None:
    job = put(db)

    refused = rowlock("workflows", "signal", str(job), "paid")

    assert refused.code == 1
    assert f"job {job} is of a plain task and takes no signals" in refused.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["paid", "--payload", "approved"], "--payload is no JSON"),
        (["paid", "--payload", '"\\u0000"'], "the payload of a signal"),
        (["paid", "--payload", "NaN"], "the payload of a signal"),
        (["a\nb"], "cannot be seen"),
        (["paid", "--key", ""], "use 1 to 500"),
    ],
)
def test_what_is_typed_wrongly_is_wrong_usage(rowlock: Type, db: Db, options: list[str], words: str) -> None:
    job = put_workflow(db)

    typed = rowlock("workflows", "signal", str(job), *options)

    assert typed.code == 2
    assert words in typed.err
    assert stored(db) == []
