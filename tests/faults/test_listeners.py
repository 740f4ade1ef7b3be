"""Connections that are ended one by one: that one comes back, listens again, and then looks (B5, M13, M15, M38)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

from rowlock import Job, Rowlock
from tests.depth import deep
from tests.faults.crew import LIMIT
from tests.faults.proxy import Proxy
from tests.faults.scene import Scene
from tests.waiting import until

CONNECTIONS = ["rowlock claim", "rowlock settle", "rowlock renew"]


def end(scene: Scene, name: str) -> set[int]:
    """End the sessions of a name; answers whose they were."""
    pids = until(lambda: scene.sessions().get(name), what=f"a session of {name}", limit=LIMIT) or set()
    for pid in pids:
        scene.db.execute("select pg_terminate_backend(%s)", [pid])
    return pids


@contextmanager
def away(scene: Scene, name: str) -> Iterator[None]:
    """The sessions of that name are ended and cannot come back for a while."""
    until(lambda: scene.sessions().get(name), what=f"a session of {name}", limit=LIMIT)
    scene.proxy.refuse()
    gone = end(scene, name)
    until(lambda: not gone & scene.sessions().get(name, set()), what="its end")
    yield
    scene.proxy.heal()


@pytest.mark.parametrize("name", CONNECTIONS)
def test_a_connection_that_is_ended_comes_back_alone(scene: Scene, name: str) -> None:
    member = scene.patient_worker()
    scene.end_of(scene.app.enqueue("touch", n=1))
    before = scene.sessions()

    ended = end(scene, name)
    [ending] = scene.end_of(scene.app.enqueue("touch", n=2))
    until(lambda: scene.sessions().get(name, ended) - ended, what="another session", limit=LIMIT)
    now = scene.sessions()

    assert (ending.state, ending.crashes) == ("succeeded", 0)
    assert {other: now[other] for other in CONNECTIONS if other != name} == {
        other: before[other] for other in CONNECTIONS if other != name
    }
    assert len(member.incarnations) == 1


@deep
def test_connections_that_are_ended_again_and_again_do_not_add_up(scene: Scene) -> None:
    member = scene.patient_worker()

    for n in range(10):
        for name in CONNECTIONS:
            end(scene, name)
        scene.end_of(scene.app.enqueue("touch", n=n))
    until(lambda: scene.sessions().keys() == set(CONNECTIONS), limit=LIMIT)

    assert {name: len(pids) for name, pids in scene.sessions().items()} == dict.fromkeys(CONNECTIONS, 1)
    assert until(lambda: scene.proxy.open == len(CONNECTIONS))
    assert len(member.incarnations) == 1


@deep
def test_an_outage_is_knocked_at_and_not_stormed(scene: Scene) -> None:
    member = scene.patient_worker()

    scene.proxy.black_hole()
    opened = scene.proxy.opened
    until(lambda: scene.proxy.opened > opened + len(CONNECTIONS), what="new connections", limit=LIMIT)
    scene.proxy.heal()
    scene.end_of(scene.app.enqueue("touch", n=1))

    until(lambda: scene.proxy.open == len(CONNECTIONS), what="no more connections than before", limit=LIMIT)
    assert {name: len(pids) for name, pids in scene.sessions().items()} == dict.fromkeys(CONNECTIONS, 1)
    assert member.is_alive


def test_a_job_enqueued_while_the_listener_was_away_is_found_when_it_is_back(scene: Scene) -> None:
    scene.patient_worker()
    until(lambda: scene.db.execute("select count(*) from rowlock.parked").fetchone() == (1,))

    with away(scene, "rowlock claim"):
        job = scene.app.enqueue("touch", n=1)
        scene.proxy.forget()
    scene.end_of(job)

    claims = [one.name for one in scene.proxy.passed if one.who == "rowlock claim"]
    # First it listens, to all channels at once, then it looks.
    assert claims[: claims.index("job_claim")].count("listen") == 1


def test_a_cancel_asked_while_the_listener_was_away_is_honoured(scene: Scene) -> None:
    scene.patient_worker()
    job = scene.app.enqueue("stay", n=1, gate="g")
    attempt = scene.began(job)

    with away(scene, "rowlock claim"):
        asked = scene.app.jobs.get(job.id).cancel()

    assert asked
    assert scene.broken_off(attempt)["error"] == "CancelledError"
    assert [one.state for one in scene.end_of(job)] == ["cancelled"]


def test_a_result_that_came_while_the_waiter_was_away_is_found(scene: Scene) -> None:
    scene.worker(direct=True, lease=30)
    with Rowlock(scene.proxy.url) as app:
        job = app.enqueue("stay", n=1, gate="g")
        results = list[object]()
        waiting = threading.Thread(target=lambda: results.append(_result(job)))
        waiting.start()
        attempt = scene.began(job)

        with away(scene, "rowlock results"):
            scene.oracle.open_gate("g")
            scene.end_of(job)
        waiting.join(LIMIT)

    assert results == [attempt["token"]]


def _result(job: Job[object]) -> object:
    return job.result(timeout=timedelta(seconds=LIMIT))


def test_a_waiter_in_a_black_hole_opens_another_connection(scene: Scene, proxy: Proxy) -> None:
    scene.worker(direct=True, lease=30)
    with Rowlock(proxy.url, deadline=timedelta(seconds=1)) as app:
        job = app.enqueue("stay", n=1, gate="g")
        results = list[object]()
        waiting = threading.Thread(target=lambda: results.append(_result(job)))
        waiting.start()
        attempt = scene.began(job)
        until(lambda: scene.sessions().get("rowlock results"), what="a waiter", limit=LIMIT)

        proxy.half_open()
        proxy.heal()
        scene.oracle.open_gate("g")
        waiting.join(LIMIT)

    assert results == [attempt["token"]]
