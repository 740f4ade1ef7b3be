"""Who is alive and who is dead: presence, suspicion, leases that are cut, clamped or renewed too late."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from rowlock import Rowlock
from rowlock.db.session import connect, run
from rowlock.db.thread_connection import ReconnectingSyncConnection
from rowlock.errors import SchemaMissing
from rowlock.model.row import Orphan
from rowlock.model.spec import Keep
from rowlock.store import upkeep, workers
from rowlock.store.query import Query
from rowlock.store.workers import DeadWorkers
from tests.engine import SCHEMA, Engine
from tests.rows import travel
from tests.waiting import until
from tests.worker.working import Db, one

LEASE = timedelta(minutes=1)


@pytest.fixture
def sweeper(url: str) -> Iterator[Engine]:
    engine = Engine(url)
    yield engine
    engine.close()


@pytest.fixture
def worker(url: str) -> Iterator[Engine]:
    engine = Engine(url, lease=LEASE)
    assert engine.run(workers.enter(worker=engine.worker)) == [True]
    yield engine
    engine.close()


ALWAYS = timedelta(milliseconds=-1)


def look(sweeper: Engine, *, pause: timedelta = ALWAYS) -> DeadWorkers:
    [found] = sweeper.run(workers.find_dead(worker=sweeper.worker, pause=pause))
    return found


def suspects(db: Db) -> list[str]:
    return [
        worker for (worker,) in db.execute("select worker::text from rowlock.present where suspected_at is not null")
    ]


def vanish(worker: Engine, db: Db) -> None:
    """As kill -9 does: no word to the server."""
    pid = worker.connection.info.backend_pid
    worker.connection.pgconn.finish()
    until(lambda: one(db, "select count(*) = 0 from pg_stat_activity where pid = %s", pid))


def test_a_worker_that_holds_its_lock_is_no_suspect(sweeper: Engine, worker: Engine) -> None:
    assert worker.worker

    found = look(sweeper)

    assert found == DeadWorkers(dead=False, cut=[])


def test_a_worker_whose_session_is_gone_is_suspected_first_and_then_loses_its_lease(
    sweeper: Engine, worker: Engine, db: Db, url: str
) -> None:
    vanish(worker, db)

    first = look(sweeper)
    suspected = suspects(db)
    other = look(worker := Engine(url))
    worker.close()
    third = look(sweeper)

    assert first == DeadWorkers(dead=False, cut=[])
    assert suspected != []
    assert other == DeadWorkers(dead=False, cut=["test:1"])
    assert third.cut == []


def test_a_worker_that_was_taken_for_dead_has_been_so_since_then_however_long_it_has_run(
    sweeper: Engine, worker: Engine, db: Db, app: Rowlock
) -> None:
    db.execute("update rowlock.workers set started_at = started_at - interval '2 h'")
    vanish(worker, db)
    look(sweeper)
    look(sweeper)

    [gone] = [one for one in app.stats().fleet.workers or () if str(one.id) == worker.worker]
    leases = app.doctor()["leases"]

    assert -LEASE < gone.lease_left <= timedelta(0)
    assert (leases.level, leases.do) == ("amber", "a live worker rescues their jobs within seconds")


def test_a_worker_that_was_taken_for_dead_stays_so_when_the_clock_is_set_back(
    sweeper: Engine, worker: Engine, db: Db
) -> None:
    vanish(worker, db)
    look(sweeper)
    look(sweeper)
    travel(db, -LEASE)

    look(sweeper)
    found = look(sweeper)

    assert found.dead
    assert one(db, "select dead and lease <= rowlock.now() from rowlock.workers where id = %s", worker.worker)


def test_a_worker_that_has_come_back_between_two_looks_keeps_its_lease(
    sweeper: Engine, worker: Engine, db: Db, url: str
) -> None:
    vanish(worker, db)
    look(sweeper)
    suspected = suspects(db)

    with connect(url, name="rowlock test") as back:
        run(back.cursor(), workers.enter(worker=worker.worker), SCHEMA)
        found = look(sweeper)

    assert suspected == [worker.worker]
    assert suspects(db) == []
    assert found == DeadWorkers(dead=False, cut=[])


def test_where_another_has_just_looked_a_worker_finds_nothing_and_reads_nothing(
    sweeper: Engine, worker: Engine, db: Db
) -> None:
    other = look(worker, pause=LEASE)
    db.execute("update rowlock.workers set lease = rowlock.now() where id = %s", [worker.worker])

    at_once = look(sweeper, pause=LEASE)
    later = look(sweeper)

    assert (other.dead, at_once.dead, later.dead) == (False, False, True)


def test_a_worker_whose_own_lease_is_over_finds_nobody_dead(sweeper: Engine, worker: Engine, db: Db, url: str) -> None:
    """The database's clock has stepped ahead: by it, everybody is dead, the one that looks among them."""
    db.execute("update rowlock.workers set lease = rowlock.now()")

    found = look(sweeper)
    with closing(ReconnectingSyncConnection(url, SCHEMA, name="rowlock test")) as connection:
        with connection.sweep("rescue", worker=sweeper.worker) as free_to_the_dead:
            pass
        with connection.sweep("rescue") as free:
            pass

    assert found == DeadWorkers(dead=False, cut=[])
    assert (free_to_the_dead, free) == (False, True)
    assert worker.worker


