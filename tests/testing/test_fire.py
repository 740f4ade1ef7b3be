"""fire: what is due makes its jobs, in a test's own time."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from psycopg.rows import TupleRow

from rowlock import Rowlock, RowlockError, current_job
from rowlock.errors import InvalidOption
from rowlock.testing import afire, drain, fire, travel
from tests.scheduling import add
from tests.worker.working import one

Db = psycopg.Connection[TupleRow]

SUMMER = datetime(2027, 7, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def test_a_schedule_fires_when_the_test_has_come_to_its_slot(app: Rowlock) -> None:
    seen = list[tuple[datetime | None, str | None]]()

    @app.task.every("0 9 * * *", tz="Europe/Paris", name="morning")
    @app.task(name="report")
    async def report() -> None:
        seen.append((current_job().slot, current_job().schedule))

    with travel(app, to=SUMMER):
        assert fire(app) == []

        with travel(app, DAY):
            assert fire(app) == ["morning"]
            assert fire(app) == []
            assert drain(app).succeeded == 1

    assert seen == [(datetime(2027, 7, 2, 7, tzinfo=UTC), "morning")]


def test_policies_hold_as_in_a_worker(app: Rowlock, db: Db) -> None:
    app.task(name="t")(nothing).every("@hourly", name="caught up", overlap="allow", catch_up=3)
    app.task(name="u")(nothing).every("@hourly", name="replaced", overlap="replace")

    with travel(app, to=SUMMER):
        fire(app)
        with travel(app, timedelta(hours=5)):
            first = fire(app)
            with travel(app, timedelta(hours=1)):
                second = fire(app)

    assert first == ["caught up", "caught up", "caught up", "replaced"]
    assert second == ["caught up", "replaced"]
    assert one(db, "select count(*) from rowlock.history where task = 'u' and state = 'cancelled'") == 1


def test_it_can_all_happen_in_the_transaction_of_a_test(app: Rowlock, url: str, db: Db) -> None:
    app.task(name="t")(nothing).every("@hourly", name="hourly")

    with psycopg.connect(url) as own:
        fire(app, connection=own)
        with travel(app, timedelta(hours=1), connection=own):
            assert fire(app, connection=own) == ["hourly"]
            assert drain(app, connection=own).succeeded == 1
        own.rollback()

    assert one(db, "select count(*) from rowlock.schedules") == 0


def test_what_is_wrong_with_a_schedule_reaches_the_test(app: Rowlock, db: Db) -> None:
    add(db, "broken", cron="0 3 * * *", tz="No/Zone")

    with pytest.raises(InvalidOption, match="No/Zone"):
        fire(app)


def test_on_a_loop_it_is_awaited(app: Rowlock, db: Db) -> None:
    add(db, "s")

    async def main() -> list[str]:
        with pytest.raises(RowlockError, match="use `await afire"):
            fire(app)
        async with app:
            return await afire(app)

    assert asyncio.run(main()) == ["s"]


def nothing() -> None:
    """Nobody looks."""
