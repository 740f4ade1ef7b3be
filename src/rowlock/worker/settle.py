"""Settle: outcomes gather while a statement is under way; the next writes them all."""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Protocol

from rowlock.db.errors import Lost, Refused
from rowlock.db.partitions import make_partitions
from rowlock.db.safe_logger import SafeLogger
from rowlock.db.session import Server
from rowlock.db.thread_connection import ReconnectingSyncConnection
from rowlock.db.threads import in_own_thread
from rowlock.db.worker_connection import ReconnectingConnection
from rowlock.model.outcome import Cancelled, Ended, Failed, Retried, Returned, Succeeded, Unsettled, size_of
from rowlock.model.row import ClaimedJob
from rowlock.model.spec import Handler, Keep
from rowlock.store import jobs, pauses, settle
from rowlock.store.pauses import TaskFailures
from rowlock.store.query import LARGEST_STATEMENT, Query
from rowlock.store.queues import QueueSettings
from rowlock.worker.progress import ProgressBoard
from rowlock.worker.refused import Finished, RefusedOutcomes, is_aside
from rowlock.worker.step_recorder import StepRecorder
from rowlock.workflow.logs import log_fields

log = SafeLogger("rowlock.worker")

_LARGEST_BATCH = 1_000
# Tries of a batch before it is taken apart.
_TRIES = 2
# A workflow that remembers so many bytes ends in a statement of its own.
_LARGE_RECORD = 1024 * 1024
# A row that somebody else has locked is tried again after this many seconds.
_LOCKED_PAUSE = 0.05
_LONGEST_TYPE = 200


class SideTask(Protocol):
    """What else is done on the settling connection."""

    @property
    def is_due(self) -> bool:
        """Whether to do it now."""

    async def run_due(self, link: ReconnectingConnection) -> None:
        """Do it."""


