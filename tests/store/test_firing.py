"""Firing: what a look finds, and what one statement makes of it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg.rows import TupleRow

from rowlock.model.ids import new_id
from rowlock.store import pauses
from rowlock.store.schedules import fire as firing
from rowlock.store.schedules.fire import DueRow, DueScheduleRow, PlannedFiring, ScheduleSlot
from tests.engine import Engine
from tests.scheduling import add
from tests.store.test_plans import Prepared
from tests.worker.working import one

Db = psycopg.Connection[TupleRow]

MINUTE = timedelta(minutes=1)
MANY = 1_000


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    engine = Engine(url)
    yield engine
    engine.close()


def look(engine: Engine, *, limit: int = MANY, **options: Any) -> list[DueRow]:  # noqa: ANN401  the builder's own
    return engine.run(firing.due(limit=limit, **options))


def seen(engine: Engine, **options: Any) -> list[DueScheduleRow]:  # noqa: ANN401  look's own
    return [line.schedule for line in look(engine, **options) if line.schedule is not None]


def fired(schedule: DueScheduleRow, **changes: Any) -> PlannedFiring:  # noqa: ANN401  a Firing's fields
    """The slot that has come is fired, and the next one is a minute later."""
    slot = datetime.fromisoformat(schedule.next_at)
    plan = PlannedFiring(
        schedule.name, schedule.version, slot + MINUTE, slot, None, False, [ScheduleSlot(slot, new_id())]
    )
    return plan._replace(**changes)


# Looking


def test_a_look_at_nothing_says_what_time_it_is(engine: Engine, db: Db) -> None:
    [found] = look(engine)

    assert abs(found.now - one(db, "select rowlock.now()")) < MINUTE
    assert found[1:] == (None, False, None)


def test_a_look_finds_what_has_come_and_says_how_far_off_the_next_is(engine: Engine, db: Db) -> None:
    add(db, "came")
    add(db, "comes", due="30 seconds")
    add(db, "comes later", due="2 hours")

    [found] = look(engine)

    assert found.schedule is not None
    assert (found.schedule.name, float(found.schedule.every or 0), found.schedule.live) == ("came", 60.0, [])
    assert found.next_in is not None
    assert timedelta(seconds=20) < found.next_in <= timedelta(seconds=30)


def test_a_schedule_that_holds_a_slot_is_found_when_no_job_of_it_is_live(engine: Engine, db: Db) -> None:
    [job] = engine.enqueue()
    engine.claim()
    slot = one(db, "select rowlock.now()")
    add(db, "waits", overlap="queue", due="1 hour", held=slot, jobs=[job])
    add(db, "replaces", overlap="replace", due="1 hour", held=slot, jobs=[job])
    add(db, "goes on", overlap="queue", due="1 hour", held=slot, jobs=[new_id()])

    before = {schedule.name for schedule in seen(engine)}
    db.execute("update rowlock.jobs set cancel_at = rowlock.now()")
    marked = {schedule.name for schedule in seen(engine)}
    db.execute("delete from rowlock.jobs")
    after = look(engine)

    assert before == {"replaces", "goes on"}  # the one to tell its job, the other to fire
    assert marked == {"goes on"}
    assert {line.schedule.name for line in after if line.schedule} == {"waits", "replaces", "goes on"}
    assert all(line.holds for line in after)


def test_a_schedule_that_runs_at_boot_is_found_by_those_who_ask_unless_it_has_just_run(engine: Engine, db: Db) -> None:
    add(db, "at boot", at_boot=True, due="1 hour")
    add(db, "not at boot", due="1 hour")

    add(db, "of other code", at_boot=True, due="1 hour")
    add(db, "of operators", at_boot=True, due="1 hour")
    db.execute("update rowlock.schedules set declared = '{}' where name <> 'of operators'")
    now = one(db, "select rowlock.now()")
    names = ["at boot", "not at boot", "no such"]

    asked = [(schedule.name, schedule.boots) for schedule in seen(engine, boots=names, booted_before=now - MINUTE)]
    unasked = seen(engine)
    db.execute("update rowlock.schedules set booted_at = rowlock.now() - interval '30 seconds'")
    again = seen(engine, boots=names, booted_before=now - MINUTE)

    assert asked == [("at boot", True), ("of operators", True)]
    assert unasked == []
    assert again == []


def test_versions_that_are_left_out_do_not_stand_before_the_others(engine: Engine, db: Db) -> None:
    add(db, "broken", due="-1 hour")
    add(db, "sound")
    [broken] = seen(engine, limit=1)

    beside = seen(engine, limit=1, left_out=[broken.mark])
    db.execute("update rowlock.schedules set catch_up = 2 where name = 'broken'")
    fixed = seen(engine, limit=1, left_out=[broken.mark])

    assert [schedule.name for schedule in beside] == ["sound"]
    assert [schedule.name for schedule in fixed] == ["broken"]


@pytest.mark.parametrize("moment", ["infinity", "-infinity", "294276-01-01", "4713-01-01 BC"])
def test_a_look_survives_any_instant_that_was_put_there_by_hand(engine: Engine, db: Db, moment: str) -> None:
    add(db)
    add(db, "odd")
    db.execute("update rowlock.schedules set next_at = %s, last_at = next_at where name = 'odd'", [moment])

    names = {schedule.name for schedule in seen(engine)}

    assert names >= {"s"}


# Firing


def test_a_job_is_made_as_its_schedule_says_and_told_what_for(engine: Engine, db: Db) -> None:
    add(db, 'a "schedule"', queue="q", args='{"x": 1.0}', tags=["red"], expires=timedelta(hours=1))
    [schedule] = seen(engine)
    plan = fired(schedule)

    answer = engine.run(firing.fire([plan]))

    [slot] = plan.slots
    assert answer == ['a "schedule"']
    row = db.execute("select id::text, queue, task, priority, attempts, args::text, tags from rowlock.jobs").fetchone()
    tags = ["red", 'schedule:a "schedule"', f"slot:{slot.at:%Y-%m-%dT%H:%M:%SZ}"]
    assert row == (slot.job, "q", "t", 2, 3, '{"x": 1.0}', tags)
    assert one(db, "select expires_at - run_at from rowlock.jobs") == timedelta(hours=1)
    assert one(db, "select run_at <= rowlock.now() from rowlock.jobs")
    assert db.execute("select schedule, slot, job::text, reason from rowlock.firings").fetchall() == [
        ('a "schedule"', slot.at, slot.job, None)
    ]
    after = db.execute("select next_at, last_at, held, jobs::text[] from rowlock.schedules").fetchone()
    assert after == (slot.at + MINUTE, slot.at, None, [slot.job])


def test_a_slot_that_is_passed_over_is_written_down_and_makes_no_job(engine: Engine, db: Db) -> None:
    add(db)
    [schedule] = seen(engine)
    slot = datetime.fromisoformat(schedule.next_at)

    engine.run(firing.fire([fired(schedule, slots=[ScheduleSlot(slot, None, "missed")])]))

    assert db.execute("select slot, job, reason from rowlock.firings").fetchall() == [(slot, None, "missed")]
    assert one(db, "select count(*) from rowlock.jobs") == 0


def test_jitter_comes_on_top_of_now(engine: Engine, db: Db) -> None:
    add(db, expires=timedelta(minutes=1))
    [schedule] = seen(engine)
    slot = datetime.fromisoformat(schedule.next_at)

    engine.run(firing.fire([fired(schedule, slots=[ScheduleSlot(slot, new_id(), jitter=timedelta(seconds=40))])]))

    assert one(db, "select run_at - created_at from rowlock.jobs") == timedelta(seconds=40)
    assert one(db, "select expires_at - created_at from rowlock.jobs") == timedelta(seconds=100)


@pytest.mark.parametrize(
    "change",
    [
        "update rowlock.schedules set paused_at = rowlock.now()",
        "update rowlock.schedules set cron = '0 9 * * *', every = null",
        "update rowlock.schedules set args = '{\"x\": 2}'",
        "delete from rowlock.schedules",
    ],
    ids=["paused", "given another rule", "given other arguments", "removed"],
)
def test_a_schedule_that_was_changed_since_the_look_is_left_to_the_next(engine: Engine, db: Db, change: str) -> None:
    add(db)
    [schedule] = seen(engine)

    db.execute(change.encode())
    answer = engine.run(firing.fire([fired(schedule)]))

    assert answer == []
    assert one(db, "select (select count(*) from rowlock.jobs) + (select count(*) from rowlock.firings)") == 0


def test_a_schedule_that_somebody_has_locked_is_passed_over(engine: Engine, db: Db, url: str) -> None:
    add(db, "free")
    add(db, "locked")
    schedules = seen(engine)

    with psycopg.connect(url) as operator:
        operator.execute("select from rowlock.schedules where name = 'locked' for update")
        answer = engine.run(firing.fire([fired(schedule) for schedule in schedules]))

    assert answer == ["free"]


def test_a_slot_that_is_written_down_makes_no_second_job_whatever_the_schedule_says(engine: Engine, db: Db) -> None:
    add(db)
    [schedule] = seen(engine)
    plan = fired(schedule)
    engine.run(firing.fire([plan]))
    db.execute("update rowlock.schedules set next_at = %s, last_at = null", [plan.slots[0].at])
    [turned_back] = seen(engine)

    answer = engine.run(firing.fire([fired(turned_back)]))

    assert answer == ["s"]
    assert one(db, "select count(*) from rowlock.jobs") == 1
    assert one(db, "select next_at from rowlock.schedules") == plan.next_at


def test_the_jobs_that_may_be_live_are_those_that_are_and_the_new_ones(engine: Engine, db: Db) -> None:
    [live] = engine.enqueue()
    add(db, jobs=[new_id(), live])
    [schedule] = seen(engine)
    plan = fired(schedule)

    engine.run(firing.fire([plan]))

    assert schedule.live == [live]
    assert set(one(db, "select jobs::text[] from rowlock.schedules")) == {live, plan.slots[0].job}


def test_upkeep_ends_a_pause_that_is_over_when_the_next_slot_lies_behind_it(engine: Engine, db: Db) -> None:
    for name, until in (("over", "-2 seconds"), ("goes on", "1 hour")):
        add(db, name)
        db.execute(
            "update rowlock.schedules set paused_at = rowlock.now(), paused_by = 'me', paused_why = 'so',"
            " paused_until = rowlock.now() + %s::interval where name = %s",
            [until, name],
        )
    query = "select name, num_nulls(paused_at, paused_until, paused_by, paused_why) from rowlock.schedules"

    engine.run(pauses.expire(actor="me"))
    before: dict[str, int] = dict(db.execute(query.encode()).fetchall())
    engine.run(firing.fire([fired(schedule) for schedule in seen(engine)]))
    engine.run(pauses.expire(actor="me"))

    assert before == {"over": 0, "goes on": 0}
    assert dict(db.execute(query.encode()).fetchall()) == {"over": 4, "goes on": 0}


def test_a_queue_on_which_somebody_is_parked_is_notified_once(engine: Engine, db: Db) -> None:
    add(db, "wakes", count=3, queue="q")
    add(db, "later", queue="other")
    db.execute("insert into rowlock.parked select queue, gen_random_uuid() from unnest(array['q', 'other']) as queue")
    for queue in ("q", "other"):
        db.execute(f'listen "{one(db, "select rowlock.channel(%s)", queue)}"'.encode())
    plans = [fired(schedule) for schedule in seen(engine)]
    delayed = [plan._replace(slots=[plan.slots[0]._replace(jitter=MINUTE)]) for plan in plans if plan.name == "later"]

    engine.run(firing.fire([*delayed, *(plan for plan in plans if plan.name != "later")]))

    told = [note.channel for note in db.notifies(timeout=5, stop_after=1)] + [
        note.channel for note in db.notifies(timeout=0)
    ]
    assert told == [one(db, "select rowlock.channel('q')")]


# How much at once


def test_a_thousand_schedules_are_fired_by_one_statement_prepared_on_empty_tables(engine: Engine, db: Db) -> None:
    for table in ("schedules", "firings", "jobs"):
        db.execute(f"alter table rowlock.{table} set (autovacuum_enabled = off)".encode())
        db.execute(f"vacuum analyze rowlock.{table}".encode())
    due, fire = Prepared(engine, firing.due(limit=1)), Prepared(engine, firing.fire([]))
    for _ in range(6):
        due.explain(firing.due(limit=MANY))
        fire.explain(firing.fire([]))
    add(db, count=MANY)
    add(db, "far off", count=2 * MANY, due="1 day")

    looked = due.explain(firing.due(limit=MANY))
    plans = [fired(schedule) for schedule in seen(engine)]
    burnt = fire.explain(firing.fire(plans))

    assert looked.rows_touched() <= 8 * MANY
    assert burnt.rows_touched() <= 16 * MANY
    assert [one(db, f"select count(*) from rowlock.{table}") for table in ("jobs", "firings")] == [MANY, MANY]
    assert one(db, "select count(*) from rowlock.schedules where next_at <= rowlock.now() and name like 's%%'") == MANY


# Keeping


def test_what_was_fired_over_a_week_ago_is_forgotten_a_chunk_at_a_time(engine: Engine, db: Db) -> None:
    db.execute(
        "insert into rowlock.firings (schedule, slot, at) "
        "select 's', rowlock.now() - n * interval '1 day', rowlock.now() - n * interval '1 day' "
        "from generate_series(1, 12) as n"
    )

    removed = [engine.run(firing.remove(3))[0] for _ in range(3)]

    assert removed == [3, 3, 0]
    assert one(db, "select count(*) from rowlock.firings") == 6
