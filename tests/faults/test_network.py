"""A network that goes wrong: black holes, half-open connections, resets, lost replies, latency (C1 to C7, T24)."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from rowlock import Rowlock
from tests.depth import deep
from tests.faults.crew import LIMIT
from tests.faults.proxy import Cut, Hole, Proxy, Refuse
from tests.faults.scene import Scene
from tests.faults.servers import frozen
from tests.waiting import until
from tests.worker.working import working

# Black holes and partitions


@deep
def test_a_worker_cut_off_from_the_others_stops_before_they_run_its_jobs(scene: Scene) -> None:
    lone = scene.worker()
    jobs = [scene.app.enqueue(name, n=1, gate="g") for name in ("stay", "stay in a thread")]
    first = [scene.began(job) for job in jobs]
    others = [scene.worker(direct=True), scene.worker(direct=True)]

    scene.proxy.black_hole()
    told = scene.broken_off(first[0])
    second = [scene.began(job, times=2) for job in jobs]
    scene.oracle.open_gate("g")
    found = scene.end_of(*jobs)
    late = scene.broken_off(first[1])

    assert told.at < min(line.at for line in second)
    assert late["error"] == "LeaseLost"  # what a thread is told when it asks
    assert {line.pid for line in second} <= {other.pid for other in others}
    assert [(one.state, one.token) for one in found] == [("succeeded", line["token"]) for line in second]

    # And it comes back.
    scene.proxy.heal()
    until(lambda: len(lone.incarnations) > 1, what="a new incarnation", limit=LIMIT)
    for other in others:
        other.terminate()
        assert other.wait() == 0
    scene.end_of(job := scene.app.enqueue("touch", n=2))
    assert scene.began(job).pid == lone.pid


@deep
def test_a_settle_that_arrives_when_the_job_is_somebody_elses_changes_nothing(scene: Scene) -> None:
    lone = scene.worker()
    held = scene.proxy.on("job_settle", Hole(everywhere=True))
    job = scene.app.enqueue("touch", n=1)
    until(held.happened.is_set, limit=LIMIT)
    first = scene.began(job)
    scene.worker(direct=True)

    [ending] = scene.end_of(job)
    scene.proxy.heal()  # what was held back is sent to the server now
    until(lambda: len(lone.incarnations) > 1, what="a new incarnation", limit=LIMIT)

    assert ending.token == scene.began(job, times=2)["token"] != first["token"]
    assert scene.endings() == {str(job.id): ending}


def test_a_look_whose_connection_breaks_is_not_taken_for_a_slow_one(scene: Scene) -> None:
    scene.db.execute(
        "insert into rowlock.jobs (id, queue, task, attempts, run_at, created_at, args)"
        """ values (rowlock.uuid7(), 'default', 'touch', 1, now() - interval '1 hour', now(), '{"n": 1}')"""
    )
    broken = scene.proxy.on("lane_due", Cut(after=True), who="rowlock claim")

    member = scene.worker()
    until(broken.happened.is_set, limit=LIMIT)
    until(scene.endings, what="the end of what had been due", limit=LIMIT)

    assert "too slow" not in member.said


@deep
@pytest.mark.parametrize(("statement", "everywhere"), [("job_settle", False), ("worker_renew", True)])
def test_a_hole_that_heals_within_the_lease_costs_nothing(scene: Scene, statement: str, *, everywhere: bool) -> None:
    member = scene.patient_worker()
    hole = scene.proxy.on(statement, Hole(everywhere=everywhere))
    jobs = [scene.app.enqueue("touch", n=n) for n in range(5)]

    until(hole.happened.is_set, limit=LIMIT)
    opened = scene.proxy.opened
    until(lambda: scene.proxy.opened > opened, what="another connection after the deadline", limit=LIMIT)
    scene.proxy.heal()
    found = scene.end_of(*jobs)

    assert {(one.state, one.failures, one.crashes) for one in found} == {("succeeded", 0, 0)}
    assert len(member.incarnations) == 1


# Half-open connections


def _server_is_gone(scene: Scene) -> AbstractContextManager[None]:
    scene.proxy.half_open()
    scene.proxy.heal()  # for new connections
    return nullcontext()


def _backends_are_frozen(scene: Scene) -> AbstractContextManager[None]:
    return frozen([pid for pids in scene.sessions().values() for pid in pids])


HalfOpen = Callable[[Scene], AbstractContextManager[None]]


@deep
@pytest.mark.parametrize("half_open", [_server_is_gone, _backends_are_frozen])
def test_half_open_connections_are_given_up_and_opened_anew(scene: Scene, half_open: HalfOpen) -> None:
    member = scene.patient_worker()
    held = scene.app.enqueue("stay", n=1, gate="g")
    scene.began(held)

    with half_open(scene):
        [quick] = scene.end_of(scene.app.enqueue("touch", n=2))
        scene.oracle.open_gate("g")
        [ending] = scene.end_of(held)

    assert (quick.state, quick.crashes) == ("succeeded", 0)
    assert (ending.state, ending.claims, ending.crashes) == ("succeeded", 1, 0)
    assert len(member.incarnations) == 1


# Resets and lost replies


@deep
@pytest.mark.parametrize(
    ("statement", "after"),
    [("job_claim", True), ("job_settle", False), ("job_settle", True), ("job_return", True), ("worker_renew", True)],
)
def test_connections_reset_in_the_middle_of_a_batch_lose_and_double_nothing(
    scene: Scene, statement: str, *, after: bool
) -> None:
    member = scene.patient_worker(deadline=5)
    faults = [
        scene.proxy.on(statement, Cut(after=after, everywhere=True)),
        scene.proxy.on(statement, Cut(after=after), nth=2),
    ]
    call = scene.app.call
    plain = scene.app.enqueue_many([call("touch", n=n) for n in range(50)])
    failing = scene.app.enqueue_many([call("once more", n=n) for n in range(10)])

    found = scene.end_of(*plain, *failing)
    until(lambda: all(fault.happened.is_set() for fault in faults), limit=LIMIT)

    assert {(one.state, one.crashes) for one in found} == {("succeeded", 0)}
    assert {one.failures for one in found[: len(plain)]} == {0}
    assert {one.failures for one in found[len(plain) :]} == {1}
    assert len(member.incarnations) == 1


@pytest.mark.parametrize("after", [False, True], ids=["before it arrives", "after the commit"])
@pytest.mark.parametrize(("count", "statement"), [(1, "job_put"), (20, "job_enqueue"), (1_000, "job_load")])
def test_an_enqueue_whose_connection_breaks_is_made_once(
    scene: Scene, count: int, statement: str, *, after: bool
) -> None:
    fault = scene.proxy.on(statement, Cut(after=after))

    with Rowlock(scene.proxy.url) as app:
        made = app.enqueue_many([app.call("touch", n=n) for n in range(count)])

    assert fault.happened.is_set()
    assert {row[0] for row in scene.db.execute("select id from rowlock.jobs").fetchall()} == {job.id for job in made}


@deep
def test_callers_who_enqueue_into_a_black_hole_are_told_and_may_send_again(scene: Scene) -> None:
    with Rowlock(scene.proxy.url, deadline=timedelta(seconds=1)) as app:
        task = app.task(name="nothing")(_nothing)
        task.enqueue()
        scene.proxy.black_hole()

        with pytest.raises(psycopg.OperationalError):
            task.using(key="once").enqueue()
        scene.proxy.heal()  # and what was held back arrives
        again = task.using(key="once").enqueue()
        third = task.using(key="once").enqueue()

    assert again == third
    assert scene.count("true") == 2
    assert scene.count("key = 'once'") == 1


@deep
def test_async_callers_who_enqueue_into_a_black_hole_are_told(scene: Scene) -> None:
    async def enqueue() -> list[object]:
        async with Rowlock(scene.proxy.url, deadline=timedelta(seconds=1)) as app:
            await app.aenqueue("touch", n=0)
            await asyncio.to_thread(scene.proxy.black_hole)
            together = [app.aenqueue("touch", n=n) for n in range(1, 20)]
            return list(await asyncio.gather(*together, return_exceptions=True))

    answers = asyncio.run(enqueue())
    scene.proxy.heal()

    assert len(answers) == 19
    assert all(isinstance(answer, psycopg.OperationalError) for answer in answers)
    until(lambda: scene.proxy.open == 0, what="closed connections")  # although their errors are still held


async def _nothing() -> None:
    pass


# Latency, and addresses that lead nowhere


@deep
def test_latency_costs_time_and_no_lease(scene: Scene) -> None:
    scene.proxy.latency = 0.2
    member = scene.worker(lease=12, renew=1, deadline=2.5)
    held = scene.app.enqueue("stay", n=0, gate="g")
    jobs = [scene.app.enqueue("touch", n=n) for n in range(1, 12)]

    found = scene.end_of(*jobs)
    until(lambda: scene.proxy.sent("worker_renew") > 2, what="some renewals", limit=LIMIT)
    scene.oracle.open_gate("g")
    found += scene.end_of(held)

    assert {(one.state, one.claims, one.crashes) for one in found} == {("succeeded", 1, 0)}
    assert len(member.incarnations) == 1


def test_a_worker_outlives_an_outage_in_which_nobody_answers(scene: Scene) -> None:
    member = scene.worker()
    held = scene.app.enqueue("stay", n=1, gate="g")
    first = scene.began(held)

    scene.proxy.refuse()
    scene.proxy.reset()
    scene.broken_off(first)  # the outage is longer than the lease
    job = scene.app.enqueue("touch", n=2)
    scene.proxy.heal()
    scene.oracle.open_gate("g")
    [ending, other] = scene.end_of(held, job)

    assert member.is_alive
    assert (ending.state, ending.failures, ending.crashes) == ("succeeded", 0, 0)  # an outage is nobody's crash
    assert other.state == "succeeded"


def test_a_name_that_stops_resolving_does_not_stop_a_worker(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real, is_down = socket.getaddrinfo, False

    def resolve(host: Any, *rest: Any, **options: Any) -> Any:  # noqa: ANN401  as the real one
        if host != "database.example":
            return real(host, *rest, **options)
        if is_down:
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return real("127.0.0.1", *rest, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    second = timedelta(seconds=1)
    with Rowlock(make_conninfo(scene.proxy.url, host="database.example")) as app:
        app.task(name="nothing")(_nothing)
        with working(app, lease=30 * second, renew=second, deadline=second):
            scene.end_of(scene.app.enqueue("nothing"))
            is_down = True
            scene.proxy.reset()
            until(lambda: "name resolution" in caplog.text, what="a failed look-up", limit=LIMIT)
            job = scene.app.enqueue("nothing")
            is_down = False
            [ending] = scene.end_of(job)

    assert ending.state == "succeeded"


def test_a_server_without_a_free_connection_is_waited_for_and_not_stormed(scene: Scene) -> None:
    role = sql.Identifier(f"few {os.getpid()} {scene.db.info.dbname}")
    for order in (
        "create role {} login",
        "grant all on schema rowlock to {}",
        "grant all on all tables in schema rowlock to {}",
        "grant all on all sequences in schema rowlock to {}",
        "grant execute on all functions in schema rowlock to {}",
    ):
        scene.db.execute(sql.SQL(order).format(role))
    [member] = scene.crew.start(url=make_conninfo(scene.proxy.url, user=role.as_string().strip('"')))
    member.works()

    scene.db.execute(sql.SQL("alter role {} connection limit 0").format(role))
    scene.proxy.reset()
    opened = scene.proxy.opened
    until(lambda: scene.proxy.opened > opened + 6 and "too many connections" in member.said, limit=LIMIT)
    scene.db.execute(sql.SQL("alter role {} connection limit 3").format(role))
    [ending] = scene.end_of(scene.app.enqueue("touch", n=1))

    assert ending.state == "succeeded"
    until(lambda: sum(len(pids) for pids in scene.sessions().values()) == 3, limit=LIMIT)
    assert member.is_alive


@pytest.mark.parametrize("sqlstate", ["40001", "40P01", "55P03", "53100", "25006", "57P01"])
def test_every_kind_of_trouble_passes(scene: Scene, sqlstate: str) -> None:
    member = scene.patient_worker()
    faults = [scene.proxy.on(name, Refuse(sqlstate)) for name in ("job_claim", "job_settle", "worker_renew")]
    jobs = [scene.app.enqueue("touch", n=n) for n in range(10)]

    found = scene.end_of(*jobs)
    until(lambda: all(fault.happened.is_set() for fault in faults), limit=LIMIT)

    assert {(one.state, one.failures, one.crashes) for one in found} == {("succeeded", 0, 0)}
    assert len(member.incarnations) == 1
    assert "PostgreSQL refuses" not in member.said  # as it would of what is never to work


def test_an_enqueue_that_meets_trouble_says_so_or_sends_again(proxy: Proxy, app: Rowlock) -> None:
    proxy.on("job_put", Refuse("57P01"))

    with Rowlock(proxy.url) as other:
        job = other.enqueue("touch", n=1)

    assert app.jobs.get(job.id) == job
