"""Exactly one job per slot, whatever workers, sessions, answers and clocks do: T16, T37, D2, D3."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise

import psycopg
import pytest
from psycopg.rows import TupleRow

from rowlock.db.errors import Unreachable
from rowlock.db.thread_connection import ReconnectingSyncConnection
from rowlock.worker.schedule import Boot, Firer
from tests.depth import deep
from tests.faults import ticking
from tests.faults.conftest import MakeCrew
from tests.faults.crew import LIMIT, Crew, Member
from tests.faults.oracle import Oracle
from tests.faults.proxy import Proxy
from tests.faults.seeds import Trial
from tests.faults.striking import MODES, Mode, Point, strike
from tests.scheduling import Clock, add
from tests.waiting import until
from tests.worker.working import one

Db = psycopg.Connection[TupleRow]

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
SECOND, MINUTE, HOUR, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)

# Of the jobs there are: for which slots, and how many for each.
MADE = """
    select tags[array_length(tags, 1) - 1], tags[array_length(tags, 1)], array_agg(id::text)
    from (select id, tags from rowlock.jobs union all select id, tags from rowlock.history) as job
    group by 1, 2
"""


def firer() -> Firer:
    return Firer(boot=Boot(), keep=DAY, longest=DAY)


def made(db: Db) -> dict[tuple[str, datetime], list[str]]:
    """The jobs that there are, by schedule and slot as their tags have them."""
    return {
        (schedule.removeprefix("schedule:"), datetime.fromisoformat(slot.removeprefix("slot:"))): ids
        for schedule, slot, ids in db.execute(MADE).fetchall()
    }


def assert_each_slot_is_done_with_once(db: Db) -> None:
    """No slot has two jobs, or a job that it is not written down with; none of a schedule's is left out in between."""
    jobs = made(db)
    written = db.execute("select schedule, slot, job::text from rowlock.firings where reason is distinct from 'boot'")
    firings = {(schedule, slot): job for schedule, slot, job in written.fetchall()}
    assert {key: ids for key, ids in jobs.items() if len(ids) > 1} == {}
    assert {key: [job] for key, job in firings.items() if job is not None} == jobs
    held = db.execute("select name, held from rowlock.schedules where held is not null").fetchall()
    firings |= dict.fromkeys(held)
    for name in {schedule for schedule, _ in firings}:
        slots = sorted(slot for schedule, slot in firings if schedule == name)
        assert {later - earlier for earlier, later in pairwise(slots)} <= {SECOND}, name


# All at once


class Undone(Exception):
    """What was fired is rolled back."""


class Reckless(ReconnectingSyncConnection):
    """A session that fires without the lock which spares others the work, and rolls every fourth firing back."""

    def __init__(self, url: str) -> None:
        super().__init__(url, "rowlock", name="rowlock ticker")
        self.begun = self.undone = 0

    @contextmanager
    def sweep(self, duty: str, *, worker: str | None = None) -> Iterator[bool]:
        assert (duty, worker) == ("schedules", None)
        self.begun += 1
        with self._reaching(), self.open().transaction():
            yield True
            if self.begun % 4 == 1:
                self.undone += 1
                raise Undone


SCHEDULES, SECONDS, THREADS, PROCESSES = 20, 100, 4, 2


