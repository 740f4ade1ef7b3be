"""Singly: claim job by job where a claim fails again and again, so that one broken row does not stop the others."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from rowlock.db.link import Link, Refused
from rowlock.model.row import Claimed
from rowlock.store import jobs
from rowlock.store.query import Query
from rowlock.worker.aside import REFUSES

log = logging.getLogger("rowlock.worker")

# Tries of a claim before its jobs are claimed one by one, and how many of them are at a time.
TRIES = 2
SINGLY = 100
# That claims fail is said so often.
_TELL_EVERY = 60.0

P = TypeVar("P")

# A job's id, and the claim of that one alone.
Candidate = tuple[str, Query[Claimed]]


class Singly:
    """Claims one by one; what cannot be claimed alone is set aside."""

    def __init__(self, *, link: Link, take: Callable[[Sequence[Claimed], int | None, float], None]) -> None:
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
        """Claim what a look finds, each `alone`, as long as there is room for another; answers how many."""
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
            moved = await self._link.run(jobs.set_aside(job_id, reason=f"{REFUSES} to claim it: {error}"), tries=TRIES)
        except Refused as fault:
            if fault.slow:
                raise
            self.tell(f"{job_id} can neither be claimed nor set aside (%s); delete it", fault)
            return
        if moved:
            log.error("%s cannot be claimed (%s); it is set aside: edit, cancel or delete it", job_id, error)
