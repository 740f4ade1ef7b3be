"""Queues: which a worker serves, from which place on, and hints of new jobs."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from math import inf
from operator import itemgetter

from rowlock.db.safe_logger import SafeLogger
from rowlock.db.worker_connection import ReconnectingConnection
from rowlock.errors import InvalidOption
from rowlock.model.ids import NIL
from rowlock.model.names import check_queue
from rowlock.model.row import ClaimedJob
from rowlock.model.spec import DEFAULT_QUEUE, Handler
from rowlock.store import queues as queue_store
from rowlock.store import workers
from rowlock.store.claim import PRIORITIES, Lane

log = SafeLogger("rowlock.worker")

# Every queue that there is.
ALL = "*"

_MOST_TASKS = 3  # that a line names for a queue


class Queues:
    """A worker's queues: strict (each only when those before it are empty) or weighted (by chance, in proportion).

    `*` is all queues, also those that nobody has used yet, and each as likely as the others to be looked into first.
    """

    def __init__(self, queues: Sequence[str] | Mapping[str, float], *, declared: Iterable[str] = ()) -> None:
        """`declared` are the queues of the app's tasks, which `*` looks into whether or not there are jobs."""
        self.is_all = tuple(queues) == (ALL,)
        self._declared = tuple(sorted({DEFAULT_QUEUE, *declared}))
        if self.is_all:
            queues = dict.fromkeys(self._declared, 1.0)
        self.names = tuple(check_queue(name) for name in queues)
        if not self.names or len(set(self.names)) < len(self.names):
            raise InvalidOption(f"{queues!r} must name at least one queue, and each once")
        self._weights = dict(queues) if isinstance(queues, Mapping) else None
        if self._weights is not None and not all(weight > 0 for weight in self._weights.values()):
            raise InvalidOption(f"{queues!r}: every weight must be more than zero")

    def __str__(self) -> str:
        return "all queues" if self.is_all else ", ".join(self.names)

    def knows(self, found: Iterable[str]) -> bool:
        """For `*`: whether these are the queues that have jobs, as far as it knows."""
        return self.names == self._with(found)

    def _with(self, found: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted({*self._declared, *found}))

    def learn(self, found: Iterable[str]) -> None:
        """For `*`: these have jobs now. Those that have none any more are not looked into."""
        self.names = self._with(found)
        self._weights = dict.fromkeys(self.names, 1.0)

    def order(self) -> Sequence[str]:
        """The order in which to look this time."""
        if self._weights is None:
            return self.names
        # The largest of u^(1/w) picks each queue with a chance proportional to its weight.
        draws = {name: random.random() ** (1 / weight) for name, weight in self._weights.items()}
        return sorted(self.names, key=draws.__getitem__, reverse=True)


def tasks_by_queue(handlers: Mapping[str, Handler]) -> dict[str, list[str]]:
    """The queues of these tasks, each with the names of its tasks."""
    places: dict[str, list[str]] = {}
    for handler in handlers.values():
        tasks = places.setdefault(handler.spec.queue, [])
        if handler.spec.name not in tasks:  # under an alias, or as another version
            tasks.append(handler.spec.name)
    return places


async def warn_of_unserved_queues(
    handlers: Mapping[str, Handler], mine: Queues, link: ReconnectingConnection, *, worker: str
) -> None:
    """Say at the start which queues of the app's tasks this worker leaves alone; a warning if nobody serves them."""
    places = tasks_by_queue(handlers)
    others = sorted(places.keys() - set(mine.names))
    if not others:
        return
    served = set(await link.run(workers.serving(queues=others, but=worker)))
    if elsewhere := [queue for queue in others if queue in served]:
        log.info("other workers look into %s, where tasks of this app are, too", ", ".join(elsewhere))
    if nowhere := [queue for queue in others if queue not in served]:
        log.warning(
            "no worker looks into %s: jobs there wait. Give this worker --queues %s, or --queues '*' for all queues",
            "; ".join(f"{queue}, where {_listed(places[queue])} {_is(places[queue])}" for queue in nowhere),
            ",".join([*mine.names, *nowhere]),
        )


