"""Claimer: asks, once per process, for as many jobs as there is room for.

LISTEN first, then drain, then wait. Notifications are hints: they may be lost or late, and the poll is the bound.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from math import inf
from uuid import UUID

from rowlock.db.errors import Lost, Refused
from rowlock.db.safe_logger import SafeLogger
from rowlock.db.worker_connection import ReconnectingConnection
from rowlock.model.row import ClaimedJob
from rowlock.store import claim, queues, schema
from rowlock.store.claim import Lane
from rowlock.worker.counts import Counts
from rowlock.worker.queues import BacklogSearch, Floors, Parking, Queues, QueueSearch, in_order
from rowlock.worker.reconcile import Reconciler
from rowlock.worker.refused import SINGLY, TRIES, Singly
from rowlock.worker.run import Runner

log = SafeLogger("rowlock.worker")

# An enqueue that looked for parked workers before we parked may commit after our first look: look again, then poll.
_LOOKS_AFTER_PARKING = (0.02, 0.08, 0.32)
_POLL = 1.0
# Longer than any poll: what is due later is asked for again before.
_WITHIN = timedelta(seconds=10)
# While we are parked every enqueue notifies, under a lock that is global until its commit. A worker that keeps finding
# jobs looks by itself: after so many claims in a row it leaves, and it parks again after a while without any. (If it
# parked at once, a stream would choke: notifying slows the producers, so the worker finds nothing, so it stays parked.)
_BUSY_STREAK = 8
_STREAK_GAP = 0.02
_LOOKS_BEFORE_PARKING = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032)
# No claim follows a look from the bottom that took so many seconds; and where one was given up, only what has become
# due recently is looked at.
_LATE = 1.0
_RECENT = timedelta(minutes=1)
# A worker without room leaves after so long.
_FULL_FOR = 0.1
_TAKE_UP_EVERY = 5.0
# Each time, all jobs that were refused here are walked, on the connection that claims: at most this share of its time.
_TAKE_UP_SHARE = 0.02
# A worker that sets a suspect aside notifies the others; that may get lost, so they look for suspects this often.
_SUSPECT_EVERY = 10.0
# After so long without a word it is time to ask when the next job is due. Asked at once, it got into the way of the
# settle of the job that was just claimed, on another connection.
_CALM = 0.1
# Anybody who can connect to the database can notify us, as often as they like. After so many notifications in a row
# that led to nothing, two looks are at least so long apart.
_HOLLOW_HINTS = 5
_HINT_GAP = 0.02


class Claimer:
    """The loop that claims."""

    def __init__(
        self,
        *,
        link: ReconnectingConnection,
        queues: Queues,
        tasks: Sequence[str],
        worker: str,
        runner: Runner,
        reconciler: Reconciler,
        counts: Counts,
        unfit: Callable[[], object],
    ) -> None:
        """`unfit` says why this code can use the schema no more: then nothing is claimed, until it can."""
        self._link = link
        self._queues = queues
        self._tasks = tasks
        self._worker = worker
        self._runner = runner
        self._reconciler = reconciler
        self._counts = counts
        self._singly = Singly(link=link, take=self._take)
        self._unfit = unfit
        self.floors = Floors()
        self._wake = asyncio.Event()
        self._stopping = False
        self._idle = True
        self._looked_below = True
        self._parking = Parking(link=link, worker=worker)
        self._search = QueueSearch(link=link, queues=queues, parking=self._parking, worker=worker)
        self._backlog = BacklogSearch(link=link)
        self._looks: list[float] = []
        self._streak = 0
        self._hollow = 0  # notifications in a row for which nothing was found
        self._claimed_at = self._next_take_up = self._next_suspect = 0.0
        runner.held.suspect_ended = self._suspect_ended
        runner.held.suspect_set_aside = lambda: self.notified("suspect")
        link.on_reconnect(self._reconnected)

    async def run(self) -> None:
        """Claim until stopped."""
        try:
            while room := await self._room():
                self._wake.clear()
                found = await self._claim_suspect()
                if found < room:
                    found += await self._claim(room - found)
                await self._rest(found=found, room=room)
        finally:
            await self._backlog.close()

    def stop(self) -> None:
        """Claim no more. One that is under way is let finish: cancelled, it might be committed after we have left."""
        self._stopping = True
        self._wake.set()

    def notified(self, payload: str) -> None:
        """A notification came: `below` when something has come back below the floor."""
        if payload == "below":
            self.floors.look_below_soon()
        elif payload.startswith("at "):
            self._hinted(payload.removeprefix("at "))
        elif payload == "suspect":
            self._next_suspect = 0.0
        self._wake.set()

    def _hinted(self, place: str) -> None:
        """Another worker has looked from the bottom for us; anybody who can connect can say so, so check it."""
        try:
            queue, priority, run_at, job_id = json.loads(place)
            datetime.fromisoformat(run_at)
            self.floors.hint(str(queue), int(priority), run_at, str(UUID(job_id)))
        except (ValueError, TypeError, AttributeError):
            log.warning("somebody notifies us of a place that makes no sense: %.200r", place)

    def clock_was_set_back(self) -> None:
        """Look from the bottom at once, and forget the floors."""
        self.floors.forget()
        self._wake.set()

    async def park(self) -> None:
        """Ask to be notified of new jobs."""
        await self._parking.park(self._queues.names)
        self._looks = list(_LOOKS_AFTER_PARKING)

    async def unpark(self) -> None:
        """Ask not to be notified any more."""
        self._looks = list(_LOOKS_BEFORE_PARKING)
        await self._parking.unpark(self._queues.names)

    async def _room(self) -> int:
        """Wait until there is room for a claim worth its round trip; none when we are to stop."""
        while not self._stopping:
            if self._unfit():
                await self._link.rest(self._wake, _POLL)  # notifications have to be read all the same
                self._wake.clear()
            elif (room := self._runner.room()) > 0:
                return room
            elif not await self._runner.wait_for_room(_FULL_FOR) and self._parking.is_parked:
                await self.unpark()
        return 0

    async def _claim_suspect(self) -> int:
        """One at a time, and before other jobs: a busy worker never runs out of those."""
        started = time.monotonic()
        if started < self._next_suspect or not self._runner.wants_suspect:
            return 0
        try:
            query = claim.claim_suspect(queues=self._queues.names, worker=self._worker)
            rows = await self._link.run(query, tries=TRIES)
        except Refused as error:  # other jobs do not wait for that
            found = await self._claim_suspects_singly(error)
        else:
            self._take(rows, None, time.monotonic() - started)
            found = len(rows)
        self._next_suspect = 0.0 if found else time.monotonic() + _SUSPECT_EVERY
        return found

    async def _claim_suspects_singly(self, error: Refused) -> int:
        self._singly.tell("PostgreSQL refuses to let a suspect be claimed (%s); claiming them one by one", error)
        queues = self._queues.names
        return await self._singly.claim(
            claim.peek_suspects(queues=queues, limit=SINGLY),
            lambda job_id: (job_id, claim.claim_suspect(queues=queues, worker=self._worker, only=job_id)),
            goes_on=lambda: not self._stopping and self._runner.wants_suspect,
            asked=None,
        )

    def _suspect_ended(self) -> None:
        if not self._next_suspect:  # there may be another
            self._wake.set()

    async def _claim(self, room: int) -> int:
        if self._search.is_due:
            await self._search.refresh()
        started = self._claimed_at = time.monotonic()
        if self.floors.are_dear and not self._link.hears:
            self.floors.look_below_soon()  # behind a pooler nobody tells us anything
        below = not self.floors.until_look_below(started, idle=self._idle)
        if below and not self.floors.is_hinted:
            below = await self._can_look_below(started)
        lanes = self.floors.lanes(self._queues.order(), below=below)
        try:
            rows = await self._link.run(
                claim.claim(lanes=lanes, limit=room, worker=self._worker, free=self._runner.free()), tries=TRIES
            )
        except Refused as error:
            if below:  # perhaps it takes too long: look from the floors first
                self.floors.looked_below(time.monotonic(), time.monotonic() - started)
            self._looked_below = below
            return await self._claim_singly(lanes, error)
        ended = time.monotonic()
        in_order(rows, lanes)
        if below:
            self.floors.looked_below(ended, ended - started, rows if len(rows) == room else ())
        self._looked_below = below
        self._idle = not rows
        self.floors.raise_to(rows)
        self._take(rows, room, ended - started)  # before anything else is waited for
        if started < self._next_take_up or len(rows) == room:
            return len(rows)
        taken = await self._take_up(room - len(rows))
        looked = time.monotonic()
        self._next_take_up = looked + max(_TAKE_UP_EVERY, (looked - ended) / _TAKE_UP_SHARE)
        return len(rows) + taken

    async def _claim_singly(self, lanes: Sequence[Lane], error: Refused) -> int:
        self._singly.tell("PostgreSQL refuses a claim (%s); claiming job by job", error)
        return await self._singly.claim(
            claim.peek(lanes=lanes, limit=SINGLY),
            lambda place: (
                str(UUID(int=UUID(place.id).int + 1)),
                claim.claim(lanes=[place], limit=1, worker=self._worker, free=self._runner.free()),
            ),
            goes_on=lambda: not self._stopping and self._runner.room() > 0,
        )

    async def _can_look_below(self, started: float) -> bool:
        """Whether a claim may start at the bottom. Where that may be dear, a look that claims nothing goes first: it is
        given up when it is late, while a claim would be sent again and again, with nothing else claimed meanwhile.
        """
        if self.floors.is_proven:
            return True
        lanes = self.floors.lanes(self._queues.names, below=True)
        try:
            [outlook] = await self._link.once(queues.due_in(lanes, within=timedelta(0)))
        except Lost as error:
            if not error.slow:  # the connection broke, which says nothing of the look
                return False
            self.floors.looked_below(time.monotonic(), max(_LATE, time.monotonic() - started))
            log.warning(
                "a look at all that the queues hold is too slow (%s): jobs that became due while nobody looked wait "
                "for one that may take minutes; something holds back vacuum, rowlock doctor says what",
                error,
            )
            for now in await self._link.try_once(schema.now()) or ():
                self.floors.settle(self._queues.names, str(now - _RECENT))
                self._backlog.begin()
            return False
        took = time.monotonic() - started
        self.floors.looked_below(time.monotonic(), took)
        if outlook.due_in is None:
            self.floors.settle(self._queues.names, outlook.settled)
        return outlook.due_in is not None and took < _LATE

    async def _take_up(self, room: int) -> int:
        started = time.monotonic()
        queues, tasks, worker = self._queues.names, self._tasks, self._worker
        try:
            query = claim.take_up(queues=queues, tasks=tasks, limit=room, worker=worker)
            rows = await self._link.run(query, tries=TRIES)
        except Refused as error:
            self._singly.tell("PostgreSQL refuses to let jobs that wait for code be taken up (%s); one by one", error)
            return await self._singly.claim(
                claim.peek_refused(queues=queues, tasks=tasks, limit=min(room, SINGLY), worker=worker),
                lambda job: (job, claim.take_up(queues=queues, tasks=tasks, limit=1, worker=worker, only=job)),
                goes_on=lambda: not self._stopping and self._runner.room() > 0,
            )
        if rows:
            self._take(rows, room, time.monotonic() - started)
        return len(rows)

    def _take(self, rows: Sequence[ClaimedJob], asked: int | None, round_trip: float) -> None:
        if rows:
            self._counts.claimed(rows, round_trip)
        self._runner.take(rows, asked=asked, round_trip=round_trip)

    async def _rest(self, *, found: int, room: int) -> None:
        """Look again at once while there is more; when there is nothing for a while, park, look once more, and wait."""
        if found:
            self._hollow = 0
            self._streak += 1
            if self._parking.is_parked and self._streak >= _BUSY_STREAK:
                await self.unpark()
            if not self._parking.is_parked:
                self._looks = list(_LOOKS_BEFORE_PARKING)
            if found == room or not self._parking.is_parked:
                return
            if self._parking.is_old():
                await self.park()
        elif not self._parking.is_parked and not self._looks and self._parking.is_possible:
            self._streak = 0
            await self.park()
            return
        resting = time.monotonic()
        if self._looks:
            woken = await self._link.rest(self._wake, self._soon(self._looks.pop(0), found=found))
        else:
            woken = await self._doze(found=found)
        self._hollow = self._hollow + 1 if woken and not found else 0
        if self._hollow > _HOLLOW_HINTS:
            await asyncio.sleep(_HINT_GAP)
        if time.monotonic() - resting > _STREAK_GAP:
            self._streak = 0

    def _soon(self, pause: float, *, found: int) -> float:
        """At most so long: what woke us may lie below the floor, and it may be too early yet to look there."""
        if found or self._knows_below:
            return pause
        return min(pause, self.floors.until_look_below(time.monotonic(), idle=True))

    @property
    def _knows_below(self) -> bool:
        """Whether nothing is to be found below the floors by looking: we have looked, or another does it for us."""
        return self._looked_below or (self.floors.are_dear and not self.floors.is_hinted)

    async def _doze(self, *, found: int) -> bool:
        """Rest until we are woken, or something is due: once a second, a look that claims nothing. True when woken."""
        if await self._link.rest(self._wake, self._soon(_CALM, found=found)):
            return True
        wait = await self._due_in()
        if wait <= 0:
            if -wait < time.monotonic() - self._claimed_at:  # it was not due yet when we claimed
                return False
            wait = inf  # and yet the claim has not found it: it is locked, or was taken by another worker
        while True:
            pause = self._soon(_POLL * random.uniform(0.8, 1.0), found=found)  # jitter
            if await self._link.rest(self._wake, max(0.0, min(wait, pause))):
                return True
            if self._search.is_due and await self._search.refresh():
                return False
            if wait <= pause or time.monotonic() >= self._next_take_up or not self._knows_below:
                return False
            wait = await self._due_in()

    async def _due_in(self) -> float:
        """The seconds until the next job is due, as far as we need to know it."""
        below = self._looked_below and not self.floors.are_dear
        lanes = self.floors.lanes(self._queues.names, below=below)
        try:
            [outlook] = await self._link.run(queues.due_in(lanes, within=_WITHIN), tries=TRIES)
        except Refused as error:
            self._singly.tell("PostgreSQL refuses to say when the next job is due (%s); claiming every second", error)
            return _POLL / 2
        if outlook.due_in is None or outlook.due_in > 0:
            self.floors.settle(self._queues.names, outlook.settled)
        if self._parking.is_old(latest=outlook.parking):
            await self.park()
        return inf if outlook.due_in is None else outlook.due_in

    async def _reconnected(self) -> None:
        """A claim whose reply was lost may have been committed: give back what we do not know of; then park again."""
        await self._reconciler.give_back_unknown(self._link)
        self._parking.is_parked = False
        self._looks = []
        self.floors.look_below_soon()
        self._wake.set()