class Settler:
    """The loop that settles."""

    def __init__(
        self,
        *,
        link: ReconnectingConnection,
        keep: Callable[[ClaimedJob, Ended], timedelta | None],
        keep_cancelled: timedelta,
        settled: Callable[[Sequence[ClaimedJob]], None],
        breakers: Breakers,
        make_partitions: Callable[[], Awaitable[None]],
        actor: str,
        is_ours: Callable[[], bool],
    ) -> None:
        self._link = link
        self._keep = keep
        self._keep_cancelled = keep_cancelled  # a job that somebody asked to cancel while it was about to be settled
        self._settled = settled
        self._breakers = breakers
        self._aside = RefusedOutcomes(beside=link, write=self._write, make_partitions=make_partitions)
        self._finished: deque[Finished] = deque()
        self._some = asyncio.Event()
        self._open = 0
        self._late: set[str] = set()  # of these, the tokens of what is settled apart, or was locked by somebody
        self._all_done = asyncio.Event()
        self._all_done.set()
        self.progress = ProgressBoard(self._some.set)
        self.recorder = StepRecorder(wake=self._some.set, actor=actor, is_ours=is_ours)
        self.side_tasks: Sequence[SideTask] = ()  # in this loop, for the connection is this loop's

    def add(self, row: ClaimedJob, outcome: Unsettled) -> None:
        """An attempt has finished."""
        self._open += 1
        self._all_done.clear()
        self._finished.append((row, outcome))
        self._some.set()

    @property
    def fault_apart(self) -> tuple[str, float] | None:
        """What goes wrong with what is settled apart, and for how many seconds."""
        return self._aside.fault

    def wake(self) -> None:
        """There is something to do that is not an outcome."""
        self._some.set()

    async def run(self) -> None:
        """Settle until cancelled."""
        loops = [asyncio.create_task(self._settle_all()), asyncio.create_task(self._aside.run())]
        try:
            await asyncio.gather(*loops)  # should one fail, so does the other
        finally:
            for loop in loops:
                loop.cancel()
            await asyncio.wait(loops)

    async def _settle_all(self) -> None:
        while True:
            await self._some.wait()
            self._some.clear()
            while self._is_due:
                if self.recorder.is_due:
                    await self.recorder.run_due(self._link)
                for task in self.side_tasks:
                    if task.is_due:
                        await task.run_due(self._link)
                batch = self._take()
                await self._write_progress(batch)
                await self._settle(batch)

    def _take(self) -> list[Finished]:
        """As many as go into one statement, by their number and by their size."""
        batch: list[Finished] = []
        room = LARGEST_STATEMENT
        while self._finished and len(batch) < _LARGEST_BATCH:
            room -= size_of(self._finished[0][1])
            if room < 0 and batch:
                break
            batch.append(self._finished.popleft())
        return batch

    @property
    def _is_due(self) -> bool:
        return bool(
            self._finished
            or self.recorder.is_due
            or self.progress.is_due
            or any(task.is_due for task in self.side_tasks)
        )

    async def flush(self, *, patience: float, until: float) -> None:
        """Return when everything that was added is settled, or known to be lost; at the latest at that moment.

        What is settled apart, or locked by somebody, is waited for so many seconds only.
        """
        while time.monotonic() < until:
            with suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    await self._all_done.wait()
            if self._open <= len(self._late):
                return
            patience = _LOCKED_PAUSE

    async def _write_progress(self, batch: Sequence[Finished]) -> None:
        """Write what is due, and the last words of attempts that are about to be settled: history takes them along."""
        updates = self.progress.take(row for row, _ in batch)
        if not updates:
            return
        try:
            await self._link.run(jobs.progress(updates), tries=_TRIES)
        except Refused as error:
            log.error("PostgreSQL refuses progress of %d jobs (%s)", len(updates), error)  # noqa: TRY400  PostgreSQL's refusal, not a fault of ours

    async def _settle(self, batch: list[Finished]) -> None:
        """Settle a batch: what ends the job in one statement, what returns it in another; workflows apart."""
        kinds: dict[settle.Statement, list[Finished]] = {}
        for finished in batch:
            kinds.setdefault(settle.statement_for(*finished), []).append(finished)
        for kind, alike in kinds.items():
            if kind == "workflow_settle":
                alike = self._part_large(alike)  # noqa: PLW2901
            for part in [[one] for one in alike] if kind == "workflow_restart" else [alike] if alike else []:
                try:
                    await self._write(self._link, part)
                    self._aside.good_at = time.monotonic()
                except Refused as error:
                    log.warning("%d outcomes are settled apart: PostgreSQL refuses them (%s)", len(part), error)
                    self._add_apart(part)

    def _part_large(self, ended: list[Finished]) -> list[Finished]:
        """Workflows whose records are large take long to be folded: apart, where nobody waits for them."""
        large = [one for one in ended if self.recorder.size(one[0]) > _LARGE_RECORD]
        for one in large:
            self._add_apart([one])
        return [one for one in ended if self.recorder.size(one[0]) <= _LARGE_RECORD] if large else ended

    def _add_apart(self, batch: Sequence[Finished]) -> None:
        self._late.update(row.token for row, _ in batch)
        self._aside.add(batch)

    def _query(self, batch: Sequence[Finished]) -> Query[str]:
        return settle.settle_alike(
            batch, keep=self._keep, told=self._last_states(batch), cancelled=self._keep_cancelled
        )

    def _last_states(self, finished: Sequence[Finished]) -> dict[str, str]:
        """The last `ctx.state` of these workflows, but for those that are set aside: it may be what was refused."""
        states = self.recorder.last_states
        if not states:
            return {}
        return {
            row.token: states[row.token] for row, outcome in finished if row.token in states and not is_aside(outcome)
        }

    async def _write(self, link: ReconnectingConnection, batch: Sequence[Finished]) -> None:
        """Write a batch of one kind; Refused when PostgreSQL does not accept it, or fails at it again and again."""
        try:
            written = await link.run(self._query(batch), tries=_TRIES)
        except Refused:
            raise
        except Exception as error:  # a statement that cannot be built or sent: one outcome is no text, say
            raise Refused(error) from error
        if len(written) < len(batch):
            batch = await self._sort_out(link, batch, set(written))
        if self._breakers:
            accepted = set(written)
            await self._breakers.count(self._link, [one for one in batch if one[0].token in accepted])
        self._done([row for row, _ in batch])

    async def _sort_out(
        self, link: ReconnectingConnection, batch: Sequence[Finished], written: set[str]
    ) -> list[Finished]:
        """Some rows were skipped. Still ours: somebody has them locked, or wants them cancelled. Else they are lost."""
        missing = [(row, outcome) for row, outcome in batch if row.token not in written]
        try:
            still_ours = dict(await link.run(jobs.held([row for row, _ in missing]), tries=_TRIES))
        except Refused:  # nobody knows: they are tried again, and nothing else waits for that
            still_ours = {row.token: False for row, _ in missing}
        later: list[Finished] = []
        for row, outcome in missing:
            if row.token not in still_ours:
                log.warning("%s %s: lease lost, its outcome is discarded", row.task, row.id, extra=log_fields(row))
            elif still_ours[row.token] and isinstance(outcome, Returned) and row.version is None:
                later.append((row, Cancelled("asked")))  # it may not come back
            else:
                later.append((row, outcome))
        if later:
            self._late.update(row.token for row, _ in later)
            asyncio.get_running_loop().call_later(_LOCKED_PAUSE, self._again, later)
        return [(row, outcome) for row, outcome in batch if row.token not in still_ours]

    def _again(self, finished: Sequence[Finished]) -> None:
        self._finished.extend(finished)
        self._some.set()

    def _done(self, rows: Sequence[ClaimedJob]) -> None:
        self._settled(rows)
        self.recorder.forget(rows)
        self._late.difference_update(row.token for row in rows)
        self._open -= len(rows)
        if not self._open:
            self._all_done.set()


