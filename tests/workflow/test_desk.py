"""Workflows in operators' hands: listed, shown step by step, and forked."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from rowlock import Filter, Rowlock, RowlockError
from rowlock.errors import InvalidArguments, InvalidOption, JobNotFound, NotAWorkflow
from rowlock.model.workflow.timeline import TimelineBranch
from rowlock.store.workflows import records
from tests.rows import Db, put
from tests.worker.working import one
from tests.workflow.remembering import MORNING, end, keys_of, put_failure, put_signal, put_step, put_workflow, row_of

SOON = datetime.now(UTC) + timedelta(days=1)


# List


def test_workflows_are_listed_newest_first_live_and_ended_and_nothing_else(app: Rowlock, db: Db) -> None:
    first = put_workflow(db)
    put(db)
    second = put_workflow(db, "succeeded", version=2)
    put(db, "failed")
    third = put_workflow(db, "waiting")

    page = app.workflows.list()

    assert [record.id for record in page.records] == [third, second, first]
    assert [record.state for record in page.records] == ["parked", "succeeded", "ready"]
    assert [record.version for record in page.records] == [1, 2, 1]
    assert page.next is None


def test_a_list_goes_on_where_the_page_before_has_ended(app: Rowlock, db: Db, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "WINDOW", 3)  # smaller than a page, and than what lies between two that match
    jobs = [put_workflow(db, "failed" if n % 2 else "ready", queue=f"{n % 5}") for n in range(20)]
    wanted = [job for n, job in enumerate(jobs) if n % 5 == 2][::-1]

    first = app.workflows.list(Filter(queue="2"), limit=3)
    second = app.workflows.list(Filter(queue="2"), limit=3, before=first.next)
    everything = [app.workflows.list(limit=7, before=before).records for before in (None, jobs[13], jobs[6])]

    assert [record.id for record in first.records] == wanted[:3]
    assert [record.id for record in second.records] == wanted[3:]
    assert second.next is None
    assert [record.id for page in everything for record in page] == jobs[::-1]


def test_a_list_holds_only_what_was_asked_for(app: Rowlock, db: Db) -> None:
    put_workflow(db, task="other")
    put_workflow(db, version=2)
    put_workflow(db, "failed")
    put_workflow(db, queue="slow")
    wanted = put_workflow(db, run_at=SOON, wakes_at=1, key="order-7")

    found = app.workflows.list(
        Filter(task="shop.checkout", state=["parked", "running"], queue="default", key="order-7"), version=1
    )

    assert [record.id for record in found.records] == [wanted]
    assert [record.id for record in app.workflows.list(Filter(state="parked")).records] == [wanted]


def test_a_list_says_where_each_workflow_stands(app: Rowlock, db: Db) -> None:
    sleeps, waits, retries, runs = (
        put_workflow(db, run_at=SOON, wakes_at=1),
        put_workflow(db, run_at=SOON, wakes_at=1),
        put_workflow(db, run_at=SOON, wakes_at=1),
        put_workflow(db, "running"),
    )
    put_step(db, sleeps, "charge", at=1)
    put_step(db, sleeps, "sleep", at=2, took=None, kind="sleep", until=SOON)
    put_step(db, waits, "approve", took=None, kind="signal", until=SOON)
    put_step(db, retries, "charge", took=None, state="retrying", until=SOON)
    put_step(db, runs, "charge", at=1)
    put_step(db, runs, "ship", at=5)
    failed = put_workflow(db)
    put_step(db, failed, "charge", at=1, state="failed")
    put_step(db, failed, "apologise", at=3)
    put_failure(db, failed, "charge", at=5)
    end(db, failed)
    cancelling = put_workflow(db, cancel_at=MORNING, parent=uuid4())

    found = {record.id: record for record in app.workflows.list().records}

    said = {job: (record.state, record.waits_for, record.current_step) for job, record in found.items()}
    assert said == {
        sleeps: ("parked", "sleep", "sleep"),
        waits: ("parked", "signal", "approve"),
        retries: ("parked", "retry", "charge"),
        runs: ("running", None, "ship"),
        failed: ("failed", None, "charge"),
        cancelling: ("ready", None, None),
    }
    assert [job for job, record in found.items() if record.cancelling] == [cancelling]
    assert found[runs].started_at == MORNING + timedelta(seconds=1)
    assert found[runs].to_dict()["started_at"] == "2026-03-01T08:00:01+00:00"


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"version": 0}, "the first is 1"),
        ({"limit": 0}, "out of range"),
        ({"before": "x"}, "is not a UUID"),
        ({"filter": Filter(tag="a", since=SOON)}, "not by since, tag; app.jobs.list does"),
    ],
)
def test_a_list_of_what_cannot_be_is_refused(app: Rowlock, asked: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidOption, match=told):
        app.workflows.list(**asked)


# Show


def test_a_timeline_shows_the_steps_as_the_code_has_called_them(app: Rowlock, db: Db) -> None:
    job = put_workflow(db, "waiting", waits_for="children", args={"order": 7}, workflow_state='{"at": "ship"}')
    put_step(db, job, "charge", at=1, took=2, input=[7], value={"ok": True, "note": None}, attempts=2)
    put_step(db, job, "2/1/pack", at=6)
    put_step(db, job, "1/ship", at=4)
    put_step(db, job, "1/ship#2", at=7)
    child = put(db, parent=job, task="label", queue="slow")
    put_step(db, job, "label", at=9, took=None, kind="child", child=child)
    put_step(db, job, "approve", at=10, took=None, kind="signal", until=SOON, form={"type": "object"})
    put_signal(db, job, "hurry", payload={"x": None}, key="k")
    put_signal(db, job, "taken", 2, taken_at=MORNING)

    timeline = app.workflows.show(job)

    assert _tree(timeline.steps) == [
        "charge",
        ("1/", ["1/ship", "1/ship#2"]),
        ("2/", [("2/1/", ["2/1/pack"])]),
        "label",
        "approve",
    ]
    assert [step.key for step in timeline] == ["charge", "1/ship", "2/1/pack", "1/ship#2", "label", "approve"]
    charge, ship = timeline.steps[0], timeline.steps[1]
    assert not isinstance(charge, TimelineBranch)
    assert (charge.input, charge.result, charge.attempts) == ([7], {"ok": True, "note": None}, 2)
    assert charge.duration == timedelta(seconds=2)
    assert ship.duration == timedelta(seconds=4)
    assert [(step.name, step.kind, step.form) for step in timeline.waits] == [
        ("label", "child", None),
        ("approve", "signal", {"type": "object"}),
    ]
    assert timeline.waits[0].duration is None
    assert [(signal.name, signal.key, signal.payload) for signal in timeline.signals] == [("hurry", "k", {"x": None})]
    assert [(one.id, one.task, one.queue, one.state) for one in timeline.children.values()] == [
        (child, "label", "slow", "ready")
    ]
    assert (timeline.job.version, timeline.job.workflow_state) == (1, {"at": "ship"})


def test_the_timeline_of_an_ended_workflow_is_the_one_that_it_had(app: Rowlock, db: Db) -> None:
    job = put_workflow(db, args={"order": 7})
    put_step(db, job, "charge", at=1, input=[7], value=None)
    put_step(db, job, "1/ship", at=2, state="failed", error={"type": "Lost"}, attempts=3)
    put_failure(db, job, "1/ship", at=3)
    put_step(db, job, "undo/charge", at=5, kind="undo")
    put_signal(db, job, "late", payload=1)
    put_signal(db, job, "taken", 2, taken_at=MORNING)
    before = app.workflows.show(job)
    end(db, job)

    after = app.workflows.show(str(job))

    assert after.steps == before.steps
    assert after.signals == before.signals
    assert [step.key for step in after] == ["charge", "1/ship", "failure", "undo/charge"]
    assert _tree(after.steps) == ["charge", ("1/", ["1/ship"]), "failure", "undo/charge"]
    assert after.to_dict()["steps"][1]["steps"][0]["error"] == {"type": "Lost"}


def test_what_is_no_workflow_has_no_timeline(app: Rowlock, db: Db) -> None:
    plain = put(db, task="mail")

    with pytest.raises(NotAWorkflow, match=r"is of 'mail', a plain task: app\.workflows\.show is for workflows"):
        app.workflows.show(plain)
    with pytest.raises(JobNotFound):
        app.workflows.show(uuid4())


def test_on_a_loop_there_are_verbs_to_await(app: Rowlock, db: Db) -> None:
    job = put_workflow(db)
    put_step(db, job, "charge")

    async def verbs() -> tuple[UUID, int, UUID]:
        with pytest.raises(RowlockError, match=r"await app\.workflows\.alist"):
            app.workflows.list()
        page = await app.workflows.alist(Filter(state="ready"))
        timeline = await app.workflows.ashow(job)
        fork = await app.workflows.afork(job, from_step="charge")
        return page.records[0].id, len(timeline.steps), fork.id

    listed, steps, fork = asyncio.run(verbs())

    assert (listed, steps) == (job, 1)
    assert row_of(db, fork, "state") == ("ready",)


# Fork


def ordered(db: Db, **columns: Any) -> UUID:  # noqa: ANN401  whatever a column takes
    """A workflow that has charged, shipped by two branches, and told."""
    job = put_workflow(
        db, args={"order": 7, "card": "old"}, key="order-7", tags=["a"], priority=2, queue="shop", **columns
    )
    put_step(db, job, "start", at=0, took=0, kind="start", value={"page": 4})
    put_step(db, job, "charge", at=1, input=[7, "old"], value="c-1")
    put_step(db, job, "1/ship", at=10, took=5, child=uuid4(), kind="child")
    put_step(db, job, "2/ship", at=10, took=2, child=uuid4(), kind="child")
    put_step(db, job, "2/label", at=16, took=2)
    put_step(db, job, "tell", at=20, value="told")
    put_step(db, job, "3/late", at=30)
    put_step(db, job, "approve", at=40, took=None, kind="signal")
    return job


@pytest.mark.parametrize("is_ended", [False, True])
@pytest.mark.parametrize(
    ("step", "kept"),
    [
        ("charge", ["start"]),
        ("1/ship", ["start", "charge", "2/ship", "2/label"]),
        ("2/label", ["start", "charge", "1/ship", "2/ship"]),
        ("tell", ["start", "charge", "1/ship", "2/ship", "2/label"]),
        ("3/late", ["start", "charge", "1/ship", "2/ship", "2/label", "tell"]),
        ("approve", ["start", "charge", "1/ship", "2/ship", "2/label", "tell", "3/late"]),
    ],
)
def test_a_fork_remembers_what_was_done_before_its_step(
    app: Rowlock, db: Db, step: str, kept: list[str], *, is_ended: bool
) -> None:
    job = ordered(db)
    put_signal(db, job, "hurry")
    if is_ended:
        end(db, job, "failed")

    fork = app.workflows.fork(job, from_step=step, by="ada", why="the card was bad")

    assert keys_of(db, fork.id) == kept
    assert (fork.task, fork.queue) == ("shop.checkout", "shop")
    facts = row_of(db, fork.id, "state", "version", "wakes", "claims", "attempts", "key", "parent", "priority", "tags")
    assert facts == ("ready", 1, 1, 0, 1, None, None, 2, ["a"])
    assert row_of(db, fork.id, "args", "workflow_state") == ({"order": 7, "card": "old"}, {"page": 4})
    assert one(db, "select count(*) from rowlock.signals where job = %s", fork.id) == 0
    assert one(db, "select job from rowlock.keys") == job
    told = {event.job: event.details for event in app.jobs.events() if event.kind == "forked"}
    common = {"task": "shop.checkout", "queue": "shop", "why": "the card was bad", "step": step, "version": 1}
    assert told == {fork.id: common | {"from": str(job)}, job: common | {"into": str(fork.id)}}


def test_a_fork_leaves_the_workflow_itself_as_it_is(app: Rowlock, db: Db) -> None:
    job = ordered(db)
    before = app.workflows.show(job)

    app.workflows.fork(job, from_step="tell")

    assert app.workflows.show(job) == before


def test_a_fork_leaves_out_what_is_undecided_and_all_that_was_undone(app: Rowlock, db: Db) -> None:
    job = put_workflow(db)
    put_step(db, job, "1/try", at=1, took=None, state="retrying", attempts=1)
    put_step(db, job, "2/wait", at=1, took=None, kind="signal")
    put_step(db, job, "3/caught", at=1, state="failed", error={"type": "Caught"})
    put_step(db, job, "charge", at=9)
    put_failure(db, job, "charge", at=10)
    put_step(db, job, "undo/charge", at=11, kind="undo", state="failed")

    fork = app.workflows.fork(job, from_step="charge")
    put_step(db, job, "undo/other", at=11, kind="undo")
    anew = app.workflows.fork(job, from_step="charge")

    assert keys_of(db, fork.id) == ["3/caught"]
    assert keys_of(db, anew.id) == []


def test_a_fork_may_have_other_arguments_and_another_version(app: Rowlock, db: Db) -> None:
    job = ordered(db)

    fork = app.workflows.fork(job, from_step="tell", args={"card": "new"}, version=3)

    assert row_of(db, fork.id, "args", "version") == ({"order": 7, "card": "new"}, 3)
    # What earlier steps were given cannot be compared with what the code gives them now.
    assert one(db, "select count(input) from rowlock.steps where job = %s", fork.id) == 0
    assert one(db, "select value from rowlock.steps where job = %s and key = 'charge'", fork.id) == "c-1"


def test_arguments_of_a_fork_must_fit_the_code_where_that_is_known(app: Rowlock, db: Db) -> None:
    @app.workflow(name="shop.checkout")
    async def checkout(ctx: Any, order: int, card: str) -> None:  # noqa: ANN401  nobody runs it
        raise NotImplementedError

    job = ordered(db)

    with pytest.raises(InvalidArguments, match="colour"):
        app.workflows.fork(job, from_step="tell", args={"colour": "red"})
    with pytest.raises(InvalidOption, match="must be a mapping"):
        app.workflows.fork(job, from_step="tell", args=["new"])  # type: ignore[arg-type]  # on purpose
    assert one(db, "select count(*) from rowlock.jobs") == 1


def test_who_forks_from_a_step_that_is_not_there_is_told_which_are(app: Rowlock, db: Db) -> None:
    job, empty, plain = ordered(db), put_workflow(db), put(db)

    with pytest.raises(InvalidOption, match=r"from_step='chrge' is not a step of .*; it has 'charge', '1/ship', "):
        app.workflows.fork(job, from_step="chrge")
    with pytest.raises(InvalidOption, match="has no steps to fork from; enqueue it again"):
        app.workflows.fork(empty, from_step="charge")
    with pytest.raises(NotAWorkflow, match="fork is for workflows"):
        app.workflows.fork(plain, from_step="charge")
    with pytest.raises(JobNotFound):
        app.workflows.fork(uuid4(), from_step="charge")


def test_a_fork_that_is_sent_twice_is_made_once(app: Rowlock, db: Db) -> None:
    job = ordered(db)
    fork_id = str(uuid4())
    query = records.fork(job, new_id=fork_id, step="tell", args=None, version=None, actor="me", why=None)

    answers = [app.database.converse(lambda: _alone(query)) for _ in range(2)]
    end(db, UUID(fork_id), "succeeded")
    answers.append(app.database.converse(lambda: _alone(query)))

    assert answers == [[records.Forked("shop.checkout", 1, "shop")]] * 3
    assert one(db, "select count(*) from rowlock.events where kind = 'forked'") == 2
    assert one(db, "select count(*) from rowlock.jobs where id = %s", fork_id) == 0


def test_a_fork_that_was_never_claimed_is_cancelled_by_a_worker_because_it_has_steps(app: Rowlock, db: Db) -> None:
    fork = app.workflows.fork(ordered(db), from_step="tell")

    assert fork.cancel()

    assert row_of(db, fork.id, "state") == ("ready",)
    assert row_of(db, fork.id, "cancel_at") != (None,)
    assert app.jobs.delete(Filter(ids=[fork.id])).passed_over == 1


# The views


def test_the_views_answer_the_questions_that_people_ask_in_sql(db: Db) -> None:
    live = put_workflow(db, "waiting", key="order-7", args={"order": 7}, workflow_state='{"at": "ship"}', error="Lost")
    put_step(db, live, "charge#2", at=1, took=2, value=1)
    put_step(db, live, "1/approve", at=3, took=None, kind="signal")
    ended = put_workflow(db, version=2)
    put_step(db, ended, "charge", at=1, took=2, value=1)
    end(db, ended, "succeeded", result='"done"')
    put(db)

    found = db.execute(
        "select id, workflow, version, state, current_step, waits_for, workflow_state, input, result, last_error"
        " from rowlock.workflows order by id"
    ).fetchall()
    steps = db.execute(
        "select workflow_id, step_key, name, kind, state, result, duration from rowlock.workflow_steps"
        " order by workflow_id, started_at"
    ).fetchall()

    took = timedelta(seconds=2)
    assert found == [
        (live, "shop.checkout", 1, "parked", "1/approve", "signal", {"at": "ship"}, {"order": 7}, None, "Lost: no"),
        (ended, "shop.checkout", 2, "succeeded", "charge", None, None, {}, "done", ""),
    ]
    assert steps == [
        (live, "charge#2", "charge", "step", "done", 1, took),
        (live, "1/approve", "approve", "signal", "open", None, None),
        (ended, "charge", "charge", "step", "done", 1, took),
    ]


def _tree(steps: Any) -> list[Any]:  # noqa: ANN401  a tree of keys
    return [(one.key, _tree(one.steps)) if isinstance(one, TimelineBranch) else one.key for one in steps]


def _alone(query: Any) -> Any:  # noqa: ANN401  as converse takes it
    return (yield query)
