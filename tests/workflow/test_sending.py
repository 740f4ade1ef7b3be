"""app.signal and job.signal: who is told what, and what is refused before anything is said."""

from __future__ import annotations

import asyncio
import pickle
from datetime import UTC, datetime
from typing import Any, cast
from uuid import uuid4

import psycopg
import pytest

from rowlock import Rowlock, RowlockError
from rowlock.errors import (
    InvalidArguments,
    InvalidOption,
    JobNotFound,
    NotAWorkflow,
    PayloadTooLarge,
    SignalRefused,
    WorkflowError,
)
from rowlock.store.workflows.signals import sending
from tests.rows import Db, put
from tests.workflow.remembering import end, put_workflow, row_of


def stored(db: Db) -> list[tuple[object, ...]]:
    return db.execute("select job, name, payload::text, key from rowlock.signals order by job, number").fetchall()


# By whom it is known


def test_a_workflow_is_meant_by_its_id_its_key_or_its_handle(app: Rowlock, db: Db) -> None:
    job = put_workflow(db, key="checkout:9182")

    answers = [app.signal(target, "paid") for target in (job, str(job), "checkout:9182", app.jobs.get(job))]

    assert answers == [True] * 4
    assert [row[0] for row in stored(db)] == [job] * 4


def test_async_callers_say_the_same(app: Rowlock, db: Db) -> None:
    job = put_workflow(db, key="checkout:9182")

    async def send() -> list[bool]:
        async with app:
            handle = await app.jobs.aget(job)
            return [
                await app.asignal("checkout:9182", "paid", {"by": "card"}, key="webhook-77"),
                await handle.asignal("paid", {"by": "card"}, key="webhook-77"),
                await handle.asignal("shipped"),
            ]

    assert asyncio.run(send()) == [True, False, True]
    assert stored(db) == [(job, "paid", '{"by":"card"}', "webhook-77"), (job, "shipped", None, None)]


def test_a_handle_sends_and_tells_a_duplicate(app: Rowlock, db: Db) -> None:
    job = app.jobs.get(put_workflow(db, "waiting"))

    answers = [job.signal("approved", {"by": "ada"}, key="form-1"), job.signal("approved", {"by": "bob"}, key="form-1")]

    assert answers == [True, False]
    assert stored(db) == [(job.id, "approved", '{"by":"ada"}', "form-1")]
    assert row_of(db, job.id, "state", "wakes") == ("ready", 1)


def test_a_workflow_that_was_just_started_can_be_told_at_once(app: Rowlock, db: Db) -> None:
    @app.workflow(name="checkout")
    async def checkout(ctx: Any, order: int) -> None:  # noqa: ANN401
        return None

    job = checkout.using(key="checkout:1").enqueue(1)

    app.signal(job, "paid")

    assert [row[:2] for row in stored(db)] == [(job.id, "paid")]


# What it carries


@pytest.mark.parametrize(
    "payload", [None, True, 0, -1.5, "é", [], {"a": [1, {"b": None}]}, 12345678901234567890], ids=repr
)
def test_plain_json_arrives_as_it_is(app: Rowlock, db: Db, payload: object) -> None:
    app.signal(put_workflow(db), "paid", payload)

    [arrived] = db.execute("select payload from rowlock.signals").fetchone() or ()
    assert arrived == payload


NOWHERE = "postgresql://nobody@127.0.0.1:1/nothing"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"payload": datetime.now(UTC)}, "the payload of a signal"),
        ({"payload": {"a": {1, 2}}}, r"\$\.a"),
        ({"payload": {"a": "\x00"}}, r"\$\.a"),
        ({"payload": "\ud800"}, "surrogate"),
        ({"payload": float("nan")}, "payload"),
    ],
    ids=["datetime", "set", "NUL", "surrogate", "NaN"],
)
def test_a_payload_that_would_not_arrive_is_refused_before_any_sql(said: dict[str, Any], words: str) -> None:
    with Rowlock(NOWHERE) as app, pytest.raises(InvalidArguments, match=words):
        app.signal(uuid4(), "paid", **said)


def test_a_payload_over_the_limit_is_refused_before_any_sql() -> None:
    with Rowlock(NOWHERE) as app, pytest.raises(PayloadTooLarge, match="the payload of a signal"):
        app.signal(uuid4(), "paid", "x" * 1_100_000)


@pytest.mark.parametrize(
    ("target", "name", "key", "words"),
    [
        ("checkout:1", "", None, "signal name"),
        ("checkout:1", "a\nb", None, "cannot be seen"),
        ("checkout:1", "x" * 201, None, "use 1 to 200"),
        ("checkout:1", "paid#2", None, "use '.' or '-'"),
        ("checkout:1", cast("str", 7), None, "must be a str"),
        ("", "paid", None, "use 1 to 500"),
        (cast("str", 7), "paid", None, "must be a workflow's Job, its id or its key"),
        ("checkout:1", "paid", "", "use 1 to 500"),
        ("checkout:1", "paid", cast("str", 7), "must be a str"),
    ],
)
def test_names_and_keys_that_are_none_are_refused_before_any_sql(
    target: str, name: str, key: str | None, words: str
) -> None:
    with Rowlock(NOWHERE) as app, pytest.raises(InvalidOption, match=words):
        app.signal(target, name, key=key)


