"""Sandbox: the demo's processes and stream of jobs, and what each button does to them.

One thread feeds the queue and watches the database. The page shows its last picture, also while PostgreSQL is away.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from random import Random
from uuid import UUID

from rowlock.app.app import Rowlock
from rowlock.db.embedded.server import EmbeddedPostgres
from rowlock.db.errors import Unreachable, is_transient
from rowlock.db.session import Session, connect
from rowlock.db.thread_connection import ReconnectingSyncConnection
from rowlock.demo.browser.picture import ButtonEffects, Picture, picture_now
from rowlock.demo.database import demo_database
from rowlock.demo.job_log import Audit, JobLog
from rowlock.demo.tasks import checkout, stream, tick
from rowlock.demo.watch import Watch
from rowlock.demo.workers import WORKERS, WorkerProcess, WorkerProcesses
from rowlock.errors import InvalidOption
from rowlock.store.stats import server

_TICK = 0.25
_RATE = 7.0  # jobs a second
_LONGEST = 3.0  # seconds that a job takes at most: long enough to be seen
_MOST_OPEN = 60
FLOOD = 5_000
_MOST_FLOODED = 20_000
_MOST_CHECKOUTS = 3


class Sandbox:
    """A method for each button, callable from any thread; `picture` is the latest one."""

    def __init__(
        self,
        *,
        server: EmbeddedPostgres,
        app: Rowlock,
        url: str,
        processes: WorkerProcesses,
        database: ReconnectingSyncConnection,
    ) -> None:
        self._server, self._app, self._url = server, app, url
        self._processes = processes
        self._database = database
        self._job_log = JobLog()
        self._watch = Watch(database=database, job_log=self._job_log, processes=processes)
        self._calls = stream(Random(), longest=_LONGEST)
        self._orders = itertools.count(1)
        self._lock = threading.RLock()
        self._over = threading.Event()
        self._credit = 0.0
        self._fed_at = time.monotonic()
        self._effects = ButtonEffects()
        self._snapshot: Session | None = None
        self.picture: Picture = picture_now(self._effects, self._watch, self._job_log, processes)
        self._thread = threading.Thread(target=self._live, name="rowlock demo", daemon=True)
        self._thread.start()

    # Workers

    def start(self, number: int) -> str:
        """Start a worker that has ended."""
        with self._lock:
            member = self._member(number)
            if member.is_alive:
                raise InvalidOption(f"worker {number} runs already")
            self._processes.start(member)
            self._watch.started(member)
        return f"Worker {number} starts as process {member.process.pid}."

    def stop(self, number: int) -> str:
        """Ask a worker to stop: it finishes or hands back what it holds."""
        with self._lock:
            member = self._alive(number)
            self._effects.stopping.add(member.process.pid)
            self._processes.ask_to_stop(member)
            self._watch.tell(
                "stopped", f"{member.name} is asked to stop (SIGTERM): it hands back what it holds", number
            )
        return f"Worker {number} finishes or hands back what it holds, and goes."

    def crash(self, number: int) -> str:
        """Kill a worker where it stands."""
        with self._lock:
            member = self._alive(number)
            self._processes.freeze(member)  # so that what it held can be told
            worker = self._watch.workers.get(number)
            held = 0 if worker is None else self._watch.held_by(worker.id)
            self._processes.kill(member)
            self._watch.killed(member, "" if worker is None else worker.id, held)
        return f"Worker {number} was killed with SIGKILL; it held {held} jobs, and could tell nobody."

    def _member(self, number: int) -> WorkerProcess:
        for member in self._processes:
            if member.number == number:
                return member
        raise InvalidOption(f"there is no worker {number}; there are 1 to {WORKERS}")

    def _alive(self, number: int) -> WorkerProcess:
        member = self._member(number)
        if not member.is_alive:
            raise InvalidOption(f"worker {number} does not run; start it first")
        return member

    # The queue

    def flood(self) -> str:
        """Enqueue a lot at once."""
        with self._lock:
            if len(self._job_log.open) + FLOOD > _MOST_FLOODED:
                raise InvalidOption("the queue is full of it already; let the workers catch up first")
            began = time.monotonic()
            self._job_log.add(str(job.id) for job in self._app.enqueue_many(tick.bind() for _ in range(FLOOD)))
            took = time.monotonic() - began
            self._watch.tell("flood", f"{FLOOD:,} jobs enqueued in one transaction, {took:.2f} s")
        return f"{FLOOD:,} jobs are in the queue."

    def set_streaming(self, *, on: bool) -> str:
        """Let jobs stream in, or not."""
        self._effects.streaming = on
        return "Jobs stream in again." if on else "No more jobs come in; what is there goes on."

    # PostgreSQL

    def hold_snapshot(self) -> str:
        """Be the forgotten transaction that keeps vacuum from its work."""
        with self._lock:
            if self._snapshot is not None and not self._snapshot.closed:
                raise InvalidOption("a snapshot is held already")
            self._snapshot = connect(self._url, name="a forgotten report")
            self._snapshot.execute("begin isolation level repeatable read")
            self._snapshot.execute("select count(*) from rowlock.jobs")
            self._effects.held_since = time.monotonic()
            self._watch.tell("snapshot", "somebody's transaction holds a snapshot open: no dead row can be removed now")
        return "A snapshot is held open; watch the throughput."

    def release_snapshot(self) -> str:
        """End it."""
        with self._lock:
            if self._snapshot is None:
                raise InvalidOption("no snapshot is held")
            self._snapshot.close()
            self._snapshot, self._effects.held_since = None, None
            self._watch.tell("snapshot", "the snapshot is let go of; vacuum can remove the dead rows")
        return "The snapshot is let go of."

    def restart_postgres(self) -> str:
        """Stop the server under everybody, and start it again."""
        with self._lock:
            self._effects.postgres = "restarting"
            self.picture = replace(self.picture, postgres="restarting")
            began = time.monotonic()
            try:
                self._server.stop()
                self._server.start()
            finally:
                self._effects.postgres = "up"
                self._snapshot, self._effects.held_since = None, None
            took = time.monotonic() - began
            self._watch.tell(
                "postgres", f"PostgreSQL was stopped and started again, {took:.1f} s; everybody reconnects"
            )
        return "PostgreSQL is up again; the workers reconnect and go on."

    # Checkouts

    def start_checkout(self) -> str:
        """Start a workflow."""
        with self._lock:
            order = next(self._orders)
            [job] = self._app.enqueue_many([checkout.using(key=f"order:{order}").bind(order)])
            self._job_log.add([str(job.id)])
            self._effects.checkouts[order] = UUID(str(job.id))
            for old in sorted(self._effects.checkouts)[:-_MOST_CHECKOUTS]:
                del self._effects.checkouts[old]
            self._watch.tell("checkout", f"checkout of order {order} begins")
        return f"Checkout of order {order} begins; it will ask for approval."

    def decide(self, order: int, *, approved: bool) -> str:
        """Approve or refuse a checkout that asks."""
        self._app.signal(f"order:{order}", "approval", {"approved": approved}, key="the button")
        said = "approved" if approved else "refused"
        self._watch.tell("checkout", f"order {order} is {said}: a signal wakes its workflow")
        return f"Order {order} is {said}."

    # The thread

    def close(self) -> Audit:
        """Stop everything in good order, and look for every job."""
        self.end()
        with self._lock:
            if self._snapshot is not None:
                self._snapshot.close()
            self._processes.stop()
            self._watch.refresh()
            return self._watch.audit()

    def end(self) -> None:
        """Stop feeding and watching."""
        self._over.set()
        self._thread.join(30)

    @property
    def watch(self) -> Watch:
        """What was watched so far."""
        return self._watch

    def _live(self) -> None:
        while not self._over.wait(_TICK):
            try:
                with self._lock:
                    self._feed()
                    self._watch.refresh()
                    vacuum = self._database.run(server.vacuum()) if self._snapshot is not None else []
                    self._effects.dead_rows = vacuum[0].dead if vacuum else None
                    self._effects.refresh_checkouts(self._app)
                    self.picture = picture_now(self._effects, self._watch, self._job_log, self._processes)
            except Exception as error:
                if not isinstance(error, Unreachable) and not is_transient(error):
                    raise
                self.picture = replace(self.picture, postgres="away")

    def _feed(self) -> None:
        now = time.monotonic()
        self._credit = min(self._credit + (now - self._fed_at) * _RATE, _RATE)
        self._fed_at = now
        count = min(int(self._credit), _MOST_OPEN - len(self._job_log.open)) if self._effects.streaming else 0
        if count > 0:
            self._credit -= count
            self._job_log.add(str(job.id) for job in self._app.enqueue_many(islice(self._calls, count)))


@contextmanager
def sandbox(folder: Path) -> Iterator[tuple[Sandbox, Rowlock]]:
    """A sandbox, running, and the app whose dashboard shows it."""
    with ExitStack() as stack:
        server, app, url = stack.enter_context(demo_database(folder))
        database = ReconnectingSyncConnection(url, app.database.schema, name="rowlock demo")
        stack.callback(database.close)
        processes = stack.enter_context(WorkerProcesses(size=WORKERS, url=url, folder=server.folder))
        running = Sandbox(server=server, app=app, url=url, processes=processes, database=database)
        stack.callback(running.end)  # before what it feeds and watches goes
        yield running, app
