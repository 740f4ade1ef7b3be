"""Threads: each call runs in one, none waits without need, and one that cannot be stopped is left behind."""

from __future__ import annotations

import asyncio
import threading

from rowlock.worker.threads import HandlerThreads
from tests.waiting import auntil


def test_calls_run_in_as_many_threads_as_there_may_be_and_no_more() -> None:
    together = threading.Barrier(3, timeout=30)

    async def call() -> tuple[list[str], int]:
        threads: HandlerThreads[str] = HandlerThreads(3)

        def meet() -> str:
            together.wait()
            return threading.current_thread().name

        names = await asyncio.gather(*(threads.run(meet) for _ in range(12)))
        threads.close()
        return names, threads.stuck

    names, stuck = asyncio.run(call())

    assert len(names) == 12
    assert len(set(names)) == 3
    assert stuck == 0


def test_a_thread_whose_call_nobody_waits_for_gives_its_place_to_another() -> None:
    over, started = threading.Event(), threading.Event()

    async def call() -> None:
        threads: HandlerThreads[bool] = HandlerThreads(1)

        def hang() -> bool:
            started.set()
            return over.wait(30)

        hanging = asyncio.create_task(threads.run(hang))
        await auntil(started.is_set)
        hanging.cancel()
        await asyncio.wait([hanging])

        assert threads.stuck == 1
        assert await threads.run(lambda: True)

        over.set()
        await auntil(lambda: threads.stuck == 0)
        threads.close()

    asyncio.run(call())


def test_a_call_that_is_cancelled_while_it_waits_for_a_thread_does_not_run() -> None:
    over, ran = threading.Event(), list[str]()

    async def call() -> None:
        threads: HandlerThreads[object] = HandlerThreads(1)
        first = asyncio.create_task(threads.run(lambda: over.wait(30)))
        second = asyncio.create_task(threads.run(lambda: ran.append("second")))
        third = asyncio.create_task(threads.run(lambda: ran.append("third")))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.wait([second])
        over.set()
        await asyncio.gather(first, third)
        assert threads.stuck == 0
        threads.close()

    asyncio.run(call())

    assert ran == ["third"]


def test_threads_that_serve_end_when_they_are_let_go() -> None:
    before = threading.active_count()

    async def call() -> None:
        threads: HandlerThreads[None] = HandlerThreads(4)
        await asyncio.gather(*(threads.run(lambda: None) for _ in range(4)))
        threads.close()
        await auntil(lambda: threading.active_count() <= before + 1)  # auntil itself takes one

    asyncio.run(call())


def test_a_call_that_waits_does_not_begin_when_all_calls_are_cancelled_at_once() -> None:
    """The first to be left gives its place to another thread, which must not take up the second."""
    over, started, ran = threading.Event(), threading.Event(), list[str]()

    async def call() -> None:
        threads: HandlerThreads[object] = HandlerThreads(1)

        def hang() -> bool:
            started.set()
            return over.wait(30)

        first = asyncio.create_task(threads.run(hang))
        second = asyncio.create_task(threads.run(lambda: ran.append("second")))
        await auntil(started.is_set)
        first.cancel()
        second.cancel()
        await asyncio.wait([first, second])
        assert await threads.run(lambda: "third") == "third"
        over.set()
        threads.close()

    asyncio.run(call())

    assert ran == []