def test_two_thousand_slots_and_six_who_fire_them_make_two_thousand_jobs(
    url: str, db: Db, make_crew: MakeCrew, trial: Trial
) -> None:
    # given schedules for every second, threads that fire them without a lock, and workers that do so with it
    clock = Clock(db, NOON)
    add(db, count=SCHEDULES, every=SECOND, due="1 second", overlap="allow", catch_up=1000, queue="elsewhere")
    crew = make_crew(url, lease=3600, slots=1)
    tickers = [Reckless(url) for _ in range(THREADS)]
    over = threading.Event()
    threads = [threading.Thread(target=tick, args=(ticker, over)) for ticker in tickers]
    crew.start(PROCESSES)

    # when time passes by leaps, firings are rolled back, sessions terminated and workers killed
    kills = 0
    try:
        for thread in threads:
            thread.start()
        while clock.at < NOON + SECONDS * SECOND:
            clock.go(min(trial.random.randint(1, 4) * SECOND, NOON + SECONDS * SECOND - clock.at))
            over.wait(trial.random.uniform(0, 0.03))
            kills += terminate_one(db)
            if trial.random.random() < 0.1:
                trial.random.choice(crew.living()).kill()
                crew.start()
        until(lambda: one(db, "select min(next_at) from rowlock.schedules") > clock.at, limit=LIMIT)
    finally:
        over.set()
        for thread in threads:
            thread.join()
        for ticker in tickers:
            ticker.close()
        crew.kill()

    # then each slot has one job
    expected = {
        (f"s{n:04}", NOON + second * SECOND) for n in range(1, SCHEDULES + 1) for second in range(1, SECONDS + 1)
    }
    assert made(db).keys() == expected
    assert_each_slot_is_done_with_once(db)
    trial.count(slots=len(expected), rolled_back=sum(ticker.undone for ticker in tickers), terminated=kills)
    assert sum(ticker.undone for ticker in tickers) > 0


def tick(ticker: Reckless, over: threading.Event) -> None:
    looking = firer()
    while not over.is_set():
        with suppress(Undone, Unreachable, psycopg.Error):
            looking.fire_due(ticker)


def terminate_one(db: Db) -> int:
    query = """
        select count(pg_terminate_backend(pid)) from (
            select pid from pg_stat_activity
            where datname = current_database() and application_name = 'rowlock ticker' order by random() limit 1
        ) as victim
    """
    return int(one(db, query))


# Workers that live, and die


@deep
def test_slots_are_fired_once_while_workers_are_killed_and_frozen(
    url: str, db: Db, make_crew: MakeCrew, oracle: Oracle, trial: Trial
) -> None:
    # given three workers, and schedules of every policy
    crew = make_crew(url, app="tests.faults.ticking", renew=0.4, deadline=0.6, slots=4)
    crew.start(3)
    until(lambda: fired(db) > 0, what="a first slot", limit=LIMIT)

    # when one after the other is killed or frozen, until some slots have come
    pause, kills, frozen = threading.Event(), 0, list[Member]()
    until_slot = fired(db) + 10
    while fired(db) < until_slot:
        victim = trial.random.choice(crew.living())
        if trial.random.random() < 0.5:
            victim.kill()
            crew.start()
            kills += 1
        else:
            victim.freeze()
            frozen.append(victim)
        pause.wait(0.7)
        while frozen:
            frozen.pop().thaw()

    # then each slot is done with once, inside and outside of the database
    conclude(db, crew, oracle)
    slots = sorted(slot for schedule, slot in made(db) if schedule == "all")
    assert {later - earlier for earlier, later in pairwise(slots)} == {SECOND}
    trial.count(kills=kills, slots=one(db, "select count(*) from rowlock.firings"))


def fired(db: Db) -> int:
    return int(one(db, "select count(*) from rowlock.firings where schedule = 'all' and job is not null"))


def conclude(db: Db, crew: Crew, oracle: Oracle, *, url: str | None = None) -> None:
    """One more slot, then no more: every job ends, and no slot was told of by two."""
    crew.kill()
    before = fired(db)
    [last] = crew.start(url=url)
    until(lambda: fired(db) > before, what="a slot", limit=LIMIT)
    last.terminate()
    assert last.wait() == 0, last.said
    db.execute("update rowlock.schedules set paused_at = rowlock.now(), paused_by = 'test'")
    crew.start(url=url)[0].works()
    until(lambda: one(db, "select count(*) from rowlock.jobs") == 0, what="the end of all jobs", limit=LIMIT)
    crew.stop()
    db.execute("delete from rowlock.firings where reason = 'paused'")
    assert_each_slot_is_done_with_once(db)
    told = {(line["schedule"], line["slot"], line["job"]) for line in oracle.read("slot")}
    assert len(told) == len({(schedule, slot) for schedule, slot, _ in told}) == len(made(db))
    assert {schedule for schedule, _, _ in told} == ticking.NAMES


FIRING = [Point(name, "rowlock renew") for name in ("schedule_due", "schedule_fire", "transaction_commit")]
STARTING = Point("schedule_declare", "rowlock renew")
OPTIONS = {"app": "tests.faults.ticking", "lease": 3, "renew": 0.4, "deadline": 0.6, "grace": 0.2, "slots": 4}


