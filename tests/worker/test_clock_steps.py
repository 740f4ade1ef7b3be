"""The database's clock is set back, and what was due goes on to be due; or put forward, and nobody is dead by it."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from rowlock import Context, Retry, Rowlock
from rowlock.model.outcome import Retried
from rowlock.store import clock, workers
from rowlock.testing import drain
from rowlock.worker import queues, upkeep
from tests.engine import Engine
from tests.rows import travel
from tests.waiting import auntil, until
from tests.worker.working import Db, one, work_until, working

HOUR = timedelta(hours=1)
# Jobs of workers that are not on the books, or dead, were looked for lately.
SWEPT = "select done and begun_at > rowlock.now() - interval '1 minute' from rowlock.duties where name = 'lost'"


def test_what_was_enqueued_for_at_once_runs_at_once_after_the_clock_was_set_back(
    app: Rowlock, db: Db, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nobody looks from the bottom: they are dear, as on a busy machine.
    monkeypatch.setattr(queues, "_DEAR", 0.0)
    monkeypatch.setattr(queues, "_DEAR_PAUSE", (1e9, 1e9))
    monkeypatch.setattr(upkeep, "_BELOW_FACTOR", 1e9)
    compared: list[bool] = []  # at its start; from then on a worker sees the clock step by its renewals
    compare = upkeep.Hastener._compare

    def compare_once(*of: Any) -> None:  # noqa: ANN401  whatever it takes
        compare(*of)
        compared.append(True)

    monkeypatch.setattr(upkeep.Hastener, "_compare", compare_once)

    @app.task(name="step")
    async def step(direction: str) -> None:
        # The claim of this one has raised the worker's floor to a time that will not come for an hour.
        if direction == "back":
            await auntil(lambda: compared, what="the worker has compared the clock with jobs")
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

    hastened = set(engine.run(clock.hasten(by=HOUR, queues=["default"])))
    again = engine.run(clock.hasten(by=HOUR, queues=["default"]))
    engine.close()

    minutes = "select round(date_part('epoch', run_at - rowlock.now()) / 60) from rowlock.jobs where id = %s"
    assert hastened == {at_once, soon}
    assert again == []
    assert [one(db, minutes, job) for job in (at_once, soon, new, tomorrow)] == [0, 30, 20, 24 * 60]
    assert one(db, minutes, late) == 31 * 60


def test_what_workflows_began_to_wait_for_while_the_clock_was_ahead_is_brought_forward(app: Rowlock, db: Db) -> None:
    later = one(db, "select rowlock.now()") + 1.5 * HOUR

    def fail() -> None:
        raise RuntimeError("not yet")

    @app.workflow(name="w", retry=Retry(base=HOUR / 4, factor=1.0, jitter=0.0))
    async def w(ctx: Context, what: str) -> None:
        match what:
            case "sleep":
                await ctx.sleep(HOUR / 2)
            case "moment":
                await ctx.sleep_until(later)
            case "try":
                await ctx.step(fail)
            case "timeout":
                await ctx.signal("never", timeout=HOUR / 6)
            case _:
                await asyncio.gather(ctx.sleep(HOUR * 3 / 4), ctx.signal("go"))

    def are_parked(count: int) -> bool:
        query = "select count(*) from rowlock.jobs where state = 'ready' and wakes_at is not null"
        return bool(one(db, query) == count)

    before = w.enqueue("before")
    work_until(app, lambda: are_parked(1))
    travel(db, HOUR / 2)
    ahead = [w.enqueue(what) for what in ("sleep", "moment", "try", "timeout")]
    before.signal("go")
    work_until(
        app, lambda: are_parked(5) and one(db, "select count(*) from rowlock.signals where taken_at is not null")
    )
    travel(db, timedelta(0))

    engine = Engine(app.database.conninfo())
    hastened = engine.run(clock.hasten(by=HOUR / 2, queues=["default"]))
    again = engine.run(clock.hasten(by=HOUR / 2, queues=["default"]))
    engine.close()

    assert set(hastened) == {str(job.id) for job in (before, *ahead)}
    assert again == []
    query = """
        select round(date_part('epoch', min(until) - rowlock.now()) / 300) * 5 from rowlock.steps
        where job = %s and state in ('open', 'retrying')
    """
    assert [one(db, query, job.id) for job in (before, *ahead)] == [45, 30, 90, 15, 10]
    due = "select max(round(date_part('epoch', run_at - rowlock.now()) / 60)) from rowlock.jobs where id = any(%s)"
    assert one(db, due, [job.id for job in (before, *ahead)]) <= 60


def test_a_retry_that_was_written_while_the_clock_was_ahead_is_brought_forward_though_its_attempt_began_before(
    url: str, db: Db
) -> None:
    engine = Engine(url)
    engine.enqueue()
    [row] = engine.claim()
    db.execute(
        """update rowlock.jobs set errors = array['{"type": "Earlier", "ended_at": "2026-01-01T00:00:00Z"}'::json]"""
    )
    travel(db, HOUR)
    engine.give_back(row, outcome=Retried('{"type": "ValueError"}', HOUR / 2))
    travel(db, timedelta(0))

    hastened = engine.run(clock.hasten(by=HOUR, queues=["default"]))
    again = engine.run(clock.hasten(by=HOUR, queues=["default"]))
    engine.close()

    assert (hastened, again) == ([row.id], [])
    assert one(db, "select round(date_part('epoch', run_at - rowlock.now()) / 60) from rowlock.jobs") == 30
    told = "select array(select error ->> 'type' from unnest(errors) as error) from rowlock.jobs"
    assert one(db, told) == ["Earlier", "ValueError"]


def test_a_workflow_that_parked_while_the_clock_was_ahead_is_brought_forward_though_its_attempt_began_before(
    url: str, db: Db
) -> None:
    travelled = []

    with Rowlock(url) as app:

        async def travels() -> None:
            travel(db, HOUR)
            travelled.append("ahead")

        @app.workflow(name="w")
        async def w(ctx: Context) -> None:
            await ctx.step(travels)
            await ctx.sleep(HOUR / 2)

        w.enqueue()
        drain(app)
    travel(db, timedelta(0))

    engine = Engine(url)
    hastened = engine.run(clock.hasten(by=HOUR, queues=["default"]))
    again = engine.run(clock.hasten(by=HOUR, queues=["default"]))
    engine.close()

    assert travelled == ["ahead"]
    assert one(db, "select started_at < rowlock.now() from rowlock.jobs")
    assert (len(hastened), again) == (1, [])
    assert one(db, "select round(date_part('epoch', run_at - rowlock.now()) / 300) * 5 from rowlock.jobs") == 30


def test_a_job_that_nobody_has_started_is_not_shown_as_started_after_it_was_brought_forward(url: str, db: Db) -> None:
    engine = Engine(url)
    travel(db, HOUR)
    [job] = engine.enqueue()
    travel(db, timedelta(0))

    hastened = engine.run(clock.hasten(by=HOUR, queues=["default"]))
    engine.close()

    assert hastened == [job]
    assert one(db, "select started_at from rowlock.jobs") is None


def test_a_worker_that_starts_after_the_clock_was_set_back_brings_forward_what_is_late(app: Rowlock, db: Db) -> None:
    @app.task(name="quick")
    async def quick() -> None: ...

    travel(db, HOUR)
    quick.enqueue()
    travel(db, timedelta(0))
    tomorrow = quick.using(delay=24 * HOUR).enqueue()
    work_until(app, lambda: one(db, "select count(*) from rowlock.history"))

    assert one(db, "select id::text from rowlock.jobs") == str(tomorrow.id)
    assert one(db, "select run_at > rowlock.now() + interval '23 hours' from rowlock.jobs")


@pytest.mark.parametrize(("seconds", "may_live"), [(3600, True), (10, False)])
def test_a_worker_that_starts_rescues_nobody_where_the_clock_may_just_have_been_put_forward(
    app: Rowlock, url: str, db: Db, seconds: int, *, may_live: bool
) -> None:
    living = Engine(url, lease=timedelta(seconds=2))
    living.enqueue()
    [job] = living.claim()
    living.run(workers.find_dead(worker=living.worker, pause=timedelta(0)))

    travel(db, timedelta(seconds=seconds))
    with working(app, lease=timedelta(seconds=30)):
        until(lambda: one(db, SWEPT))
        still_its_own = one(db, "select token::text is not distinct from %s from rowlock.jobs", job.token)
        renewed = living.run(workers.renew(worker=living.worker))
    living.close()

    assert (still_its_own, len(renewed)) == ((True, 1) if may_live else (False, 0))
