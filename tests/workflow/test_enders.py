"""Whoever would end a workflow that has begun, or a child, passes it to a worker: there may be something to undo."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.rows import TupleRow

from rowlock import Filter, Rowlock
from rowlock.model.outcome import Blocked, HandedBack
from rowlock.model.row import Orphan
from rowlock.model.spec import Keep
from rowlock.store import jobs, settle, upkeep, workers
from rowlock.store.schedules import fire
from tests.engine import Engine
from tests.rows import Db, put
from tests.worker.working import one
from tests.workflow.remembering import is_live, put_signal, put_step, put_workflow, row_of

SOON = datetime.now(UTC) + timedelta(days=1)
PAST = datetime.now(UTC) - timedelta(days=1)


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    """A worker's statements, by hand."""
    engine = Engine(url)
    yield engine
    engine.close()


def park(db: Db, queue: str = "default") -> None:
    """A worker has nothing to do, and is to be notified."""
    db.execute("insert into rowlock.parked (queue, worker) values (%s, %s)", [queue, uuid4()])


def listening(db: Db) -> psycopg.Connection[TupleRow]:
    """Hears what workers of the queue `default` are notified of."""
    connection = psycopg.connect(db.info.dsn, autocommit=True)
    connection.execute(f'listen "{one(connection, "select rowlock.channel(%s)", "default")}"'.encode())
    return connection


def heard(connection: psycopg.Connection[TupleRow]) -> list[str]:
    return [notice.payload for notice in connection.notifies(timeout=0.2)]


# Cancel


def cancel_by_filter(app: Rowlock, _db: Db, job: UUID) -> None:
    assert app.jobs.cancel(Filter(ids=[job]), why="no more").changed == 1


def cancel_by_handle(app: Rowlock, _db: Db, job: UUID) -> None:
    assert app.jobs.get(job).cancel(why="no more")


def cancel_by_sql(_app: Rowlock, db: Db, job: UUID) -> None:
    assert one(db, "select rowlock.cancel(%s, why => 'no more')", job) == "cancelled"


Cancel = Callable[[Rowlock, Db, UUID], None]
WAYS = pytest.mark.parametrize("cancel", [cancel_by_filter, cancel_by_handle, cancel_by_sql])


@WAYS
@pytest.mark.parametrize(
    ("state", "columns"),
    [
        ("waiting", {"run_at": PAST}),
        ("waiting", {"waits_for": "children", "reason": "for its children", "wakes_at": 3}),
        ("waiting", {"waits_for": "code", "wakes_at": None, "reason": "unknown version"}),
        ("ready", {"run_at": SOON, "wakes_at": 4}),
        ("ready", {"run_at": SOON}),
    ],
)
def test_a_workflow_that_waits_is_marked_and_ready_for_a_worker_to_undo_it(
    app: Rowlock, db: Db, cancel: Cancel, state: str, columns: dict[str, object]
) -> None:
    job = put_workflow(db, state, key="order-7", **columns)
    put_step(db, job, "charge")
    park(db)

    with listening(db) as ear:
        cancel(app, db, job)
        woken = heard(ear)

    assert row_of(db, job, "state", "waits_for", "reason", "wakes_at") == ("ready", None, None, None)
    assert one(db, "select cancel_at is not null and run_at <= rowlock.now() from rowlock.jobs where id = %s", job)
    assert one(db, "select run_at > rowlock.now() - interval '1 minute' from rowlock.jobs where id = %s", job)
    assert one(db, "select until is null from rowlock.keys where job = %s", job)
    assert one(db, "select count(*) from rowlock.steps where job = %s", job) == 1
    assert (
        one(db, "select details ->> 'why' from rowlock.events where job = %s and kind = 'cancelled'", job) == "no more"
    )
    assert woken == [""]


@WAYS
def test_a_workflow_that_is_due_already_keeps_its_place_when_it_is_cancelled(
    app: Rowlock, db: Db, cancel: Cancel
) -> None:
    job = put_workflow(db, run_at=PAST)

    cancel(app, db, job)

    assert row_of(db, job, "state", "run_at") == ("ready", PAST)


@WAYS
def test_a_child_is_passed_to_a_worker_too_because_its_parent_is_to_be_told(
    app: Rowlock, db: Db, cancel: Cancel
) -> None:
    child = put(db, parent=uuid4())

    cancel(app, db, child)

    assert row_of(db, child, "state") == ("ready",)
    assert row_of(db, child, "cancel_at") != (None,)


@WAYS
def test_a_workflow_to_which_nothing_has_happened_ends_at_once_and_its_key_is_kept(
    app: Rowlock, db: Db, cancel: Cancel
) -> None:
    job = put_workflow(db, claims=0, key="order-7")

    cancel(app, db, job)

    assert row_of(db, job, "state", "reason", "version") == ("cancelled", "asked", 1)
    kept = (
        "select until between rowlock.now() + interval '6 days' and rowlock.now() + interval '8 days' from rowlock.keys"
    )
    assert one(db, kept)


