"""Prefetch: jobs in hand, those that wait for a slot, how many to claim ahead."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from math import inf, isinf
from operator import itemgetter

from rowlock.model.outcome import Blocked, HandedBack, Unsettled
from rowlock.model.row import ClaimedJob
from rowlock.model.spec import Handler
from rowlock.store.claim import SUSPECT_FROM


class HeldJobs:
    """All jobs in hand, from their claim until they are settled; only one suspect at a time.

    So it is known whose fault it was if this worker dies.
    """

    def __init__(self) -> None:
        self.suspect_ended: Callable[[], object] = _nothing
        self.suspect_set_aside: Callable[[], object] = _nothing
        self._rows: dict[str, ClaimedJob] = {}
        self._suspect: str | None = None  # its token

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def has_suspect(self) -> bool:
        """Whether there is a suspect in hand."""
        return self._suspect is not None

    def add(self, row: ClaimedJob) -> bool:
        """A job was claimed; False for a second suspect, which has to go back."""
        self._rows[row.token] = row
        if row.crashes < SUSPECT_FROM:
            return True
        if self._suspect is not None:
            return False
        self._suspect = row.token
        return True

    def forget(self, row: ClaimedJob) -> None:
        """A job is out of our hands."""
        self._rows.pop(row.token, None)
        if row.token == self._suspect:
            self._suspect = None
            self.suspect_ended()
        elif row.crashes >= SUSPECT_FROM:
            self.suspect_set_aside()

    def tokens(self) -> list[str]:
        """The tokens of all."""
        return list(self._rows)

    def rows(self) -> list[ClaimedJob]:
        """All of them."""
        return list(self._rows.values())

    def without(self, *others: Collection[str]) -> list[ClaimedJob]:
        """Those that none of these contain."""
        return [row for token, row in self._rows.items() if not any(token in tokens for tokens in others)]


def _nothing() -> None: ...


# The arguments of the jobs that wait and of those that the next claim brings may be so long, all together: a claim of a
# thousand jobs with 1 MiB each takes a gigabyte and is late. Until a claim has come, arguments are taken to be so long.
_LONGEST_ARGS = 8 * 1024**2
_GUESSED_ARGS = 8 * 1024
_ARGS = itemgetter(ClaimedJob._fields.index("args"))

# A job claimed ahead waits this long for a slot or a thread, then goes back: other workers may be free.
STALE_AFTER = 1.0


class PrefetchQueue:
    """The jobs in hand that have not begun, in the order in which they begin, and how many more to claim."""

    def __init__(self, handlers: Mapping[str, Handler], free_threads: Callable[[], int]) -> None:
        self._threaded = frozenset(
            name for name, handler in handlers.items() if not (handler.is_async or handler.is_workflow)
        )
        self.is_all_threaded = len(self._threaded) == len(handlers)
        self._free_threads = free_threads
        self._rows: deque[tuple[ClaimedJob, float]] = deque()
        self._for_thread: deque[tuple[ClaimedJob, float]] = deque()  # were passed over for want of a thread
        self._sync = 0  # of all these, so many are of sync tasks
        self._args = float(_GUESSED_ARGS)  # how long those of a job are, lately
        self._ended = self._ended_before = 0  # how many attempts of sync tasks, since the last look and before it

    def __len__(self) -> int:
        return len(self._rows) + len(self._for_thread)

    def is_threaded(self, row: ClaimedJob) -> bool:
        """Whether a job's handler needs a thread for as long as it runs."""
        return row.task in self._threaded

    def add(self, row: ClaimedJob, now: float, *, first: bool = False) -> None:
        """A job was claimed, at this moment of time.monotonic()."""
        (self._rows.appendleft if first else self._rows.append)((row, now))
        if self._threaded and row.task in self._threaded:
            self._sync += 1

    def next(self) -> ClaimedJob | None:
        """Take out the next job that can begin, if there is one. Who waits for a thread holds up nobody else."""
        if self._for_thread and self._free_threads() > 0:
            return self._taken(self._for_thread.popleft()[0])
        while self._rows:
            waiting = self._rows.popleft()
            if not self._threaded or waiting[0].task not in self._threaded or self._free_threads() > 0:
                return self._taken(waiting[0])
            self._for_thread.append(waiting)
        return None

    def _taken(self, row: ClaimedJob) -> ClaimedJob:
        if self._threaded and row.task in self._threaded:
            self._sync -= 1
        return row

    def tokens(self) -> set[str]:
        """Those of all that wait."""
        return {row.token for row, _ in self._all()}

    def pick(self, tokens: Collection[str]) -> list[ClaimedJob]:
        """Take out those of these that are here."""
        return self._take_out(lambda row, _since: row.token in tokens)

    def stale(self) -> list[ClaimedJob]:
        """Take out those that have waited for too long."""
        horizon = time.monotonic() - STALE_AFTER
        if not any(rows and rows[0][1] < horizon for rows in (self._rows, self._for_thread)):
            return []
        return self._take_out(lambda _row, since: since < horizon)

    def _take_out(self, wanted: Callable[[ClaimedJob, float], bool]) -> list[ClaimedJob]:
        picked = [self._taken(row) for row, since in self._all() if wanted(row, since)]
        if picked:
            self._rows = deque(waiting for waiting in self._rows if not wanted(*waiting))
            self._for_thread = deque(waiting for waiting in self._for_thread if not wanted(*waiting))
        return picked

    def _all(self) -> Iterator[tuple[ClaimedJob, float]]:
        yield from self._for_thread
        yield from self._rows

    # How many to claim

    def bounded(self, room: int) -> int:
        """How many jobs to claim, when there is room for so many.

        What a claim brings is not known before; its arguments are taken to be as long as recent ones. Jobs of sync
        tasks that no thread is free for may be as many as have ended recently, so that they begin soon, and
        one: it shows whether what comes next is async.
        """
        room = self._fits(room)
        if not self._threaded:
            return room
        soon = max(self._ended, self._ended_before, 1)
        return min(room, max(self._free_threads(), 0) + soon - self._sync)

    def _fits(self, room: int) -> int:
        """As many, but no more than their arguments allow; or none, to gather a larger claim while others wait."""
        most = max(1, int(_LONGEST_ARGS / self._args))
        left = most - len(self)
        if room <= left:
            return room
        return left if left * 2 >= most else 0

    def measure(self, rows: Sequence[ClaimedJob]) -> None:
        """A claim has brought these. Longer arguments are believed at once, shorter ones little by little."""
        if rows:
            mean = sum(map(len, map(_ARGS, rows))) / len(rows)
            self._args = max(mean, self._args + _WEIGHT * (mean - self._args))

    def ended(self) -> None:
        """An attempt of a sync task has ended."""
        self._ended += 1

    def start_period(self) -> None:
        """Start counting again: called every so often."""
        self._ended_before, self._ended = self._ended, 0


