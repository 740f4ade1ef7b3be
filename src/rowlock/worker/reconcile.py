"""Reconciler: compares the jobs that the database says this worker holds with those it knows.

Claims whose reply was lost are held by a worker that does not know of them; attempts whose job was taken away go on
without knowing. A difference that two looks in a row find is no matter of timing any more. A job that somebody has
asked to cancel says so in its row; the notification is only a hint to look.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from rowlock.db.errors import Refused
from rowlock.db.safe_logger import SafeLogger
from rowlock.db.thread_connection import ReconnectingSyncConnection
from rowlock.db.worker_connection import ReconnectingConnection
from rowlock.store import jobs, workers
from rowlock.store.query import Query
from rowlock.store.workers import UNSEEN, Holding
from rowlock.worker.run import Runner

log = SafeLogger("rowlock.worker")

# Tries of a batch before it is halved.
_TRIES = 2

# The notification may be lost: so often we look by ourselves while anything is in hand.
_EVERY = 1.0
# Anybody may notify: no more often than this it makes us look.
_LEAST = 0.05


class Reconciler:
    """The renewing thread looks; the loop, which alone knows what it knows, compares."""

    def __init__(self, *, worker: str, runner: Runner, link: ReconnectingConnection) -> None:
        self._worker = worker
        self._runner = runner
        self._link = link
        self._loop = asyncio.get_running_loop()
        self._is_comparing = False
        self._last_held = UNSEEN  # at the last look; and what was known then
        self._unknown: frozenset[str] = frozenset()
        self._missing: frozenset[str] = frozenset()
        self._giving_back: set[asyncio.Task[None]] = set()

    def poll(self, connection: ReconnectingSyncConnection) -> None:
        """Look once; not again before the loop has compared: a blocked one may not have read the reply."""
        if self._is_comparing:
            return
        [held] = connection.run(workers.held(worker=self._worker, seen=self._last_held))
        self._is_comparing = True
        with suppress(RuntimeError):  # the loop is closed: its worker has left us behind
            self._loop.call_soon_threadsafe(self._compare, held)

    def hand_back(self, known: Iterable[str]) -> Query[str]:
        """Give back all that this worker holds but for the attempts with these tokens."""
        return workers.hand_back(worker=self._worker, known=known, seen=self._last_held)

    async def give_back_unknown(self, link: ReconnectingConnection) -> None:
        """Give back at once, over a connection that has just come back, what is held without being known of."""
        try:
            returned = await link.run(self.hand_back(self._runner.held.tokens()), tries=_TRIES)
        except Refused as error:  # claims do not wait for it: two looks find these, and they go back one by one
            log.error("jobs whose claim got no reply cannot be given back (%s)", error)  # noqa: TRY400
        else:
            _log_returned(returned)

    def stop(self) -> None:
        """Give nothing back any more."""
        for task in self._giving_back:
            task.cancel()

    def _compare(self, held: Holding) -> None:
        found = {token: job_id for job_id, token in held.attempts}
        known = {row.token: row.id for row in self._runner.held.rows()}
        unknown, missing = frozenset(found.keys() - known.keys()), frozenset(known.keys() - found.keys())
        if never_told := unknown & self._unknown:
            task = self._loop.create_task(self._give_back([(found[token], token) for token in never_told]))
            self._giving_back.add(task)
            task.add_done_callback(self._giving_back.discard)
        if taken_away := missing & self._missing:
            self._runner.lost(taken_away)
        self._unknown, self._missing = unknown, missing
        self._last_held = Holding([(job_id, token) for token, job_id in {**found, **known}.items()], held.since)
        self._is_comparing = False

    async def _give_back(self, attempts: Sequence[tuple[str, str]]) -> None:
        try:
            returned = await self._link.run(workers.disown(attempts, worker=self._worker), tries=_TRIES)
        except Refused as error:
            await self._give_back_halves(attempts, error)
            return
        _log_returned(returned)

    async def _give_back_halves(self, attempts: Sequence[tuple[str, str]], error: Refused) -> None:
        """Halved until what is refused stands alone; after the next look it is tried again."""
        if len(attempts) == 1:
            log.error("%s cannot be given back: PostgreSQL refuses it (%s)", attempts[0][0], error)
            return
        middle = len(attempts) // 2
        for half in (attempts[:middle], attempts[middle:]):
            await self._give_back(half)


def _log_returned(returned: Sequence[str]) -> None:
    if returned:
        log.warning("gave back %d jobs whose claim got no reply", len(returned))


class Canceller:
    """Looks when it is due, as a part of the settler's loop: `due` wakes it."""

    def __init__(self, *, worker: str, runner: Runner, due: Callable[[], None]) -> None:
        self.is_due = False
        self._worker = worker
        self._runner = runner
        self._due = due
        self._loop = asyncio.get_running_loop()
        self._looked = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Look from now on."""
        self._look_after(_EVERY)

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def notified(self) -> None:
        """Somebody says that there is something to cancel."""
        if self._timer is not None:
            self._look_after(max(0.0, self._looked + _LEAST - self._loop.time()))

    def _look_after(self, seconds: float) -> None:
        self.stop()
        self._timer = self._loop.call_later(seconds, self._look_now)

    def _look_now(self) -> None:
        if self._runner.held:
            self.is_due = True
            self._due()
        self._look_after(_EVERY)

    async def run_due(self, link: ReconnectingConnection) -> None:
        """Look, and pass it to the runner."""
        self.is_due = False
        self._looked = self._loop.time()
        try:
            tokens = await link.run(jobs.cancelling(worker=self._worker))
        except Refused as error:
            log.error("PostgreSQL does not say what to cancel (%s)", error)  # noqa: TRY400  PostgreSQL's refusal, not a fault of ours
            return
        if tokens:
            self._runner.cancel_jobs(tokens)
