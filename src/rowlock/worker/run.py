"""Runner: attempts in slots, async ones on the loop and sync ones in threads."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from contextvars import copy_context
from datetime import timedelta
from typing import Protocol

from rowlock.db.safe_logger import SafeLogger
from rowlock.model.failure import describe
from rowlock.model.outcome import Cancelled, Committed, Failed, HandedBack, Outcome, Succeeded, Unsettled
from rowlock.model.row import ClaimedJob
from rowlock.model.spec import Handler
from rowlock.store.claim import SUSPECT_FROM
from rowlock.worker.around import Around
from rowlock.worker.attempt import HandlerDatabase, OnProgress, RunningAttempt
from rowlock.worker.call import Caller, CallerStepStore, Returned
from rowlock.worker.counts import Counts
from rowlock.worker.logs import AttemptLog
from rowlock.worker.prefetch import HeldJobs, PrefetchQueue, PrefetchSize, unbegun
from rowlock.worker.progress import StartMarker
from rowlock.worker.threads import HandlerThreads
from rowlock.worker.transaction import TransactionResources
from rowlock.workflow.logs import log_fields

log = SafeLogger("rowlock.worker")

# What may be finished and not yet settled before claims wait for settles.
_MOST_UNSETTLED = 4_000
# How often to look for jobs that have waited for too long, and for attempts to mark as begun.
_LOOK_EVERY = 0.25
# A job that was claimed ahead and has run for so long is marked; most have ended by then, and pay nothing for it.
_MARKED_AFTER = 1.0
# At the end, a handler that swallows its cancellation is left behind after so many seconds.
_CANCEL_WITHIN = 2.0
# With so many attempts stuck, or all threads if they are fewer, a process is worn out.
_MOST_STUCK = 5


class RunnerStepStore(CallerStepStore, Protocol):
    """A step store that keeps what it knows of attempts until they are over."""

    def forget(self, rows: Iterable[ClaimedJob]) -> None:
        """These attempts are over."""


class Runner:
    """The slots of a worker, and the jobs that wait for one."""

    def __init__(
        self,
        *,
        handlers: Mapping[str, Handler],
        slots: int,
        threads: HandlerThreads[Returned],
        finished: Callable[[ClaimedJob, Unsettled], None],
        counts: Counts,
        marker: StartMarker,
        progress: OnProgress,
        database: HandlerDatabase,
        resources: TransactionResources,
        memory: RunnerStepStore,
        on_exhausted: Callable[[], object],
        arounds: Sequence[Around] = (),
    ) -> None:
        """`on_exhausted` is called when so many attempts are stuck that this process should be replaced."""
        self._slots = slots
        threads.begin()
        self._threads = threads
        self._caller = Caller(
            handlers=handlers,
            in_thread=self._threads.run,
            database=database,
            resources=resources,
            memory=memory,
            arounds=arounds,
            progress=progress,
            on_abandoned=self._leave_behind,
        )
        self._finished = finished
        self._memory = memory
        self._counts = counts
        self._report = AttemptLog()
        self._on_exhausted = on_exhausted
        self._exhausted_at = min(_MOST_STUCK, threads.size)
        self._prefetch = PrefetchSize(slots)
        self._ahead = PrefetchQueue(handlers, self._free_threads)
        self._in_threads = 0  # attempts of sync tasks
        self._marker = marker
        self._open = resources.open
        self._timer: asyncio.TimerHandle | None = None
        self._running: dict[str, RunningAttempt] = {}
        self.held = HeldJobs()
        self._abandoned = 0
        self._has_room = asyncio.Event()
        self._idle = asyncio.Event()
        self._draining = False
        self._context = copy_context()

    # For the claimer

    def room(self) -> int:
        """How many jobs to ask for now; 0 while a claim is not worth its round trip."""
        load = len(self._ahead) + len(self._running)
        room = min(self._slots + self._prefetch.size - load, _MOST_UNSETTLED - len(self.held))
        # With jobs waiting in hand there is time to gather a larger claim.
        return self._ahead.bounded(room) if room * 2 >= self._prefetch.size or not self._ahead else 0

    def free(self) -> int:
        """How many of the jobs that are claimed now can begin at once."""
        free = max(0, self._slots - len(self._running) - len(self._ahead))
        return min(free, max(0, self._free_threads())) if self._ahead.is_all_threaded else free

    @property
    def wants_suspect(self) -> bool:
        """Whether there is none in hand."""
        return not self.held.has_suspect and not self._draining

    async def wait_for_room(self, timeout: float) -> bool:
        """Wait until something has finished; False when `timeout` seconds passed first."""
        self._has_room.clear()
        try:
            async with asyncio.timeout(timeout):
                await self._has_room.wait()
        except TimeoutError:
            return False
        return True

    def take(self, rows: Sequence[ClaimedJob], *, asked: int | None, round_trip: float) -> None:
        """Take in claimed jobs and start as many as there are slots. A suspect comes alone, and nothing was `asked`."""
        now = time.monotonic()
        count = 0
        for row in rows:
            count += 1
            if not self.held.add(row):
                self._finished(row, unbegun(row))
            elif row.crashes < SUSPECT_FROM:
                self._ahead.add(row, now)
            else:
                says = "%s %s: %d workers died while they ran it; it is tried again"
                log.warning(says, row.task, row.id, row.crashes, extra=log_fields(row))
                self._ahead.add(row, now, first=True)
        self._ahead.measure(rows)
        if asked is not None:
            self._prefetch.learn(round_trip=round_trip, full=count == asked)
        self._start()
        if count and self._timer is None:
            self._check_later()

    def unsettled(self) -> list[ClaimedJob]:
        """What has finished and is still in hand."""
        return self.held.without(self._running, self._ahead.tokens())

    def settled(self, rows: Iterable[ClaimedJob]) -> None:
        """These jobs are out of our hands."""
        for row in rows:
            self.held.forget(row)
        self._has_room.set()

    def _check_later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(_LOOK_EVERY, self._check)

    def _check(self) -> None:
        """Give back what has waited for too long, whatever the handlers do; mark what lasts as begun."""
        self._timer = None
        self._ahead.start_period()
        if stale := self._ahead.stale():
            self._prefetch.forget()
            for row in stale:
                self._finished(row, unbegun(row))
            self._has_room.set()
        horizon = time.perf_counter() - _MARKED_AFTER
        for attempt in self._running.values():
            if not attempt.marked and 0 < attempt.begun < horizon and attempt.row.token not in self._open:
                attempt.marked = True
                self._marker.add(attempt.row, attempt.begun)
        if self.held:
            self._check_later()

    # For other parts of the worker

    @property
    def stuck(self) -> int:
        """How many handlers go on although their attempts are over."""
        return self._threads.stuck + self._abandoned

    def job_of(self, task: asyncio.Task[object] | None) -> str | None:
        """The task and the job whose attempt an asyncio task runs; from any thread."""
        for attempt in list(self._running.values()):
            if attempt.task is task:
                return f"{attempt.row.task} {attempt.row.id}"
        return None

    # Jobs that are taken away

    def cancel_jobs(self, tokens: Iterable[str]) -> None:
        """Somebody has asked to cancel these. Coroutines are cancelled, threads can ask; the waiting do not begin."""
        wanted = set(tokens)
        for row in self._pick_waiting(wanted):
            self._finished(row, _uncancelled(row))
        for attempt in [self._running[token] for token in wanted & self._running.keys()]:
            # One that was claimed to be undone is what came of this very mark, which stays until it has ended.
            if not attempt.cancel_requested and not attempt.row.cancelling:
                attempt.cancel_requested = True
                row = attempt.row
                log.info("%s %s: somebody has asked to cancel it", row.task, row.id, extra=log_fields(row))
                if not attempt.in_thread and not attempt.undoing:
                    self._stop(attempt, _uncancelled(attempt.row))

    def lost(self, tokens: Iterable[str]) -> None:
        """The database does not hold these for us any more: their attempts are stopped, and count for nothing."""
        wanted = set(tokens)
        for row in self._pick_waiting(wanted):
            self._discard(row)
        for attempt in [self._running[token] for token in wanted & self._running.keys()]:
            if not attempt.committed:
                attempt.lost = "its worker has lost its lease on the job"
                self._stop(attempt, HandedBack())

    def lose_all(self) -> None:
        """Our lease is lost, and with it every job: all attempts are stopped, and count for nothing."""
        self._draining = True
        self.lost(self.held.tokens())

    def _pick_waiting(self, tokens: Collection[str]) -> list[ClaimedJob]:
        """Take out those of these that have not begun."""
        picked = self._ahead.pick(tokens)
        if picked:
            self._go_on()
        return picked

    def _stop(self, attempt: RunningAttempt, outcome: Outcome) -> None:
        """Cancel an attempt; `outcome` is that of one that has not begun, whose coroutine will not run at all."""
        if attempt.task is not None:
            attempt.task.cancel()
        if not attempt.begun:
            self._end(attempt, outcome)

    def _discard(self, row: ClaimedJob) -> None:
        log.warning("%s %s: lease lost, its outcome is discarded", row.task, row.id, extra=log_fields(row))
        self.held.forget(row)
        if row.version is not None:
            self._memory.forget([row])  # nobody settles it, which is what usually sees to that

    # Stopping

    def drain(self) -> None:
        """Start nothing more, and give back what has not started."""
        self._draining = self._caller.draining = True
        for row in self._pick_waiting(set(self.held.tokens())):
            self._finished(row, unbegun(row))

    async def wait(self, grace: timedelta, *, hurry: asyncio.Event) -> None:
        """Wait for running attempts, at most so long, and no longer once there is a hurry."""
        if not self._running:
            return
        self._idle.clear()
        waits = [asyncio.ensure_future(event.wait()) for event in (hurry, self._idle)]
        await asyncio.wait(waits, timeout=grace.total_seconds(), return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()

    async def cancel(self) -> None:
        """Cancel all that still runs; it is handed back. What does not end, and threads, get little time."""
        self._idle.clear()
        for attempt in list(self._running.values()):
            attempt.stopped = True
            self._stop(attempt, HandedBack())
        if self._running:
            with suppress(TimeoutError):
                async with asyncio.timeout(_CANCEL_WITHIN):
                    await self._idle.wait()

    def close(self) -> None:
        """Let the threads go; one that is stuck in a handler does not hold us."""
        if self._timer is not None:
            self._timer.cancel()
        self._threads.close()
        self._report.close()

    # Running

    def _start(self) -> None:
        loop = asyncio.get_running_loop()
        while len(self._running) < self._slots and not self._draining and (row := self._ahead.next()) is not None:
            self._begin(row, loop)

    def _begin(self, row: ClaimedJob, loop: asyncio.AbstractEventLoop) -> None:
        attempt = self._running[row.token] = RunningAttempt(row)
        if self._ahead.is_threaded(row):
            self._in_threads += 1
        # In a context of its own: the current one may be that of the attempt that has just ended.
        attempt.task = loop.create_task(self._run(attempt), context=self._context.copy())

    def _free_threads(self) -> int:
        return self._threads.most - self._in_threads

    async def _run(self, attempt: RunningAttempt) -> None:
        """One attempt, from claimed to finished."""
        if not attempt.marked and (attempt.row.begun is None or attempt.row.crashes >= SUSPECT_FROM):
            attempt.marked = True
            await self._marker.before(attempt.row)
        attempt.begun = time.perf_counter()
        try:
            outcome = await self._caller.attempt(attempt)
        except asyncio.CancelledError:
            outcome = HandedBack()
        except BaseException as error:  # the slot must come free, and the job must end, whatever this is
            row = attempt.row
            log.exception("%s %s: its attempt has come to no outcome", row.task, row.id, extra=log_fields(row))
            outcome = Failed(describe(error).to_json(), "refused")
        if attempt.over:
            self._abandoned -= 1
            row = attempt.row
            log.info("%s %s has ended at last, after it was left behind", row.task, row.id, extra=log_fields(row))
        else:
            self._end(attempt, outcome)

    def _end(self, attempt: RunningAttempt, outcome: Outcome) -> None:
        row = attempt.row
        ended = time.perf_counter()
        took = ended - (attempt.begun or ended)
        attempt.over, attempt.task = True, None
        del self._running[row.token]
        if self._ahead.is_threaded(row):
            self._in_threads -= 1
            self._ahead.ended()
        self._prefetch.ran(took)
        if isinstance(outcome, Committed):
            outcome = Succeeded(outcome.result)
            self._counts.ended(row, outcome, took, ended)
            self.settled([row])
            self._report(row, outcome, took, None)
        elif attempt.lost is None:
            if attempt.cancel_requested and row.version is None:  # a workflow is undone first
                outcome = Cancelled("asked")
            self._counts.ended(row, outcome, took, ended)
            self._finished(row, outcome)  # before anything is said of it: that is the app's code, too
            self._report(row, outcome, took, attempt.error)
        else:
            self._discard(row)
        attempt.error = None  # whose frames know the attempt
        if attempt.in_thread:
            self._report_stuck(attempt, "thread")
        if not self._running:
            self._idle.set()
        self._go_on()

    def _go_on(self) -> None:
        self._start()
        self._has_room.set()

    # Abandoned

    def _leave_behind(self, attempt: RunningAttempt, outcome: Outcome) -> None:
        """A coroutine does not end although it was cancelled."""
        if not attempt.over:
            self._abandoned += 1
            self._end(attempt, outcome)
            self._report_stuck(attempt, "coroutine")

    def _report_stuck(self, attempt: RunningAttempt, kind: str) -> None:
        row = attempt.row
        log.warning(
            "%s %s: its attempt is over and its %s goes on; %d stuck in this process",
            row.task,
            row.id,
            kind,
            self.stuck,
            extra=log_fields(row),
        )
        if self.stuck >= self._exhausted_at and not self._draining:
            self._on_exhausted()


def _uncancelled(row: ClaimedJob) -> Unsettled:
    """What becomes of a job that is to be cancelled, and has not begun here: a workflow is undone first."""
    return Cancelled("asked") if row.version is None else HandedBack()
