"""A worker of all queues, and what a worker says at its start of queues that it leaves alone."""

from __future__ import annotations

import logging

import psycopg
import pytest
from psycopg.rows import TupleRow

from rowlock import InvalidOption, Rowlock
from rowlock.worker.settings import QUEUES
from tests.waiting import until
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
