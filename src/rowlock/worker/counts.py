"""Counts: what this worker did, minute by minute, for rates and durations.

The event loop counts and the renewing thread writes, without a lock: the loop alone changes a count, the thread writes
a copy, and what it has just missed it writes the next time.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice
from math import inf

from rowlock.db.safe_logger import SafeLogger
from rowlock.db.thread_connection import ReconnectingSyncConnection
from rowlock.model.outcome import Cancelled, Failed, Outcome, Retried, Succeeded
from rowlock.model.row import ClaimedJob
from rowlock.model.stats.histogram import BOUNDS, BUCKETS
from rowlock.store.stats import minutes
from rowlock.store.stats.minutes import Claims, Tally

log = SafeLogger("rowlock.worker")

# Rows that a minute may have. Jobs of unknown tasks are claimed too, and of made-up names there may be any number.
_MOST_PAIRS = 1_000
# Minutes that are kept through an outage.
_MOST_MINUTES = 60

# Jobs that were claimed, or attempts that ended, alike, in one flat list, which is quickest to count in: how many in
# each bucket of how long they waited or took, then their seconds, together and at most.
_SECONDS = BUCKETS
_LONGEST = BUCKETS + 1
_NONE = [0.0] * (BUCKETS + 2)

Pair = tuple[str, str]
OutcomeKind = tuple[str, str, type[Outcome]]


class _Minute:
    """What was counted in one minute, which ends at `ends` by time.perf_counter()."""

    __slots__ = ("claimed", "claims", "ended", "ends", "number")

    def __init__(self, number: int, ends: float) -> None:
        self.number = number
        self.ends = ends
        self.claims = Claims(0, 0, 0.0, 0.0)
        self.claimed: dict[Pair, list[float]] = {}
        self.ended: dict[OutcomeKind, list[float]] = {}

    def tallies(self) -> list[Tally]:
        """Its rows, to be written."""
        claimed, ended = self.claimed.copy(), self.ended.copy()
        pairs = dict.fromkeys([*((queue, task) for queue, task, _ in ended), *claimed])
        return [_tally(self.number, pair, claimed.get(pair, _NONE), ended) for pair in islice(pairs, _MOST_PAIRS)]


class Counts:
    """What a worker counts. Minutes are the database's: its time, read at every write, is carried on from there."""

    def __init__(self, worker: str) -> None:
        self._worker = worker
        self._offset = 0.0
        self._minute = _Minute(0, inf)
        self._past: deque[_Minute] = deque(maxlen=_MOST_MINUTES)
        self._written: set[Tally] = set()
        self._claims = self._minute.claims
        self._logged = 0  # the number of the last minute whose totals are in the log

    def begin(self, now: float) -> None:
        """Start counting, when it is `now` in the database, in seconds since 1970."""
        self._offset = now - time.perf_counter()
        self._minute = self._minute_at(time.perf_counter())

    # On the event loop: for a job they take 0.4 and 0.45 µs, where a call of an empty method takes 0.13 µs. (Before it
    # counted waits, the first took 0.2. To group jobs that wait alike, and add up each group at once, was no faster.)

    def claimed(self, rows: Sequence[ClaimedJob], took: float) -> None:
        """A claim has found these jobs."""
        minute = self._now(time.perf_counter())
        for row in rows:
            alike = minute.claimed.get((row.queue, row.task))
            if alike is None:
                alike = minute.claimed.setdefault((row.queue, row.task), _NONE.copy())
            waited = row.waited
            alike[bisect_right(BOUNDS, waited)] += 1
            alike[_SECONDS] += waited
            if waited > alike[_LONGEST]:  # noqa: PLR1730  as below
                alike[_LONGEST] = waited
        claims, claimed, seconds, slowest = minute.claims
        minute.claims = Claims(claims + 1, claimed + len(rows), seconds + took, max(slowest, took))

    def ended(self, row: ClaimedJob, outcome: Outcome, took: float, now: float) -> None:
        """An attempt has ended, `now` by time.perf_counter()."""
        minute = self._minute if now < self._minute.ends else self._now(now)
        alike = minute.ended.get((row.queue, row.task, outcome.__class__))
        if alike is None:
            alike = minute.ended.setdefault((row.queue, row.task, outcome.__class__), _NONE.copy())
        alike[bisect_right(BOUNDS, took)] += 1
        alike[_SECONDS] += took
        if took > alike[_LONGEST]:  # noqa: PLR1730  max() takes five times as long
            alike[_LONGEST] = took

    def _now(self, now: float) -> _Minute:
        if now >= self._minute.ends:
            self._past.append(self._minute)
            self._minute = self._minute_at(now)
        return self._minute

    def _minute_at(self, now: float) -> _Minute:
        # Never one that has been counted in before: the database's clock may have been set back.
        number = max(int((now + self._offset) // 60), self._minute.number + 1)
        return _Minute(number, (number + 1) * 60 - self._offset)

    # In the renewing thread

    def log_totals(self, *, last: bool = False) -> None:
        """A line for each minute that is over, if a job has ended in it; with `last`, for the current one too."""
        now = time.perf_counter()
        for minute in (*self._past, self._minute):
            if minute.number > self._logged and (last or minute.ends <= now):
                self._logged = minute.number
                if totals := _totals(minute.ended.copy()):
                    log.info("%s: %s", "since the last minute" if minute.ends > now else "last minute", totals)

    def write(self, connection: ReconnectingSyncConnection) -> None:
        """Write what has changed since the last time; if nothing has, say nothing."""
        self.log_totals()
        past, current = [*self._past], self._minute
        whole: set[Tally] = set()
        for minute in (*past, current):
            whole.update(minute.tallies())
            if minute.claims.claims:
                self._claims = minute.claims
        if fresh := whole - self._written:
            [now] = connection.run(minutes.write(list(fresh), worker=self._worker, claims=self._claims))
            self._offset = now - time.perf_counter()
        self._written = whole
        for minute in past:
            with suppress(ValueError):  # an outage has pushed it out meanwhile
                self._past.remove(minute)


def _totals(ended: Mapping[OutcomeKind, list[float]]) -> str:
    """`1,204 succeeded, 2 failed, 5 tried again`; nothing where none of that has happened."""
    counts = Counter[type[Outcome]]()
    for (_, _, kind), alike in ended.items():
        counts[kind] += int(sum(alike[:BUCKETS]))
    kinds: tuple[tuple[type[Outcome], str], ...] = (
        (Succeeded, "succeeded"),
        (Failed, "failed"),
        (Cancelled, "cancelled"),
        (Retried, "tried again"),
    )
    return ", ".join(f"{counts[kind]:,} {word}" for kind, word in kinds if counts[kind])


def _tally(number: int, pair: Pair, claimed: Sequence[float], ended: Mapping[OutcomeKind, list[float]]) -> Tally:
    succeeded, failed, cancelled, retried = (
        tuple(ended.get((*pair, kind), _NONE)) for kind in (Succeeded, Failed, Cancelled, Retried)
    )
    waits = tuple(claimed)  # the loop goes on counting in it
    # A cancelled attempt may not have begun, and a snoozed one is not done: they do not say how long a task takes.
    timed = (succeeded, failed, retried)
    durations = tuple(int(sum(counts)) for counts in zip(*timed, strict=True))
    return Tally(
        minute=number,
        queue=pair[0],
        task=pair[1],
        claimed=int(sum(waits[:BUCKETS])),
        succeeded=int(sum(succeeded[:BUCKETS])),
        failed=int(sum(failed[:BUCKETS])),
        cancelled=int(sum(cancelled[:BUCKETS])),
        retried=int(sum(retried[:BUCKETS])),
        seconds=sum(alike[_SECONDS] for alike in timed),
        slowest=max(alike[_LONGEST] for alike in timed),
        durations=durations[:BUCKETS],
        waited=waits[_SECONDS],
        longest=waits[_LONGEST],
        waits=tuple(map(int, waits[:BUCKETS])),
    )
