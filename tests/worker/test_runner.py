"""The runner by itself: what becomes of jobs that have not begun, and of all of them when the lease is lost."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from rowlock import Rowlock, current_job
from rowlock.errors import LeaseLost
from rowlock.model.outcome import Cancelled, HandedBack, Unsettled
from rowlock.model.row import ClaimedJob
from rowlock.worker import prefetch
from rowlock.worker.attempt import RunningAttempt, ignore_progress
from rowlock.worker.call import Caller, Returned
from rowlock.worker.counts import Counts
from rowlock.worker.progress import StartMarker
from rowlock.worker.run import Runner
from rowlock.worker.threads import HandlerThreads
from rowlock.worker.transaction import TransactionResources
from tests.waiting import auntil

Finished = list[tuple[str, Unsettled]]


def claimed(number: int, task: str = "holds", crashes: int = 0) -> ClaimedJob:
    job = str(UUID(int=number))
    return ClaimedJob(job, f"{number}", task, "{}", "q", 0, "", 0, crashes, 1, 10, None, False, None, None)


def app_that_holds(told: list[str]) -> Rowlock:
    app = Rowlock()

    @app.task(name="blocks")
    def blocks() -> None:
        told.append("blocks")
        while not current_job().cancelled:
            threading.Event().wait(0.01)

    @app.task(name="holds")
    async def holds() -> None:
        told.append("began")
        try:
            await asyncio.Event().wait()
        finally:
            try:
                current_job().check()
            except LeaseLost:
                told.append("lease lost")

    return app


def runner_of(
    app: Rowlock, finished: Finished, *, slots: int = 1, threads: HandlerThreads[Returned] | None = None
) -> Runner:
    nobody: Any = None
    return Runner(
        handlers=app.load(),
        slots=slots,
        threads=HandlerThreads(1) if threads is None else threads,
        finished=lambda row, outcome: finished.append((row.token, outcome)),
        counts=Counts("worker"),
        marker=StartMarker(due=lambda: None),
        progress=ignore_progress,
        database=nobody,
        resources=TransactionResources(nobody, {}, nobody, nobody),
        memory=nobody,
        on_exhausted=lambda: None,
    )


def play(part: Callable[[Runner, list[str], Finished], Any], *, slots: int = 1) -> tuple[list[str], Finished]:
    """Play a part on a loop of its own; answers what handlers were told, and what has finished."""
    told: list[str] = []
    finished: Finished = []

    async def main() -> None:
        runner = runner_of(app_that_holds(told), finished, slots=slots)
        await part(runner, told, finished)
        runner.drain()
        await runner.cancel()
        runner.close()

    asyncio.run(main())
    return told, finished


def take(runner: Runner, *rows: ClaimedJob) -> None:
    runner.take(rows, asked=len(rows), round_trip=0.01)


def test_a_job_claimed_ahead_that_is_to_be_cancelled_does_not_begin() -> None:
    async def part(runner: Runner, told: list[str], finished: Finished) -> None:
        take(runner, claimed(1), claimed(2), claimed(3))
        await auntil(lambda: told)

        runner.cancel_jobs(["2", "of somebody else"])

        assert finished == [("2", Cancelled("asked"))]

    told, finished = play(part)

    assert told == ["began"]
    assert finished == [("2", Cancelled("asked")), ("3", HandedBack()), ("1", HandedBack())]


def test_a_job_that_is_cancelled_between_its_start_and_its_first_step_ends_once() -> None:
    async def part(runner: Runner, _told: list[str], finished: Finished) -> None:
        take(runner, claimed(1))

        runner.cancel_jobs(["1"])
        runner.cancel_jobs(["1"])
        await asyncio.sleep(0)

        assert finished == [("1", Cancelled("asked"))]

    told, finished = play(part)

    assert told == []
    assert len(finished) == 1


def test_a_workflow_that_is_to_be_cancelled_and_has_not_begun_here_is_handed_back_to_be_undone() -> None:
    async def part(runner: Runner, _told: list[str], _finished: Finished) -> None:
        take(runner, claimed(1)._replace(version=1), claimed(2)._replace(version=1))

        runner.cancel_jobs(["1", "2"])

    told, finished = play(part)

    assert told == []
    assert sorted(finished) == [("1", HandedBack()), ("2", HandedBack())]


def test_without_a_lease_every_attempt_is_told_and_none_is_settled() -> None:
    async def part(runner: Runner, told: list[str], _finished: Finished) -> None:
        take(runner, claimed(1), claimed(2), claimed(3))
        await auntil(lambda: told == ["began"] * 2)

        runner.lose_all()
        await auntil(lambda: told.count("lease lost") == 2)
        take(runner, claimed(4))

    told, finished = play(part, slots=2)

    assert told == ["began"] * 2 + ["lease lost"] * 2
    assert finished == [("4", HandedBack())]


def test_only_the_attempts_that_have_lost_their_jobs_are_stopped() -> None:
    async def part(runner: Runner, told: list[str], _finished: Finished) -> None:
        take(runner, claimed(1), claimed(2), claimed(3))
        await auntil(lambda: told == ["began"] * 2)

        runner.lost(["1", "3"])
        await auntil(lambda: "lease lost" in told)

        assert runner.held.tokens() == ["2"]

    _, finished = play(part, slots=2)

    assert finished == [("2", HandedBack())]


@pytest.mark.parametrize("how", ["stopped", "over", "lost"])
def test_what_waited_for_a_thread_while_its_attempt_came_to_an_end_does_not_run(how: str) -> None:
    """The loop has told the attempt, and has not come yet to cancel what waits. Steps of workflows go this way, too."""
    nobody: Any = None
    resources = TransactionResources(nobody, {}, nobody, nobody)
    attempt, ran = RunningAttempt(claimed(1)), list[str]()

    async def thread_at_last(call: Callable[[], Returned]) -> Returned:
        setattr(attempt, how, "yes")
        return call()

    caller = Caller(handlers={}, in_thread=thread_at_last, database=nobody, resources=resources, memory=nobody)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(caller._step_in_thread(attempt, lambda: ran.append("began")))

    assert ran == []


def test_the_runner_knows_whose_coroutine_a_task_is() -> None:
    async def part(runner: Runner, told: list[str], _finished: Finished) -> None:
        before = asyncio.all_tasks()
        take(runner, claimed(1))
        await auntil(lambda: told)
        [task] = asyncio.all_tasks() - before

        assert runner.job_of(task) == f"holds {UUID(int=1)}"
        assert runner.job_of(asyncio.current_task()) is None

    play(part)


def test_of_jobs_with_long_arguments_no_more_are_claimed_than_their_arguments_may_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prefetch, "_LONGEST_ARGS", 800)
    monkeypatch.setattr(prefetch, "_GUESSED_ARGS", 1)
    long, short = (claimed(1)._replace(args="x" * length) for length in (100, 10))
    ahead = prefetch.PrefetchQueue({}, lambda: 1)

    ahead.measure([long, long])
    at_once = ahead.bounded(50)
    for _ in range(3):
        ahead.add(long, 0.0)
    beside_three = ahead.bounded(50)
    for _ in range(2):
        ahead.add(long, 0.0)
    beside_five = ahead.bounded(50)
    for _ in range(20):
        ahead.measure([short] * 10)

    assert (at_once, beside_three, beside_five) == (8, 5, 0)
    assert ahead.bounded(50) == 50


def test_what_was_claimed_ahead_goes_back_in_time_although_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefetch, "STALE_AFTER", 0.1)

    async def part(runner: Runner, told: list[str], finished: Finished) -> None:
        for _ in range(3):  # a burst of quick jobs, as it looks from here
            runner._prefetch.ran(0.0001)
            runner._prefetch.learn(round_trip=0.01, full=True)
        take(runner, claimed(1), claimed(2), claimed(3))
        assert runner.room() > 0

        await auntil(lambda: len(finished) == 2)

        assert finished == [("2", HandedBack()), ("3", HandedBack())]
        assert runner.room() == 0
        assert told == ["began"]

    play(part)


def test_jobs_that_wait_for_a_thread_are_few_hold_up_nobody_and_go_back_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prefetch, "STALE_AFTER", 0.1)

    async def part(runner: Runner, told: list[str], finished: Finished) -> None:
        assert runner.room() == 2  # for the one thread, and to see what comes
        take(runner, claimed(1, "blocks"), claimed(2, "blocks"), claimed(3))
        assert runner.room() == 0

        await auntil(lambda: len(finished) == 1)

        assert finished == [("2", HandedBack())]
        assert sorted(told) == ["began", "blocks"]
        assert runner.room() == 1

    play(part, slots=10)


def test_a_job_whose_worker_died_once_is_marked_before_it_begins() -> None:
    async def part(runner: Runner, told: list[str], _finished: Finished) -> None:
        take(runner, claimed(1)._replace(begun=None), claimed(2)._replace(begun=False))
        await auntil(lambda: told)

        assert told == ["began"]  # the other one
        assert runner._marker.is_due

    play(part, slots=2)


def test_threads_that_one_incarnation_has_left_behind_are_stuck_in_the_next_one_and_take_its_room() -> None:
    told, over = list[str](), threading.Event()
    app = app_that_holds(told)

    @app.task(name="hangs")
    def hangs() -> None:
        told.append("hangs")
        over.wait(30)

    async def main() -> tuple[list[int], list[int]]:
        shared: HandlerThreads[Returned] = HandlerThreads(3)
        before = runner_of(app, [], slots=3, threads=shared)
        take(before, claimed(1, "hangs"), claimed(2, "hangs"))
        await auntil(lambda: told == ["hangs"] * 2)
        before.lose_all()
        await auntil(lambda: before.stuck == 2)
        before.close()
        after = runner_of(app, [], slots=3, threads=shared)
        left = [after.stuck, after._free_threads()]
        over.set()
        await auntil(lambda: after.stuck == 0)
        free = [after.stuck, after._free_threads()]
        after.close()
        return left, free

    assert asyncio.run(main()) == ([2, 1], [0, 3])