def test_a_sync_verb_has_no_place_on_a_loop(app: Rowlock, db: Db) -> None:
    job = put_workflow(db)
    handle = app.jobs.get(job)

    async def send() -> None:
        with pytest.raises(RowlockError, match=r"await app.asignal"):
            app.signal(job, "paid")
        with pytest.raises(RowlockError, match=r"await job.asignal"):
            handle.signal("paid")

    asyncio.run(send())

    assert stored(db) == []


# What is refused


@pytest.mark.parametrize("state", ["succeeded", "failed", "cancelled"])
def test_a_workflow_that_has_ended_refuses(app: Rowlock, db: Db, state: str) -> None:
    job = put_workflow(db, key="checkout:1")
    end(db, job, state)

    with pytest.raises(SignalRefused) as refused:
        app.signal("checkout:1", "paid")

    assert (refused.value.job, refused.value.state, refused.value.signal) == (job, state, "paid")
    assert str(refused.value) == f"workflow {job} has ended ({state}) and takes no more signals; 'paid' was not stored"
    assert isinstance(refused.value, WorkflowError)
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)  # noqa: S301  our own


def test_a_workflow_that_is_being_cancelled_refuses(app: Rowlock, db: Db) -> None:
    job = put_workflow(db, "running", cancel_at=datetime.now(UTC))

    with pytest.raises(SignalRefused, match=f"workflow {job} is being cancelled and takes no more") as refused:
        app.signal(job, "paid")

    assert refused.value.state == "cancelling"


def test_a_redelivered_webhook_is_a_duplicate_even_when_its_workflow_has_ended(app: Rowlock, db: Db) -> None:
    job = put_workflow(db, "running")
    app.signal(job, "paid", key="webhook-77")
    end(db, job, "succeeded")

    assert app.signal(job, "paid", key="webhook-77") is False


def test_unknown_workflows_are_told_by_what_they_were_asked_for(app: Rowlock) -> None:
    job = uuid4()

    with pytest.raises(JobNotFound, match=f"no job {job}") as by_id:
        app.signal(job, "paid")
    with pytest.raises(JobNotFound, match="no workflow has the key 'checkout:1'") as by_key:
        app.signal("checkout:1", "paid")

    assert (by_id.value.job, by_key.value.job) == (job, None)


def test_a_plain_job_takes_no_signals(app: Rowlock, db: Db) -> None:
    job = put(db, key="k")

    for target in (job, "k"):
        with pytest.raises(NotAWorkflow, match=f"job {job} is of a plain task") as refused:
            app.signal(target, "paid")
        assert refused.value.job == job
        assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)  # noqa: S301  our own


def test_a_lost_answer_is_asked_for_again_and_nothing_is_sent_twice(app: Rowlock, db: Db) -> None:
    job = put_workflow(db, "waiting", wakes_at=2)
    converse = sending(job, "paid", None, None)  # which is what a caller holds again when its connection breaks

    answers = [app.database.converse(converse), app.database.converse(converse)]
    end(db, job, "succeeded")
    answers.append(app.database.converse(converse))

    assert answers == [True] * 3
    assert db.execute("select json_array_length(steps -> 'signals') from rowlock.history").fetchone() == (1,)


def test_a_signal_in_a_transaction_that_goes_on_holds_up_no_other_workflow(app: Rowlock, db: Db, url: str) -> None:
    held, other = put_workflow(db, "waiting"), put_workflow(db, "waiting")
    with psycopg.connect(url) as mine:
        app.signal(held, "paid", connection=mine)

        sent = app.signal(other, "paid")

        mine.rollback()
    assert sent
    assert [row[0] for row in stored(db)] == [other]


# By hand


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_what_somebody_sends_by_hand_leaves_an_event(app: Rowlock, db: Db, *, is_async: bool) -> None:
    job = put_workflow(db, "waiting", key="order:7", queue="slow")
    said: dict[str, Any] = {"key": "form-1", "by": "ann", "why": "she called"}

    async def send() -> list[bool]:
        async with app:
            return [await app.asignal("order:7", "approved", True, **said) for _ in range(2)]

    answers = asyncio.run(send()) if is_async else [app.signal("order:7", "approved", True, **said) for _ in range(2)]

    assert answers == [True, False]
    assert stored(db) == [(job, "approved", "true", "form-1")]
    assert db.execute("select kind, job, actor, details from rowlock.events").fetchall() == [
        (
            *("signalled", job, "ann"),
            {"task": "shop.checkout", "queue": "slow", "why": "she called", "signal": "approved", "key": "form-1"},
        )
    ]


def test_what_code_sends_leaves_none(app: Rowlock, db: Db) -> None:
    app.signal(put_workflow(db, "waiting"), "approved")

    assert db.execute("select from rowlock.events").fetchall() == []


def test_a_reason_needs_somebody_who_has_it(app: Rowlock) -> None:
    with pytest.raises(InvalidOption, match="why= is for an event"):
        app.signal("order:7", "approved", why="she called")
