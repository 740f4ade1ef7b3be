"""Schedules, as workers declare and fire them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import psycopg
import pytest
from psycopg.rows import TupleRow

from rowlock import Rowlock, current_job
from rowlock.db.thread_connection import ReconnectingSyncConnection
from rowlock.model.schedule.cron import Cron
from rowlock.model.schedule.rule import Every
from rowlock.model.schedule.schedule import ScheduleSpec
from rowlock.store import pauses
from rowlock.store.query import Query
from rowlock.worker.schedule import LOOK_EVERY, Boot, Firer
from tests.engine import Engine
from tests.scheduling import Clock, add
from tests.waiting import until
from tests.worker.working import one, work_until, working

Db = psycopg.Connection[TupleRow]
T = TypeVar("T")

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
SECOND, MINUTE, HOUR, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


class Overheard(ReconnectingSyncConnection):
    """A connection of which a test hears what was said."""

    def __init__(self, url: str) -> None:
        super().__init__(url, "rowlock", name="rowlock test")
        self.said: list[str] = []

    def run(self, query: Query[T]) -> list[T]:
        self.said.append(query.name)
        return super().run(query)


@pytest.fixture
def connection(url: str) -> Iterator[Overheard]:
    steady = Overheard(url)
    yield steady
    steady.close()


@pytest.fixture
def clock(db: Db) -> Clock:
    """It is noon."""
    return Clock(db, NOON)


def firer(boot: Boot | None = None) -> Firer:
    return Firer(boot=boot or Boot(), keep=DAY, longest=DAY)


def slots(db: Db, name: str = "s") -> list[tuple[datetime, bool, str | None]]:
    """What is written down of a schedule's slots: when, whether there is a job, and the reason."""
    query = "select slot, job is not null, reason from rowlock.firings where schedule = %s order by slot"
    return db.execute(query, [name]).fetchall()


def jobs(db: Db) -> int:
    return int(one(db, "select count(*) from rowlock.jobs"))


# A worker's life


def test_a_declared_schedule_runs_and_its_handler_knows_for_which_slot(app: Rowlock, db: Db) -> None:
    told: list[tuple[str | None, datetime | None]] = []

    @app.task.every(SECOND, name="tick", overlap="allow")
    @app.task(name="t")
    async def tell() -> None:
        told.append((current_job().schedule, current_job().slot))

    work_until(app, lambda: len(told) >= 2)

    fired = [slot for slot, made, _ in slots(db, "tick") if made]
    assert {name for name, _ in told} == {"tick"}
    assert sorted(slot for _, slot in told if slot)[:2] == fired[:2]
    assert fired[1] - fired[0] == SECOND


def test_a_job_that_no_schedule_made_has_no_slot_whatever_its_tags_say(app: Rowlock, db: Db) -> None:
    told = []

    @app.task(name="t")
    async def tell() -> None:
        told.append((current_job().schedule, current_job().slot))

    tell.enqueue()
    tell.using(tags=["slot:soon", "slot:2026-11-16", "schedules:x"]).enqueue()
    work_until(app, lambda: len(told) == 2)

    assert told == [(None, None)] * 2


def test_a_worker_enters_what_its_code_declares(app: Rowlock, db: Db) -> None:
    @app.task.every("0 9 * * *", tz="Europe/Paris", name="report")
    @app.task(name="t")
    async def report() -> None: ...

    with working(app):
        until(lambda: one(db, "select count(*) from rowlock.schedules"))
        declares = one(db, "select schedules from rowlock.workers")

    assert declares == ["report"]
    assert one(db, "select next_at > rowlock.now() from rowlock.schedules")


# Looking, and how soon to look again


def test_what_is_due_is_fired_by_one_statement_however_much_it_is(connection: Overheard, db: Db, clock: Clock) -> None:
    add(db, count=1_000, queue="q")

    firer().fire_due(connection)

    assert connection.said == ["schedule_due", "duty_take", "schedule_fire"]
    assert jobs(db) == 1_000