def _listed(tasks: list[str]) -> str:
    shown = ", ".join(tasks[:_MOST_TASKS])
    return shown if len(tasks) <= _MOST_TASKS else f"{shown} and {len(tasks) - _MOST_TASKS} more tasks"


def _is(tasks: list[str]) -> str:
    return "is" if len(tasks) == 1 else "are"


# Late commits and moved jobs land below the floor. A look from the bottom takes 0.3 ms on a healthy table and 160 ms
# among 300,000 dead rows, so it is repeated after a pause of many times what it took: how many, and how long at most.
# An idle worker has nothing better to do; a busy one would lose a sixth of its time to a look every second.
_IDLE_PAUSE = (10.0, 1.0)
_BUSY_PAUSE = (20.0, 10.0)
# Six idle workers with a look a second took two thirds of a core after a million jobs under a held snapshot. From here
# on one worker looks for the fleet and tells the others where a job waits; their own looks become rare.
_DEAR = 0.004
_DEAR_PAUSE = (100_000.0, 3_600.0)
_ASKED_PAUSE = (20.0, 10.0)
# One slow look may be the machine's fault, but not if it took so many seconds.
_DEAR_LOOKS = 2
_NO_CHANCE = 1.0


class Floors:
    """Where this process's last claim in each lane ended: under a held snapshot, all below is dead but not gone."""

    def __init__(self) -> None:
        self._floors: dict[tuple[str, int], tuple[str, str]] = {}
        self._hints: dict[tuple[str, int], tuple[str, str]] = {}
        self._looked_at = 0.0
        self._look_took = 0.0
        self._dear_looks = 0
        self._is_asked = False

    def forget(self) -> None:
        """Start over: after a step back of the database's clock, what is enqueued would lie below."""
        self._floors.clear()
        self._hints.clear()

    def lanes(self, queues: Iterable[str], *, below: bool) -> list[Lane]:
        """The lanes to look into, in order; from the bottom if `below`, or from where we were told to look."""
        if below and not self._hints:
            return [Lane(queue, priority) for queue in queues for priority in PRIORITIES]
        floors = {**self._floors, **self._hints} if below else self._floors
        return [
            Lane(queue, priority, *floors.get((queue, priority), ())) for queue in queues for priority in PRIORITIES
        ]

    def until_look_below(self, now: float, *, idle: bool) -> float:
        """How long until it is time for a look from the bottom; 0 when it is."""
        if self._hints:
            return 0.0
        factor, longest = _IDLE_PAUSE if idle else _BUSY_PAUSE
        if self.are_dear:
            factor, longest = _ASKED_PAUSE if self._is_asked else _DEAR_PAUSE
        return max(0.0, self._looked_at + min(factor * self._look_took, longest) - now)

    def looked_below(self, now: float, took: float, rows: Sequence[ClaimedJob] = ()) -> None:
        """A look from the bottom has been taken, and how long it took. After `rows`, in order, there may be more."""
        if self._hints:  # that was no look from the bottom
            places = {(row.queue, row.priority): (row.run_at, row.id) for row in rows}
            self._hints = {lane: places[lane] for lane in self._hints if places.get(lane, _TOP) < self._floors[lane]}
            return
        self._looked_at, self._look_took = now, took
        self._dear_looks = 0 if took < _DEAR else self._dear_looks + (1 if took < _NO_CHANCE else _DEAR_LOOKS)
        self._is_asked = False

    def look_below_soon(self) -> None:
        """Somebody says that there is something below."""
        if self.are_dear:
            self._is_asked = True
        else:
            self._look_took = 0.0

    def looked_for_all(self, took: float) -> None:
        """The thread that renews has looked from the bottom for the fleet: the latest word on what that takes."""
        self._look_took = took

    @property
    def are_dear(self) -> bool:
        """Whether looks from the bottom have become so dear that one worker takes them for all."""
        return self._dear_looks >= _DEAR_LOOKS

    @property
    def is_hinted(self) -> bool:
        """Whether we were told of a job below a floor."""
        return bool(self._hints)

    @property
    def is_proven(self) -> bool:
        """Whether looks from the bottom are known to be cheap."""
        return self._looked_at > 0 and self._look_took < _DEAR

    @property
    def took(self) -> float:
        """How long the last look from the bottom took."""
        return self._look_took

    def hint(self, queue: str, priority: int, run_at: str, job_id: str) -> None:
        """Somebody says that a job waits here. Only a floor above it is of interest: nobody else's word raises one."""
        floor = self._floors.get((queue, priority))
        if floor is not None and (run_at, job_id) <= floor:
            self._hints[queue, priority] = (run_at, NIL)

    def settle(self, queues: Iterable[str], run_at: str) -> None:
        """Nothing is due in any lane of these, so all that there was before this time is dead."""
        for queue in queues:
            for priority in PRIORITIES:
                floor = self._floors.get((queue, priority))
                if floor is None or floor[0] < run_at:
                    self._floors[queue, priority] = (run_at, NIL)

    def raise_to(self, rows: Iterable[ClaimedJob]) -> None:
        """Remember how far these claims went. Times compare as text: the session writes them in ISO form and in UTC."""
        floors = self._floors
        for row in rows:
            lane = (row.queue, row.priority)
            place = (row.run_at, row.id)
            floor = floors.get(lane)
            if floor is None or place > floor:
                floors[lane] = place