class Retention:
    """What the app and its tasks ask for, and what operators have set."""

    def __init__(self, handlers: Mapping[str, Handler], keep: Keep) -> None:
        self._handlers = handlers
        self._keep = keep
        self._settings: dict[str, QueueSettings] = {}

    @property
    def longest(self) -> timedelta:
        """The longest that the app or a task asks for."""
        return max([self._keep.longest, *(h.spec.keep.longest for h in self._handlers.values() if h.spec.keep)])

    def learn(self, settings: Sequence[QueueSettings]) -> None:
        """These are the operators' settings now."""
        self._settings = {queue.name: queue for queue in settings}

    def after(self, row: ClaimedJob, outcome: Ended) -> timedelta | None:
        """How long to keep a job that ended so; None leaves no trace."""
        handler = self._handlers.get(row.code)
        if handler is not None and not handler.spec.history and isinstance(outcome, Succeeded):
            return None
        operator = self._settings.get(row.queue)
        asked = operator.keep_after(outcome) if operator is not None else None
        if asked is not None:
            return asked
        keep = handler.spec.keep if handler is not None else None
        return (keep or self._keep).after(outcome)

    async def make_partitions(self, server: Server, schema: str, *, deadline: float) -> None:
        """A settle found no partition for the day: upkeep has not run for long, or an operator raised a retention.

        On a connection of its own, for the renewing one must not wait. Trouble passes: the settle will ask again.
        """
        steady = ReconnectingSyncConnection(server, schema, name="rowlock partitions", deadline=deadline)
        try:
            await in_own_thread(lambda: make_partitions(steady.open(), schema, longest=self.longest))
        except Exception:
            log.exception("partitions of history could not be made; trying again")
            await asyncio.sleep(1)
        finally:
            steady.close()


class Breakers:
    """The breakers of a worker's tasks, under every name that jobs may have them by."""

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self._by_task = {name: handler.spec.breaker for name, handler in handlers.items() if handler.spec.breaker}

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self._by_task)

    def counting(self, settled: Iterable[tuple[ClaimedJob, Unsettled]]) -> Query[str] | None:
        """The statement that counts the failures among these, if there are any; it returns the tasks that it pauses."""
        counts: dict[str, int] = {}
        last: dict[str, str] = {}
        for row, outcome in settled:
            if isinstance(outcome, Failed | Retried) and not outcome.expected and row.task in self._by_task:
                counts[row.task] = counts.get(row.task, 0) + 1
                last[row.task] = outcome.failure
        if not counts:
            return None
        return pauses.count_failures(
            [TaskFailures(task, count, _type(last[task]), self._by_task[task]) for task, count in counts.items()]
        )

    async def count(self, link: ReconnectingConnection, settled: Iterable[tuple[ClaimedJob, Unsettled]]) -> None:
        """Count what has failed of what was just settled, once: better lost than counted twice."""
        query = self.counting(settled)
        if query is None:
            return
        try:
            for task in await link.once(query):
                log.error("task %s is paused by its breaker: it has failed too often", task)
        except Lost as error:
            log.warning("failures were not counted for their breakers (%s)", error)


def _type(failure: str) -> str:
    """The type of an error, and nothing else of it: messages may hold users' data."""
    name = str(json.loads(failure).get("type", "an error"))
    return "".join(letter if letter.isprintable() else "?" for letter in name)[:_LONGEST_TYPE]
