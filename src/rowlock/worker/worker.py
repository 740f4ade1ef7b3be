"""Worker: runs one incarnation after another until it is stopped."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, nullcontext, suppress
from datetime import timedelta
from types import TracebackType
from typing import Self

from rowlock.db.database import Database
from rowlock.db.migrate import wait_for_schema
from rowlock.db.safe_logger import SafeLogger
from rowlock.db.threads import in_own_thread
from rowlock.model.schedule.schedule import ScheduleSpec
from rowlock.model.spec import Handler, Keep
from rowlock.worker.around import Around, Async, Plain, checked, enter
from rowlock.worker.call import Returned
from rowlock.worker.incarnation import Incarnation
from rowlock.worker.logs import keep_loggers_enabled
from rowlock.worker.queues import Queues, tasks_by_queue
from rowlock.worker.registration import WorkerConfig
from rowlock.worker.schedule import Boot
from rowlock.worker.settings import GRACE, QUEUES, SLOTS, THREADS, Timing, threads_for
from rowlock.worker.threads import HandlerThreads

log = SafeLogger("rowlock.worker")

# Between two incarnations of which the first has ended by a fault of ours.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0
# One that lived for so long before was sound, and what it met is new.
_SOUND_AFTER = 300.0


class Worker:
    """Claims and runs jobs: `async with worker:` beside other things, or `await worker.run()` until `stop()`."""

    def __init__(
        self,
        *,
        handlers: Mapping[str, Handler],
        database: Database,
        keep: Keep,
        queues: str | Sequence[str] | Mapping[str, float] | None,
        slots: int | None,
        threads: int | None,
        lease: timedelta | None,
        renew: timedelta | None,
        deadline: timedelta | None,
        grace: timedelta | None,
        schedules: Sequence[ScheduleSpec] = (),
        arounds: Sequence[Around] = (),
        lifespan: Callable[[], Plain | Async] = nullcontext,
    ) -> None:
        slots = SLOTS.chosen(slots)
        self._database = database
        self._grace = GRACE.chosen(grace)
        self._config = WorkerConfig(
            handlers=handlers,
            schema=database.schema,
            database=database,
            within=database.within,
            keep=keep,
            queues=Queues(QUEUES.chosen(queues), declared=tasks_by_queue(handlers)),
            slots=slots,
            threads=THREADS.chosen(threads) or threads_for(slots),
            timing=Timing.chosen(lease=lease, renew=renew, deadline=deadline),
            deadline=database.deadline.value,
            arounds=tuple(arounds),
            boot=Boot(schedules),
            place=lambda: f"{database.address}, schema {database.schema} (from {database.address.source})",
        )
        self._lifespan = lifespan
        self._stopping = asyncio.Event()
        self._hurry = asyncio.Event()
        self._started = asyncio.Event()
        self._life: asyncio.Task[None] | None = None
        # Too many attempts are stuck: the process should be replaced. A caller that can do that sets `ends_worn_out`.
        self.worn_out = False
        self.ends_worn_out = False
        self.left_jobs = False  # it could not hand them back: the database did not respond

    async def run(self) -> None:
        """Work until `stop()` is called."""
        server = await in_own_thread(self._database.server)
        deadline = self._database.deadline.value
        await self._unless_stopped(wait_for_schema(server, self._database.schema, deadline=deadline))
        if self._stopping.is_set():
            return
        async with AsyncExitStack() as stack:
            await enter(stack, checked(self._lifespan(), "lifespan"))
            keep_loggers_enabled()  # the app may have set up logging just now
            unsettled: Sequence[str] = ()
            restarts, fault = 0, None
            threads: HandlerThreads[Returned] = HandlerThreads(self._config.threads)
            while not self._stopping.is_set():
                faults = (restarts, fault)
                incarnation = Incarnation(self._config, server, threads=threads, predecessors=unsettled, faults=faults)
                began = time.monotonic()
                await self._live(incarnation)
                unsettled = incarnation.unsettled
                if incarnation.fault is not None:
                    restarts = 1 if time.monotonic() - began > _SOUND_AFTER else restarts + 1
                    fault = incarnation.fault
                    await self._pause(restarts)

    async def _pause(self, restarts: int) -> None:
        """A loop has failed, and will again, perhaps: not at once, and not on all workers together."""
        pause = min(_FIRST_PAUSE * 2 ** min(restarts - 1, 16), _LONGEST_PAUSE) * random.uniform(0.5, 1.0)
        log.critical("internal error of this worker, %d in a row: it restarts in %.1f s", restarts, pause)
        with suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await self._stopping.wait()

    async def _live(self, incarnation: Incarnation) -> None:
        try:
            await self._unless_stopped(incarnation.start())
            self._started.set()
            await self._first_of(self._stopping.wait(), incarnation.ended.wait())
        finally:  # cancelled or not: the jobs are handed back and the connections closed
            # A lost lease leaves no grace: others may be running the same jobs by now.
            grace = self._grace if self._stopping.is_set() or incarnation.exhausted else timedelta(0)
            await incarnation.stop(grace, hurry=self._hurry)
            self.left_jobs = incarnation.left_jobs
        if incarnation.exhausted and not self._stopping.is_set():
            self._wear_out()

    def _wear_out(self) -> None:
        if self.ends_worn_out:
            self.worn_out = True
            self._stopping.set()
        else:
            log.warning("restarting; what is stuck stays until this process is replaced")

    def stop(self) -> None:
        """Stop: no new claims, running attempts get the grace period. Called again: hand them back at once."""
        if self._stopping.is_set():
            self._hurry.set()
        self._stopping.set()

    async def __aenter__(self) -> Self:
        self._life = asyncio.create_task(self.run())
        await self._first_of(self._started.wait(), asyncio.shield(self._life))
        if self._life.done():
            await self._life
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if self._life is not None:
            await self._life

    async def _unless_stopped(self, awaitable: Awaitable[None]) -> None:
        """Wait for something, but no longer than until `stop()` is called."""
        waiting = asyncio.ensure_future(awaitable)
        await self._first_of(self._stopping.wait(), waiting)
        if waiting.done() and not waiting.cancelled():
            waiting.result()

    @staticmethod
    async def _first_of(*events: Awaitable[object]) -> None:
        waits = [asyncio.ensure_future(event) for event in events]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
