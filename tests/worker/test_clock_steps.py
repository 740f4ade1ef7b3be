"""The database's clock is set back: what was due goes on to be due."""

from __future__ import annotations

from datetime import timedelta

from rowlock import Rowlock
from rowlock.store import expiry
from tests.engine import Engine
from tests.rows import travel
from tests.worker.working import Db, one, work_until

HOUR = timedelta(hours=1)


def test_what_was_enqueued_for_at_once_runs_at_once_after_the_clock_was_set_back(app: Rowlock, db: Db) -> None:
    @app.task(name="step")
    async def step(direction: str) -> None:
        if (
            direction == "back"
        ):  # the claim of this one has raised the worker's floor to a time that will not come for an hour
            with db.transaction():
                app.enqueue_many([step.bind("on")], connection=db)
                travel(db, timedelta(0))
            await step.aenqueue("on")

    travel(db, HOUR)
    step.enqueue("back")
    work_until(
        app,
        lambda: one(db, "select count(*) from rowlock.history") == 3,
        lease=timedelta(seconds=1),
    )


def test_only_what_was_made_or_claimed_while_the_clock_was_ahead_is_brought_forward(url: str, db: Db) -> None:
    engine = Engine(url)
    [tomorrow] = engine.enqueue(delay=24 * HOUR)
    travel(db, HOUR)
    [at_once] = engine.enqueue()
    [soon] = engine.enqueue(delay=HOUR / 2)
    [late] = engine.enqueue(delay=30 * HOUR)
    travel(db, timedelta(0))
    [new] = engine.enqueue(delay=HOUR / 3)

    hastened = set(engine.run(expiry.hasten(by=HOUR, queues=["default"])))
    again = engine.run(expiry.hasten(by=HOUR, queues=["default"]))
    engine.close()

    minutes = "select round(date_part('epoch', run_at - rowlock.now()) / 60) from rowlock.jobs where id = %s"
    assert hastened == {at_once, soon}
    assert again == []
    assert [one(db, minutes, job) for job in (at_once, soon, new, tomorrow)] == [0, 30, 20, 24 * 60]
    assert one(db, minutes, late) == 31 * 60
