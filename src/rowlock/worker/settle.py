"""Settle: finished attempts pile up while the previous settle is under way; the next one takes them all."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any, Protocol

from rowlock.db.link import Link, Refused
from rowlock.model.failure import describe
from rowlock.model.outcome import Blocked, Cancelled, Ended, Failed, Restarted, Returned, Succeeded, Unsettled
from rowlock.model.row import Claimed
from rowlock.store import endings, jobs
from rowlock.store.query import Query
from rowlock.worker.breaker import Breakers
from rowlock.worker.progress import ProgressBoard
from rowlock.worker.record import Recorder
from rowlock.workflow.report import about

log = logging.getLogger("rowlock.worker")

_LARGEST_BATCH = 1_000
# A row that somebody else has locked is tried again after this many seconds.
_LOCKED_PAUSE = 0.05

Finished = tuple[Claimed, Unsettled]
# Builds the statement that writes a batch of one kind of outcomes.
Write = Callable[[Sequence[Any]], Query[str]]


class Look(Protocol):
    """What else is done on the settling connection."""

    @property
    def is_due(self) -> bool:
        """Whether to do it now."""

    async def look(self, link: Link) -> None:
        """Do it."""


class Settler:
    """The loop that settles."""

    def __init__(
        self,
        *,
        link: Link,
        keep: Callable[[Claimed, Ended], timedelta | None],
        keep_cancelled: timedelta,
        settled: Callable[[Sequence[Claimed]], None],
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
        self._make_partitions = make_partitions
        self._finished: deque[Finished] = deque()
        self._some = asyncio.Event()
        self._open = 0
        self._all_done = asyncio.Event()
        self._all_done.set()
        self.progress = ProgressBoard(self._some.set)
        self.recorder = Recorder(wake=self._some.set, actor=actor, is_ours=is_ours)
        self.looks: Sequence[Look] = ()  # in this loop, for the connection is this loop's

    def add(self, row: Claimed, outcome: Unsettled) -> None:
        """An attempt has finished."""
        self._open += 1
        self._all_done.clear()
        self._finished.append((row, outcome))
        self._some.set()

    def wake(self) -> None:
        """There is something to do that is not an outcome."""
        self._some.set()

    async def run(self) -> None:
        """Settle until cancelled."""
        while True:
            await self._some.wait()
            self._some.clear()
            while self._is_due:
                if self.recorder.is_due:
                    await self.recorder.look(self._link)
                for look in self.looks:
                    if look.is_due:
                        await look.look(self._link)
                batch = [self._finished.popleft() for _ in range(min(len(self._finished), _LARGEST_BATCH))]
                await self._write_progress(batch)
                await self._settle(batch)

    @property
    def _is_due(self) -> bool:
        return bool(
            self._finished or self.recorder.is_due or self.progress.is_due or any(look.is_due for look in self.looks)
        )

    async def flush(self) -> None:
        """Return when everything that was added is settled, or known to be lost."""
        await self._all_done.wait()

    async def _write_progress(self, batch: Sequence[Finished]) -> None:
        """Write what is due, and the last words of attempts that are about to be settled: history takes them along."""
        said = self.progress.take(row for row, _ in batch)
        if not said:
            return
        try:
            await self._link.run(jobs.progress(said))
        except Refused as error:
            log.error("PostgreSQL refuses progress of %d jobs (%s)", len(said), error)  # noqa: TRY400  it is its answer

    async def _settle(self, batch: list[Finished]) -> None:
        """Settle a batch: what ends the job in one statement, what returns it in another; workflows apart."""
        kinds: dict[Write, list[Finished]] = {}
        for finished in batch:
            kinds.setdefault(self._way(*finished), []).append(finished)
        for write, alike in kinds.items():
            for part in [[one] for one in alike] if write == _restart_query else [alike]:
                await self._write(part, write)

    def _way(self, row: Claimed, outcome: Unsettled) -> Write:
        """How an outcome is written."""
        if isinstance(outcome, Succeeded | Failed | Cancelled):
            return self._end_query if row.belongs_to_workflow else self._settle_query
        if isinstance(outcome, Restarted):
            return _restart_query
        return jobs.give_back if row.version is None else self._return_query

    def _settle_query(self, ended: Sequence[tuple[Claimed, Ended]]) -> Query[str]:
        attempts = [(row, outcome, self._keep(row, outcome)) for row, outcome in ended]
        return jobs.settle(attempts, cancelled=self._keep_cancelled)

    def _end_query(self, ended: Sequence[tuple[Claimed, Ended]]) -> Query[str]:
        attempts = [(row, outcome, self._keep(row, outcome)) for row, outcome in ended]
        return endings.settle(attempts, told=self._told(ended), cancelled=self._keep_cancelled)

    def _return_query(self, returned: Sequence[tuple[Claimed, Returned]]) -> Query[str]:
        return endings.give_back(returned, told=self._told(returned))

    def _told(self, finished: Sequence[tuple[Claimed, Unsettled]]) -> dict[str, str]:
        told = self.recorder.told
        return {row.token: told[row.token] for row, _ in finished if row.token in told} if told else {}

    async def _write(self, batch: Sequence[Finished], query: Write) -> None:
        """Write a batch; one that PostgreSQL refuses is halved until the bad row stands alone."""
        try:
            written = await self._link.run(query(batch))
        except Refused as error:
            if error.lacks_partition:
                await self._make_partitions()
                await self._write(batch, query)
            else:
                await self._halve(batch, query, error)
        except Exception as error:
            await self._halve(batch, query, error)
        else:
            if len(written) < len(batch):
                batch = await self._sort_out(batch, set(written))
            if self._breakers:
                accepted = set(written)
                await self._breakers.count(self._link, [one for one in batch if one[0].token in accepted])
            self._done([row for row, _ in batch])

    async def _halve(self, batch: Sequence[Finished], query: Write, error: Exception) -> None:
        if len(batch) > 1:
            middle = len(batch) // 2
            await self._write(batch[:middle], query)
            await self._write(batch[middle:], query)
            return
        row, outcome = batch[0]
        if row.version is not None and not isinstance(outcome, Failed | Cancelled | Blocked):
            # To fail it here would leave what it has done. It waits; what it says of itself may be what is refused.
            self.recorder.told.pop(row.token, None)
            self._finished.append((row, Blocked("code", f"PostgreSQL refuses its outcome: {describe(error).message}")))
            self._some.set()
        elif isinstance(outcome, Failed):
            fault = "%s %s cannot be settled (%s); its lease will run out"
            log.error(fault, row.task, row.id, error, extra=about(row))
            self._done([row])
        else:
            log.error("%s %s: PostgreSQL refuses its outcome (%s)", row.task, row.id, error, extra=about(row))
            self._finished.append((row, Failed(describe(error).to_json(), "refused")))
            self._some.set()

    async def _sort_out(self, batch: Sequence[Finished], written: set[str]) -> list[Finished]:
        """Some rows were skipped. Still ours: somebody has them locked, or wants them cancelled. Else they are lost."""
        missing = [(row, outcome) for row, outcome in batch if row.token not in written]
        still_ours = dict(await self._link.run(jobs.held([row for row, _ in missing])))
        later: list[Finished] = []
        for row, outcome in missing:
            if row.token not in still_ours:
                log.warning("%s %s: lease lost, its outcome is discarded", row.task, row.id, extra=about(row))
            elif still_ours[row.token] and isinstance(outcome, Returned) and row.version is None:
                later.append((row, Cancelled("asked")))  # it may not come back
            else:
                later.append((row, outcome))
        if later:
            asyncio.get_running_loop().call_later(_LOCKED_PAUSE, self._again, later)
        return [(row, outcome) for row, outcome in batch if row.token not in still_ours]

    def _again(self, finished: Sequence[Finished]) -> None:
        self._finished.extend(finished)
        self._some.set()

    def _done(self, rows: Sequence[Claimed]) -> None:
        self._settled(rows)
        if self.recorder.told:
            for row in rows:
                self.recorder.told.pop(row.token, None)
        self._open -= len(rows)
        if not self._open:
            self._all_done.set()


def _restart_query(restarted: Sequence[tuple[Claimed, Restarted]]) -> Query[str]:
    [(row, outcome)] = restarted  # seldom, and each with arguments of its own
    return endings.restart(row, outcome)
