"""An app that lives in a module can be moved to a database of the test's own, used or not, and comes back."""

from __future__ import annotations

import asyncio

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from rowlock import Rowlock
from rowlock.db.embedded import disposable
from rowlock.db.embedded.server import EmbeddedPostgres
from rowlock.testing import drain, moved
from tests.worker.working import Db, one


@pytest.fixture
def elsewhere(server: EmbeddedPostgres, template: str) -> str:
    """Another database with our schema."""
    return disposable.create(server.url, template=template)


def jobs(url: str) -> int:
    with psycopg.connect(url) as connection:
        return int(one(connection, "select count(*) from rowlock.jobs"))


def test_an_app_that_has_been_used_moves_and_comes_back(app: Rowlock, url: str, elsewhere: str) -> None:
    app.enqueue("here")

    with moved(app, elsewhere):
        app.enqueue("there")
        app.enqueue("there")
        assert (jobs(url), jobs(elsewhere)) == (1, 2)

    app.enqueue("here")
    assert (jobs(url), jobs(elsewhere)) == (2, 2)


def test_an_app_whose_own_database_is_out_of_reach_moves(elsewhere: str) -> None:
    app = Rowlock("postgresql://nowhere.invalid/")

    with moved(app, elsewhere):
        app.enqueue("there")

    assert jobs(elsewhere) == 1


def test_a_move_holds_on_a_loop_that_goes_on(app: Rowlock, url: str, elsewhere: str) -> None:
    async def story() -> None:
        async with app:
            await app.aenqueue("here")
            with moved(app, elsewhere):
                await app.aenqueue("there")
            await app.aenqueue("here")

    asyncio.run(story())

    assert (jobs(url), jobs(elsewhere)) == (2, 1)


def test_results_are_waited_for_where_the_app_is(app: Rowlock, elsewhere: str) -> None:
    @app.task(name="answer")
    def answer(text: str) -> str:
        return text

    here = answer.enqueue("here")
    drain(app)
    assert here.result() == "here"

    with moved(app, elsewhere):
        there = answer.enqueue("there")
        drain(app)
        assert there.result() == "there"

    assert here.result() == "here"


def test_a_database_for_a_while_is_dropped_whoever_is_connected(server: EmbeddedPostgres, db: Db) -> None:
    with disposable.database(server.url) as url:
        guest = psycopg.connect(url)
        name = guest.info.dbname

    assert one(db, "select count(*) from pg_database where datname = %s", name) == 0
    guest.close()


def test_a_server_may_be_named_in_either_form(server: EmbeddedPostgres, url: str) -> None:
    parts = conninfo_to_dict(url)
    with_words = f"host={parts['host']} port={parts['port']} user={parts['user']} dbname=rowlock"

    with disposable.migrated(with_words) as template, disposable.database(with_words, template=template) as copy:
        assert jobs(copy) == 0
    with disposable.database(server.url.replace("postgresql:", "postgresql+psycopg:")) as plain:
        assert conninfo_to_dict(plain)["dbname"] != "rowlock"
