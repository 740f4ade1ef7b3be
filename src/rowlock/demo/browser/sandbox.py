"""The demo with buttons: three worker processes, a stream of jobs, and whatever one does to them.

One thread feeds the queue and watches the database; the page shows what it saw last, also while PostgreSQL is away.
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
from rowlock.demo.job_log import Audit, JobLog
from rowlock.demo.tasks import checkout, stream, tick
from rowlock.demo.terminal.run import WORKERS, prepared
from rowlock.demo.watch import Watch
from rowlock.demo.workers import WorkerProcess, WorkerProcesses
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
    """What the buttons do, each from any thread; `picture` is what there is to see."""

    def __init__(
        self,
        *,
        server: EmbeddedPostgres,
        app: Rowlock,
        url: str,
        crew: WorkerProcesses,
        database: ReconnectingSyncConnection,
    ) -> None:
        self._server, self._app, self._url = server, app, url
        self._crew = crew
        self._database = database
        self._ledger = JobLog()
        self._watch = Watch(database=database, ledger=self._ledger, crew=crew)
        self._calls = stream(Random(), longest=_LONGEST)
        self._orders = itertools.count(1)
        self._lock = threading.RLock()
        self._over = threading.Event()
        self._credit = 0.0
        self._fed_at = time.monotonic()
        self._drawing = ButtonEffects()
        self._snapshot: Session | None = None
        self.picture: Picture = picture_now(self._drawing, self._watch, self._ledger, crew)
        self._thread = threading.Thread(target=self._live, name="rowlock demo", daemon=True)
        self._thread.start()

    # Workers

    def start(self, number: int) -> str:
        """Start a worker that has ended."""
        with self._lock:
            member = self._member(number)
            if member.is_alive:
                raise InvalidOption(f"worker {number} runs already")
            self._crew.start(member)
            self._watch.started(member)
        return f"Worker {number} starts as process {member.process.pid}."

    def stop(self, number: int) -> str:
        """Ask a worker to stop: it finishes or hands back what it holds."""
        with self._lock:
            member = self._alive(number)
            self._drawing.stopping.add(member.process.pid)
            self._crew.ask_to_stop(member)
            self._watch.tell(
                "stopped", f"{member.name} is asked to stop (SIGTERM): it hands back what it holds", number
            )
        return f"Worker {number} finishes or hands back what it holds, and goes."

    def crash(self, number: int) -> str:
        """Kill a worker where it stands."""
        with self._lock:
            member = self._alive(number)
            self._crew.freeze(member)  # so that what it held can be told
            worker = self._watch.workers.get(number)
            held = 0 if worker is None else self._watch.held_by(worker.id)
            self._crew.kill(member)
            self._watch.killed(member, "" if worker is None else worker.id, held)
        return f"Worker {number} was killed with SIGKILL; it held {held} jobs, and could tell nobody."

    def _member(self, number: int) -> WorkerProcess:
        for member in self._crew:
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
            if len(self._ledger.open) + FLOOD > _MOST_FLOODED:
                raise InvalidOption("the queue is full of it already; let the workers catch up first")
            began = time.monotonic()
            self._ledger.add(str(job.id) for job in self._app.enqueue_many(tick.bind() for _ in range(FLOOD)))
            took = time.monotonic() - began
            self._watch.tell("flood", f"{FLOOD:,} jobs enqueued in one transaction, {took:.2f} s")
        return f"{FLOOD:,} jobs are in the queue."

    def set_streaming(self, *, on: bool) -> str:
        """Let jobs stream in, or not."""
        self._drawing.streaming = on
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
            self._drawing.held_since = time.monotonic()
            self._watch.tell("snapshot", "somebody's transaction holds a snapshot open: no dead row can be removed now")
        return "A snapshot is held open; watch the throughput."

    def release_snapshot(self) -> str:
        """End it."""
        with self._lock:
            if self._snapshot is None:
                raise InvalidOption("no snapshot is held")
            self._snapshot.close()
            self._snapshot, self._drawing.held_since = None, None
            self._watch.tell("snapshot", "the snapshot is let go of; vacuum can remove the dead rows")
        return "The snapshot is let go of."

    def restart_postgres(self) -> str:
        """Stop the server under everybody, and start it again."""
        with self._lock:
            self._drawing.postgres = "restarting"
            self.picture = replace(self.picture, postgres="restarting")
            began = time.monotonic()
            try:
                self._server.stop()
                self._server.start()
            finally:
                self._drawing.postgres = "up"
                self._snapshot, self._drawing.held_since = None, None
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
            job = self._app.enqueue_call(checkout.using(key=f"order:{order}").bind(order))
            self._ledger.add([str(job.id)])
            self._drawing.checkouts[order] = UUID(str(job.id))
            for old in sorted(self._drawing.checkouts)[:-_MOST_CHECKOUTS]:
                del self._drawing.checkouts[old]
            self._watch.tell("checkout", f"checkout of order {order} begins")
        return f"Checkout of order {order} begins; it will ask for approval."

    def decide(self, order: int, *, approved: bool) -> str:
        """Say yes or no to a checkout that asks."""
        self._app.signal(f"order:{order}", "approval", {"approved": approved}, key="the button")
        said = "approved" if approved else "refused"
        self._watch.tell("checkout", f"order {order} is {said}: a signal wakes its workflow")
        return f"Order {order} is {said}."

    # Living

    def close(self) -> Audit:
        """Stop everything in good order, and look for every job."""
        self.end()
        with self._lock:
            if self._snapshot is not None:
                self._snapshot.close()
            self._crew.stop()
            self._watch.look()
            return self._watch.audit()

    def end(self) -> None:
        """Feed and watch no more."""
        self._over.set()
        self._thread.join(30)

    @property
    def watch(self) -> Watch:
        """What was seen."""
        return self._watch

    def _live(self) -> None:
        while not self._over.wait(_TICK):
            try:
                with self._lock:
                    self._feed()
                    self._watch.look()
                    vacuum = self._database.run(server.vacuum()) if self._snapshot is not None else []
                    self._drawing.dead_rows = vacuum[0].dead if vacuum else None
                    self._drawing.look_at_checkouts(self._app)
                    self.picture = picture_now(self._drawing, self._watch, self._ledger, self._crew)
            except Exception as error:
                if not isinstance(error, Unreachable) and not is_transient(error):
                    raise
                self.picture = replace(self.picture, postgres="away")

    def _feed(self) -> None:
        now = time.monotonic()
        self._credit = min(self._credit + (now - self._fed_at) * _RATE, _RATE)
        self._fed_at = now
        count = min(int(self._credit), _MOST_OPEN - len(self._ledger.open)) if self._drawing.streaming else 0
        if count > 0:
            self._credit -= count
            self._ledger.add(str(job.id) for job in self._app.enqueue_many(islice(self._calls, count)))


@contextmanager
def sandbox(folder: Path) -> Iterator[tuple[Sandbox, Rowlock]]:
    """A sandbox, running, and the app whose dashboard shows it."""
    with ExitStack() as stack:
        server, app, url = stack.enter_context(prepared(folder))
        database = ReconnectingSyncConnection(url, app.database.schema, name="rowlock demo")
        stack.callback(database.close)
        crew = stack.enter_context(WorkerProcesses(size=WORKERS, url=url, folder=server.folder))
        played = Sandbox(server=server, app=app, url=url, crew=crew, database=database)
        stack.callback(played.end)  # before what it feeds and watches goes
        yield played, app
