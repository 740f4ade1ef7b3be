"""A worker of all queues, and what a worker says at its start of queues that it leaves alone."""

from __future__ import annotations

import logging
from math import inf

import psycopg
import pytest
from psycopg.rows import TupleRow

from rowlock import Rowlock
from rowlock.errors import InvalidOption
from rowlock.store import queues as store
from rowlock.store.query import Query
from rowlock.worker import queues as places
from rowlock.worker.settings import QUEUES
from tests.waiting import until
from tests.worker.breaking import is_late
from tests.worker.working import ended, one, working

Db = psycopg.Connection[TupleRow]


def test_a_worker_of_all_queues_runs_what_is_there_and_what_comes_later(app: Rowlock, db: Db) -> None:
    @app.task(name="mail", queue="mail")
    async def mail() -> None: ...

    mail.using(queue="nobody.knew").enqueue()
    with working(app, queues="*"):
        until(lambda: len(ended(db)) == 1)
        mail.enqueue()
        mail.using(queue="later").enqueue()
        until(lambda: len(ended(db)) == 3)
        served = one(db, "select queues from rowlock.workers")

    assert {"default", "mail"} <= set(served)


def test_a_worker_of_all_queues_claims_though_its_look_for_new_ones_takes_too_long(
    app: Rowlock, db: Db, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = is_late(monkeypatch, "queue_used")

    @app.task(name="mail", queue="mail")
    async def mail() -> None: ...

    with working(app, queues="*"):
        for count in (1, 2):
            mail.enqueue()
            until(lambda count=count: len(ended(db)) == count)  # type: ignore[misc]

    assert looks == ["queue_used"]  # and no other soon, for that would take as long


def test_queues_without_jobs_are_forgotten_unless_a_look_for_them_is_dear(
    app: Rowlock, db: Db, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, ...]] = []
    used = store.used

    def spied(known: tuple[str, ...] = ()) -> Query[str]:
        asked.append(known)
        return used(known)

    monkeypatch.setattr(store, "used", spied)
    monkeypatch.setattr(places, "_SEARCH_EVERY", 0.01)
    monkeypatch.setattr(places, "_ANEW_EVERY", 0.01)
    monkeypatch.setattr(
        places, "_ANEW_SHARE", 1.0
    )  # else a busy machine looks seldom: 2,000 times as long apart as a look
    monkeypatch.setattr(places, "_DEAR_SEARCH", 0.0)

    @app.task(name="t")
    async def t() -> None: ...

    t.using(queue="gone").enqueue()
    with working(app, queues="*"):
        until(lambda: ended(db))
        asked.clear()
        until(lambda: asked.count(()) >= 3)
        dear = one(db, "select queues from rowlock.workers")
        monkeypatch.setattr(places, "_DEAR_SEARCH", inf)
        until(lambda: one(db, "select queues from rowlock.workers") == ["default"])

    assert dear == ["default", "gone"]


@pytest.mark.parametrize("queues", [["*", "mail"], {"*": 1.0, "mail": 2.0}, {"*": 1.0, "default": 1.0}])
def test_all_queues_and_others_beside_them_are_refused(app: Rowlock, queues: object) -> None:
    with pytest.raises(InvalidOption, match=r"'\*'"):
        app.worker(queues=queues)  # type: ignore[arg-type]


def test_all_queues_can_be_typed() -> None:
    assert QUEUES.read("*") == ["*"]
    with pytest.raises(InvalidOption, match="alone"):
        QUEUES.read("*,mail")


def test_a_worker_warns_of_queues_of_its_tasks_that_nobody_looks_into(
    app: Rowlock, db: Db, caplog: pytest.LogCaptureFixture
) -> None:
    @app.task(name="welcome", queue="mail")
    async def welcome() -> None: ...

    caplog.set_level(logging.INFO, "rowlock.worker")

    def said() -> list[tuple[str, str]]:
        return [(one.levelname, one.getMessage()) for one in caplog.records if "look" in one.getMessage()]

    with working(app):
        until(said)
    with working(app, queues="mail"):
        until(lambda: one(db, "select exists (select from rowlock.parked)"))
        with working(app):
            until(lambda: len(said()) == 2)

    [alone, beside] = said()
    assert alone[0] == "WARNING"
    assert alone[1].startswith(
        "no worker looks into mail, where welcome is: jobs there wait. Give this worker --queues"
    )
    assert beside == ("INFO", "other workers look into mail, where tasks of this app are, too")
