"""Outcomes: whatever a handler raises, its job alone has to do with it."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowlock import Cancel, Context, Retry, RetryAfter, Rowlock, Snooze
from rowlock.model.failure import MAX_MESSAGE, reason_of
from rowlock.model.outcome import Blocked, Cancelled, Outcome, Retried, Snoozed, Succeeded
from rowlock.testing import drain
from rowlock.worker import worker
from rowlock.worker.settle import Settler
from tests.model.hostile_errors import Endless, ExitsInStr, NoText, OddlyTold, RaisesInStr
from tests.waiting import auntil
from tests.worker.working import Db, ended, one, work_off, work_until

HOSTILE = [RaisesInStr(), ExitsInStr(), NoText(), Endless(), OddlyTold()]
THINGS = st.one_of(
    st.text(st.characters(codec=None)), st.binary(), st.integers(), st.none(), st.floats(), st.sampled_from(HOSTILE)
)


@given(thing=st.one_of(THINGS, st.builds(ValueError, THINGS), st.lists(THINGS)))
def test_a_reason_can_be_stored_whatever_it_was_made_of(thing: object) -> None:
    reason = reason_of(thing)

    assert "\0" not in reason
    assert len(reason.encode()) <= MAX_MESSAGE


def test_an_odd_reason_to_cancel_is_stored_as_text_and_the_jobs_beside_it_run_once(app: Rowlock, db: Db) -> None:
    runs: list[str] = []
    reasons = [ValueError("gone"), 7, "nul \x00", "half \ud800", "x" * 10_000, RaisesInStr()]

    @app.task(name="cancels")
    async def cancels(number: int) -> NoReturn:
        raise Cancel(reasons[number])

    @app.task(name="innocent")
    async def innocent() -> None:
        runs.append("innocent")

    app.enqueue_many([*(cancels.bind(number) for number in range(len(reasons))), *(innocent.bind() for _ in range(5))])
    work_off(app, db)

    assert len(runs) == 5
    assert [row[:2] for row in ended(db)] == [("cancels", "cancelled")] * 6 + [("innocent", "succeeded")] * 5
    kept = [row[0] for row in db.execute("select reason from rowlock.history where task = 'cancels' order by id")]
    assert kept[:4] == ["ValueError: gone", "7", "nul \\x00", "half \\ud800"]
    assert "cut: 10,000 characters" in kept[4]


@pytest.mark.parametrize("raised", [Cancel("not worth it"), Snooze, SystemExit(1)])
def test_a_policy_that_raises_leaves_its_slot_free(app: Rowlock, db: Db, raised: Any) -> None:  # noqa: ANN401
    def on(_error: BaseException) -> NoReturn:
        raise raised

    @app.task(name="fails", retry=Retry(attempts=1, on=on))
    async def fails() -> None:
        raise ValueError("the handler's own")

    app.enqueue_many(fails.bind() for _ in range(3))
    work_off(app, db, slots=1)

    assert ended(db) == [("fails", "failed", "exhausted", 1)] * 3


def outcomes(app: Rowlock) -> dict[str, Outcome]:
    """What the jobs that are due come to, by task."""
    return {attempt.task: attempt.outcome for attempt in drain(app).attempts}


def test_what_ends_an_attempt_may_be_returned_instead_of_raised(app: Rowlock) -> None:
    @app.task(name="snooze")
    def snooze() -> Snooze | str:
        return Snooze(timedelta(days=1))

    @app.task(name="retry")
    async def retry() -> RetryAfter:
        return RetryAfter(timedelta(days=2))

    @app.task(name="cancel")
    async def cancel() -> int | Cancel | None:
        return Cancel("paid meanwhile")

    @app.task(name="work")
    async def work() -> int | Snooze:
        return 7

    app.enqueue_many([snooze.bind(), retry.bind(), cancel.bind(), work.bind()])
    came_to = outcomes(app)

    again = came_to.pop("retry")
    assert isinstance(again, Retried)
    assert (again.delay, again.expected) == (timedelta(days=2), True)
    assert came_to == {
        "snooze": Snoozed(timedelta(days=1)),
        "cancel": Cancelled("paid meanwhile"),
        "work": Succeeded("7"),
    }


def test_a_workflow_may_return_what_ends_it(app: Rowlock) -> None:
    @app.workflow(name="flow")
    async def flow(ctx: Context) -> Cancel | None:
        await ctx.sleep(timedelta(0))
        return Cancel("paid meanwhile")

    flow.enqueue()

    assert outcomes(app) == {"flow": Cancelled("paid meanwhile")}


def test_what_a_worker_reads_in_a_group_is_its_first_interruption(app: Rowlock, db: Db) -> None:
    @app.task(name="group")
    async def group() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(raising(Cancel("paid meanwhile")))
            tasks.create_task(raising(Snooze(timedelta(days=1))))

    group.enqueue()
    work_off(app, db)

    assert ended(db) == [("group", "cancelled", "paid meanwhile", 0)]


def test_a_snooze_in_a_group_of_groups_is_understood(app: Rowlock) -> None:
    @app.task(name="group")
    def group() -> NoReturn:
        inner = BaseExceptionGroup("inner", [Snooze(timedelta(days=1)), Cancel("too late")])
        raise BaseExceptionGroup("outer", [inner, RetryAfter(timedelta(days=2))])

    group.enqueue()

    assert outcomes(app) == {"group": Snoozed(timedelta(days=1))}


def test_an_error_in_a_group_wins_over_a_snooze(app: Rowlock, db: Db) -> None:
    @app.task(name="group", retry=Retry(attempts=2, on=ExceptionGroup))
    async def group() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(raising(Snooze(timedelta(days=1))))
            tasks.create_task(raising(ValueError("wrong")))

    group.enqueue()
    [outcome] = outcomes(app).values()

    assert isinstance(outcome, Retried)
    assert one(db, "select errors[1] ->> 'type' from rowlock.jobs") == "ExceptionGroup"
    assert one(db, "select failures from rowlock.jobs") == 1


async def raising(error: BaseException) -> NoReturn:
    raise error


def test_what_comes_to_no_outcome_fails_alone_and_leaves_its_slot_free(app: Rowlock, db: Db) -> None:
    class Odd(Snooze):
        def __init__(self) -> None: ...  # so it has no delay

    @app.task(name="odd")
    async def odd() -> NoReturn:
        raise Odd

    @app.task(name="good")
    async def good() -> None: ...

    app.enqueue_many([odd.bind(), odd.bind(), good.bind()])
    work_off(app, db, slots=1)

    assert [row[:3] for row in ended(db)] == [("odd", "failed", "refused")] * 2 + [("good", "succeeded", None)]
    assert one(db, "select errors[1] ->> 'type' from rowlock.history where task = 'odd' limit 1") == "AttributeError"


def test_an_outcome_that_cannot_be_sent_is_refused_alone(app: Rowlock, db: Db, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing makes one any more; if something does, the others must not suffer from it."""
    add = Settler.add

    def added(settler: Settler, row: Any, outcome: Any) -> None:  # noqa: ANN401
        add(settler, row, Blocked("code", "\ud800") if row.task == "bad" else outcome)

    monkeypatch.setattr(Settler, "add", added)
    held, runs = asyncio.Event(), list[str]()

    @app.task(name="bad")
    async def bad() -> None:
        await held.wait()

    @app.task(name="fails")
    async def fails() -> NoReturn:
        runs.append("fails")
        if len(runs) == 3:
            held.set()
        await held.wait()
        raise Snooze(timedelta(days=1))

    app.enqueue_many([bad.bind(), *(fails.bind() for _ in range(3))])
    work_off(app, db)

    assert [row[:3] for row in ended(db)] == [("bad", "failed", "refused")]
    assert one(db, "select count(*) from rowlock.jobs where state = 'ready' and run_at > rowlock.now()") == 3
    assert len(runs) == 3


