"""Reconcile: what the database says this worker holds, against what it knows of.

Claims whose answer was lost are held by a worker that does not know of them; attempts whose job was taken away go on
without knowing. What is so at two looks in a row is no matter of timing any more.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from rowlock.db.link import Link
from rowlock.db.steady import Steady
from rowlock.store import jobs, workers
from rowlock.worker.run import Runner

log = logging.getLogger("rowlock.worker")


class Reconciler:
    """The renewing thread looks; the loop, which alone knows what it knows, compares."""

    def __init__(self, *, worker: str, runner: Runner, link: Link) -> None:
        self._worker = worker
        self._runner = runner
        self._link = link
        self._loop = asyncio.get_running_loop()
        self._is_asked = False
        self._unknown: frozenset[str] = frozenset()
        self._missing: frozenset[str] = frozenset()
        self._giving_back: set[asyncio.Task[None]] = set()

    def look(self, connection: Steady) -> None:
        """Look once; not again before the loop has compared: a blocked one may not have read what it was answered."""
        if self._is_asked:
            return
        held = connection.run(workers.held(worker=self._worker))
        self._is_asked = True
        with suppress(RuntimeError):  # the loop is closed: its worker has left us behind
            self._loop.call_soon_threadsafe(self._compare, frozenset(held))

    def stop(self) -> None:
        """Give nothing back any more."""
        for task in self._giving_back:
            task.cancel()

    def _compare(self, held: frozenset[str]) -> None:
        self._is_asked = False
        known = frozenset(self._runner.held.tokens())
        unknown, missing = held - known, known - held
        if never_told := unknown & self._unknown:
            task = self._loop.create_task(self._give_back(never_told))
            self._giving_back.add(task)
            task.add_done_callback(self._giving_back.discard)
        if taken_away := missing & self._missing:
            self._runner.lost(taken_away)
        self._unknown, self._missing = unknown, missing

    async def _give_back(self, tokens: frozenset[str]) -> None:
        returned = await self._link.run(jobs.disown(tokens, worker=self._worker))
        if returned:
            log.warning("gave back %d jobs whose claim was not answered", len(returned))