def unbegun(row: ClaimedJob) -> Unsettled:
    """What becomes of a job that was claimed ahead and does not begin here."""
    if row.crashes < SUSPECT_FROM:
        return HandedBack()
    return Blocked("suspect", f"{row.crashes} workers died while they ran it; each worker runs one such job at a time")


# In flight at once: 27k jobs a second with 100, 37k with 1,000; more only makes a crash cost more.
_MOST_AHEAD = 1_000
_WEIGHT = 0.5


class PrefetchSize:
    """Grows only while handlers take less than a claim's round trip: a long handler's next job may as well stay where
    another worker can have it.
    """

    def __init__(self, slots: int) -> None:
        self.size = 0
        self._slots = slots
        self._run_time = inf
        self._batch_time = 0.0
        self._batch_count = 0

    def ran(self, took: float) -> None:
        """One attempt took so many seconds."""
        self._batch_time += took
        self._batch_count += 1

    def forget(self) -> None:
        """What was held waited for too long: start over, when attempts have ended that show how long they take."""
        self.size, self._run_time = 0, inf
        self._batch_time, self._batch_count = 0.0, 0

    def learn(self, *, round_trip: float, full: bool) -> None:
        """A claim took so long, and found all it asked for or not."""
        if self._batch_count:
            mean = self._batch_time / self._batch_count
            if isinf(self._run_time) or mean > self._run_time:
                self._run_time = mean  # slower is believed at once, faster little by little
            else:
                self._run_time += _WEIGHT * (mean - self._run_time)
            self._batch_time, self._batch_count = 0.0, 0
        if self._run_time >= round_trip:
            self.size = 0
        elif not full:
            self.size //= 2  # what is not there need not be held
        else:
            wanted = int(self._slots * round_trip / self._run_time)
            self.size = min(wanted, max(self.size * 2, self._slots), _MOST_AHEAD)