def test_a_job_that_stops_the_settler_again_and_again_ends_as_poison(
    app: Rowlock, db: Db, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "_FIRST_PAUSE", 0.05)
    settle, seen = Settler._settle, list[object]()

    async def settled(settler: Settler, batch: Any) -> None:  # noqa: ANN401
        if any(row.task == "bad" for row, _ in batch):
            seen.append(one(db, "select (restarts, fault)::text from rowlock.workers"))
            raise ZeroDivisionError("a fault of ours")
        await settle(settler, batch)

    monkeypatch.setattr(Settler, "_settle", settled)
    runs: list[str] = []

    @app.task(name="bad")
    async def bad() -> None: ...

    @app.task(name="innocent")
    async def innocent() -> None:
        runs.append("innocent")

    app.enqueue_many([*(innocent.bind() for _ in range(3)), bad.bind()])
    work_until(app, lambda: one(db, "select count(*) = 0 from rowlock.jobs"))

    assert [row[:3] for row in ended(db)] == [*[("innocent", "succeeded", None)] * 3, ("bad", "failed", "poison")]
    assert len(runs) <= 9
    assert seen == ["(0,)", *[f'({n},"ZeroDivisionError: a fault of ours")' for n in (1, 2)]]


def test_a_worker_ends_in_time_while_handlers_sit_in_the_executor_of_the_loop(app: Rowlock, db: Db) -> None:
    over, begun = threading.Event(), list[int]()

    @app.task(name="sits")
    async def sits() -> None:
        begun.append(1)
        await asyncio.to_thread(over.wait, 60)

    async def main() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        async with app.worker(grace=timedelta(0)):
            await auntil(lambda: len(begun) == 5)
        left.append(one(db, "select count(*) from rowlock.jobs where state = 'running'"))
        left.append(one(db, "select count(*) from rowlock.workers"))
        over.set()

    left: list[int] = []
    app.enqueue_many(sits.bind() for _ in range(5))
    asyncio.run(main())

    assert left == [0, 0]