def test_no_lock_that_anybody_can_take_keeps_a_duty_from_being_done(db: Db, url: str) -> None:
    for duty in ("rescue", "schedules", "partitions"):
        db.execute("select pg_advisory_lock(hashtextextended(%s, 0))", [f"rowlock.{duty}"])

    with (
        closing(ReconnectingSyncConnection(url, SCHEMA, name="one")) as one_,
        closing(ReconnectingSyncConnection(url, SCHEMA, name="two")) as two,
    ):
        with one_.sweep("rescue") as first, two.sweep("rescue") as second:
            pass
        with two.sweep("rescue") as afterwards:
            pass
        turns = [one.turn("keys", every=LEASE).ours for one in (one_, two)]

    assert (first, second, afterwards) == (True, False, True)
    assert turns == [True, False]


def test_a_duty_whose_row_is_gone_is_an_error_that_says_so(db: Db, url: str) -> None:
    db.execute("delete from rowlock.duties")

    with closing(ReconnectingSyncConnection(url, SCHEMA, name="one")) as steady:
        with pytest.raises(SchemaMissing, match="'rescue'"), steady.sweep("rescue"):
            pass
        with pytest.raises(SchemaMissing, match="'keys'"):
            steady.turn("keys", every=LEASE)


def test_a_row_from_before_the_server_was_started_makes_nobody_a_suspect(
    sweeper: Engine, worker: Engine, db: Db
) -> None:
    """A clean restart keeps the row and drops the lock; its worker is about to come back."""
    vanish(worker, db)
    db.execute("update rowlock.present set server = server - interval '1 day'")

    look(sweeper)
    found = look(sweeper)

    assert found == DeadWorkers(dead=False, cut=[])


def test_a_crash_of_the_server_leaves_nobody_to_suspect(db: Db) -> None:
    kind = one(db, "select relpersistence::text from pg_class where oid = 'rowlock.present'::regclass")

    assert kind == "u", "a crash drops every session's locks: it must empty this table, too"


def test_a_session_that_cannot_have_the_lock_does_not_show_its_worker_as_present(worker: Engine, url: str) -> None:
    """An earlier session of the same worker may live on in the server for a while: cut off, but not yet ended."""
    with connect(url, name="rowlock test") as second:
        held = run(second.cursor(), workers.enter(worker=worker.worker), SCHEMA)
        shown = second.execute("select count(*) from rowlock.present").fetchone()

    assert held == [False]
    assert shown == (0,)


