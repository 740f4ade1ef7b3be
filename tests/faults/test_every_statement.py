"""Crash at every statement of a worker's: as it starts, works, rescues, cancels and stops.

Workers are processes of their own, behind a proxy that knows which statement passes; those that are killed are killed
with SIGKILL. One database for a test: what one case leaves undone is the next worker's to do, and at the end everything
has ended and every invariant holds. Which statements there are is recorded anew each time, by a test of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
import pytest
from psycopg.rows import TupleRow

from rowlock import Rowlock
from rowlock.store.jobs import Lane
from tests.engine import Engine
from tests.faults import stations, tasks
from tests.faults.check import assert_all_is_well, check
from tests.faults.conftest import MakeCrew
from tests.faults.crew import LIMIT, Crew, Member
from tests.faults.oracle import Oracle
from tests.faults.proxy import Proxy
from tests.faults.seeds import Trial
from tests.faults.sending import Sender
from tests.faults.striking import MODES, Mode, Point, strike
from tests.waiting import until

Db = psycopg.Connection[TupleRow]

OPTIONS = {"lease": 3, "renew": 0.4, "deadline": 0.6, "grace": 0.2, "slots": 4, "app": "tests.faults.stations"}

ENVIRONMENT = {"ROWLOCK_DEADLINE": "1"}  # of what comes before there is a worker

CLAIM, SETTLE, RENEW, START = "rowlock claim", "rowlock settle", "rowlock renew", "rowlock start"


def at(who: str, *names: str) -> list[Point]:
    return [Point(name, who) for name in names]


# From the start of the process until it waits for its next job.
STARTING = [
    *at(START, "select", "schema_version"),
    *at(SETTLE, "select", "queue_channels"),
    *at(RENEW, "select", "transaction_begin", "retention_longest", "schema_today", "partition_list"),
    *at(RENEW, "transaction_commit", "queue_settings", "worker_register", "worker_enter", "schedule_declared"),
    *at(CLAIM, "select", "listen", "job_claim", "job_take_up", "worker_park"),
]
WORKING = [
    *at(CLAIM, "lane_due", "job_claim"),
    *at(SETTLE, "job_progress", "job_return", "breaker_count", "job_settle"),
    *at(RENEW, "worker_renew", "worker_held", "worker_look", "pause_expire", "job_expire"),
    *at(RENEW, "schedule_due"),  # what is said to fire them: test_schedules.py
]
RESCUING = at(
    RENEW,
    "worker_look",
    "transaction_begin",
    "select",
    "job_orphans",
    "job_rescue",
    "worker_bury",
    "transaction_commit",
)
CANCELLING = at(SETTLE, "job_cancelling", "job_settle")
STOPPING = [*at(SETTLE, "job_return", "job_hand_back", "worker_leave"), *at(RENEW, "minute_write")]
# Upkeep that is done once in minutes or hours, or said only if the stop takes long enough; it holds no job.
SELDOM = {
    "breaker_remove",
    "firing_remove",
    "key_sweep",
    "minute_remove",
    "partition_owned",
    "waiter_clear",
    "worker_tell",
}


@dataclass
class Scene:
    """A database behind a proxy, and the workers that are struck there."""

    url: str
    proxy: Proxy
    crew: Crew
    oracle: Oracle
    app: Rowlock
    db: Db

    def __post_init__(self) -> None:
        self.sender = Sender(self.app, self.oracle)
        self.runs = 0

    def victim(self) -> Member:
        """A worker that works behind the proxy: the last one, if it lives."""
        [*_, last] = self.crew.living() or self.crew.start()
        return last.works()

    @contextmanager
    def struck(self, point: Point, mode: Mode, *, victim: Callable[[], Member]) -> Iterator[None]:
        """What is done inside it leads to the statement, which is struck; then all is well again."""
        self.proxy.forget()
        happened = strike(self.proxy, point, mode, kill=lambda: victim().kill())
        try:
            yield
            until(happened.is_set, what=f"{mode} at {point}", limit=LIMIT)
        except BaseException as error:
            error.add_note(f"{mode} at {point}")
            raise
        finally:
            self.proxy.forget()
        self.runs += 1

    def state(self, job: str) -> str | None:
        """Where a job is."""
        found = self.db.execute(
            """
            select state from rowlock.jobs where id = %(id)s
            union all select state from rowlock.history where id = %(id)s
            """,
            {"id": job},
        ).fetchall()
        assert len(found) == 1, f"job {job} is in {len(found)} places"
        return str(found[0][0])

    def ends(self, job: str, *states: str) -> None:
        """Wait for a job's end."""
        live = {"ready", "running", "waiting"}
        until(lambda: self.state(job) not in live, what=f"the end of job {job}", limit=LIMIT)
        assert self.state(job) in states

    def runs_now(self, job: str) -> None:
        until(lambda: self.state(job) == "running", what=f"a start of job {job}", limit=LIMIT)

    def conclude(self, trial: Trial, *, exact_crashes: bool) -> None:
        """Faults off: a worker that nothing stands before does what is left, and all is well."""
        self.crew.kill()
        self.crew.start(url=self.url)[0].works()
        query = "select not exists (select from rowlock.jobs)"
        until(lambda: self.db.execute(query).fetchone() == (True,), what="the end of all jobs", limit=LIMIT)
        self.crew.stop()
        assert_all_is_well(check(self.oracle, self.db, exact_crashes=exact_crashes))
        trial.counts.pop("seed")
        trial.count(runs=self.runs)