@deep
@pytest.mark.parametrize(
    "mode",
    [mode for mode in MODES if mode.name in {"killed before", "killed after", "reply lost", "black hole"}],
    ids=str,
)
def test_a_crash_at_any_statement_of_a_firing_costs_no_slot_and_fires_none_twice(
    url: str, db: Db, make_crew: MakeCrew, oracle: Oracle, mode: Mode
) -> None:
    with Proxy(url) as proxy:
        crew = make_crew(proxy.url, **OPTIONS)

        for point in (STARTING, *FIRING):
            if point is not STARTING:
                [*_, victim] = crew.living() or crew.start()
                victim.works()
            happened = strike(proxy, point, mode, kill=partial(kill_latest, crew))
            if point is STARTING:
                crew.start()
            until(happened.is_set, what=f"{mode} at {point}", limit=LIMIT)
            proxy.forget()

        conclude(db, crew, oracle, url=url)


def kill_latest(crew: Crew) -> None:
    until(crew.living)[-1].kill()


# The database's clock


@pytest.fixture
def connection(url: str) -> Iterator[ReconnectingSyncConnection]:
    steady = ReconnectingSyncConnection(url, "rowlock", name="rowlock test")
    yield steady
    steady.close()


POLICIES = {"none": 0, "last": 1, "five": 5}


def jobs_of(db: Db, name: str) -> list[datetime]:
    return sorted(slot for schedule, slot in made(db) if schedule == name)


@pytest.fixture
def policies(db: Db) -> Clock:
    """It is noon, and schedules of every minute and every hour have just fired, one of each catch-up policy."""
    clock = Clock(db, NOON)
    for name, catch_up in POLICIES.items():
        add(db, f"minute {name}", every=MINUTE, due="0 seconds", overlap="allow", catch_up=catch_up)
        add(db, f"hour {name}", every=HOUR, due="0 seconds", overlap="allow", catch_up=catch_up)
    return clock


def test_a_clock_that_jumps_ahead_fires_no_more_than_the_policy_allows(
    policies: Clock, connection: ReconnectingSyncConnection, db: Db
) -> None:
    looking = firer()
    looking.fire_due(connection)

    policies.go(90 * MINUTE)
    looking.fire_due(connection)

    late = {
        name: [slot - NOON for slot in jobs_of(db, name)[1:]]
        for name, _ in db.execute("select name, 1 from rowlock.schedules")
    }
    assert late == {
        "minute none": [90 * MINUTE],
        "minute last": [90 * MINUTE],
        "minute five": [n * MINUTE for n in range(86, 91)],
        "hour none": [],  # it is half an hour late
        "hour last": [HOUR],
        "hour five": [HOUR],
    }


@pytest.mark.parametrize("back", [HOUR, 2 * DAY], ids=["an hour", "two days"])
def test_a_clock_that_goes_back_fires_nothing_twice_and_goes_on_where_it_was(
    policies: Clock, connection: ReconnectingSyncConnection, db: Db, back: timedelta
) -> None:
    looking = firer()
    looking.fire_due(connection)
    before = made(db)

    policies.go(-back)
    while policies.at < NOON:
        looking.fire_due(connection)
        policies.go(back / 20)
    again = made(db)
    policies.go(HOUR)
    looking.fire_due(connection)

    assert again == before
    assert jobs_of(db, "hour none") == [NOON, NOON + HOUR]
    assert all(len(ids) == 1 for ids in made(db).values())


def test_a_jump_there_and_back_fires_no_slot_twice(
    policies: Clock, connection: ReconnectingSyncConnection, db: Db
) -> None:
    looking = firer()

    for leap in (HOUR, -HOUR, 3 * HOUR, -2 * DAY, 2 * DAY, MINUTE):
        policies.go(leap)
        for _ in range(3):
            policies.go(MINUTE)
            looking.fire_due(connection)

    assert all(len(ids) == 1 for ids in made(db).values())
    assert one(db, "select bool_and(next_at > rowlock.now()) from rowlock.schedules where name like 'minute%%'")
