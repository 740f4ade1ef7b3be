"""Retry: an ended workflow goes on from the step that has failed, and remembers what it did before that."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest

from rowlock import Filter, Rowlock
from tests.rows import Db
from tests.worker.working import one
from tests.workflow.remembering import MORNING, end, keys_of, put_failure, put_signal, put_step, put_workflow, row_of


def retry(app: Rowlock, job: UUID) -> None:
    assert app.jobs.retry(Filter(ids=[job], state=("failed", "cancelled"))).changed == 1


def test_what_is_folded_comes_back_as_it_was(app: Rowlock, db: Db) -> None:
    value: dict[str, Any] = {
        "a": None,
        "big": 10**30,
        "text": 'with "quotes", / and ünïcode \\ ',
        "list": [None, [], {}],
    }
    job = put_workflow(db)
    put_step(db, job, "charge#2", input=["x", None], value=value, attempts=3, until=MORNING)
    put_step(db, job, "1/wait", took=None, kind="signal", form={"type": "object", "default": None})
    put_step(db, job, 'odd "name"\\', kind="child", child=uuid4(), value=None)
    put_signal(db, job, "paid", payload={"x": None}, key="k")
    put_signal(db, job, "paid", 2, taken_at=MORNING)
    everything = "select step::text from rowlock.steps as step order by 1"
    before = db.execute(everything.encode()).fetchall()
    end(db, job, "cancelled")

    db.execute("insert into rowlock.steps select step.* from rowlock.history, rowlock.unfolded(id, steps) as step")
    after = db.execute("select step::text from rowlock.steps as step order by 1").fetchall()
    db.execute("delete from rowlock.steps")
    retry(app, job)

    assert after == before
    assert len(after) == 3
    assert one(db, "select value::text from rowlock.steps where key = 'charge#2'").startswith('{"a": null')
    signals = "select count(*), max(number), count(taken_at), max(payload::text), max(key) from rowlock.signals"
    assert db.execute(signals.encode()).fetchall() == [(2, 2, 1, '{"x": null}', "k")]


def test_a_workflow_without_steps_and_signals_folds_to_nothing(db: Db) -> None:
    job = put_workflow(db)

    assert one(db, "select rowlock.folded(%s)", job) is None


def test_a_failed_workflow_goes_on_from_the_step_that_has_failed(app: Rowlock, db: Db) -> None:
    job = put_workflow(db, key="order-7", args={"order": 7}, version=3, claims=4)
    put_step(db, job, "reserve", at=1, value="r-1")
    put_step(db, job, "charge", at=2, state="failed", error={"type": "CardDeclined"})
    put_step(db, job, "tell_support", at=4)
    put_failure(db, job, "charge", at=6)
    end(db, job, "failed", claims=4, workflow_state='{"step": 2}')

    retry(app, job)

    assert keys_of(db, job) == ["reserve"]
    assert row_of(db, job, "state", "version", "parent", "failures", "attempts", "claims", "wakes") == (
        *("ready", 3, None, 0, 1, 4, 1),
    )
    assert row_of(db, job, "workflow_state", "args") == ({"step": 2}, {"order": 7})
    assert one(db, "select until is null from rowlock.keys where job = %s", job)
    assert one(db, "select count(*) from rowlock.history") == 0


def test_a_child_that_is_retried_is_nobodys_child_any_more(app: Rowlock, db: Db) -> None:
    parent = uuid4()
    plain, workflow = put_workflow(db, version=None, parent=parent), put_workflow(db, parent=parent)
    end(db, plain)
    end(db, workflow)

    retry(app, plain)
    retry(app, workflow)

    assert row_of(db, plain, "parent", "version", "wakes") == (None, None, 0)
    assert row_of(db, workflow, "parent", "version", "wakes") == (None, 1, 1)


@pytest.mark.parametrize(
    ("steps", "kept"),
    [
        # What ran beside the failed step is kept, however far it has come; what the code did afterwards is not.
        (
            [
                ("1/a", {"at": 1}),
                ("1/b", {"at": 3}),
                ("2/charge", {"at": 1, "took": 4, "state": "failed"}),
                ("1/c", {"at": 9}),
            ],
            ["1/a", "1/b", "1/c"],
        ),
        # Two that were begun together by one branch: the other was started before this one had ended.
        (
            [("2/charge", {"at": 1, "took": 4, "state": "failed"}), ("2/b", {"at": 2, "took": 9}), ("2/c", {"at": 20})],
            ["2/b"],
        ),
        # What failed beside it, and later, is tried again, too.
        (
            [
                ("1/a", {"at": 1, "took": 9, "state": "failed"}),
                ("2/charge", {"at": 1, "took": 4, "state": "failed"}),
                ("3/a", {"at": 1, "took": 9, "state": "failed"}),
                ("3/because", {"at": 11}),
            ],
            ["3/a", "3/because"],
        ),
        # The children of a map, two at once: those that failed are run again, whenever that was; the others are kept.
        (
            [
                ("2/charge", {"at": 0, "took": 1, "kind": "child", "state": "failed", "position": 1}),
                ("2/charge#2", {"at": 0, "took": 2, "kind": "child", "position": 2}),
                ("2/charge#3", {"at": 1, "took": 3, "kind": "child", "position": 3}),
                ("2/charge#4", {"at": 5, "took": 1, "kind": "child", "state": "failed", "position": 4}),
                ("2/charge#5", {"at": 6, "took": 1, "kind": "child", "position": 5}),
                ("2/apologise", {"at": 9, "kind": "child", "position": 6}),
            ],
            ["2/charge#2", "2/charge#3", "2/charge#5"],
        ),
        # What failed before it, the code has dealt with.
        (
            [("a", {"at": 1, "state": "failed"}), ("2/charge", {"at": 3, "state": "failed"})],
            ["a"],
        ),
        # Branches that the code began afterwards; one that was begun before goes on.
        (
            [
                ("2/1/x", {"at": 0, "took": 0.5}),
                ("2/1/y", {"at": 9}),
                ("2/charge", {"at": 1, "took": 4, "state": "failed"}),
                ("2/2/cleanup", {"at": 7}),
                ("22/x", {"at": 8}),
            ],
            ["2/1/x", "22/x", "2/1/y"],
        ),
    ],
)
def test_only_what_came_after_the_failure_in_its_branch_is_forgotten(
    app: Rowlock, db: Db, steps: list[tuple[str, dict[str, Any]]], kept: list[str]
) -> None:
    job = put_workflow(db)
    for key, facts in steps:
        put_step(db, job, key, **facts)
    put_failure(db, job, "2/charge", at=30)
    end(db, job)

    retry(app, job)

    assert keys_of(db, job) == kept


def test_a_function_that_has_failed_by_itself_keeps_all_its_steps(app: Rowlock, db: Db) -> None:
    job = put_workflow(db)
    put_step(db, job, "charge", at=1, state="failed")
    put_step(db, job, "ship", at=3)
    put_failure(db, job, None, at=5)
    end(db, job)

    retry(app, job)

    assert keys_of(db, job) == ["charge", "ship"]


def test_a_workflow_that_was_undone_starts_from_the_beginning(app: Rowlock, db: Db) -> None:
    job = put_workflow(db)
    put_step(db, job, "start", at=0, took=0, kind="start", value={"page": 4})
    put_step(db, job, "reserve", at=1)
    put_step(db, job, "charge", at=2, state="failed")
    put_failure(db, job, "charge", at=4)
    put_step(db, job, "undo/reserve", at=5, kind="undo")
    end(db, job)

    retry(app, job)

    assert keys_of(db, job) == ["start"]


def test_an_undo_that_failed_has_undone_nothing_and_is_tried_again_when_its_time_comes(app: Rowlock, db: Db) -> None:
    job = put_workflow(db)
    put_step(db, job, "reserve", at=1)
    put_step(db, job, "charge", at=2, state="failed")
    put_failure(db, job, "charge", at=4)
    put_step(db, job, "undo/reserve", at=5, kind="undo", state="failed")
    end(db, job)

    retry(app, job)

    assert keys_of(db, job) == ["reserve"]


def test_a_cancelled_workflow_goes_on_waiting_but_not_for_children_that_were_cancelled_with_it(
    app: Rowlock, db: Db
) -> None:
    job = put_workflow(db, "waiting")
    put_step(db, job, "charge", at=1, kind="child", child=uuid4(), value=1)
    put_step(db, job, "ship", at=2, kind="child", child=uuid4(), took=None)
    put_step(db, job, "approve", at=3, kind="signal", took=None)
    put_signal(db, job, "hurry", payload=1)
    end(db, job, "cancelled", reason="asked")

    retry(app, job)

    assert keys_of(db, job) == ["charge", "approve"]
    assert one(db, "select name from rowlock.signals where job = %s and taken_at is null", job) == "hurry"


def test_a_workflow_that_went_well_is_run_again_from_the_beginning_if_that_is_asked_for(app: Rowlock, db: Db) -> None:
    job = put_workflow(db)
    put_step(db, job, "charge", at=1)
    end(db, job, "succeeded")

    done = app.jobs.retry(Filter(ids=[job], state="succeeded"))

    assert done.changed == 1
    assert keys_of(db, job) == ["start"]  # that it has begun anew, and nothing else
    assert row_of(db, job, "state", "wakes") == ("ready", 1)