@WAYS
def test_a_workflow_that_was_only_sent_a_signal_takes_it_along_by_a_worker(
    app: Rowlock, db: Db, cancel: Cancel
) -> None:
    job = put_workflow(db, claims=0, wakes=1)
    put_signal(db, job, "paid")

    cancel(app, db, job)

    assert is_live(db, job)
    assert one(db, "select count(*) from rowlock.signals where job = %s", job) == 1


@WAYS
def test_who_cancels_a_second_time_is_told_the_truth_and_changes_nothing(app: Rowlock, db: Db, cancel: Cancel) -> None:
    job = put_workflow(db, "waiting")
    cancel(app, db, job)
    asked = row_of(db, job, "cancel_at", "run_at")

    again = (
        app.jobs.get(job).cancel(),
        one(db, "select rowlock.cancel(%s)", job),
        app.jobs.cancel(Filter(ids=[job])).changed,
    )

    assert again == (True, "cancelled", 0)
    assert row_of(db, job, "cancel_at", "run_at") == asked
    assert one(db, "select count(*) from rowlock.events where job = %s", job) == 1


def test_a_worker_is_asked_to_cancel_only_what_it_runs(engine: Engine, db: Db) -> None:
    held = put_workflow(db, "running", worker=engine.worker, cancel_at=PAST)
    put_workflow(db, worker=engine.worker, cancel_at=PAST)

    asked = engine.run(jobs.cancelling(worker=engine.worker))

    assert [UUID(token) for token in asked] == list(row_of(db, held, "token"))


def test_the_next_job_of_a_schedule_replaces_a_workflow_as_a_cancel_does(app: Rowlock, engine: Engine, db: Db) -> None:
    app.schedules.add("nightly", app.call("t"), "@daily")
    begun, new = put_workflow(db, "waiting"), put_workflow(db, claims=0)
    db.execute("update rowlock.schedules set jobs = %s", [[begun, new]])

    replaced = engine.run(fire.make_room([str(begun), str(new)], schedule="nightly", keep=timedelta(days=1)))

    assert replaced == [2]
    assert row_of(db, begun, "state", "waits_for", "wakes_at") == ("ready", None, None)
    assert row_of(db, begun, "cancel_at") != (None,)
    assert row_of(db, new, "state", "version") == ("cancelled", 1)


# Expire


def test_only_a_workflow_to_which_nothing_has_happened_expires_by_itself(engine: Engine, db: Db) -> None:
    fresh = put_workflow(db, claims=0, expires_at=PAST, key="order-7")
    begun = [put_workflow(db, expires_at=PAST), put_workflow(db, "waiting", expires_at=PAST)]
    signalled = put_workflow(db, claims=0, wakes=1, expires_at=PAST)
    child = put(db, parent=begun[0], expires_at=PAST)

    expired = engine.run(upkeep.expire(keep=timedelta(days=3)))

    assert expired == [1]
    assert row_of(db, fresh, "state", "reason", "version") == ("cancelled", "expired", 1)
    assert all(is_live(db, job) for job in [*begun, signalled, child])
    assert one(db, "select until > rowlock.now() + interval '2 days' from rowlock.keys where job = %s", fresh)


# Rescue


def orphan(db: Db, job: UUID) -> Orphan:
    return Orphan(str(job), str(row_of(db, job, "token")[0]))


@pytest.mark.parametrize(
    ("columns", "kind"),
    [
        ({"version": 1}, "rescued"),
        ({"version": 1, "crashes": 2}, "poisoned"),
        ({"version": None, "parent": uuid4(), "crashes": 2}, "poisoned"),
        ({"version": 1, "crashes": 2, "cancel_at": PAST}, "rescued"),
        ({"version": None, "parent": uuid4(), "cancel_at": PAST}, "rescued"),
    ],
)
def test_a_rescued_workflow_or_child_goes_back_whatever_it_is_to_become(
    engine: Engine, db: Db, columns: dict[str, object], kind: str
) -> None:
    job = put_workflow(db, "running", begun=True, worker=uuid4(), **columns)
    put_step(db, job, "charge")
    crashes, cancel_at = row_of(db, job, "crashes", "cancel_at")
    state = "waiting" if crashes else "ready"  # a second crash makes a suspect of it

    [rescued] = engine.run(upkeep.rescue([orphan(db, job)], crashes=3, keep=Keep(), actor="test"))

    assert (rescued.becomes, rescued.crashes) == (state, crashes + 1)
    assert row_of(db, job, "state", "token", "crashes", "cancel_at") == (state, None, crashes + 1, cancel_at)
    assert one(db, "select count(*) from rowlock.steps where job = %s", job) == 1
    assert one(db, "select kind from rowlock.events where job = %s", job) == kind