@pytest.fixture
def scene(url: str, make_crew: MakeCrew, oracle: Oracle, recorded: Db) -> Iterator[Scene]:
    with Proxy(url) as proxy, Rowlock(url) as app:
        crew = make_crew(proxy.url, **OPTIONS)
        yield Scene(url, proxy, crew, oracle, app, recorded)
        crew.kill()


every_mode = pytest.mark.parametrize("mode", MODES, ids=str)


def test_these_are_all_the_statements_of_a_worker(scene: Scene) -> None:
    """A life in which everything happens once. A statement that is new has to be entered above."""
    alive = {(point.name, point.who) for point in (*STARTING, *WORKING, *RESCUING, *CANCELLING)}
    listed = alive | {(point.name, point.who) for point in STOPPING}
    orphan(scene)
    victim = scene.victim()
    scene.ends(scene.sender.send(stations.take_the_long_way.bind), "succeeded")
    cancelled = stay(scene, "cancelled")
    scene.app.get(cancelled).cancel()
    scene.ends(cancelled, "cancelled")
    stay(scene, "handed back")
    until(lambda: alive <= said(scene) or not victim.is_alive, what="all that comes by and by", limit=LIMIT)
    victim.terminate()
    victim.wait()

    assert said(scene) == listed


def said(scene: Scene) -> set[tuple[str, str]]:
    """The statements that were recorded, and whose they were."""
    return {(one.name, one.who) for one in list(scene.proxy.passed) if one.name not in SELDOM}


@every_mode
def test_a_worker_that_starts(scene: Scene, mode: Mode, trial: Trial) -> None:
    for point in STARTING:
        started: list[Member] = []
        with scene.struck(point, mode, victim=lambda: until(lambda: started)[0]):  # noqa: B023  it is called in here
            job = scene.sender.send(tasks.touch.bind)
            started += scene.crew.start(environment=ENVIRONMENT)
        [victim] = started
        if not mode.kills and (point.who != START or victim.works().is_alive):
            scene.ends(job, "succeeded")
            assert victim.is_alive
        victim.kill()

    scene.conclude(trial, exact_crashes=True)


@every_mode
def test_a_worker_that_works(scene: Scene, mode: Mode, trial: Trial) -> None:
    for point in WORKING:
        victim = scene.victim()
        with scene.struck(point, mode, victim=lambda: victim):  # noqa: B023  it is called in here
            job = scene.sender.send(stations.take_the_long_way.bind)
        if not mode.kills:
            scene.ends(job, "succeeded")
            assert victim.is_alive

    scene.conclude(trial, exact_crashes=True)


@every_mode
def test_a_worker_that_rescues(scene: Scene, mode: Mode, trial: Trial) -> None:
    for point in RESCUING:
        victim = scene.victim()
        with scene.struck(point, mode, victim=lambda: victim):  # noqa: B023  it is called in here
            job = orphan(scene)
        if not mode.kills:
            scene.ends(job, "succeeded")
            assert victim.is_alive
            assert scene.db.execute("select crashes from rowlock.history where id = %s", [job]).fetchone() == (1,)

    scene.conclude(trial, exact_crashes=False)


@every_mode
def test_a_worker_whose_job_is_cancelled(scene: Scene, mode: Mode, trial: Trial) -> None:
    jobs = []
    for point in CANCELLING:
        victim = scene.victim()
        jobs.append(stay(scene, f"never, {point.name}"))
        with scene.struck(point, mode, victim=lambda: victim):  # noqa: B023  it is called in here
            assert scene.app.get(jobs[-1]).cancel()
        if not mode.kills:
            scene.ends(jobs[-1], "cancelled")
            assert victim.is_alive

    scene.conclude(trial, exact_crashes=True)
    assert {scene.state(job) for job in jobs} == {"cancelled"}


@every_mode
def test_a_worker_that_stops(scene: Scene, mode: Mode, trial: Trial) -> None:
    for point in STOPPING:
        victim = scene.victim()
        job = stay(scene, f"later, {point.name}")
        with scene.struck(point, mode, victim=lambda: victim):  # noqa: B023  it is called in here
            victim.terminate()
            victim.wait()
        scene.oracle.open_gate(f"later, {point.name}")
        assert mode.kills or victim.ended in {0, 1}
        if victim.ended == 0:
            assert scene.state(job) == "ready"
            query = "select failures, crashes from rowlock.jobs where id = %s"
            assert scene.db.execute(query, [job]).fetchone() == (0, 0)

    scene.conclude(trial, exact_crashes=mode.name != "black hole")


def stay(scene: Scene, gate: str) -> str:
    """A job that runs until the gate is open."""
    job = scene.sender.send(lambda n: tasks.stay.bind(n, gate))
    scene.runs_now(job)
    return job


def orphan(scene: Scene) -> str:
    """A job of a worker whose lease has run out."""
    job = scene.sender.send(lambda n: tasks.touch.using(queue="elsewhere").bind(n))
    dead = Engine(scene.url)
    assert [row.id for row in dead.claim(lanes=[Lane("elsewhere", 0)])] == [job]
    dead.close()
    scene.db.execute("update rowlock.jobs set queue = 'default' where id = %s", [job])
    scene.db.execute("update rowlock.workers set lease = rowlock.now() where id = %s", [dead.worker])
    return job
