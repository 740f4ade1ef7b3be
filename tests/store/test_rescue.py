"""Rescue and its mercy: what is taken back, what is left, and what is pardoned; one statement at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta

import pytest

from rowlock import Rowlock
from rowlock.db.thread_connection import ReconnectingSyncConnection
from rowlock.model.outcome import Succeeded
from rowlock.model.row import ClaimedJob, Orphan, Rescued
from rowlock.model.spec import Keep
from rowlock.store import claim, pauses, upkeep, workers
from rowlock.worker.lease import Lease
from rowlock.worker.rescue import Rescuer
from tests.engine import Engine
from tests.rows import travel
from tests.worker.working import Db, one

DAY = timedelta(days=1)


@pytest.fixture
def dead(url: str) -> Iterator[Engine]:
    engine = Engine(url)
    yield engine
    engine.close()


@pytest.fixture
def other(url: str) -> Iterator[Engine]:
    engine = Engine(url)
    yield engine
    engine.close()


def die(engine: Engine, db: Db) -> None:
    db.execute("update rowlock.workers set lease = rowlock.now() where id = %s", [engine.worker])


def rescue(engine: Engine, *rows: ClaimedJob) -> list[Rescued]:
    orphans = [Orphan(row.id, row.token) for row in rows]
    return engine.run(upkeep.rescue(orphans, crashes=3, keep=Keep(), actor="test"))


def test_orphans_are_the_jobs_of_workers_without_a_fresh_lease(dead: Engine, other: Engine, db: Db) -> None:
    dead.enqueue(3)
    orphaned = dead.claim(2)
    other.claim(1)
    die(dead, db)

    found = other.run(upkeep.orphans(limit=10, lost=False))
    fewer = other.run(upkeep.orphans(limit=1, lost=False))
    without = other.run(upkeep.orphans(limit=10, lost=False, without=[found[0].token]))

    assert found == sorted(Orphan(row.id, row.token) for row in orphaned)
    assert fewer == found[:1]
    assert without == found[1:]


def test_jobs_of_a_worker_that_is_not_on_the_books_are_found_when_asked_for(dead: Engine, other: Engine) -> None:
    dead.enqueue()
    [row] = dead.claim()
    dead.run(workers.leave(worker=dead.worker))

    assert other.run(upkeep.orphans(limit=10, lost=False)) == []
    assert other.run(upkeep.orphans(limit=10, lost=True)) == [Orphan(row.id, row.token)]
    assert [job.owner for job in rescue(other, row)] == ["unknown"]


def test_a_job_that_was_settled_or_claimed_anew_meanwhile_is_not_rescued(dead: Engine, other: Engine, db: Db) -> None:
    dead.enqueue(2)
    settled, taken = dead.claim()
    die(dead, db)

    dead.settle(settled, outcome=Succeeded(None))
    db.execute("update rowlock.jobs set state = 'ready', token = null where id = %s", [taken.id])
    [again] = other.claim()
    die(other, db)  # it is an orphan again, but not of the attempt that was found
    rescued = rescue(other, settled, taken)

    assert again.id == taken.id
    assert rescued == []
    assert db.execute("select state, crashes from rowlock.jobs").fetchall() == [("running", 0)]


def test_a_worker_that_has_a_fresh_lease_loses_nothing(dead: Engine, other: Engine) -> None:
    dead.enqueue()
    [row] = dead.claim()

    assert rescue(other, row) == []


def test_a_job_that_is_being_cancelled_ends_as_cancelled_and_frees_its_key(dead: Engine, other: Engine, db: Db) -> None:
    dead.enqueue()
    db.execute("update rowlock.jobs set key = 'k'")
    db.execute("insert into rowlock.keys (key, task, job) select 'k', task, id from rowlock.jobs")
    [row] = dead.claim()
    db.execute("update rowlock.jobs set cancel_at = rowlock.now()")
    die(dead, db)

    [rescued] = rescue(other, row)

    assert rescued.becomes == "cancelled"
    assert db.execute("select state, reason, crashes from rowlock.history").fetchall() == [("cancelled", "asked", 1)]
    assert one(db, "select count(*) from rowlock.jobs") == 0
    assert one(db, "select count(*) from rowlock.keys") == 0


def test_every_job_of_a_batch_keeps_its_own_errors(dead: Engine, other: Engine, db: Db) -> None:
    dead.enqueue(2)
    first, second = sorted(dead.claim())
    db.execute('update rowlock.jobs set errors = array[\'{"type": "Mine"}\'::json] where id = %s', [first.id])
    die(dead, db)

    rescue(other, first, second)

    errors = "select array(select error ->> 'type' from unnest(errors) as error) from rowlock.jobs order by id"
    assert db.execute(errors.encode()).fetchall() == [(["Mine", "WorkerLost"],), (["WorkerLost"],)]


def test_an_operators_retention_holds_for_poison_too(dead: Engine, other: Engine, db: Db) -> None:
    db.execute("insert into rowlock.queues (name, keep_failed) values ('default', '3 days')")
    dead.enqueue()
    [row] = dead.claim()
    db.execute("update rowlock.jobs set crashes = 2")
    die(dead, db)

    rescue(other, row)

    kept = "select reason, expires_on - (ended_at at time zone 'UTC')::date from rowlock.history"
    assert db.execute(kept.encode()).fetchall() == [("poison", 3)]


def test_a_worker_that_comes_back_takes_back_the_crash_of_its_jobs_once(dead: Engine, other: Engine, db: Db) -> None:
    dead.enqueue(2)
    mine, others = dead.claim()
    die(dead, db)
    rescue(other, mine, others)
    db.execute("update rowlock.jobs set crashes = 2 where id = %s", [mine.id])  # another worker died of it before

    first = dead.run(upkeep.pardon(worker=dead.worker, since=DAY))
    second = dead.run(upkeep.pardon(worker=dead.worker, since=DAY))

    assert sorted(first) == sorted([mine.id, others.id])
    assert second == []
    assert dict(db.execute("select id::text, crashes from rowlock.jobs").fetchall()) == {mine.id: 1, others.id: 0}
    assert one(db, "select errors[1] ->> 'type' from rowlock.jobs limit 1") == "WorkerCutOff"


def test_a_crash_under_another_worker_is_not_pardoned(dead: Engine, other: Engine, db: Db) -> None:
    dead.enqueue()
    [row] = dead.claim()
    die(dead, db)
    rescue(other, row)

    assert other.run(upkeep.pardon(worker=other.worker, since=DAY)) == []
    assert one(db, "select crashes from rowlock.jobs") == 1


def test_a_worker_gives_back_what_it_does_not_know_of_by_token(dead: Engine, db: Db) -> None:
    dead.enqueue(3)
    known, unknown, cancelled = sorted(dead.claim())
    db.execute("update rowlock.jobs set cancel_at = rowlock.now() where id = %s", [cancelled.id])

    returned = dead.run(workers.hand_back(worker=dead.worker, known=[known.token]))

    assert returned == [unknown.id]
    states = db.execute("select state from rowlock.jobs order by id").fetchall()
    assert states == [("running",), ("ready",), ("running",)]


def test_claims_that_nobody_was_told_of_are_disowned_at_no_cost(dead: Engine, other: Engine, db: Db) -> None:
    dead.enqueue(2)
    [told] = dead.claim(1)
    [never_told] = dead.claim(1)

    stolen = other.run(workers.disown([(never_told.id, never_told.token)], worker=other.worker))
    returned = dead.run(workers.disown([(never_told.id, never_told.token)], worker=dead.worker))

    assert stolen == []
    assert returned == [never_told.id]
    assert db.execute("select failures, crashes, token from rowlock.jobs where state = 'ready'").fetchall() == [
        (0, 0, None)
    ]
    assert one(db, "select id::text from rowlock.jobs where state = 'running'") == told.id


def test_where_nobody_has_made_parts_of_events_jobs_are_rescued_and_cancelled_and_pauses_end(
    dead: Engine, other: Engine, app: Rowlock, db: Db, url: str
) -> None:
    """An app that keeps jobs for a week makes no parts of history for the day on which an event of now expires."""
    travel(db, timedelta(days=15))
    app.queues.pause("other", duration=timedelta(seconds=1))
    db.execute("update rowlock.pauses set until = rowlock.now()")
    db.execute("drop table rowlock." + ", rowlock.".join(parts_of_events(db)))
    db.execute("update rowlock.workers set lease = rowlock.now() + interval '1 minute'")
    [killed, cancelled] = dead.enqueue(2)
    dead.claim(1)
    die(dead, db)

    lease = Lease(lasts=timedelta(seconds=30), margin=timedelta(seconds=5))
    rescuer = Rescuer(
        worker=other.worker, actor="test", keep=Keep(), longest=7 * DAY, patience=timedelta(0), lease=lease
    )
    with closing(ReconnectingSyncConnection(url, "rowlock", name="rowlock test")) as connection:
        rescuer.sweep(connection, lost=False)
        connection.run(pauses.expire(actor="test"))
    db.execute("select rowlock.cancel(%s)", [cancelled])

    assert db.execute("select id::text, crashes from rowlock.jobs").fetchall() == [(killed, 1)]
    assert db.execute("select from rowlock.pauses").fetchall() == []
    said = db.execute("select kind from rowlock.events where expires_on = 'infinity' order by 1").fetchall()
    assert said == [("cancelled",), ("pause_over",), ("rescued",)]


def parts_of_events(db: Db) -> list[str]:
    found = db.execute("select inhrelid::regclass::text from pg_inherits where inhparent = 'rowlock.events'::regclass")
    return [name.rpartition(".")[2] for (name,) in found if not name.endswith("spare")]


def test_the_crash_is_the_suspects_alone_and_none_of_what_had_not_begun(dead: Engine, other: Engine, db: Db) -> None:
    ids = dead.enqueue(4)
    rows = dead.run(claim.claim(lanes=[claim.Lane("default", 0)], limit=4, worker=dead.worker, free=2))
    suspect, beside, *waiting = sorted(rows, key=lambda row: (not row.begun, row.id))
    db.execute("update rowlock.jobs set crashes = 2 where id = %s", [suspect.id])
    die(dead, db)

    orphans = other.run(upkeep.orphans(limit=10, lost=False, worker=other.worker))
    rescued = {row.id: row for row in rescue(other, suspect, beside, *waiting)}

    assert [row.begun for row in (suspect, beside, *waiting)] == [True, True, False, False]
    assert orphans[-1].id == suspect.id  # after what is decided by it
    assert (rescued[suspect.id].crashes, rescued[suspect.id].becomes) == (3, "failed")
    said = one(db, "select errors[1] ->> 'message' from rowlock.history")
    assert said == "its worker stopped renewing its lease; 1 other job ran there"
    back = {str(row[0]): row[1:] for row in db.execute("select id, state, crashes, begun from rowlock.jobs")}
    assert back == {
        beside.id: ("ready", 0, True),
        **{row.id: ("ready", 0, None) for row in waiting},  # the next worker says before when it begins
    }
    again = other.run(claim.claim(lanes=[claim.Lane("default", 0)], limit=4, worker=other.worker, free=0))
    assert {row.id: row.begun for row in again} == {beside.id: False, **{row.id: None for row in waiting}}
    assert len(ids) == 4


def test_a_death_costs_only_what_had_begun(dead: Engine, other: Engine, db: Db) -> None:
    dead.enqueue(3)
    rows = dead.run(claim.claim(lanes=[claim.Lane("default", 0)], limit=3, worker=dead.worker, free=1))
    begun, *ahead = sorted(rows, key=lambda row: (not row.begun, row.id))
    die(dead, db)

    rescued = {row.id: row for row in rescue(other, *rows)}

    assert (rescued[begun.id].crashes, rescued[begun.id].has_crashed) == (1, True)
    assert [(rescued[row.id].crashes, rescued[row.id].has_crashed) for row in ahead] == [(0, False)] * 2
    assert dict(db.execute("select id::text, crashes from rowlock.jobs").fetchall()) == {
        begun.id: 1,
        **{row.id: 0 for row in ahead},
    }


def test_a_second_crash_sets_a_job_aside_and_a_pardon_lets_it_back(dead: Engine, other: Engine, db: Db) -> None:
    dead.enqueue()
    db.execute("update rowlock.jobs set crashes = 1")
    [row] = dead.claim()
    die(dead, db)

    [rescued] = rescue(other, row)

    assert (rescued.becomes, rescued.crashes) == ("waiting", 2)
    assert other.claim() == []
    assert other.run(upkeep.pardon(worker=dead.worker, since=DAY)) == [row.id]
    assert [again.crashes for again in other.claim()] == [1]


def test_a_workflow_that_gets_on_is_not_what_workers_die_of(dead: Engine, other: Engine, db: Db) -> None:
    dead.enqueue()
    db.execute("update rowlock.jobs set version = 1, crashes = 2")
    [row] = dead.claim()
    db.execute(
        """insert into rowlock.steps (job, key, position, kind, state, started_at, ended_at)
        select id, 'a', 1, 'step', 'done', rowlock.now(), rowlock.now() + interval '1 second' from rowlock.jobs"""
    )
    die(dead, db)

    [rescued] = rescue(other, row)

    assert (rescued.becomes, rescued.crashes) == ("ready", 1)


def test_nobody_rescues_whose_own_lease_is_over_by_the_same_clock(dead: Engine, other: Engine, db: Db) -> None:
    dead.enqueue()
    [row] = dead.claim()
    db.execute("update rowlock.workers set lease = rowlock.now() + interval '30 seconds'")
    travel(db, timedelta(minutes=2))
    orphan = [Orphan(row.id, row.token)]

    found = other.run(upkeep.orphans(limit=10, lost=True, worker=other.worker))
    rescued = other.run(upkeep.rescue(orphan, crashes=3, keep=Keep(), actor="test", worker=other.worker))
    renewed = dead.run(workers.renew(worker=dead.worker))

    assert (found, rescued) == ([], [])
    assert renewed  # nobody has taken it for dead
    assert other.run(workers.renew(worker=other.worker))
    assert other.run(upkeep.rescue(orphan, crashes=3, keep=Keep(), actor="test", worker=other.worker)) == []


def test_a_lease_is_unsettled_for_as_long_as_it_lasts_after_the_clock_was_put_forward() -> None:
    lease = Lease(lasts=timedelta(seconds=30), margin=timedelta(seconds=5))
    at = [1000.0]
    lease.now = lambda: at[0]  # type: ignore[method-assign]
    seen = []
    for later, database in [(0, 5000), (10, 5010), (20, 5080), (45, 5105), (51, 5111), (60, 5060)]:
        at[0] = 1000.0 + later
        lease.renewed(at[0], database)
        seen.append(lease.is_unsettled)

    assert seen == [False, False, True, True, False, False]