def test_the_crash_of_a_workflow_that_was_called_poison_is_pardoned_as_any(engine: Engine, db: Db) -> None:
    job = put_workflow(db, "running", crashes=2, worker=engine.worker, begun=True)
    db.execute("update rowlock.workers set lease = rowlock.now()")
    engine.run(upkeep.rescue([orphan(db, job)], crashes=3, keep=Keep(), actor="test"))

    pardoned = engine.run(upkeep.pardon(worker=engine.worker, since=timedelta(hours=1)))

    assert [UUID(one) for one in pardoned] == [job]
    assert row_of(db, job, "crashes") == (2,)


# Give back


def test_a_workflow_that_is_being_cancelled_can_be_handed_back_and_stays_marked(engine: Engine, db: Db) -> None:
    returned = put_workflow(db, cancel_at=PAST)
    [row] = engine.claim()
    blocked = put_workflow(db, cancel_at=PAST)
    [other] = engine.claim()

    accepted = engine.run(
        settle.return_workflows([(row, HandedBack()), (other, Blocked("code", "unknown version 2"))], told={})
    )

    assert sorted(accepted) == sorted([row.token, other.token])
    assert row_of(db, returned, "state", "token", "cancel_at") == ("ready", None, PAST)
    assert row_of(db, blocked, "state", "waits_for", "cancel_at") == ("waiting", "code", PAST)


def test_workflows_and_children_that_are_being_cancelled_are_given_back_by_a_worker_that_stops(
    engine: Engine, db: Db
) -> None:
    workflow = put_workflow(db, "running", worker=engine.worker, started_at=PAST, cancel_at=PAST)
    child = put(db, "running", parent=workflow, worker=engine.worker, started_at=PAST, cancel_at=PAST)
    plain = put(db, "running", worker=engine.worker, started_at=PAST)
    disowned = put_workflow(db, "running", worker=engine.worker, started_at=PAST, cancel_at=PAST)

    engine.run(workers.disown([(str(disowned), str(row_of(db, disowned, "token")[0]))], worker=engine.worker))
    engine.run(workers.hand_back(worker=engine.worker))

    back = [row_of(db, job, "state", "cancel_at") for job in (workflow, child, plain, disowned)]
    assert back == [("ready", PAST), ("ready", PAST), ("ready", None), ("ready", PAST)]


# Delete, and what else operators do


def test_what_has_begun_or_has_a_parent_cannot_be_deleted_before_it_has_ended(app: Rowlock, db: Db) -> None:
    begun, signalled = put_workflow(db), put_workflow(db, claims=0, wakes=1)
    child, fresh = put(db, parent=begun), put_workflow(db, claims=0, key="order-7")
    ended = put_workflow(db, "failed")

    done = app.jobs.delete(Filter(ids=[begun, signalled, child, fresh, ended]))

    assert (done.changed, done.passed_over) == (2, 3)
    left = db.execute("select id from rowlock.jobs union all select id from rowlock.history order by id").fetchall()
    assert [job for (job,) in left] == sorted([begun, signalled, child])
    assert one(db, "select count(*) from rowlock.keys") == 0


def test_a_sleep_cannot_be_hurried_but_what_is_due_or_has_not_begun_can(app: Rowlock, db: Db) -> None:
    asleep, waits = put_workflow(db, run_at=SOON, wakes_at=1), put_workflow(db, run_at=SOON, wakes_at=2)
    delayed, due = put_workflow(db, claims=0, run_at=SOON), put_workflow(db)

    done = app.jobs.run_next(Filter(ids=[asleep, waits, delayed, due]))

    assert (done.changed, done.passed_over) == (2, 2)
    assert [row_of(db, job, "priority")[0] for job in (asleep, waits, delayed, due)] == [0, 0, 4, 4]
    assert row_of(db, asleep, "run_at") == (SOON,)


def test_a_parked_workflow_is_moved_and_reprioritised_as_any_job_and_goes_on_waiting(app: Rowlock, db: Db) -> None:
    job = put_workflow(db, "waiting")

    app.jobs.move(Filter(ids=[job]), queue="slow")
    app.jobs.reprioritise(Filter(ids=[job]), priority=3)

    assert row_of(db, job, "state", "waits_for", "wakes_at", "queue", "priority") == ("waiting", "signal", 1, "slow", 3)


def test_a_plain_call_by_the_name_of_a_workflow_cannot_replace_its_arguments(app: Rowlock, db: Db) -> None:
    job = put_workflow(db, key="order-7", args={"order": 7})

    made = one(
        db,
        "select rowlock.enqueue('shop.checkout', '{\"order\": 8}', key => 'order-7', taken => 'replace')",
    )

    assert made == job
    assert row_of(db, job, "args") == ({"order": 7},)