def test_an_idle_worker_says_one_statement_and_looks_again_in_five_seconds(connection: Overheard, clock: Clock) -> None:
    again = firer().fire_due(connection)

    assert connection.said == ["schedule_due"]
    assert LOOK_EVERY - SECOND <= again <= LOOK_EVERY + SECOND


def test_the_next_look_is_at_the_next_slot(connection: Overheard, db: Db, clock: Clock) -> None:
    add(db, "fires", every=3 * SECOND, due="0 seconds")
    add(db, "comes", due="4 seconds")

    after_firing = firer().fire_due(connection)
    clock.go(3 * SECOND)
    firer().fire_due(connection)
    before_slot = firer().fire_due(connection)

    assert after_firing <= 3 * SECOND + SECOND / 10
    assert before_slot <= SECOND + SECOND / 10


def test_while_another_worker_fires_one_looks_again_shortly(
    connection: Overheard, db: Db, clock: Clock, url: str
) -> None:
    add(db)
    other = ReconnectingSyncConnection(url, "rowlock", name="rowlock test")

    with other.sweep("schedules") as free:
        again = firer().fire_due(connection)
    other.close()

    assert free
    assert again < SECOND
    assert jobs(db) == 0


def test_more_slots_than_one_statement_takes_are_fired_by_several(connection: Overheard, db: Db, clock: Clock) -> None:
    add(db, count=12, due="-1 hour", every=SECOND, overlap="allow", catch_up=500)
    looking = firer()

    rounds = [looking.fire_due(connection) for _ in range(3)]

    assert connection.said == ["schedule_due", "duty_take", "schedule_fire"] * 2 + ["schedule_due"]
    assert rounds[0] < SECOND
    assert jobs(db) == 12 * 500


# What overlaps


def test_a_slot_is_skipped_while_the_job_before_it_lives(connection: Overheard, db: Db, clock: Clock) -> None:
    add(db, due="0 seconds", overlap="skip")
    looking = firer()

    looking.fire_due(connection)
    clock.go(MINUTE)
    looking.fire_due(connection)
    db.execute("delete from rowlock.jobs")
    clock.go(MINUTE)
    looking.fire_due(connection)

    assert slots(db) == [
        (NOON, True, None),
        (NOON + MINUTE, False, "overlap"),
        (NOON + 2 * MINUTE, True, None),
    ]


def test_a_slot_in_the_queue_is_fired_when_the_job_before_it_has_ended(
    connection: Overheard, db: Db, clock: Clock
) -> None:
    add(db, due="0 seconds", overlap="queue")
    looking = firer()

    looking.fire_due(connection)
    clock.go(MINUTE)
    again = looking.fire_due(connection)
    held = one(db, "select held from rowlock.schedules")
    clock.go(MINUTE)
    looking.fire_due(connection)
    db.execute("delete from rowlock.jobs")
    looking.fire_due(connection)

    assert held == NOON + MINUTE
    assert again < 2 * SECOND
    assert slots(db) == [
        (NOON, True, None),
        (NOON + MINUTE, True, None),
        (NOON + 2 * MINUTE, False, "overlap"),
    ]
    assert one(db, "select held from rowlock.schedules") is None


def test_a_job_that_is_ready_is_replaced_at_once(connection: Overheard, db: Db, clock: Clock) -> None:
    add(db, due="0 seconds", overlap="replace")
    looking = firer()
    looking.fire_due(connection)
    first = one(db, "select id from rowlock.jobs")

    clock.go(MINUTE)
    again = looking.fire_due(connection)
    looking.fire_due(connection)

    assert again < SECOND
    assert db.execute("select id, state, reason from rowlock.history").fetchall() == [(first, "cancelled", "asked")]
    assert one(db, "select tags[2] from rowlock.jobs") == "slot:2026-11-16T12:01:00Z"
    assert db.execute("select actor, details ->> 'why' from rowlock.events").fetchall() == [
        ("schedule s", "the next job of its schedule replaces it")
    ]


