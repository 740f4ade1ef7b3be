"""Where the tests of networks and of stopping play: a database, a proxy before it, workers, an oracle, and a look."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import psycopg
import pytest
from psycopg.rows import TupleRow

from rowlock import Job, Rowlock
from tests.faults.crew import LIMIT, Crew, Member
from tests.faults.oracle import Line, Oracle
from tests.faults.proxy import Proxy
from tests.waiting import until


@dataclass(frozen=True, slots=True)
class Ending:
    """How a job ended; `token` is that of the attempt whose outcome was accepted, where the handler answered it."""

    state: str
    token: str | None
    failures: int
    crashes: int
    claims: int


@dataclass
class Scene:
    """`app` and `db` go straight to the database; workers go through the proxy unless they are told otherwise."""

    url: str
    app: Rowlock
    db: psycopg.Connection[TupleRow]
    proxy: Proxy
    crew: Crew
    oracle: Oracle

    def worker(self, *, direct: bool = False, **options: float) -> Member:
        """Start a worker, and wait until it works."""
        [member] = self.crew.start(1, url=self.url if direct else self.proxy.url, environment=None, **options)
        return member.works()

    def patient_worker(self, *, deadline: float = 0.5, **options: float) -> Member:
        """One whose lease outlasts the faults of a test, and which notices them soon."""
        return self.worker(direct=False, lease=30, renew=0.5, deadline=deadline, **options)

    # What handlers told

    def began(self, job: Job[object], *, times: int = 1) -> Line:
        """Wait for the nth attempt of a job to begin."""
        attempts = self._wait(lambda: self.oracle.by("job", "began").get(str(job.id), [])[:times], least=times)
        return attempts[-1]

    def broken_off(self, attempt: Line) -> Line:
        """Wait until an attempt was broken off."""
        return self._wait(lambda: self.oracle.by("token", "broken off").get(attempt["token"], []))[0]

    @staticmethod
    def _wait(look: Callable[[], list[Line]], *, least: int = 1) -> list[Line]:
        return until(lambda: lines if len(lines := look()) >= least else [], what="a handler's word", limit=LIMIT)

    # What the database shows

    def endings(self) -> dict[str, Ending]:
        """How the jobs in history ended, by id; a job is there once."""
        rows = self.db.execute(
            "select id::text, state, result #>> '{}', failures, crashes, claims from rowlock.history"
        ).fetchall()
        assert len({row[0] for row in rows}) == len(rows), "a job has ended twice"
        return {row[0]: Ending(*row[1:]) for row in rows}

    def end_of(self, *jobs: Job[object]) -> list[Ending]:
        """Wait until these jobs have ended; answers how."""
        ids = [str(job.id) for job in jobs]
        until(lambda: self.endings().keys() >= set(ids), what="their end", limit=LIMIT)
        found = self.endings()
        return [found[job_id] for job_id in ids]

    def sessions(self) -> dict[str, set[int]]:
        """The backends of workers' and waiters' sessions on this database, by the name that they bear."""
        rows = self.db.execute(
            """select application_name, pid from pg_stat_activity
            where application_name like 'rowlock %' and datname = current_database()"""
        ).fetchall()
        found: dict[str, set[int]] = defaultdict(set)
        for name, pid in rows:
            found[name].add(pid)
        return found

    def count(self, condition: str) -> int:
        """How many live jobs are so."""
        row = self.db.execute(f"select count(*) from rowlock.jobs where {condition}".encode()).fetchone()
        assert row is not None
        return int(row[0])


@pytest.fixture
def scene(
    *,
    url: str,
    app: Rowlock,
    db: psycopg.Connection[TupleRow],
    proxy: Proxy,
    make_crew: Callable[[str], Crew],
    oracle: Oracle,
) -> Scene:
    """A scene, without workers yet."""
    return Scene(url, app, db, proxy, make_crew(url), oracle)
