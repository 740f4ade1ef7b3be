"""The waiting room: one connection per process listens for the ends of all the jobs that somebody waits for.

Sync callers and any number of event loops wait in the same room, so a thread of its own does the listening. It comes
with the first who waits, goes when nobody has waited for a while, and never keeps the process from exiting.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from datetime import timedelta
from functools import partial
from weakref import WeakSet

from rowlock.db.database import Database
from rowlock.db.listener import Listener
from rowlock.model.row import Ending

# A settle that looked for waiters before ours was entered may commit after our first look: look again after these
# pauses, then poll.
_LOOKS = (timedelta(milliseconds=20), timedelta(milliseconds=80), timedelta(milliseconds=320))
_POLL = timedelta(seconds=1)
# So long the connection is kept for the next who waits.
_LINGER = timedelta(seconds=30)
# Closing waits no longer than this: a daemon may be in the middle of connecting.
_GO_WITHIN = 5.0


class WaitingRoom:
    """Who waits for the end of which job."""

    def __init__(
        self,
        database: Database,
        *,
        looks: Sequence[timedelta] = _LOOKS,
        poll: timedelta = _POLL,
        linger: timedelta = _LINGER,
    ) -> None:
        self.database = database
        self.looks = looks
        self.poll = poll
        self.linger = linger
        self.begin_anew()
        _rooms.add(self)

    def begin_anew(self) -> None:
        """Nobody waits, nothing runs: so it is at first, and in a fork's child, where all of it is the parent's."""
        self._lock = threading.Lock()
        self._empty()

    def _empty(self) -> None:
        self._waits: dict[str, set[Future[Ending]]] = {}
        self._seen: set[str] = set()  # those of them that were live when somebody looked
        self._new: list[str] = []
        self._gone: list[str] = []
        self._listener: Listener | None = None

    # For those who wait

    def enter(self, job_id: str) -> Future[Ending]:
        """The end of a job, when it comes; cancel it to wait no longer. All who wait for one job share its look-ups."""
        self.database.within.check_own()  # the listener may be there from before
        end: Future[Ending] = Future()
        with self._lock:
            if job_id not in self._waits:
                self._waits[job_id] = set()
                self._new.append(job_id)
            self._waits[job_id].add(end)
            if self._listener is None:
                self._listener = Listener(self)
                self._listener.start()
            self._listener.ring()
        end.add_done_callback(partial(self._leave, job_id))
        return end

    def _leave(self, job_id: str, end: Future[Ending]) -> None:
        """Somebody waits no longer: an answer has come, and the job is not here any more, or none is wanted."""
        with self._lock:
            others = self._waits.get(job_id)
            if others is None or end not in others:
                return
            others.remove(end)
            if not others:
                del self._waits[job_id]
                self._seen.discard(job_id)
                self._gone.append(job_id)
                if self._listener is not None:
                    self._listener.ring()

    def close(self) -> None:
        """Let the listener go; while somebody waits, it goes after them."""
        with self._lock:
            listener = self._listener
            if listener is None:
                return
            listener.hurry()
            busy = bool(self._waits)
        if not busy:
            listener.join(_GO_WITHIN)

    # For the listener

    @property
    def is_empty(self) -> bool:
        """Whether nobody waits."""
        return not self._waits

    def open(self) -> list[str]:
        """Every job that somebody waits for."""
        with self._lock:
            return list(self._waits)

    def changes(self) -> tuple[list[str], list[str]]:
        """The jobs that somebody has begun to wait for since the last time, and those that nobody waits for now."""
        with self._lock:
            new = [job_id for job_id in self._new if job_id in self._waits]
            gone = [job_id for job_id in self._gone if job_id not in self._waits]
            self._new, self._gone = [], []
            return new, gone

    def still_open(self, jobs: Iterable[str]) -> list[str]:
        """Those of these jobs that somebody waits for."""
        with self._lock:
            return [job_id for job_id in jobs if job_id in self._waits]

    def answer(self, endings: Iterable[Ending], *, looked_for: Iterable[str]) -> None:
        """Tell those who wait; what was looked for and has not ended is live."""
        told = []
        with self._lock:
            for ending in endings:
                told.append((self._waits.pop(ending.id, ()), ending._replace(seen=ending.id in self._seen)))
                self._seen.discard(ending.id)
                self._gone.append(ending.id)
            self._seen.update(job_id for job_id in looked_for if job_id in self._waits)
        for ends, ending in told:
            for end in ends:
                if end.set_running_or_notify_cancel():
                    end.set_result(ending)

    def fail(self, error: BaseException, listener: Listener) -> None:
        """The listener cannot go on: those who wait must not wait for ever."""
        with self._lock:
            waits = self._waits
            if self._listener is listener:
                self._empty()
        for end in [end for ends in waits.values() for end in ends]:
            if end.set_running_or_notify_cancel():
                end.set_exception(error)

    def may_go(self, listener: Listener) -> bool:
        """Whether the listener is not needed any more; from then on the next who comes starts another one."""
        with self._lock:
            if self._waits or self._gone:
                return False
            if self._listener is listener:
                self._listener = None
            return True


_rooms: WeakSet[WaitingRoom] = WeakSet()


def _in_child() -> None:
    for room in _rooms:
        room.begin_anew()


os.register_at_fork(after_in_child=_in_child)
