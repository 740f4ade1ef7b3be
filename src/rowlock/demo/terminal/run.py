"""Run: feed the queue, kill a worker now and then, and watch."""

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
from rowlock.db.thread_connection import ReconnectingSyncConnection
from rowlock.demo.database import demo_database
from rowlock.demo.job_log import Audit, JobLog
from rowlock.demo.tasks import stream
from rowlock.demo.watch import DemoState, Watch
from rowlock.demo.workers import WORKERS, WorkerProcess, WorkerProcesses

_TICK = 0.2
# More than this waiting, and the stream pauses: a slow machine shows the same demo at its own speed.
_MOST_OPEN = 600
# Seconds between two reads of what a frozen worker holds: a statement that it sent before may still be under way.
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
    """The result: an audit of every single job after the workers have stopped, and all that was watched before."""

    audit: Audit
    watch: Watch
    finished: bool


class TerminalRun:
    """One run of the demo."""

    def __init__(
        self, plan: RunPlan, *, app: Rowlock, processes: WorkerProcesses, database: ReconnectingSyncConnection
    ) -> None:
        self._plan = plan
        self._app = app
        self._processes = processes
        self._job_log = JobLog()
        self._watch = Watch(database=database, job_log=self._job_log, processes=processes)
        self._calls = stream(Random(), longest=plan.longest)
        self._fed_at = 0.0
        self._credit = 0.0
        self._wanted = plan.jobs
        self._next_kill = plan.kills[0]

    def run(self, show: Callable[[DemoState], None], asked_to_stop: Callable[[], bool]) -> RunReport:
        """Run until the end or until asked to stop; then stop the workers and look for every job."""
        while not self._is_over() and not asked_to_stop():
            self._feed()
            self._mind_processes()
            self._watch.refresh()
            self._kill_when_due()
            show(self._watch.state())
            time.sleep(_TICK)
        show(self._watch.state("Stopping: workers finish or hand back what they hold, then every job is looked for."))
        finished = self._has_finished()
        self._processes.stop()
        self._watch.refresh()
        return RunReport(audit=self._watch.audit(), watch=self._watch, finished=finished)

    def _is_over(self) -> bool:
        return self._watch.at > self._plan.limit or (self._plan.jobs is not None and self._has_finished())

    def _has_finished(self) -> bool:
        return (
            len(self._job_log.enqueued) >= (self._wanted or 0) and not self._job_log.open and not self._kills_missing()
        )

    def _kills_missing(self) -> bool:
        return self._plan.jobs is not None and len(self._watch.victims) < len(self._plan.kills)

    def _feed(self) -> None:
        """Enqueue what is due; the stream swells and ebbs a little."""
        at = self._watch.at
        swell = 1.0 if self._plan.jobs else 1.0 + 0.4 * math.sin(at / 4)
        self._credit = min(self._credit + (at - self._fed_at) * self._plan.rate * swell, self._plan.rate)
        self._fed_at = at
        if self._wanted is not None and not self._job_log.open and self._job_log.enqueued and self._kills_missing():
            self._wanted = max(self._wanted, len(self._job_log.enqueued)) + 50  # the machine was faster than the plan
        room = _MOST_OPEN - len(self._job_log.open)
        if self._wanted is not None:
            room = min(room, self._wanted - len(self._job_log.enqueued))
        count = min(int(self._credit), room)
        if count > 0:
            self._credit -= count
            self._job_log.add(str(job.id) for job in self._app.enqueue_many(islice(self._calls, count)))

    def _mind_processes(self) -> None:
        for member in self._processes.fallen():
            self._watch.fell(member)
        for member in self._processes.start_again():
            self._watch.started(member)

    def _kill_when_due(self) -> None:
        kills, killed = self._plan.kills, len(self._watch.victims)
        if self._plan.jobs is None:
            if (
                self._watch.at >= self._next_kill
                and all(member.is_alive for member in self._processes)
                and self._kill_one()
            ):
                self._next_kill = self._watch.at + kills[(killed + 1) % len(kills)]
        elif killed < len(kills) and self._job_log.ended.total() >= kills[killed] * self._plan.jobs:
            self._kill_one()

    def _kill_one(self) -> bool:
        """Kill a worker, once it has been seen to hold jobs while it could not move."""
        for member in sorted(self._processes, key=self._preference):
            worker = self._watch.workers.get(member.number)
            if worker is None or worker.lease <= 0 or not member.is_alive:
                continue
            self._processes.freeze(member)
            held = self._surely_held(worker.id)
            if held:
                self._processes.kill(member, start_after=self._plan.start_after)
                self._watch.killed(member, worker.id, held)
                return True
            self._processes.thaw(member)
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
    """A run with all that it needs: a server in the folder, an empty database, the workers."""
    with ExitStack() as stack:
        server, app, url = stack.enter_context(demo_database(folder))
        database = ReconnectingSyncConnection(url, app.database.schema, name="rowlock demo")
        stack.callback(database.close)
        processes = stack.enter_context(WorkerProcesses(size=WORKERS, url=url, folder=server.folder))
        yield TerminalRun(plan, app=app, processes=processes, database=database)
