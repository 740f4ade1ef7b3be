"""Operators' verbs on workflows that really run: retried, forked and cancelled, they do what is left to do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from rowlock import Context, Filter, Job, Rowlock, Workflow
from rowlock.errors import JobFailed
from rowlock.model.filter import LIVE
from rowlock.model.stats.stats import Count
from rowlock.testing import drain
from tests.rows import Db, put
from tests.worker.working import one
from tests.workflow.playing import ONCE, play, steps
from tests.workflow.remembering import put_workflow


class Shop:
    """Keeps a list of what was done; its bank may be closed."""

    def __init__(self, app: Rowlock, *, undoes: bool = False) -> None:
        self.done: list[str] = []
        self.is_open = False
        self.undoes = undoes
        self.checkout: Workflow[[int, str], str] = app.workflow(name="checkout", retry=ONCE)(self._checkout)

    async def _checkout(self, ctx: Context, order: int, card: str) -> str:
        place = await ctx.step(self.reserve, order)
        if self.undoes:
            ctx.undo(self.release, place)
        try:
            paid = await ctx.step(self.charge, card)
        except Exception:
            await ctx.step(self.tell)
            raise
        return f"{place} {paid}"

    def reserve(self, order: int) -> str:
        self.done.append("reserve")
        return f"place {order}"

    def release(self, place: str) -> None:
        self.done.append(f"release {place}")

    def charge(self, card: str) -> str:
        self.done.append(f"charge {card}")
        if not self.is_open:
            raise ConnectionError("the bank is closed")
        return f"paid by {card}"

    def tell(self) -> None:
        self.done.append("tell")


def failed(app: Rowlock, shop: Shop) -> Job[str]:
    """An order that has failed, while the bank was closed; now it is open."""
    job = shop.checkout.enqueue(7, "visa")
    with pytest.raises(JobFailed):
        play(app, job)
    shop.is_open = True
    return job


def test_a_failed_workflow_goes_on_from_the_step_that_has_failed(app: Rowlock) -> None:
    shop = Shop(app)
    job = failed(app, shop)

    app.jobs.retry(Filter(ids=[job.id]))

    assert play(app, job) == "place 7 paid by visa"
    assert shop.done == ["reserve", "charge visa", "tell", "charge visa"]
    assert steps(app, job) == [("reserve", "done"), ("charge", "done")]


def test_a_workflow_that_was_undone_starts_from_the_beginning(app: Rowlock) -> None:
    shop = Shop(app, undoes=True)
    job = failed(app, shop)

    app.jobs.retry(Filter(ids=[job.id]))

    assert play(app, job) == "place 7 paid by visa"
    assert shop.done == ["reserve", "charge visa", "tell", "release place 7", "reserve", "charge visa"]


def test_a_workflow_can_fail_and_be_retried_again_and_again(app: Rowlock, db: Db) -> None:
    shop = Shop(app)
    job = failed(app, shop)
    shop.is_open = False
    for _ in range(3):
        app.jobs.retry(Filter(ids=[job.id]))
        with pytest.raises(JobFailed):
            play(app, job)

    shop.is_open = True
    app.jobs.retry(Filter(ids=[job.id]))

    assert play(app, job) == "place 7 paid by visa"
    assert shop.done.count("reserve") == 1
    assert one(db, "select count(*) from rowlock.steps") == 0


def test_a_fork_goes_on_with_other_arguments_and_leaves_the_first_as_it_was(app: Rowlock) -> None:
    shop = Shop(app)
    job = failed(app, shop)

    fork = app.workflows.fork(job.id, from_step="charge", args={"card": "amex"})

    assert play(app, fork) == "place 7 paid by amex"
    assert shop.done == ["reserve", "charge visa", "tell", "charge amex"]
    assert job.record().state == "failed"


def test_a_workflow_that_waits_is_undone_when_it_is_cancelled_and_can_be_started_over(app: Rowlock) -> None:
    done: list[str] = []

    @app.workflow(name="approval")
    async def approval(ctx: Context) -> str:
        await ctx.using(name="ask").step(done.append, "ask")
        ctx.using(name="forget").undo(done.append, "forget")
        return await ctx.signal("answer", schema=str)

    job = approval.enqueue()
    drain(app)

    told = job.cancel(why="a mistake")
    before = job.record()
    drain(app)
    after = app.workflows.show(job.id)
    app.jobs.retry(Filter(ids=[job.id], state="cancelled"))
    drain(app)
    job.signal("answer", "yes")

    assert (told, before.state, before.cancel_at is None) == (True, "ready", False)
    assert (after.job.state, after.job.reason) == ("cancelled", "asked")
    assert [(step.key, step.state) for step in after] == [("ask", "done"), ("answer", "open"), ("undo/forget", "done")]
    assert play(app, job) == "yes"
    assert done == ["ask", "forget", "ask"]


def test_a_child_that_is_cancelled_tells_its_parent_by_a_worker(app: Rowlock, db: Db) -> None:
    @app.task(name="label", queue="nobody")
    def label() -> None:
        raise NotImplementedError

    @app.workflow(name="parcel")
    async def parcel(ctx: Context) -> str:
        try:
            await ctx.run(label.bind())
        except Exception as error:
            return type(error).__name__
        return "labelled"

    job = parcel.enqueue()
    drain(app, queues=["default"])
    child: UUID = one(db, "select id from rowlock.jobs where parent is not null")

    app.jobs.get(child).cancel()
    drain(app)

    assert job.result(timedelta(0)) == "ChildCancelled"


def test_a_parked_workflow_is_parked_to_lists_counts_previews_and_verbs_alike(app: Rowlock, db: Db) -> None:
    tonight = datetime.now(UTC) + timedelta(hours=9)
    for_signal = put_workflow(db, "waiting")
    for_time = put_workflow(db, wakes_at=2, run_at=tonight)
    plain = put(db, "ready")
    later = put(db, "ready", run_at=tonight)

    by_state = {state: {record.id for record in app.jobs.list(Filter(state=state)).records} for state in LIVE}
    shown = {record.id: record.state for record in app.jobs.list().records}
    counted = app.stats().queues["default"]
    hurried = app.jobs.preview("run_next", Filter())
    cancelled = app.jobs.cancel(Filter(state=["ready", "waiting"]))

    assert by_state == {"waiting": set(), "parked": {for_signal, for_time}, "ready": {plain, later}, "running": set()}
    assert (shown[for_signal], shown[for_time], app.jobs.get(for_time).record().state) == ("parked", "parked", "parked")
    assert (counted.runnable, counted.delayed, counted.waiting, counted.parked) == (Count(1), Count(1), {}, Count(2))
    assert (hurried.count, hurried.passed_over) == (2, 2)
    assert cancelled.changed == 2
    assert {record.id for record in app.jobs.list(Filter(state="parked")).records} == {for_signal, for_time}
    assert {record.state for record in app.workflows.list(Filter(state="parked")).records} == {"parked"}