def test_a_job_that_runs_is_told_and_replaced_when_it_has_ended(
    connection: Overheard, db: Db, clock: Clock, url: str
) -> None:
    add(db, due="0 seconds", overlap="replace")
    looking = firer()
    looking.fire_due(connection)
    engine = Engine(url)
    [running] = engine.claim()

    clock.go(MINUTE)
    looking.fire_due(connection)
    told = one(db, "select cancel_at is not null from rowlock.jobs")
    clock.go(MINUTE)
    looking.fire_due(connection)
    looking.fire_due(connection)
    before = jobs(db)
    engine.settle(running)
    engine.close()
    looking.fire_due(connection)

    assert told
    assert before == 1
    assert slots(db) == [(NOON, True, None), (NOON + MINUTE, False, "replaced"), (NOON + 2 * MINUTE, True, None)]


def test_slots_of_a_pause_are_passed_over_and_not_caught_up(connection: Overheard, db: Db, clock: Clock) -> None:
    add(db, due="0 seconds", overlap="allow", catch_up=100)
    until = NOON + 2 * MINUTE
    db.execute("update rowlock.schedules set paused_at = rowlock.now(), paused_until = %s, paused_by = 'me'", [until])
    looking = firer()

    looking.fire_due(connection)
    clock.go(3 * MINUTE)
    looking.fire_due(connection)
    connection.run(pauses.expire(actor="me"))

    assert slots(db) == [
        (NOON, False, "paused"),
        (NOON + MINUTE, False, "paused"),
        (NOON + 2 * MINUTE, True, None),
        (NOON + 3 * MINUTE, True, None),
    ]
    assert one(db, "select paused_at from rowlock.schedules") is None


def test_jitter_is_drawn_for_each_slot_within_its_bounds(connection: Overheard, db: Db, clock: Clock) -> None:
    add(db, count=50, due="0 seconds", jitter=MINUTE)

    firer().fire_due(connection)

    late = [late for (late,) in db.execute("select run_at - created_at from rowlock.jobs")]
    assert all(timedelta(0) <= each <= MINUTE for each in late)
    assert len(set(late)) > 40


# What cannot be fired


@pytest.mark.parametrize(
    "facts",
    [
        {"cron": "61 * * * *"},
        {"cron": "* * * * *", "tz": "Europe/Atlantis"},
        {"cron": "* * * * *", "tz": "../../etc/passwd"},
        {"every": "10000 years"},
        {"every": "0.5 seconds"},
        {"cron": "0 0 31 4 *"},
    ],
    ids=str,
)
def test_a_schedule_that_makes_no_sense_is_told_of_once_and_the_others_go_on(
    connection: Overheard, db: Db, clock: Clock, caplog: pytest.LogCaptureFixture, facts: dict[str, Any]
) -> None:
    add(db, "odd", due="-1 hour", **facts)
    add(db, "sound", due="0 seconds")
    looking = firer()

    rounds = [looking.fire_due(connection) for _ in range(3)]

    assert [record.levelno for record in caplog.records if "schedule odd" in record.message] == [logging.ERROR]
    assert one(db, "select tags[1] from rowlock.jobs") == "schedule:sound"
    assert rounds[-1] > SECOND


