"""`rowlock workflows`: every command, in words and in JSON, and what is said when something is wrong."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest

from tests.cli.conftest import Type
from tests.rows import Db, put
from tests.worker.working import one
from tests.workflow.remembering import end, keys_of, put_failure, put_signal, put_step, put_workflow, row_of

SOON = datetime.now(UTC) + timedelta(days=3)


@pytest.fixture
def failed(db: Db) -> UUID:
    """A workflow that has failed of its second step."""
    job = put_workflow(db, key="order-7", args={"order": 7})
    put_step(db, job, "reserve", at=1, took=0.25, input=[7], value="r-1")
    put_step(db, job, "charge", at=2, took=4, state="failed", attempts=3, error={"type": "Declined", "message": "no"})
    put_failure(db, job, "charge", at=7)
    end(db, job, "failed", error="Declined")
    return job


def test_workflows_are_listed_with_where_they_stand(rowlock: Type, db: Db, failed: UUID) -> None:
    put(db)
    waits = put_workflow(db, "waiting", version=2)
    put_step(db, waits, "approve", took=None, kind="signal")

    listed = rowlock("workflows", "list")
    some = rowlock("workflows", "list", "--state", "failed", "--workflow", "shop.checkout", "--version", "1")
    in_json = json.loads(rowlock("workflows", "list", "--limit", "1", "--json").out)
    none = rowlock("workflows", "list", "--key", "nobody")

    head, first, second = listed.out.splitlines()
    assert head.split() == ["id", "state", "workflow", "step", "note", "key", "created", "queue"]
    assert first.split()[:6] == [str(waits), "parked", "shop.checkout@2", "approve", "for", "signal"]
    assert second.split()[:4] == [str(failed), "failed", "shop.checkout@1", "charge"]
    assert [line.split()[0] for line in some.out.splitlines()[1:]] == [str(failed)]
    assert [record["id"] for record in in_json["workflows"]] == [str(waits)]
    assert in_json["next"] == str(waits)
    assert (none.code, none.err) == (0, "no workflow matches\n")


def test_in_a_narrow_terminal_the_note_is_there_and_ids_are_their_ends(
    rowlock: Type, db: Db, failed: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")

    head, line = rowlock("workflows", "list").out.splitlines()

    assert head.split()[:5] == ["id", "state", "workflow", "step", "note"]
    assert line.split()[:4] == [str(failed)[-8:], "failed", "shop.checkout@1", "charge"]
    assert "ended now" in line
    assert max(len(head), len(line)) <= 80


def test_a_page_names_the_next(rowlock: Type, db: Db) -> None:
    older, newer = put_workflow(db), put_workflow(db)

    first = rowlock("workflows", "list", "--limit", "1")
    second = rowlock("workflows", "list", "--limit", "1", "--before", str(newer))

    assert f"--before {newer}" in first.err
    assert second.out.splitlines()[1].startswith(str(older))


def test_a_timeline_is_a_tree_of_steps_with_durations(rowlock: Type, failed: UUID) -> None:
    shown = rowlock("workflows", "show", str(failed))
    with_values = rowlock("workflows", "show", str(failed), "--values")
    in_json = json.loads(rowlock("workflows", "show", str(failed), "--json").out)

    assert "shop.checkout@1" in shown.out
    tree = [line.strip("│├└─ ") for line in shown.out.splitlines()[shown.out.splitlines().index("steps") + 1 :]]
    assert tree[:3] == [
        "✓ reserve  250 ms",
        "✗ charge  4.0 s  3 failed tries  Declined: no",
        "✗ failure  0 ms  the workflow has failed  of charge",
    ]
    assert "given: [7]" in with_values.out
    assert 'result: "r-1"' in with_values.out
    assert [step["key"] for step in in_json["steps"]] == ["reserve", "charge", "failure"]
    assert in_json["steps"][0]["duration"] == 0.25


def test_what_is_waited_for_is_shown_with_its_time_and_its_form(rowlock: Type, db: Db) -> None:
    job = put_workflow(db, run_at=SOON, wakes_at=3, parent=uuid4(), workflow_state='{"at": "approval"}')
    child = put(db, parent=job, task="label", queue="slow")
    put_step(db, job, "1/label", at=1, took=None, kind="child", child=child)
    put_step(db, job, "1/pay", at=2, took=None, state="retrying", attempts=2, until=SOON, error={"type": "Down"})
    put_step(db, job, "2/1/sleep", at=3, took=None, kind="sleep", until=SOON)
    put_step(db, job, "approve", at=4, took=None, kind="signal", until=SOON, form={"type": "boolean"})
    put_step(db, job, "undo/charge", at=5, kind="undo")
    put_signal(db, job, "hurry\x1b[31m", key="k-1")

    shown = rowlock("workflows", "show", str(job)).out

    for said in (
        "… 1/label  child  since ",
        f"{child} ready on slow",
        "↻ 1/pay  2 failed tries  next try in 3 d  Down",
        "… 2/1/sleep  sleep  until in 3 d",
        'approve  signal  time-out in 3 d  form {"type": "boolean"}',
        "✓ undo/charge  1.0 s  undo",
        "branch 1/",
        "branch 2/1/",
        'says      {"at": "approval"}',
        "signals that nobody has taken",
        "k-1",
    ):
        assert said in shown, said
    assert "\x1b[31m" not in shown


def test_the_difference_of_a_workflow_whose_code_has_changed_is_shown(rowlock: Type, db: Db) -> None:
    told = "changed code: at call 2 the code calls step 'ship', and the record has step 'charge' (done)."
    job = put_workflow(db, "waiting", waits_for="code", wakes_at=None, reason=told)

    shown = rowlock("workflows", "show", str(job)).out

    assert f"it cannot go on\n{told}" in shown
    assert "it has no steps yet" in shown


def test_a_failed_workflow_goes_on_from_the_step_that_has_failed(rowlock: Type, db: Db, failed: UUID) -> None:
    said = rowlock("workflows", "retry", str(failed), "--why", "the card works", "--by", "ann")
    again = rowlock("workflows", "retry", str(failed))

    assert (said.code, said.out) == (0, f"workflow {failed} goes on after reserve\n")
    assert keys_of(db, failed) == ["reserve"]
    assert (again.code, again.err) == (3, f"workflow {failed} has not ended; it is ready\n")
    assert one(db, "select actor from rowlock.events where kind = 'retried'") == "ann"


def test_who_cannot_retry_is_told_why(rowlock: Type, db: Db) -> None:
    done, undone = put_workflow(db, "succeeded"), put_workflow(db)
    put_step(db, undone, "undo/charge", kind="undo")
    end(db, undone, "cancelled")

    refused = rowlock("workflows", "retry", str(done))
    cancelled = rowlock("workflows", "retry", str(undone), "--json")

    assert refused.code == 3
    assert refused.err.endswith(f"to run it again, say: rowlock jobs retry {done} --state succeeded\n")
    assert json.loads(cancelled.out)["retried"] is False
    assert cancelled.err.endswith(f"to run it again, say: rowlock jobs retry {undone} --state cancelled\n")


def test_a_workflow_is_cancelled_and_undone_by_a_worker(rowlock: Type, db: Db, failed: UUID) -> None:
    begun, fresh = put_workflow(db, "waiting"), put_workflow(db, claims=0)

    said = rowlock("workflows", "cancel", str(begun), "--why", "a mistake")
    in_json = json.loads(rowlock("workflows", "cancel", str(fresh), "--json").out)
    late = rowlock("workflows", "cancel", str(failed))

    assert (said.code, said.out) == (0, f"workflow {begun} is being cancelled: a worker undoes what it has done\n")
    assert row_of(db, begun, "state") == ("ready",)
    assert in_json == {"id": str(fresh), "cancelled": True, "state": "cancelled"}
    assert (late.code, late.err) == (3, f"too late: workflow {failed} has ended as failed\n")


def test_a_workflow_is_terminated_without_undo(rowlock: Type, db: Db, failed: UUID) -> None:
    blocked, other = (put_workflow(db, "waiting", waits_for="code", wakes_at=None) for _ in range(2))

    said = rowlock("workflows", "terminate", str(blocked), "--why", "its code is gone")
    in_json = json.loads(rowlock("workflows", "terminate", str(other), "--json").out)
    late = rowlock("workflows", "terminate", str(failed))

    assert (said.code, said.out) == (0, f"workflow {blocked} has ended as cancelled; nothing was undone\n")
    assert in_json == {"id": str(other), "terminated": True, "state": "cancelled"}
    assert (late.code, late.err) == (3, f"too late: workflow {failed} has ended as failed\n")


def test_a_workflow_is_forked_from_a_step(rowlock: Type, db: Db, failed: UUID) -> None:
    said = rowlock("workflows", "fork", str(failed), "--from-step", "charge", "--arg", "card=new", "--version", "2")
    in_json = json.loads(rowlock("workflows", "fork", str(failed), "--from-step", "reserve", "--json").out)
    unknown = rowlock("workflows", "fork", str(failed), "--from-step", "chrge")

    fork = UUID(said.out.strip())
    assert row_of(db, fork, "args", "version") == ({"order": 7, "card": "new"}, 2)
    assert keys_of(db, fork) == ["reserve"]
    assert keys_of(db, UUID(in_json["id"])) == []
    assert unknown.code == 2
    assert "is not a step of workflow" in unknown.err
    assert "it has 'reserve', 'charge'" in unknown.err


@pytest.mark.parametrize("command", [["show"], ["cancel"], ["retry"], ["fork", "--from-step", "x"]])
def test_what_is_no_workflow_is_refused_with_a_sentence(rowlock: Type, db: Db, command: list[str]) -> None:
    plain, nobody = put(db, task="mail"), uuid4()
    verb, *options = command

    refused = rowlock("workflows", verb, str(plain), *options)
    missing = rowlock("workflows", verb, str(nobody), *options)

    assert refused.code == 1
    assert "is of 'mail', a plain task" in refused.err
    assert (missing.code, f"no job {nobody}" in missing.err) == (3, True)


def test_the_verbs_for_jobs_say_what_they_do_to_workflows(rowlock: Type, db: Db) -> None:
    begun = put_workflow(db, "waiting")

    deleted = rowlock("jobs", "delete", str(begun), "--yes")
    preview = json.loads(rowlock("jobs", "delete", str(begun), "--dry-run", "--json").out)
    cancelled = rowlock("jobs", "cancel", str(begun), "--yes")
    shown = rowlock("jobs", "show", str(begun))

    assert deleted.code == 3
    assert "workflows that have begun and children of workflows are not deleted; cancel them first" in deleted.err
    assert "no job was changed; 1 job passed over" in deleted.err
    assert (preview["count"], preview["passed_over"], preview["samples"]) == (0, 1, [])
    assert "it ends when a worker has undone what it did" in cancelled.err
    assert "shop.checkout@1" in shown.out
    assert "ready, cancelling" in shown.out
