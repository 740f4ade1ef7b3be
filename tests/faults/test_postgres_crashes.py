"""PostgreSQL is killed in every way, again and again, while jobs come in, run and are rescued."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psycopg

from rowlock import Call
from tests.depth import deep
from tests.faults import tasks
from tests.faults.conftest import MakeStage
from tests.faults.servers import Cluster, Servers, complaints
from tests.faults.stage import LIMIT, Stage
from tests.waiting import until

BACKEND_KILLS, RESTARTS, POSTMASTER_KILLS = 15, 10, 5
WORKERS = 4
# Every so often a worker is killed, too, so that the server goes down while jobs are being rescued.
KILL_A_WORKER_EVERY = 5
LEASE = 3
OUTAGE = 8.0
SHORT_LEASE = 1.5


@deep
def test_nothing_is_lost_while_the_server_crashes(servers: Servers, make_stage: MakeStage) -> None:
    # given workers, and somebody who enqueues
    server = servers.start()
    stage = make_stage(server.url, lease=LEASE)
    for member in stage.crew.start(WORKERS):
        member.works()
    nemesis = Nemesis(server, stage)

    # when backends, the whole server and the postmaster are killed in any order, and the server is away for a while
    with stage.sender.sending(lambda n: a_call(n, stage.trial.random)):
        for number, fault in enumerate(nemesis.faults(), 1):
            if number % KILL_A_WORKER_EVERY == 0:
                nemesis.replace_a_worker()
            fault()
            nemesis.wait_for_work()
        nemesis.stay_away()
        nemesis.wait_for_work()

    # then what was acknowledged has been done, no worker has left, and the server has nothing to complain of
    stage.trial.count(
        backend_kills=BACKEND_KILLS,
        restarts=RESTARTS,
        postmaster_kills=POSTMASTER_KILLS,
        outages=1,
        resent=stage.sender.resent,
    )
    with server.connect() as db:  # workers are killed here for real: what three of them died of may well be poison
        stage.all_is_well(db, exact_crashes=False)
    assert complaints(server.log) == []


@deep
def test_an_outage_that_is_longer_than_a_lease_costs_no_crash(servers: Servers, make_stage: MakeStage) -> None:
    # given two workers, each with a job in hand
    server = servers.start()
    stage = make_stage(server.url, lease=SHORT_LEASE, slots=1)
    members = stage.crew.start(2)
    jobs = [stage.sender.send(lambda n: tasks.stay.bind(n, "gate")) for _ in members]
    first = [stage.began(job)["token"] for job in jobs]

    # when the server is away until both have let go of what they may not hold any longer
    server.halt()
    until(lambda: {line["token"] for line in stage.oracle.read("broken off")} >= set(first), limit=LIMIT)
    server.start()

    # then the jobs begin anew, and nobody says that a worker died
    for job in jobs:
        stage.began(job, times=2)
    until(lambda: stage.one("select sum(crashes) from rowlock.jobs") == 0, what="a pardon", limit=LIMIT)
    stage.oracle.open_gate("gate")
    with server.connect() as db:
        stage.all_is_well(db, exact_crashes=False)
        assert db.execute("select max(crashes) from rowlock.history").fetchone() == (0,)


def a_call(n: int, chance: random.Random) -> Call[Any]:
    """Short ones, and some that are under way when the server goes."""
    if n % 4:
        return (tasks.touch if n % 2 else tasks.touch_in_a_thread).bind(n)
    return tasks.linger.bind(n, chance.uniform(0.05, 0.5))


@dataclass
class Nemesis:
    """What happens to the server."""

    server: Cluster
    stage: Stage

    def faults(self) -> list[Callable[[], None]]:
        """All of them, in the order of chance."""
        kinds = [(self.kill_a_backend, BACKEND_KILLS), (self.restart, RESTARTS), (self.kill, POSTMASTER_KILLS)]
        faults = [fault for kind, count in kinds for fault in itertools.repeat(kind, count)]
        self.stage.trial.random.shuffle(faults)
        return faults

    def replace_a_worker(self) -> None:
        """Kill one, when another one works: whoever starts while the server is down says so and leaves."""
        victim = self.stage.trial.random.choice(self.stage.crew.living())
        self.stage.crew.start()[0].works()
        victim.kill()

    def kill_a_backend(self) -> None:
        backends = until(self._backends, what="a session of ours", limit=LIMIT)
        with suppress(ProcessLookupError):  # it has just ended
            self.server.kill_backend(self.stage.trial.random.choice(backends))

    def _backends(self) -> list[int]:
        with suppress(psycopg.OperationalError):  # it is still recovering from the last one
            return self.server.backends("rowlock%")
        return []

    def restart(self) -> None:
        self.server.halt()
        self.server.start()

    def kill(self) -> None:
        self.server.kill()
        self.server.start()

    def stay_away(self) -> None:
        """Be down for longer than a lease lasts."""
        self.server.halt()
        threading.Event().wait(OUTAGE)
        self.server.start()

    def wait_for_work(self) -> None:
        """Wait until a job that was sent after the fault has been acknowledged and done."""
        sent = len(self.stage.oracle.read("sent"))
        until(lambda: self._has_done(sent + 1), what="work after a crash", limit=LIMIT)

    def _has_done(self, n: int) -> bool:
        return any(line["n"] >= n for line in self.stage.oracle.read("done"))