def test_a_schedule_that_postgresql_refuses_does_not_stop_the_others(
    connection: Overheard, db: Db, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    add(db, "a", count=3, due="0 seconds")
    add(db, "m", due="0 seconds", expires="300000 years")
    add(db, "z", count=3, due="0 seconds")
    looking = firer()

    looking.fire_due(connection)
    looking.fire_due(connection)
    db.execute("update rowlock.schedules set expires = null where name = 'm'")
    fixed = jobs(db)
    looking.fire_due(connection)

    assert (fixed, jobs(db)) == (6, 7)
    assert len([record for record in caplog.records if "PostgreSQL refuses it" in record.message]) == 1


# Declaring


def spec(name: str = "s", **facts: Any) -> ScheduleSpec:  # noqa: ANN401  a spec's own
    return ScheduleSpec(**{"name": name, "rule": Cron("0 9 * * *", "Europe/Paris"), "task": "t", **facts})


def declare(connection: ReconnectingSyncConnection, clock: Clock, *specs: ScheduleSpec) -> Boot:
    boot = Boot(specs)
    boot.begin(connection, clock.at.timestamp())
    return boot


def row(db: Db, *columns: str) -> Any:  # noqa: ANN401  what it holds
    return db.execute(f"select {', '.join(columns)} from rowlock.schedules".encode()).fetchone()


def test_what_is_declared_is_written_once(connection: Overheard, db: Db, clock: Clock) -> None:
    said = spec(args='{"x": 1.0}', queue="q", priority=1, attempts=2, expires=HOUR, tags=("a", 'b"'), jitter=MINUTE)
    declare(connection, clock, said)
    before = row(
        db, "xmin::text", "args::text", "queue", "priority", "attempts", "expires", "tags", "jitter", "next_at"
    )

    declare(connection, clock, said)

    after = row(db, "xmin::text", "args::text", "queue", "priority", "attempts", "expires", "tags", "jitter", "next_at")
    assert after == before
    assert before[1:] == ('{"x": 1.0}', "q", 1, 2, HOUR, ["a", 'b"'], MINUTE, datetime(2026, 11, 17, 8, tzinfo=UTC))


def test_a_deploy_changes_what_it_changes_and_leaves_the_rest(connection: Overheard, db: Db, clock: Clock) -> None:
    declare(connection, clock, spec(rule=Every(HOUR)))
    clock.go(10 * MINUTE)
    db.execute(
        "update rowlock.schedules set paused_at = rowlock.now(), paused_by = 'me', edits = '{\"queue\": \"vip\"}'"
    )
    db.execute("update rowlock.schedules set queue = 'vip'")

    declare(connection, clock, spec(rule=Every(HOUR), queue="mail", priority=3))
    same_rule = row(db, "next_at", "queue", "priority", "paused_by", "edits::text")
    declare(connection, clock, spec(rule=Every(MINUTE), queue="mail", priority=3))
    other_rule = row(db, "next_at", "queue", "paused_by")

    assert same_rule == (NOON + HOUR, "vip", 3, "me", '{"queue": "vip"}')
    assert other_rule == (NOON + 11 * MINUTE, "vip", "me")


def test_a_worker_that_reconnects_does_not_undo_what_newer_code_has_said(
    connection: Overheard, db: Db, clock: Clock
) -> None:
    old = declare(connection, clock, spec(queue="old"), spec("gone"))
    declare(connection, clock, spec(queue="new"))
    db.execute("delete from rowlock.schedules where name = 'gone'")

    old.begin(connection, clock.at.timestamp())

    assert db.execute("select name, queue from rowlock.schedules order by name").fetchall() == [
        ("gone", "default"),
        ("s", "new"),
    ]


def test_a_declaration_that_an_edit_contradicts_leaves_the_schedule_as_it_is(
    connection: Overheard, db: Db, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    declare(connection, clock, spec(overlap="allow"))
    db.execute("update rowlock.schedules set edits = '{\"catch_up\": 9}', catch_up = 9")

    declare(connection, clock, spec(overlap="skip", queue="q"), spec("other"))

    assert db.execute("select overlap, queue from rowlock.schedules where name = 's'").fetchall() == [
        ("allow", "default")
    ]
    assert one(db, "select count(*) from rowlock.schedules") == 2
    assert [record.levelno for record in caplog.records] == [logging.ERROR]


def test_a_next_slot_that_the_rule_does_not_give_any_more_is_corrected(
    connection: Overheard, db: Db, clock: Clock
) -> None:
    """The government has moved the clocks, and the zone data came with a deploy."""
    declare(connection, clock, spec())
    add(db, "an operator's own", cron="0 9 * * *", tz="Europe/Paris", due="1 hour")
    add(db, "due", cron="0 9 * * *", tz="Europe/Paris", due="-1 hour")
    db.execute("update rowlock.schedules set next_at = next_at + interval '1 hour' where name = 's'")

    declare(connection, clock, spec())

    right = datetime(2026, 11, 17, 8, tzinfo=UTC)
    assert dict(db.execute("select name, next_at from rowlock.schedules").fetchall()) == {
        "s": right,
        "an operator's own": right,
        "due": NOON - HOUR,
    }


def test_an_operators_schedule_of_that_name_is_taken_over(connection: Overheard, db: Db, clock: Clock) -> None:
    add(db, due="1 hour", every=HOUR, queue="operators")

    declare(connection, clock, spec(rule=Every(HOUR), queue="code"))

    assert row(db, "queue", "is_declared", "next_at") == ("code", True, NOON + HOUR)


# At boot


def test_what_runs_at_boot_runs_once_however_many_workers_start(connection: Overheard, db: Db, clock: Clock) -> None:
    for _ in range(10):
        firer(declare(connection, clock, spec(at_boot=True), spec("not at boot"))).fire_due(connection)

    assert db.execute("select schedule, slot, reason from rowlock.firings").fetchall() == [("s", NOON, "boot")]
    assert jobs(db) == 1


def test_a_start_later_on_runs_it_again_and_a_new_incarnation_does_not(
    connection: Overheard, db: Db, clock: Clock
) -> None:
    first = declare(connection, clock, spec(at_boot=True, overlap="allow"))
    firer(first).fire_due(connection)
    clock.go(HOUR)

    first.begin(connection, clock.at.timestamp())
    firer(first).fire_due(connection)
    same_process = jobs(db)
    firer(declare(connection, clock, spec(at_boot=True, overlap="allow"))).fire_due(connection)

    assert (same_process, jobs(db)) == (1, 2)


@pytest.mark.parametrize(
    ("overlap", "reason"), [("allow", "boot"), ("skip", "overlap"), ("queue", None), ("replace", None)]
)
def test_a_run_at_boot_respects_the_job_that_is_there(
    connection: Overheard, db: Db, clock: Clock, overlap: str, reason: str | None
) -> None:
    firer(declare(connection, clock, spec(at_boot=True, overlap=overlap))).fire_due(connection)
    clock.go(HOUR)

    firer(declare(connection, clock, spec(at_boot=True, overlap=overlap))).fire_due(connection)

    latest = [reason for slot, _, reason in slots(db) if slot == NOON + HOUR]
    held = one(db, "select held from rowlock.schedules")
    assert one(db, "select count(*) from rowlock.firings where job is not null") == (2 if overlap == "allow" else 1)
    assert (latest, held) == (([reason], None) if reason else ([], NOON + HOUR))


def test_a_paused_schedule_does_not_run_at_boot(connection: Overheard, db: Db, clock: Clock) -> None:
    boot = declare(connection, clock, spec(at_boot=True))
    db.execute("update rowlock.schedules set paused_at = rowlock.now(), paused_by = 'me'")

    firer(boot).fire_due(connection)

    assert slots(db) == [(NOON, False, "paused")]


def test_a_slot_that_comes_at_the_same_moment_serves_for_the_run_at_boot(
    connection: Overheard, db: Db, clock: Clock
) -> None:
    declare(connection, clock, spec(rule=Every(MINUTE), at_boot=True))
    clock.go(MINUTE + SECOND)

    firer(declare(connection, clock, spec(rule=Every(MINUTE), at_boot=True))).fire_due(connection)

    assert slots(db) == [(NOON + MINUTE, True, None), (NOON + MINUTE + SECOND, False, "overlap")]