_TOP = ("infinity", NIL)
_PLACE = itemgetter(ClaimedJob._fields.index("run_at"), ClaimedJob._fields.index("id"))


def in_order(rows: list[ClaimedJob], lanes: Sequence[Lane]) -> None:
    """Put claimed jobs into the order of their lanes, and of their places within: UPDATE returns them in any order."""
    rows.sort(key=_PLACE)
    if len({(row.queue, row.priority) for row in rows}) > 1:
        rank = {(lane.queue, lane.priority): number for number, lane in enumerate(lanes)}
        rows.sort(key=lambda row: rank[row.queue, row.priority])


# Hints: what a worker sends beside its claims, and can do without. What is wrong with such a statement alone, a lock on
# `parkings` or a look that is late, must not stop claims: each is tried once, and takes at most this share of the time.
_SHARE = 0.02

# An enqueue finds the last 400 parkings. A worker that is so many behind, or is never so idle that it learns how many
# there have been since, sees if another is found in its place, else it parks anew; once in so many seconds.
_BEHIND = 200
_RENEW_EVERY = 10.0
# One that cannot park tries again after so many seconds.
_PARK_AFTER = 1.0


class Parking:
    """How a worker that finds nothing asks to be notified of new jobs. If it cannot, it looks once a second."""

    def __init__(self, *, link: ReconnectingConnection, worker: str) -> None:
        self._link = link
        self._worker = worker
        self.is_parked = False
        self._number = 0  # of our last parking
        self._renew_at = inf
        self._retry_at = 0.0

    @property
    def is_possible(self) -> bool:
        """Whether it is worth trying: not where no notification comes in, nor soon after it has failed."""
        return self._link.hears and time.monotonic() >= self._retry_at

    async def park(self, queues: Iterable[str]) -> None:
        """Ask to be notified of new jobs; when parked, see that we still are."""
        started = time.monotonic()
        query = workers.park(worker=self._worker, queues=queues, before=self._number, renews=self.is_parked)
        numbers = await self._link.try_once(query)
        self.is_parked = numbers is not None
        if numbers is None:
            self._failed(started)
        else:
            [self._number] = numbers
            self._renew_at = time.monotonic() + _RENEW_EVERY

    def is_old(self, *, latest: float = inf) -> bool:
        """Whether it is time to see if we still are; `latest` is the number of the latest parking, if it is known."""
        return self.is_parked and latest - self._number >= _BEHIND and time.monotonic() >= self._renew_at

    async def unpark(self, queues: Iterable[str]) -> None:
        """Ask not to be notified any more. If that fails, we are notified in vain until we park again."""
        self.is_parked = False
        started = time.monotonic()
        query = workers.unpark(worker=self._worker, queues=queues, number=self._number)
        if await self._link.try_once(query) is None:
            self._failed(started)

    def _failed(self, started: float) -> None:
        took = time.monotonic() - started
        self._retry_at = started + took + max(_PARK_AFTER, took / _SHARE)


