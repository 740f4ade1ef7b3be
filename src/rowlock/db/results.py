"""Results: one connection per process listens for the ends of jobs.

Sync callers and any number of event loops wait together, so a thread of its own does the listening. It starts with the
first waiter, ends when nobody has waited for a while, and never keeps the process from exiting.
"""

from __future__ import annotations

import heapq
import os
import random
import selectors
import socket
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from datetime import timedelta
from functools import partial
from math import inf
from typing import TYPE_CHECKING
from uuid import uuid4
from weakref import WeakSet

import psycopg

from rowlock.db.database import Database
from rowlock.db.errors import Unreachable, first_line
from rowlock.db.safe_logger import SafeLogger
from rowlock.db.session import Session
from rowlock.model.row import JobEnd
from rowlock.store import jobs

if TYPE_CHECKING:
    from rowlock.db.thread_connection import ReconnectingSyncConnection

log = SafeLogger("rowlock.results")

# A settle that looked for waiters before ours was entered may commit after our first look: look again after these
# pauses, then poll.
_LOOKS = (timedelta(milliseconds=20), timedelta(milliseconds=80), timedelta(milliseconds=320))
_POLL = timedelta(seconds=1)
# So long the connection is kept for the next who waits.
_LINGER = timedelta(seconds=30)
# Closing waits no longer than this: a daemon may be in the middle of connecting.
_GO_WITHIN = 5.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 5.0
# A way around the pooler that does not answer is tried again so often, and each time waited for so long.
_DEAF_FOR, _EAR_DEADLINE = 30.0, 5.0


class ResultWaiters:
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
        _all_waiters.add(self)

    def begin_anew(self) -> None:
        """Nobody waits, nothing runs: so it is at first, and in a fork's child, where all of it is the parent's."""
        self._lock = threading.Lock()
        self._empty()

    def _empty(self) -> None:
        self._waits: dict[str, set[Future[JobEnd]]] = {}
        self._seen: set[str] = set()  # those of them that were live when somebody looked
        self._new: list[str] = []
        self._gone: list[str] = []
        self._listener: ResultListener | None = None

    # For those who wait

    def enter(self, job_id: str) -> Future[JobEnd]:
        """The end of a job, when it comes; cancel it to wait no longer. All who wait for one job share its look-ups."""
        self.database.within.check_own()  # the listener may be there from before
        end: Future[JobEnd] = Future()
        with self._lock:
            if job_id not in self._waits:
                self._waits[job_id] = set()
                self._new.append(job_id)
            self._waits[job_id].add(end)
            if self._listener is None:
                self._listener = ResultListener(self)
                self._listener.start()
            self._listener.ring()
        end.add_done_callback(partial(self._leave, job_id))
        return end

    def _leave(self, job_id: str, end: Future[JobEnd]) -> None:
        """Somebody waits no longer: its end is known, and the job is not here any more, or none is wanted."""
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

    def answer(self, endings: Iterable[JobEnd], *, looked_for: Iterable[str]) -> None:
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

    def fail(self, error: BaseException, listener: ResultListener) -> None:
        """The listener cannot go on: those who wait must not wait forever."""
        with self._lock:
            waits = self._waits
            if self._listener is listener:
                self._empty()
        for end in [end for ends in waits.values() for end in ends]:
            if end.set_running_or_notify_cancel():
                end.set_exception(error)

    def may_go(self, listener: ResultListener) -> bool:
        """Whether the listener is not needed any more; from then on the next who comes starts another one."""
        with self._lock:
            if self._waits or self._gone:
                return False
            if self._listener is listener:
                self._listener = None
            return True


_all_waiters: WeakSet[ResultWaiters] = WeakSet()


def _in_child() -> None:
    for waiters in _all_waiters:
        waiters.begin_anew()


os.register_at_fork(after_in_child=_in_child)


