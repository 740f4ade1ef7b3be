"""The primary is lost and an asynchronous standby takes over: what was said to the old one counts no more."""

from __future__ import annotations

from contextlib import closing

from rowlock import Rowlock
from rowlock.model.outcome import HandedBack
from tests.depth import deep
from tests.engine import Engine
from tests.faults import tasks
from tests.faults.check import assert_all_is_well, check
from tests.faults.conftest import MakeStage
from tests.faults.servers import Cluster, Servers, frozen, several
from tests.faults.stage import LIMIT
from tests.waiting import until

LEASE = 3


@deep
def test_a_worker_of_the_old_primary_moves_over_and_leaves_its_job_to_the_one_who_claimed_it_there(
    servers: Servers, make_stage: MakeStage
) -> None:
    # given a job that the standby knows of; then it hears no more
    old = servers.start()
    stage = make_stage(old.url, lease=LEASE)
    new = servers.start_standby(old)
    job = stage.sender.send(lambda n: tasks.stay_fenced.bind(n, "gate"))
    followed(new, old)
    with frozen(old.walsenders()):
        # and a worker that claims the job on the old primary, where another job is acknowledged
        [zombie] = stage.crew.start(url=several(old, new))
        stale = stage.began(job)["token"]
        unreplicated = stage.sender.send(tasks.touch.bind)

        # when the standby is promoted, another worker claims the job there, and the old primary goes
        new.promote()
        [heir] = stage.crew.start(url=new.url)
        fresh = stage.began(job, times=2)["token"]
        old.kill()
    stage.oracle.open_gate_to("gate", zombie.pid)

    # then the first worker moves over to the new primary, and leaves the job there to whom it belongs
    until(lambda: works_on(new, zombie.incarnations[-1]), what="the worker to move over", limit=LIMIT)
    assert holder(new, job) == (heir.incarnations[-1], fresh)
    stage.oracle.open_gate("gate")
    until(lambda: holder(new, job) is None, what="the end of the job", limit=LIMIT)
    with new.connect() as db:
        assert db.execute("select state, result #>> '{}' from rowlock.history").fetchall() == [("succeeded", fresh)]
        # what had not reached the standby is lost with the old primary: that is what asynchronous means
        assert db.execute("select id from rowlock.jobs where id = %s", [unreplicated]).fetchall() == []

    # and whoever compares fences outside refuses the first attempt, though both were the first of their timeline
    fences = {line["token"]: tuple(line["fence"]) for line in stage.oracle.read("fenced")}
    assert fences[stale] < fences[fresh]
    assert fences[stale][1] == fences[fresh][1]


@deep
def test_what_is_said_of_a_claim_of_the_old_primary_is_refused_by_the_new_one(servers: Servers) -> None:
    # given a job that the standby knows of, and a claim of it that the standby does not hear of
    old = servers.start()
    new = servers.start_standby(old)
    with closing(Engine(old.url)) as engine:
        [job] = engine.enqueue()
        followed(new, old)
        with frozen(old.walsenders()):
            [stale] = engine.claim()

            # when the standby is promoted, and the job is claimed there
            new.promote()
    with closing(Engine(new.url)) as heir:
        [fresh] = heir.claim()

        # then both are the first claim of the same job, and only the one that was made there is heard
        assert (stale.id, stale.claims) == (fresh.id, fresh.claims) == (job, 1)
        assert heir.settle(stale) == []
        assert heir.give_back(stale, outcome=HandedBack()) == []
        assert heir.settle(fresh) == [fresh.token]


@deep
def test_workers_move_over_and_what_they_hold_stays_theirs_when_the_standby_has_followed(
    servers: Servers, make_stage: MakeStage
) -> None:
    # given a worker of both servers with a job in hand of which the standby knows
    old = servers.start()
    stage = make_stage(old.url, lease=30)
    new = servers.start_standby(old)
    [worker] = stage.crew.start(url=several(old, new))
    job = stage.sender.send(lambda n: tasks.stay.bind(n, "gate"))
    token = stage.began(job)["token"]
    until(lambda: holder(new, job) == (worker.incarnations[-1], token), what="the claim on the standby", limit=LIMIT)

    # when the primary dies and the standby takes over
    old.kill()
    new.promote()
    stage.oracle.open_gate("gate")

    # then its outcome is accepted there, and the job has cost nothing
    until(lambda: holder(new, job) is None, what="the end of the job", limit=LIMIT)
    assert worker.is_alive
    with new.connect() as db:
        assert_all_is_well(check(stage.oracle, db))
        ended = db.execute("select state, crashes, claims, result #>> '{}' from rowlock.history").fetchall()
    assert ended == [("succeeded", 0, 1, token)]


@deep
def test_a_primary_that_becomes_read_only_is_left_for_the_one_that_can_be_written_to(
    servers: Servers, make_stage: MakeStage
) -> None:
    # given workers whose address names both servers
    old = servers.start()
    stage = make_stage(old.url, lease=LEASE)
    new = servers.start_standby(old)
    for member in stage.crew.start(2, url=several(old, new)):
        member.works()

    # when the old primary is kept from being written to, under their open connections, and the standby takes over
    with old.connect() as db:
        db.execute("alter system set default_transaction_read_only = on")
        db.execute("select pg_reload_conf()")
    until(lambda: any("read-only" in member.said for member in stage.crew), what="a refused write", limit=LIMIT)
    new.promote()

    # then they do their work on the new one, and none has left
    with Rowlock(new.url) as app:
        job = str(app.enqueue_many([tasks.touch.bind(1)])[0].id)
    stage.began(job)
    until(lambda: holder(new, job) is None, what="the end of the job", limit=LIMIT)
    assert stage.crew.fallen() == []


def followed(standby: Cluster, primary: Cluster) -> None:
    """Wait until the standby has replayed all that the primary has done."""
    with primary.connect() as db, standby.connect() as copy:
        end = db.execute("select pg_current_wal_insert_lsn()").fetchone()
        assert end is not None
        query = "select pg_last_wal_replay_lsn() >= %s"
        until(lambda: copy.execute(query, end).fetchone() == (True,), what="a standby that has followed", limit=LIMIT)


def holder(cluster: Cluster, job: str) -> tuple[str, str] | None:
    """The worker and the token that hold a job there; None when it does not live there."""
    with cluster.connect() as db:
        row = db.execute("select worker::text, token::text from rowlock.jobs where id = %s", [job]).fetchone()
    return None if row is None else (str(row[0]), str(row[1]))


def works_on(cluster: Cluster, worker: str) -> bool:
    with cluster.connect() as db:
        return db.execute("select id from rowlock.workers where id = %s", [worker]).fetchone() is not None
