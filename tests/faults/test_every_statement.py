"""Crash at every statement of a worker's: as it starts, works, rescues, cancels and stops.

Workers are processes of their own, behind a proxy that knows which statement passes; those that are killed are killed
with SIGKILL. One database for a test: what one case leaves undone is the next worker's to do, and at the end everything
has ended and every invariant holds. Which statements there are is recorded anew each time, by a test of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rowlock import Rowlock
from rowlock.store.claim import Lane
from tests.depth import deep, deep_unless
from tests.engine import Engine
from tests.faults import stations, tasks
from tests.faults.conftest import MakeCrew
from tests.faults.crew import LIMIT, Member
from tests.faults.oracle import Oracle
from tests.faults.proxy import Proxy
from tests.faults.seeds import Trial
from tests.faults.striking import KILLED_AFTER, MODES, Mode
from tests.faults.victims import CLAIM, OPTIONS, RENEW, SETTLE, START, Db, Victims, at
from tests.waiting import until

ENVIRONMENT = {"ROWLOCK_DEADLINE": "1"}  # of what comes before there is a worker

# From the start of the process until it waits for its next job.
STARTING = [
    *at(START, "select", "schema_version"),
    *at(SETTLE, "select", "queue_channels"),
    *at(RENEW, "select", "transaction_begin", "retention_longest", "schema_today", "partition_list"),
    *at(RENEW, "transaction_commit", "queue_settings", "worker_register", "worker_enter", "schedule_declared"),
    *at(CLAIM, "select", "listen", "job_claim_suspect", "job_claim", "job_take_up", "worker_park"),
]
WORKING = [
    *at(CLAIM, "lane_due", "job_claim"),
    *at(SETTLE, "job_progress", "job_return", "breaker_count", "job_settle"),
    *at(RENEW, "worker_renew", "worker_held", "worker_look", "duty_turn", "duty_done", "pause_expire", "job_expire"),
    *at(RENEW, "workflow_unblock"),
    *at(RENEW, "schedule_due"),  # what is said to fire them: test_schedules.py
]
RESCUING = at(
    RENEW,
    "worker_look",
    "transaction_begin",
    "duty_take",
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
    "clock_compare",
    "firing_remove",
    "job_begin",
    "key_sweep",
    "minute_merge",
    "minute_remove",
    "notification_measure",
    "partition_owned",
    "event_clear",
    "lane_tell",
    "waiter_clear",
    "worker_tell",
}


@pytest.fixture
def scene(url: str, make_crew: MakeCrew, oracle: Oracle, recorded: Db) -> Iterator[Victims]:
    with Proxy(url) as proxy, Rowlock(url) as app:
        crew = make_crew(proxy.url, **OPTIONS)
        yield Victims(url, proxy, crew, oracle, app, recorded)
        crew.kill()


every_mode = pytest.mark.parametrize("mode", MODES, ids=str)
mostly_deep = pytest.mark.parametrize("mode", deep_unless(lambda mode: mode is KILLED_AFTER, MODES), ids=str)


def test_these_are_all_the_statements_of_a_worker(scene: Victims) -> None:
    """A life in which everything happens once. A statement that is new has to be entered above."""
    alive = {(point.name, point.who) for point in (*STARTING, *WORKING, *RESCUING, *CANCELLING)}
    listed = alive | {(point.name, point.who) for point in STOPPING}
    orphan(scene)
    victim = scene.victim()
    scene.ends(scene.sender.send(stations.take_the_long_way.bind), "succeeded")
    cancelled = stay(scene, "cancelled")
    scene.app.jobs.get(cancelled).cancel()
    scene.ends(cancelled, "cancelled")
    stay(scene, "handed back")
    until(lambda: alive <= said(scene) or not victim.is_alive, what="all that comes by and by", limit=LIMIT)
    victim.terminate()
    victim.wait()

    assert said(scene) == listed


def said(scene: Victims) -> set[tuple[str, str]]:
    """The statements that were recorded, and whose they were."""
    return {(one.name, one.who) for one in list(scene.proxy.passed) if one.name not in SELDOM}


@deep
@every_mode
def test_a_worker_that_starts(scene: Victims, mode: Mode, trial: Trial) -> None:
    for point in STARTING:
        started: list[Member] = []
        with scene.struck(point, mode, victim=lambda: until(lambda: started)[0]):  # noqa: B023  it is called in here
            job = scene.sender.send(tasks.touch.bind)
            started += scene.crew.start(environment=ENVIRONMENT)
        [victim] = started
        if not mode.kills and (point.who != START or victim.works_or_ends().is_alive):
            scene.ends(job, "succeeded")
            assert victim.is_alive
        victim.kill()

    scene.conclude(trial, exact_crashes=True)


@deep
@mostly_deep
def test_a_worker_that_works(scene: Victims, mode: Mode, trial: Trial) -> None:
    for point in WORKING:
        victim = scene.victim()
        with scene.struck(point, mode, victim=lambda: victim):  # noqa: B023  it is called in here
            job = scene.sender.send(stations.take_the_long_way.bind)
        if not mode.kills:
            scene.ends(job, "succeeded")
            assert victim.is_alive

    scene.conclude(trial, exact_crashes=True)


@deep
@every_mode
def test_a_worker_that_rescues(scene: Victims, mode: Mode, trial: Trial) -> None:
    for point in RESCUING:
        victim = scene.victim()
        with scene.struck(point, mode, victim=lambda: victim):  # noqa: B023  it is called in here
            job = orphan(scene)
        if not mode.kills:
            scene.ends(job, "succeeded")
            assert victim.is_alive
            assert scene.db.execute("select crashes from rowlock.history where id = %s", [job]).fetchone() == (1,)

    scene.conclude(trial, exact_crashes=False)


@deep
@every_mode
def test_a_worker_whose_job_is_cancelled(scene: Victims, mode: Mode, trial: Trial) -> None:
    jobs = []
    for point in CANCELLING:
        victim = scene.victim()
        jobs.append(stay(scene, f"never, {point.name}"))
        with scene.struck(point, mode, victim=lambda: victim):  # noqa: B023  it is called in here
            assert scene.app.jobs.get(jobs[-1]).cancel()
        if not mode.kills:
            scene.ends(jobs[-1], "cancelled")
            assert victim.is_alive

    scene.conclude(trial, exact_crashes=True)
    assert {scene.state(job) for job in jobs} == {"cancelled"}


@deep
@every_mode
def test_a_worker_that_stops(scene: Victims, mode: Mode, trial: Trial) -> None:
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


def stay(scene: Victims, gate: str) -> str:
    """A job that runs until the gate is open."""
    job = scene.sender.send(lambda n: tasks.stay.bind(n, gate))
    scene.runs_now(job)
    return job


def orphan(scene: Victims) -> str:
    """A job of a worker whose lease has run out."""
    job = scene.sender.send(lambda n: tasks.touch.using(queue="elsewhere").bind(n))
    dead = Engine(scene.url)
    assert [row.id for row in dead.claim(lanes=[Lane("elsewhere", 0)])] == [job]
    dead.close()
    scene.db.execute("update rowlock.jobs set queue = 'default' where id = %s", [job])
    scene.db.execute("update rowlock.workers set lease = rowlock.now() where id = %s", [dead.worker])
    return job
