"""Stopping: by any signal, at any moment, in every state of the database (A21 to A23, I20, T35)."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import timedelta

import pytest

from rowlock import Rowlock
from tests.depth import deep, deep_unless
from tests.faults.crew import LIMIT, Member
from tests.faults.proxy import Call, Proxy
from tests.faults.scene import Scene
from tests.faults.servers import frozen
from tests.waiting import auntil, until

# So long that nothing in these tests can be explained by a lease that ran out.
LONG = 600
# Beyond the grace period a worker has five seconds; the rest is for a machine that has much else to do.
LEAVE = 5 + 15


def send(member: Member, number: signal.Signals = signal.SIGTERM) -> None:
    member.nursery.signal(member.pid, number)


# In good order


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_idle_worker_stops_at_once_and_leaves_nothing(scene: Scene, number: signal.Signals) -> None:
    member = scene.worker(lease=LONG, grace=LONG)

    send(member, number)
    code = member.wait()

    assert code == 0
    assert scene.db.execute("select count(*) from rowlock.workers").fetchone() == (0,)
    assert scene.db.execute("select count(*) from rowlock.parked").fetchone() == (0,)
    until(lambda: not scene.sessions(), what="closed connections")


def test_a_busy_worker_lets_its_jobs_end_and_takes_no_more(scene: Scene) -> None:
    member = scene.worker(lease=LONG, grace=LONG)
    jobs = [scene.app.enqueue(name, n=1, gate="g") for name in ("stay", "stay in a thread")]
    began = [scene.began(job) for job in jobs]

    send(member)
    until(lambda: "stopping" in member.said)
    late = scene.app.enqueue("touch", n=2)
    scene.oracle.open_gate("g")
    code = member.wait()

    assert code == 0
    assert [one.token for one in scene.end_of(*jobs)] == [line["token"] for line in began]
    assert scene.count("state = 'ready'") == 1
    assert str(late.id) not in scene.oracle.by("job", "began")


@pytest.mark.parametrize("signals", [1, 2], ids=["after its grace period", "at once when told twice"])
def test_what_does_not_end_is_handed_back_and_starts_elsewhere_at_once(scene: Scene, signals: int) -> None:
    member = scene.worker(lease=LONG, grace=0.5 if signals == 1 else LONG)
    jobs = [scene.app.enqueue(name, n=1, gate="g") for name in ("stay", "stay in a thread")]
    for job in jobs:
        scene.began(job)
    other = scene.worker(direct=True, lease=LONG)

    send(member)
    until(lambda: "stopping: running jobs get" in member.said)  # two signals that are pending at once are one
    if signals > 1:
        send(member)
    code = member.wait()
    again = [scene.began(job, times=2) for job in jobs]
    scene.oracle.open_gate("g")
    found = scene.end_of(*jobs)

    assert code == 0
    assert {line.pid for line in again} == {other.pid}
    assert {(one.state, one.failures, one.crashes) for one in found} == {("succeeded", 0, 0)}
    assert [one.token for one in found] == [line["token"] for line in again]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    "statement",
    deep_unless(
        lambda statement: statement == "job_settle",
        ["worker_register", "job_claim", "job_settle", "job_return", "worker_renew", "queue_channels"],
    ),
)
def test_a_signal_may_come_at_any_moment(scene: Scene, statement: str, *, after: bool) -> None:
    signalled = scene.proxy.on(statement, Call(lambda: send(scene.crew.members[0]), after=after))
    call = scene.app.call
    calls = [*(call("touch", n=n) for n in range(20)), call("once more", n=20)]
    jobs = scene.app.enqueue_many(calls)

    [member] = scene.crew.start(url=scene.proxy.url, lease=LONG, renew=0.5, grace=LONG)
    until(signalled.happened.is_set, what=f"a signal {'after' if after else 'before'} {statement}", limit=LIMIT)
    code = member.wait()
    held = scene.count("state = 'running'")
    scene.worker(direct=True, lease=LONG)
    found = scene.end_of(*jobs)

    assert code == 0
    assert held == 0
    assert [(one.state, one.failures, one.crashes) for one in found] == [("succeeded", 0, 0)] * 20 + [
        ("succeeded", 1, 0)
    ]


def test_a_job_may_be_cancelled_while_its_worker_drains(scene: Scene) -> None:
    member = scene.worker(lease=LONG, grace=LONG)
    job = scene.app.enqueue("stay", n=1, gate="g")
    attempt = scene.began(job)
    send(member)
    until(lambda: "stopping" in member.said)

    was_cancelled = scene.app.jobs.get(job.id).cancel()
    code = member.wait()

    assert was_cancelled
    assert code == 0
    assert scene.broken_off(attempt)["error"] == "CancelledError"
    assert [one.state for one in scene.end_of(job)] == ["cancelled"]


# While the database does not answer


def _dead(proxy: Proxy) -> None:
    proxy.refuse()
    proxy.reset()


STATES: dict[str, Callable[[Proxy], None]] = {
    "dead": _dead,
    "refusing new connections": Proxy.refuse,
    "black hole": Proxy.black_hole,
    "half-open": Proxy.half_open,
}


@deep
def test_a_worker_leaves_in_time_whatever_became_of_its_database(scene: Scene) -> None:
    members: dict[str, Member] = {}
    with ExitStack() as after:
        members["frozen"] = scene.worker(lease=LONG, grace=0.5, slots=1)
        backends = [pid for pids in scene.sessions().values() for pid in pids]
        proxies = {state: after.enter_context(Proxy(scene.url)) for state in STATES}
        for state, proxy in proxies.items():
            [members[state]] = scene.crew.start(url=proxy.url, lease=LONG, grace=0.5, slots=1)
            members[state].works()
        jobs = [scene.app.enqueue("stay", n=n, gate="g") for n in range(len(members))]
        for job in jobs:
            scene.began(job)

        after.enter_context(frozen(backends))
        for state, happens in STATES.items():
            happens(proxies[state])
        for member in members.values():
            send(member)
        codes = {state: member.wait(limit=LEAVE) for state, member in members.items()}

    assert codes == {**dict.fromkeys(members, 1), "refusing new connections": 0}  # 1: it could not hand back
    scene.db.execute("update rowlock.workers set lease = now()")
    scene.oracle.open_gate("g")
    scene.worker(direct=True)
    assert {one.state for one in scene.end_of(*jobs)} == {"succeeded"}


@deep
def test_a_worker_inside_a_program_leaves_in_time_and_leaves_nothing_in_it(url: str) -> None:
    began: list[str] = []

    async def work(proxy: Proxy, happens: Callable[[Proxy], None]) -> None:
        async with Rowlock(proxy.url) as app:

            @app.task(name="hold", queue=str(id(proxy)))
            async def hold() -> None:
                began.append(proxy.url)
                await asyncio.Event().wait()

            async with app.worker(queues=str(id(proxy)), lease=timedelta(minutes=10), grace=timedelta(0)):
                await hold.aenqueue()
                await auntil(lambda: proxy.url in began, what="its start", limit=LIMIT)
                await asyncio.to_thread(happens, proxy)

    async def work_in_all_states(proxies: Sequence[Proxy]) -> None:
        async with asyncio.timeout(LIMIT):
            await asyncio.gather(*map(work, proxies, STATES.values()))

    with ExitStack() as after:
        asyncio.run(work_in_all_states([after.enter_context(Proxy(url)) for _ in STATES]))

    assert len(began) == len(STATES)  # the rest is the leak guard's


def test_a_worker_that_is_told_three_times_leaves_without_a_word(scene: Scene) -> None:
    member = scene.worker(lease=LONG, grace=LONG)
    scene.began(scene.app.enqueue("stay", n=1, gate="g"))
    scene.proxy.black_hole()

    for word in ("stopping:", "stopping at once", "left without handing back"):
        send(member)
        until(lambda: word in member.said)  # noqa: B023  it is done before the next turn
    code = member.wait(limit=LEAVE)

    assert code == 1


@deep
@pytest.mark.parametrize("happens", [Proxy.refuse, Proxy.black_hole], ids=["refusing", "black hole"])
def test_a_worker_that_waits_for_its_database_to_start_can_be_stopped(
    scene: Scene, happens: Callable[[Proxy], None]
) -> None:
    happens(scene.proxy)
    [member] = scene.crew.start(url=scene.proxy.url)

    until(lambda: scene.proxy.opened or member.said, what="an attempt to connect", limit=LIMIT)
    send(member)
    code = member.wait(limit=LEAVE)

    assert code in {0, 1, -signal.SIGTERM}
    assert "Traceback" not in member.said


def test_a_worker_that_is_stopped_in_an_outage_leaves_and_loses_nothing(scene: Scene) -> None:
    member = scene.worker(lease=LONG, grace=LONG)
    job = scene.app.enqueue("stay", n=1, gate="g")
    scene.began(job)
    scene.proxy.black_hole()
    send(member)
    until(lambda: "stopping" in member.said)

    scene.oracle.open_gate("g")  # the handler ends, and its outcome can be written when the hole heals
    scene.proxy.heal()
    code = member.wait()

    assert code == 0
    assert [(one.state, one.claims) for one in scene.end_of(job)] == [("succeeded", 1)]
