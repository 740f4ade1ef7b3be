"""The demo itself: feed the queue, kill a worker now and then, and keep watching."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random

from rowlock.app.app import Rowlock
from rowlock.db.embedded.server import EmbeddedPostgres
from rowlock.db.errors import readable_errors
from rowlock.db.session import connect
from rowlock.db.thread_connection import ReconnectingSyncConnection
from rowlock.demo.job_log import Audit, JobLog
from rowlock.demo.tasks import stream, tasks
from rowlock.demo.watch import DemoState, Watch
from rowlock.demo.workers import WorkerProcess, WorkerProcesses
from rowlock.errors import EmbeddedError

WORKERS = 3
DATABASE = "rowlock_demo"

_TICK = 0.2
# More than this waiting, and the stream pauses: a slow machine shows the same demo at its own speed.
_MOST_OPEN = 600
# Between two looks at what a frozen worker holds: a statement that it had sent before may still be under way.
_SETTLING = 0.05


@dataclass(frozen=True, slots=True)
class RunPlan:
    """How it goes. `kills` are shares of `jobs` that have ended; in a stream without end, seconds from kill to kill."""

    jobs: int | None
    rate: float  # jobs per second
    longest: float  # seconds that a job takes at most
    kills: tuple[float, ...]
    start_after: float  # seconds until a killed worker is started again
    limit: float = math.inf  # seconds


LIVE = RunPlan(jobs=None, rate=30.0, longest=0.8, kills=(8.0, 12.0, 10.0), start_after=5.0)
ONCE = RunPlan(jobs=300, rate=200.0, longest=0.5, kills=(0.1, 0.4), start_after=1.0, limit=90.0)


@dataclass(frozen=True, slots=True)
class RunReport:
    """What happened, from a look at every single job after the workers had stopped, and all that was seen before."""

    audit: Audit
    watch: Watch
    finished: bool


class TerminalRun:
    """One run of the demo."""

    def __init__(
        self, plan: RunPlan, *, app: Rowlock, crew: WorkerProcesses, database: ReconnectingSyncConnection
    ) -> None:
        self._plan = plan
        self._app = app
        self._crew = crew
        self._ledger = JobLog()
        self._watch = Watch(database=database, ledger=self._ledger, crew=crew)
        self._calls = stream(Random(), longest=plan.longest)
        self._fed_at = 0.0
        self._credit = 0.0
        self._wanted = plan.jobs
        self._next_kill = plan.kills[0]

    def run(self, show: Callable[[DemoState], None], asked_to_stop: Callable[[], bool]) -> RunReport:
        """Play until it is over or somebody asks to stop; then stop the workers and look for every job."""
        while not self._is_over() and not asked_to_stop():
            self._feed()
            self._mind_crew()
            self._watch.look()
            self._kill_when_due()
            show(self._watch.scene())
            time.sleep(_TICK)
        show(self._watch.scene("Stopping: workers finish or hand back what they hold, then every job is looked for."))
        finished = self._has_finished()
        self._crew.stop()
        self._watch.look()
        return RunReport(audit=self._watch.audit(), watch=self._watch, finished=finished)

    def _is_over(self) -> bool:
        return self._watch.at > self._plan.limit or (self._plan.jobs is not None and self._has_finished())

    def _has_finished(self) -> bool:
        return len(self._ledger.enqueued) >= (self._wanted or 0) and not self._ledger.open and not self._kills_missing()

    def _kills_missing(self) -> bool:
        return self._plan.jobs is not None and len(self._watch.victims) < len(self._plan.kills)

    def _feed(self) -> None:
        """Enqueue what is due; the stream swells and ebbs a little."""
        at = self._watch.at
        swell = 1.0 if self._plan.jobs else 1.0 + 0.4 * math.sin(at / 4)
        self._credit = min(self._credit + (at - self._fed_at) * self._plan.rate * swell, self._plan.rate)
        self._fed_at = at
        if self._wanted is not None and not self._ledger.open and self._ledger.enqueued and self._kills_missing():
            self._wanted = max(self._wanted, len(self._ledger.enqueued)) + 50  # the machine was faster than the plan
        room = _MOST_OPEN - len(self._ledger.open)
        if self._wanted is not None:
            room = min(room, self._wanted - len(self._ledger.enqueued))
        count = min(int(self._credit), room)
        if count > 0:
            self._credit -= count
            self._ledger.add(str(job.id) for job in self._app.enqueue_many(islice(self._calls, count)))

    def _mind_crew(self) -> None:
        for member in self._crew.fallen():
            self._watch.fell(member)
        for member in self._crew.start_again():
            self._watch.started(member)

    def _kill_when_due(self) -> None:
        kills, killed = self._plan.kills, len(self._watch.victims)
        if self._plan.jobs is None:
            if self._watch.at >= self._next_kill and all(member.is_alive for member in self._crew) and self._kill_one():
                self._next_kill = self._watch.at + kills[(killed + 1) % len(kills)]
        elif killed < len(kills) and self._ledger.ended.total() >= kills[killed] * self._plan.jobs:
            self._kill_one()

    def _kill_one(self) -> bool:
        """Kill a worker, once it has been seen to hold jobs while it could not move."""
        for member in sorted(self._crew, key=self._preference):
            worker = self._watch.workers.get(member.number)
            if worker is None or worker.lease <= 0 or not member.is_alive:
                continue
            self._crew.freeze(member)
            held = self._surely_held(worker.id)
            if held:
                self._crew.kill(member, start_after=self._plan.start_after)
                self._watch.killed(member, worker.id, held)
                return True
            self._crew.thaw(member)
        return False

    def _preference(self, member: WorkerProcess) -> tuple[bool, int]:
        """Not the same one twice in a row, and the busiest first."""
        last = self._watch.victims[-1].number if self._watch.victims else None
        worker = self._watch.workers.get(member.number)
        return member.number == last, -worker.held if worker else 0

    def _surely_held(self, worker: str) -> int:
        before = -1
        while (held := self._watch.held_by(worker)) != before:
            before = held
            time.sleep(_SETTLING)
        return held


@contextmanager
def started(plan: RunPlan, folder: Path) -> Iterator[TerminalRun]:
    """Everything that a demo needs, running: a server in the folder, an empty database, the workers."""
    with ExitStack() as stack:
        server, app, url = stack.enter_context(prepared(folder))
        database = ReconnectingSyncConnection(url, app.database.schema, name="rowlock demo")
        stack.callback(database.close)
        crew = stack.enter_context(WorkerProcesses(size=WORKERS, url=url, folder=server.folder))
        yield TerminalRun(plan, app=app, crew=crew, database=database)


@contextmanager
def prepared(folder: Path) -> Iterator[tuple[EmbeddedPostgres, Rowlock, str]]:
    """A server in the folder, the demo's app on an empty database there, and its address."""
    with ExitStack() as stack:
        server = stack.enter_context(EmbeddedPostgres(folder))
        if not server.owner:
            raise EmbeddedError(f"something runs in {server.folder} already; end it, or give the demo another folder")
        # Nothing in here belongs into anyone's repository.
        (server.folder / ".gitignore").write_text("*\n", encoding="utf-8")
        url = _empty_database(server)
        app = stack.enter_context(Rowlock(url))
        stack.enter_context(readable_errors(app.database))
        app.include(tasks)
        app.migrate()
        yield server, app, url


def _empty_database(server: EmbeddedPostgres) -> str:
    """A database of the demo's own, made anew: whatever else lies in the folder is left alone."""
    with connect(server.url, name="rowlock demo") as connection:
        connection.execute(f"drop database if exists {DATABASE} with (force)")
        connection.execute(f"create database {DATABASE}")
    return server.url_of(DATABASE)
