"""Broken rows: what PostgreSQL fails at every time keeps nobody from the jobs beside it, whoever comes across it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from rowlock import Rowlock
from rowlock.worker import halve
from tests.scheduling import add
from tests.waiting import until
from tests.worker.breaking import breaks
from tests.worker.working import Db, ended, one, working

LEASE = timedelta(seconds=1)
DEAD = """insert into rowlock.workers (id, host, pid, queues, slots, tasks, version, started_at, lease, lasts)
    values (gen_random_uuid(), 'h', 1, '{}', 1, '{}', '1', rowlock.now(), rowlock.now(), interval '1 second')"""
SUSPECTS = "update rowlock.jobs set crashes = 2, state = 'waiting', waits_for = 'suspect' where (args ->> 'n')::int < 3"
ASIDE = "select reason from rowlock.jobs where waits_for = 'code'"


# Suspects


@pytest.mark.parametrize("state", ["XX001", "22P02", "XX000"])
def test_a_suspect_that_cannot_be_claimed_is_set_aside_and_all_others_run(app: Rowlock, db: Db, state: str) -> None:
    @app.task(name="quick")
    async def quick(n: int) -> None: ...

    app.enqueue_many(quick.bind(n) for n in range(7))
    db.execute(SUSPECTS)
    breaks(db, "jobs", "new.state = 'running' and new.args->>'n' = '0'", state)
    with working(app):
        until(lambda: len(ended(db)) == 6)
        aside = until(lambda: db.execute(ASIDE).fetchall())
        anew = one(db, "select restarts from rowlock.workers")

    assert {row[1] for row in ended(db)} == {"succeeded"}
    assert aside == [("PostgreSQL refuses to claim it: unexpected chunk number",)]
    assert anew == 0


# Rescue


@pytest.mark.parametrize("state", ["XX001", "0A000", "23514", "XX000"])
def test_a_job_that_cannot_be_rescued_keeps_none_of_its_batch_running(
    app: Rowlock, db: Db, caplog: pytest.LogCaptureFixture, state: str
) -> None:
    """A trigger that raises 23514 says what a missing partition says."""

    @app.task(name="quick")
    async def quick(n: int) -> int:
        return n

    jobs = app.enqueue_many(quick.bind(n) for n in range(5))
    db.execute("update rowlock.jobs set state = 'running', token = gen_random_uuid(), worker = gen_random_uuid()")
    breaks(db, "events", f"new.job = '{jobs[2].id}'", state)
    with working(app, lease=LEASE):
        until(lambda: len(ended(db)) == 4)

    assert one(db, "select id from rowlock.jobs where state = 'running'") == jobs[2].id
    left = [record for record in caplog.records if "cannot be rescued" in record.getMessage()]
    assert len(left) == 1


def test_while_no_job_can_be_rescued_none_is_left_out_for_good(
    app: Rowlock, db: Db, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(halve, "_LATER", 0.1)

    @app.task(name="quick")
    async def quick(n: int) -> int:
        return n

    app.enqueue_many(quick.bind(n) for n in range(5))
    db.execute("update rowlock.jobs set state = 'running', token = gen_random_uuid(), worker = gen_random_uuid()")
    db.execute(DEAD)
    db.execute("update rowlock.jobs set worker = (select id from rowlock.workers)")
    db.execute("create sequence public.failed")
    breaks(db, "events", "nextval('public.failed') > 0", "XX000")  # a sequence counts on, whatever is rolled back
    with working(app, lease=LEASE):
        until(lambda: one(db, "select last_value >= 12 from public.failed"))
        db.execute("drop trigger broken on rowlock.events")
        until(lambda: len(ended(db)) == 5)


# Schedules


@pytest.mark.parametrize("state", ["XX001", "23514"])
def test_a_schedule_that_cannot_be_fired_keeps_no_other_from_it(app: Rowlock, db: Db, state: str) -> None:
    add(db, "a", count=3, due="0 seconds", queue="nobody")
    add(db, "m", due="0 seconds", queue="nobody")
    add(db, "z", count=3, due="0 seconds", queue="nobody")
    breaks(db, "firings", "new.schedule = 'm'", state)

    with working(app):
        until(lambda: one(db, "select count(distinct schedule) = 6 from rowlock.firings"))

    assert one(db, "select count(*) = 0 from rowlock.firings where schedule = 'm'")


# Expiry


@pytest.mark.parametrize("state", ["XX001", "23514"])
def test_an_expired_job_that_cannot_be_ended_keeps_no_other_from_it(
    app: Rowlock, db: Db, caplog: pytest.LogCaptureFixture, state: str
) -> None:
    @app.task(name="gone")
    async def gone(n: int) -> None: ...

    jobs = app.enqueue_many(gone.bind(n) for n in range(20))
    db.execute("update rowlock.jobs set expires_at = rowlock.now()")
    breaks(db, "history", "new.args->>'n' = '7'", state)

    with working(app, lease=LEASE, queues=["nothing"]):
        until(lambda: len(ended(db)) == 19)

    assert one(db, "select id from rowlock.jobs") == jobs[7].id
    left = [record for record in caplog.records if "cannot be ended" in record.getMessage()]
    assert len(left) == 1


# Pauses and keys that are over


def test_a_paused_job_that_cannot_be_released_keeps_no_other_waiting(
    app: Rowlock, db: Db, caplog: pytest.LogCaptureFixture
) -> None:
    @app.task(name="quick")
    async def quick(n: int) -> None: ...

    jobs = app.enqueue_many(quick.bind(n) for n in range(20))
    db.execute("update rowlock.jobs set state = 'waiting', waits_for = 'pause'")
    breaks(db, "jobs", "new.args->>'n' = '7'")
    with working(app, lease=LEASE):
        until(lambda: len(ended(db)) == 19)

    assert one(db, "select id from rowlock.jobs") == jobs[7].id
    left = [record for record in caplog.records if "cannot be released" in record.getMessage()]
    assert len(left) == 1


def test_a_key_that_cannot_be_freed_keeps_no_other_held(app: Rowlock, db: Db) -> None:
    db.execute(
        """insert into rowlock.keys (key, task, job, until)
            select n::text, 't', gen_random_uuid(), rowlock.now() - interval '1 hour'
            from generate_series(1, 20) as n"""
    )
    breaks(db, "keys", "old.key = '7'", event="delete")
    with working(app, lease=LEASE):
        until(lambda: one(db, "select count(*) = 1 from rowlock.keys"))

    assert one(db, "select key from rowlock.keys") == "7"


# Waiting for code


@pytest.mark.parametrize("state", ["XX001", "22P02"])
def test_a_job_that_cannot_be_taken_up_is_set_aside_and_the_others_run(app: Rowlock, db: Db, state: str) -> None:
    @app.task(name="quick")
    async def quick(n: int) -> None: ...

    app.enqueue_many(quick.bind(n) for n in range(5))
    db.execute("update rowlock.jobs set state = 'waiting', waits_for = 'code', reason = 'unknown task quick'")
    breaks(db, "jobs", "new.state = 'running' and new.args->>'n' = '2'", state)
    with working(app):
        until(lambda: len(ended(db)) == 4)
        aside = until(lambda: db.execute(f"{ASIDE} and reason like 'PostgreSQL%'".encode()).fetchall())

    assert {row[1] for row in ended(db)} == {"succeeded"}
    assert aside == [("PostgreSQL refuses to claim it: unexpected chunk number",)]