class ResultListener(threading.Thread):
    """One life of the thread. Its rows in rowlock.waiters bear its id, and so does its channel."""

    def __init__(self, waiters: ResultWaiters) -> None:
        super().__init__(name="rowlock-results", daemon=True)
        self._waiters = waiters
        self._id = str(uuid4())
        self._speaking: Session | None = None
        self._listening: Session | None = None
        self._deaf_until = 0.0
        self._entered = False  # there may be rows of ours in rowlock.waiters
        self._told = False  # a notification has come that nobody has looked into
        self._rested_until = 0.0  # after a look, as long as it took: notifications may come faster than looks
        self._poll_at = 0.0
        self._looks: list[tuple[float, int, list[str]]] = []  # when, which of the looks after entering, for whom
        self._idle_since: float | None = None
        self._hurried = False
        self._bell, self._heard = socket.socketpair()
        self._bell.setblocking(False)
        self._heard.setblocking(False)
        self._rung = False

    # Called by ResultWaiters

    def ring(self) -> None:
        """Wake up, and see who has come or gone."""
        if not self._rung:
            self._rung = True
            self._bell.send(b"!")

    def hurry(self) -> None:
        """Go as soon as nobody waits."""
        self._hurried = True
        self.ring()

    # The thread's life

    def run(self) -> None:
        """Listen until nobody needs it."""
        with self._bell, self._heard:
            try:
                self._live()
            except psycopg.Error as error:
                self._waiters.fail(self._waiters.database.explained(error), self)
            except BaseException as error:  # whatever it is, those who wait must hear of it
                self._waiters.fail(error, self)

    def _live(self) -> None:
        from rowlock.db.thread_connection import ReconnectingSyncConnection  # noqa: PLC0415  whoever only enqueues does without

        database = self._waiters.database
        server, seconds = database.server(), database.deadline.value.total_seconds()
        connection = ReconnectingSyncConnection(server, database.schema, name="rowlock results", deadline=seconds)
        ear = ReconnectingSyncConnection(
            server.listen or server, database.schema, name="rowlock listen", deadline=min(seconds, _EAR_DEADLINE)
        )
        pause = _FIRST_PAUSE
        try:
            while not (self._is_idle() and self._waiters.may_go(self)):
                try:
                    self._turn(connection, ear if server.listen else None)
                    pause = _FIRST_PAUSE
                except (Unreachable, psycopg.OperationalError) as trouble:
                    connection.close()
                    ear.close()
                    if self._waiters.is_empty:  # then there is nothing to come back for
                        self._hurried = True
                        continue
                    log.warning("waiting for results: %s; trying again", first_line(trouble))
                    self._rest(pause * random.uniform(0.5, 1.0))  # jitter, not a secret
                    pause = min(pause * 2, _LONGEST_PAUSE)
        finally:
            connection.close()
            ear.close()

    def _is_idle(self) -> bool:
        """Whether nobody has waited for long enough."""
        if not self._waiters.is_empty:
            self._idle_since = None
            return False
        now = time.monotonic()
        self._idle_since = self._idle_since or now
        return self._hurried or now - self._idle_since >= self._waiters.linger.total_seconds()

    def _turn(self, connection: ReconnectingSyncConnection, ear: ReconnectingSyncConnection | None) -> None:
        """Enter those who came, look for those whose time it is, forget those who went, and rest."""
        new, gone = self._waiters.changes()
        speaking = connection.open()
        listening = self._hearing(speaking, ear)
        if (speaking, listening) != (self._speaking, self._listening):
            new = self._waiters.open()  # after a crash of the server nothing of what was entered is there
            self._speaking, self._listening = speaking, listening
        if new:
            if listening is not None:
                self._entered = True
                connection.run(jobs.add_waiters(listener=self._id, jobs=new))
            heapq.heappush(self._looks, (time.monotonic(), 0, new))
        if wanted := self._jobs_to_query(time.monotonic()):
            self._query_ends(connection, wanted)
        if gone and self._entered:
            connection.run(jobs.remove_waiters(listener=self._id, jobs=gone))
        self._hear(listening)
        self._rest(self._until_next(time.monotonic()), speaking, listening)

    def _hearing(self, speaking: Session, ear: ReconnectingSyncConnection | None) -> Session | None:
        """The connection that listens: the one we speak on, behind a pooler one around it, or none for now."""
        if not speaking.pooled:
            heard = speaking
        elif ear is None or time.monotonic() < self._deaf_until:
            return None
        else:
            try:
                heard = ear.open()
            except Unreachable as outage:
                log.warning("nothing responds at listen_url (%s); looking for results once a second", outage)
                self._deaf_until = time.monotonic() + _DEAF_FOR
                return None
            if heard.pooled:
                log.warning("listen_url leads to a pooler, too; looking for results once a second")
                ear.close()
                self._deaf_until = inf
                return None
        if heard is not self._listening:
            self._listen(heard)
        return heard

    def _listen(self, connection: Session) -> None:
        connection.add_notify_handler(self._notified)
        channel = psycopg.sql.Identifier(jobs.channel(self._id))
        connection.execute(psycopg.sql.SQL("listen {}").format(channel))

    def _jobs_to_query(self, now: float) -> list[str]:
        """The jobs to look for: all of them when a notification came or it is time to poll."""
        due = self._due(now)
        if now < self._poll_at and not (self._told and now >= self._rested_until):
            return due
        self._told = False
        self._poll_at = now + self._waiters.poll.total_seconds() * random.uniform(0.8, 1.0)  # jitter
        return self._waiters.open()

    def _due(self, now: float) -> list[str]:
        """The jobs entered not long ago that are to be looked for now."""
        due: list[str] = []
        while self._looks and self._looks[0][0] <= now:
            _, count, jobs = heapq.heappop(self._looks)
            jobs = self._waiters.still_open(jobs)
            due += jobs
            if jobs and count < len(self._waiters.looks):
                heapq.heappush(self._looks, (now + self._waiters.looks[count].total_seconds(), count + 1, jobs))
        return due

    def _query_ends(self, connection: ReconnectingSyncConnection, wanted: list[str]) -> None:
        started = time.monotonic()
        endings = connection.run(jobs.ends(wanted))
        ended = time.monotonic()
        self._rested_until = ended + (ended - started)
        self._waiters.answer(endings, looked_for=wanted)
        if endings:
            self.ring()  # there is something to forget

    def _until_next(self, now: float) -> float:
        """Seconds until there is something to do."""
        moments = [self._looks[0][0]] if self._looks else []
        if self._waiters.is_empty:
            moments.append(now if self._hurried else now + self._waiters.linger.total_seconds())
        else:
            moments.append(self._rested_until if self._told else self._poll_at)
        return max(0.0, min(moments) - now)

    def _rest(self, seconds: float, *connections: Session | None) -> None:
        """Wait until something has come, at most so long."""
        open_ = {one.fileno(): one for one in connections if one is not None}
        with selectors.DefaultSelector() as selector:  # not select(), which ends at 1,024 open files
            for file in (self._heard.fileno(), *open_):
                selector.register(file, selectors.EVENT_READ)
            ready = {key.fd for key, _ in selector.select(seconds)}
        if self._heard.fileno() in ready:
            self._heard.recv(64)
            self._rung = False
        for file in ready & set(open_):
            open_[file].pgconn.consume_input()
            self._hear(open_[file])

    def _hear(self, connection: Session | None) -> None:
        """Take the notifications that have been read, some of them perhaps along with a statement's rows."""
        while connection is not None and connection.pgconn.notifies():
            self._told = True

    def _notified(self, _notify: psycopg.Notify) -> None:
        self._told = True
