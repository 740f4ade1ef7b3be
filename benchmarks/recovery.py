"""How soon jobs run again after a worker or PostgreSQL was killed. Seconds, each against the most that is allowed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from benchmarks.arena import FOLDER, Arena
from benchmarks.measure import Broken, Case, Effort, Target, Track, percentile
from benchmarks.tasks import SCHEMA, app, hold, noop
from rowlock import Rowlock
from rowlock.db.embedded.server import EmbeddedPostgres

_ELSEWHERE_WITHIN = 5.0
_BACK_WITHIN = 3.0
_HANDED_BACK_WITHIN = 0.5
_LEASE = timedelta(seconds=30)
_SHORT_LEASE = timedelta(seconds=6)
_SOON = 60.0
_ALLOWED = "the most that is allowed"
# How long PostgreSQL is away: workers have then given up on quick tries.
_AWAY = timedelta(seconds=2)


def measure(arena: Arena, effort: Effort, track: Track) -> list[Case]:
    """Two workers of the command line with its default settings; the first holds all the jobs when it is killed."""
    jobs = effort.sized(full=100, quick=100)
    rounds = effort.repeated(full=5, quick=2)
    lease = _SHORT_LEASE if effort.quick else _LEASE
    track.begin(rounds * 3 + 1)
    killed = [
        _rounds_of(arena, jobs, track, f"kill -9, {number + 1} of {rounds}", signal.SIGKILL) for number in range(rounds)
    ]
    handed_back = [
        _rounds_of(arena, jobs, track, f"SIGTERM, {number + 1} of {rounds}", signal.SIGTERM, grace=timedelta(0))
        for number in range(rounds)
    ]
    pooled = _rounds_of(arena, jobs, track, "kill -9 behind a pooler", signal.SIGKILL, lease=lease, pooler=True)
    restarts = _restarts(rounds, track)
    within = lease.total_seconds() + _ELSEWHERE_WITHIN
    return [
        _case("kill -9", [max(waits) for waits in killed], limit=_ELSEWHERE_WITHIN, jobs=jobs),
        _case("kill -9, pooler", [max(pooled)], limit=within, jobs=jobs, lease=lease.total_seconds()),
        _case("restart", restarts, limit=_BACK_WITHIN, away=_AWAY.total_seconds()),
        _case("SIGTERM", [percentile(waits, 0.95) for waits in handed_back], limit=_HANDED_BACK_WITHIN, jobs=jobs),
    ]


def _case(case: str, seconds: list[float], *, limit: float, **details: object) -> Case:
    return Case(
        scenario="recovery",
        case=case,
        unit="s",
        rowlock_rounds=seconds,
        limit_rounds=[limit],
        limit_is=_ALLOWED,
        target=Target(at_most=limit),
        details={"worst": round(max(seconds), 3), **details},
    )


def _rounds_of(
    arena: Arena,
    jobs: int,
    track: Track,
    words: str,
    number: signal.Signals,
    *,
    grace: timedelta | None = None,
    lease: timedelta = _LEASE,
    pooler: bool = False,
) -> list[float]:
    """Seconds from the signal until each job was claimed by the other worker; all of them are running then."""
    track.step(words)
    arena.clear()
    options = [] if grace is None else ["--grace", f"{grace.total_seconds():g}"]
    options += ["--lease", f"{lease.total_seconds():g}"]
    environment = {"ROWLOCK_POOLER": "1"} if pooler else {}
    with _worker(options, environment) as first:
        app.enqueue_many([hold.bind(n) for n in range(jobs)])
        _until(lambda: _running(arena) == jobs, "all jobs running")
        with _worker(options, environment) as other:
            _until(lambda: _is_there(arena, other.pid, parks=not pooler), "the other worker there")
            at = arena.ask(f"select {SCHEMA}.now()")
            first.send_signal(number)
            _until(lambda: _running(arena, since=at) == jobs, "all jobs running elsewhere")
            rows = arena.connection.execute(
                f"""
                select extract(epoch from started_at - %s::timestamptz)::float8
                from {SCHEMA}.jobs
                where state = 'running'
                """,
                [at],
            ).fetchall()
    return [wait for (wait,) in rows]


def _restarts(rounds: int, track: Track) -> list[float]:
    """Seconds from the first connection that a restarted server accepts until a job is done."""
    folder = Path(f"{FOLDER}-recovery")  # a server of its own: whatever else ran on the arena's would be cut off, too
    shutil.rmtree(folder, ignore_errors=True)
    waits = []
    with EmbeddedPostgres(folder) as server, Rowlock(server.url, schema=SCHEMA) as there:
        there.migrate()
        with _worker([], {"ROWLOCK_URL": server.url}):
            for number in range(rounds):
                track.step(f"restart, {number + 1} of {rounds}")
                _done(there, number)
                server.stop()
                time.sleep(_AWAY.total_seconds())
                server.start()
                back = time.monotonic()
                _done(there, number)
                waits.append(time.monotonic() - back)
    shutil.rmtree(folder, ignore_errors=True)
    return waits


def _done(there: Rowlock, number: int) -> None:
    there.enqueue(noop.name, n=number).result(timedelta(seconds=_SOON))


@contextmanager
def _worker(options: list[str], environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A worker of the command line; whatever it still is at the end, it is killed."""
    command = [
        sys.executable,
        "-m",
        "rowlock",
        "worker",
        "--app",
        "benchmarks.tasks:app",
        "--log-level",
        "error",
        *options,
    ]
    process = subprocess.Popen(command, env={**os.environ, **environment}, start_new_session=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _running(arena: Arena, since: object = None) -> int:
    row = arena.connection.execute(
        f"""
        select count(*)
        from {SCHEMA}.jobs
        where state = 'running' and started_at > coalesce(%s::timestamptz, '-infinity')
        """,
        [since],
    ).fetchone()
    return 0 if row is None else row[0]


def _is_there(arena: Arena, pid: int, *, parks: bool) -> bool:
    """Whether a worker is on the books, and waits for something to do where that is to be seen."""
    row = arena.connection.execute(
        f"""
        select exists (select from {SCHEMA}.parked where parked.worker = workers.id)
        from {SCHEMA}.workers
        where pid = %s and lease > {SCHEMA}.now()
        """,
        [pid],
    ).fetchone()
    return row is not None and (row[0] or not parks)


def _until(look: Callable[[], bool], what: str) -> None:
    limit = time.monotonic() + _SOON
    while not look():
        if time.monotonic() > limit:
            raise Broken(f"{what}: not within {_SOON:g} s")
        time.sleep(0.01)