# How often a worker of all queues looks for new ones, which lie between those that it knows.
_SEARCH_EVERY = 1.0
# How often it looks whether those that it knows have jobs. That look walks all that is dead in them under a held
# snapshot, 0.2 s for a million jobs, and forgetting a queue saves little: so it may take a much smaller share.
_ANEW_EVERY = 60.0
_ANEW_SHARE = 0.0005
_ANEW_AT_LEAST_EVERY = 900.0
# What is dead in a forgotten queue is walked by each look for new ones: after so dear a look, no queue is forgotten.
_DEAR_SEARCH = 0.02


class QueueSearch:
    """How a worker of all queues finds those that it does not know, and forgets those that have no jobs any more.

    Where a look fails or is late, it goes on with those that it knows.
    """

    def __init__(self, *, link: ReconnectingConnection, queues: Queues, parking: Parking, worker: str) -> None:
        self._link = link
        self._queues = queues
        self._parking = parking
        self._worker = worker
        self._told = queues.names  # the queues on the worker's row
        self._next = 0.0 if queues.is_all else inf
        # The first look, too, leaves out the queues of our tasks: what is dead there must not hold up a start.
        self._next_anew = time.monotonic() + _ANEW_EVERY

    @property
    def is_due(self) -> bool:
        """Whether it is time for a look."""
        return time.monotonic() >= self._next

    async def refresh(self) -> bool:
        """Whether it has changed which queues we look into."""
        started = time.monotonic()
        found = await self._find(started)
        changed = found is not None and not self._queues.knows(found) and await self._learn(found)
        if self._told != self._queues.names:
            told = await self._link.try_once(workers.serve(worker=self._worker, queues=self._queues.names))
            self._told = self._told if told is None else self._queues.names
        ended = time.monotonic()
        self._next = ended + max(_SEARCH_EVERY, (ended - started) / _SHARE)
        return changed

    async def _find(self, started: float) -> Sequence[str] | None:
        anew, known = started >= self._next_anew, self._queues.names
        found = await self._link.try_once(queue_store.used(() if anew else known))
        took = time.monotonic() - started
        if anew:
            self._next_anew = started + took + min(max(_ANEW_EVERY, took / _ANEW_SHARE), _ANEW_AT_LEAST_EVERY)
        return found if found is None or (anew and took < _DEAR_SEARCH) else [*known, *found]

    async def _learn(self, found: Sequence[str]) -> bool:
        new = sorted({*found} - {*self._queues.names})
        channels = await self._link.try_once(queue_store.channels(new)) if new else []
        if channels is None:
            return False
        if self._parking.is_parked:
            await self._parking.unpark(self._queues.names)  # from those before
        self._queues.learn(found)
        if channels:
            await self._link.listen_to(channels)
        return True


_BACKLOG = "backlog"
_BACKLOG_EVERY = timedelta(minutes=15)
# A look over a million dead rows takes 75 ms, from memory.
_PATIENCE = 300.0


class BacklogSearch:
    """The look for jobs from before this worker began, where one from the bottom takes longer than a statement may.

    One worker of the fleet takes it, on a connection of its own and with more patience, and notifies all of the places
    where jobs wait. Each of them claims from there on, until there is nothing more.
    """

    def __init__(self, *, link: ReconnectingConnection) -> None:
        self._link = link.another(name="rowlock look", deadline=_PATIENCE)
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Look, unless we are at it, or another worker has looked recently."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._search_once())

    async def close(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _search_once(self) -> None:
        try:
            turns = await self._link.try_once(workers.take_turn(_BACKLOG, every=_BACKLOG_EVERY))
            if turns and turns[0].ours and await self._link.try_once(queue_store.tell()) is not None:
                await self._link.try_once(workers.finish_duty(_BACKLOG))
        finally:
            await self._link.close()
