"""Refused: what PostgreSQL refuses, outcomes and claims, is taken apart until it stands alone.

A batch of outcomes that fails, or is too large, goes to a connection of its own. It is halved until what is wrong with
it stands alone; the others are settled on the worker's usual connection meanwhile. What stands alone and fails again
and again ends as failed, with that error; if even this is refused, the job is set aside, as one that waits for code,
with the reason. Where a claim fails again and again, its jobs are claimed one by one.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from typing import Any, TypeVar

from rowlock.db.errors import Refused
from rowlock.db.safe_logger import SafeLogger
from rowlock.db.worker_connection import ReconnectingConnection
from rowlock.model.failure import describe
from rowlock.model.outcome import Blocked, Cancelled, Failed, Succeeded, Unsettled
from rowlock.model.row import ClaimedJob
from rowlock.store import claim as claim_store
from rowlock.store.query import Query
from rowlock.workflow.logs import log_fields

log = SafeLogger("rowlock.worker")

# The reason of a job that is set aside begins so; job_take_up passes it over.
REFUSES = "PostgreSQL refuses"
_LONGEST_REASON = 1_000

# What fails alone is tried again after so many seconds, then twice as many, up to the longest.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 60.0
# So often, if others could be settled in the meantime: then it is not the server that is ill. Else as often as this, or
# without end where the server may well be what is ill.
_TRIES, _MOST_TRIES = 3, 9
# A statement here may take longer: nothing else waits for it.
_DEADLINE = 60.0
# The connection is closed when it was not needed for so many seconds.
_IDLE = 10.0
_MAKE_EVERY = 1.0

Finished = tuple[ClaimedJob, Unsettled]
Write = Callable[[ReconnectingConnection, Sequence[Any]], Awaitable[None]]
P = TypeVar("P")
# A job's id, and the claim of that one alone.
Candidate = tuple[str, Query[ClaimedJob]]


class RefusedOutcomes:
    """The loop that settles what cannot be settled with the rest."""

    def __init__(
        self, *, beside: ReconnectingConnection, write: Write, make_partitions: Callable[[], Awaitable[None]]
    ) -> None:
        """`write` settles a batch on a connection, or raises Refused."""
        self._link = beside.another(name="rowlock settle apart", deadline=_DEADLINE)
        self._write = write
        self._make_partitions = make_partitions
        self._parts: deque[_Part] = deque()
        self._some = asyncio.Event()
        self._made_at = 0.0
        self.good_at = 0.0  # by time.monotonic(): when something was settled at last

    @property
    def fault(self) -> tuple[str, float] | None:
        """What goes wrong here, and for how many seconds."""
        return self._link.fault

    def add(self, batch: Sequence[Finished]) -> None:
        """Settle this, apart."""
        self._put(_Part(batch, time.monotonic()))

    async def run(self) -> None:
        """Settle until cancelled."""
        try:
            await self._settle_all()
        finally:
            await self._link.close()

    async def _settle_all(self) -> None:
        while True:
            try:
                async with asyncio.timeout(_IDLE):
                    await self._some.wait()
            except TimeoutError:
                await self._link.close()
                await self._some.wait()
            self._some.clear()
            while self._parts:
                part = self._parts.popleft()
                try:
                    await self._write(self._link, part.batch)
                    self.good_at = time.monotonic()
                except Refused as error:
                    await self._failed(part, error)

    def _put(self, part: _Part) -> None:
        self._parts.append(part)
        self._some.set()

    async def _failed(self, part: _Part, error: Refused) -> None:
        if error.lacks_partition and time.monotonic() - self._made_at > _MAKE_EVERY:
            await self._make_partitions()
            self._made_at = time.monotonic()
            self._put(part)
        elif len(part.batch) > 1:
            middle = len(part.batch) // 2
            self._put(_Part(part.batch[:middle], part.since))
            self._put(_Part(part.batch[middle:], part.since))
        else:
            await self._failed_alone(part, error)

    async def _failed_alone(self, part: _Part, error: Refused) -> None:
        """Try again later, or give up as little as will do. Without a partition nothing else would do either."""
        part.failures += 1
        if not error.lacks_partition and (error.certain or part.failures >= self._enough(part, error)):
            [(row, outcome)] = part.batch
            if await self._give_up(row, outcome, error):
                return
        pause = min(_FIRST_PAUSE * 2 ** min(part.failures - 1, 16), _LONGEST_PAUSE)
        asyncio.get_running_loop().call_later(pause, self._put, part)

    def _enough(self, part: _Part, error: Refused) -> float:
        """After how many tries the job pays for it. If nothing else can be written, the server may be what is ill."""
        if self.good_at > part.since:
            return _TRIES
        return inf if error.unclear else _MOST_TRIES

    async def _give_up(self, row: ClaimedJob, outcome: Unsettled, error: Refused) -> bool:
        """End the job as failed; a job that cannot even end waits, and says why. False when that is refused, too."""
        for instead in _instead(row, outcome, error):
            try:
                await self._write(self._link, [(row, instead)])
            except Refused as refused:
                fault = "%s %s: PostgreSQL refuses to write %s, too (%s)"
                log.error(fault, row.task, row.id, type(instead).__name__, refused, extra=log_fields(row))  # noqa: TRY400
            else:
                became = "it has failed" if isinstance(instead, Failed) else "it is set aside: edit or cancel it"
                fault = "%s %s: PostgreSQL refuses its outcome (%s); %s"
                log.error(fault, row.task, row.id, error, became, extra=log_fields(row))
                return True
        return False


@dataclass(slots=True, eq=False)
class _Part:
    """A part of a batch, and how it has fared."""

    batch: Sequence[Finished]
    since: float
    failures: int = 0


def _instead(row: ClaimedJob, outcome: Unsettled, error: Refused) -> list[Unsettled]:
    """What may stand in for an outcome. A workflow that ends as failed is not undone any more: better it waits, and the
    next worker that starts tries again, from its record.
    """
    why = describe(error)
    if row.version is not None and not isinstance(outcome, Failed | Cancelled):
        return [Blocked("code", f"{REFUSES} its outcome: {why.message}"[:_LONGEST_REASON])]
    aside = Blocked("code", f"{REFUSES} to end it: {why.message}"[:_LONGEST_REASON])
    ends = isinstance(outcome, Succeeded | Failed | Cancelled)
    if (error.certain or ends) and not (isinstance(outcome, Failed) and outcome.reason == "refused"):
        return [Failed(why.to_json(), "refused"), aside]
    return [aside]


def is_aside(outcome: Unsettled) -> bool:
    """Whether it stands in for one that was refused."""
    return isinstance(outcome, Blocked) and outcome.reason.startswith(REFUSES)


# Tries of a claim before its jobs are claimed one by one, and how many of them are at a time.
TRIES = 2
SINGLY = 100
# That claims fail is said so often.
_TELL_EVERY = 60.0


class Singly:
    """Claims one by one; what cannot be claimed alone is set aside."""

    def __init__(
        self, *, link: ReconnectingConnection, take: Callable[[Sequence[ClaimedJob], int | None, float], None]
    ) -> None:
        """`take` takes in what was claimed, how many were asked for, and how long that took."""
        self._link = link
        self._take = take
        self._next_word = dict[str, float]()  # when to say again that something fails

    def tell(self, message: str, error: Refused) -> None:
        """Say that something fails, once a minute; `message` has a place for the error."""
        now = time.monotonic()
        if now >= self._next_word.get(message, 0.0):
            self._next_word[message] = now + _TELL_EVERY
            log.warning(message, error)

    async def claim(
        self,
        peek: Query[P],
        alone: Callable[[P], Candidate],
        *,
        goes_on: Callable[[], bool],
        asked: int | None = 1,
    ) -> int:
        """Claim what a look finds, each `alone`, as long as there is room for another; returns how many."""
        found, doubtful = 0, list[tuple[str, Refused]]()
        with suppress(Refused):
            for place in await self._link.run(peek, tries=TRIES):
                if not goes_on():
                    break
                found += await self._claim_one(alone(place), doubtful, asked)
            for job_id, fault in doubtful if found else ():  # others could be claimed: it is not the server that is ill
                await self._set_aside(job_id, fault)
        return found

    async def _claim_one(self, candidate: Candidate, doubtful: list[tuple[str, Refused]], asked: int | None) -> int:
        started = time.monotonic()
        job_id, query = candidate
        try:
            rows = await self._link.run(query, tries=TRIES)
        except Refused as error:
            if error.slow:
                raise
            if error.unclear:
                doubtful.append((job_id, error))
            else:
                await self._set_aside(job_id, error)
            return 0
        self._take(rows, asked, time.monotonic() - started)
        return len(rows)

    async def _set_aside(self, job_id: str, error: Refused) -> None:
        """Set one job aside; if that fails too, the others are claimed all the same."""
        try:
            moved = await self._link.run(
                claim_store.set_aside(job_id, reason=f"{REFUSES} to claim it: {error}"), tries=TRIES
            )
        except Refused as fault:
            if fault.slow:
                raise
            self.tell(f"{job_id} can neither be claimed nor set aside (%s); delete it", fault)
            return
        if moved:
            log.error("%s cannot be claimed (%s); it is set aside: edit, cancel or delete it", job_id, error)