def test_a_lease_in_the_far_future_is_cut_to_its_length(sweeper: Engine, worker: Engine, db: Db) -> None:
    """The database's clock was set back by an hour."""
    db.execute("update rowlock.workers set lease = lease + interval '1 hour' where id = %s", [worker.worker])

    look(sweeper)

    left = "select lease - rowlock.now() between interval '0' and lasts from rowlock.workers where id = %s"
    assert one(db, left, worker.worker)


def test_a_renewal_lets_the_lease_last_for_its_whole_length_from_now(worker: Engine, db: Db) -> None:
    db.execute("update rowlock.workers set lease = rowlock.now() + interval '1 s' where id = %s", [worker.worker])

    assert worker.run(workers.renew(worker=worker.worker))

    left = "select lease - rowlock.now() > interval '1 s' from rowlock.workers where id = %s"
    assert one(db, left, worker.worker)


def test_a_lease_that_was_taken_for_over_cannot_be_renewed_any_more(sweeper: Engine, worker: Engine, db: Db) -> None:
    """A renewal may be sent in time and then wait for the rescue to commit: by its own clock the lease still holds."""
    [job] = worker.enqueue()
    [row] = worker.claim()
    assert row.id == job
    answers: list[Any] = []
    db.execute("update rowlock.workers set lease = rowlock.now() + interval '1 s' where id = %s", [worker.worker])

    with sweeper.connection.transaction():
        sweeper.connection.execute("select from rowlock.workers where id = %s for update", [worker.worker])
        renewing = threading.Thread(target=lambda: answers.append(worker.run(workers.renew(worker=worker.worker))))
        renewing.start()
        until(lambda: one(db, "select exists (select from pg_locks where not granted)"))
        until(lambda: one(db, "select lease < rowlock.now() from rowlock.workers where id = %s", worker.worker))
        rescued = rescue(sweeper, row.id, row.token)
    renewing.join()

    assert [job.becomes for job in rescued] == ["ready"]
    assert answers == [[]]


def test_a_clock_that_is_set_back_and_put_forward_again_ends_nobodys_lease(
    sweeper: Engine, worker: Engine, db: Db
) -> None:
    travel(db, -timedelta(days=30))
    before = worker.run(workers.renew(worker=worker.worker))
    look(sweeper)
    travel(db, timedelta(0))
    after = worker.run(workers.renew(worker=worker.worker))

    assert len(before) == len(after) == 1


def test_a_worker_that_is_just_being_renewed_is_left_alone(sweeper: Engine, worker: Engine, db: Db, url: str) -> None:
    worker.enqueue()
    [row] = worker.claim()
    db.execute("update rowlock.workers set lease = rowlock.now() - interval '1 s' where id = %s", [worker.worker])

    with psycopg.connect(url) as renewing:
        renewing.execute("select from rowlock.workers where id = %s for update", [worker.worker])
        while_renewed = rescue(sweeper, row.id, row.token)
        renewing.rollback()
    afterwards = rescue(sweeper, row.id, row.token)

    assert while_renewed == []
    assert [job.owner for job in afterwards] == ["test:1"]


def rescue(sweeper: Engine, job_id: str, token: str) -> list[Any]:
    query: Query[Any] = upkeep.rescue([Orphan(job_id, token)], crashes=3, keep=Keep(), actor="test")
    return sweeper.run(query)


def test_a_renewal_waits_for_no_standby_and_what_its_session_says_next_does_again(worker: Engine, db: Db) -> None:
    db.execute("create table public.commits (setting text)")
    db.execute(
        """create function public.committing() returns trigger language plpgsql as $$ begin
            insert into public.commits values (current_setting('synchronous_commit')); return null;
        end $$"""
    )
    db.execute(
        """create constraint trigger committing after update on rowlock.workers
        deferrable initially deferred for each row execute function public.committing()"""
    )
    worker.connection.execute("set synchronous_commit = remote_apply")

    worker.run(workers.renew(worker=worker.worker))
    after = worker.connection.execute("show synchronous_commit").fetchone()

    assert db.execute("select setting from public.commits").fetchall() == [("local",)]
    assert after == ("remote_apply",)
