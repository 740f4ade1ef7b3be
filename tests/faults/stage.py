"""Where the tests that kill workers and servers play: a recorded database, a crew on it, an oracle beside it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import psycopg
from psycopg.rows import TupleRow

from rowlock import Rowlock
from tests.faults import recorder
from tests.faults.check import Verdict, assert_all_is_well, check
from tests.faults.crew import Crew
from tests.faults.oracle import Line, Oracle
from tests.faults.seeds import Trial
from tests.faults.sending import Sender
from tests.waiting import until

LIMIT = 120.0


@dataclass(frozen=True)
class Stage:
    """One database, and everybody around it."""

    url: str
    app: Rowlock
    crew: Crew
    oracle: Oracle
    sender: Sender
    trial: Trial

    @contextmanager
    def look(self) -> Iterator[psycopg.Connection[TupleRow]]:
        """A look into the database, from outside the app."""
        with psycopg.connect(self.url, autocommit=True, connect_timeout=30) as db:
            yield db

    def one(self, query: str, *params: object) -> object:
        """The one value that a query gives; None when there is no row."""
        with self.look() as db:
            row = db.execute(query.encode(), params).fetchone()
            return None if row is None else row[0]

    def began(self, job: str, *, times: int = 1) -> Line:
        """Wait for the nth attempt of a job to begin."""
        attempts = until(
            lambda: self.oracle.by("job", "began").get(job, [])[times - 1 :], what=f"attempt {times}", limit=LIMIT
        )
        return attempts[0]

    def drained(self, db: psycopg.Connection[TupleRow]) -> None:
        """Wait until every job has ended."""
        query = "select count(*) from rowlock.jobs"
        until(lambda: db.execute(query).fetchone() == (0,), what="the end of all jobs", limit=LIMIT)

    def all_is_well(self, db: psycopg.Connection[TupleRow], *, exact_crashes: bool = True) -> Verdict:
        """Let every job end and stop the crew: nobody has left by himself, and every invariant holds."""
        self.drained(db)
        assert self.crew.fallen() == []
        self.crew.stop()
        verdict = check(self.oracle, db, exact_crashes=exact_crashes)
        self.trial.count(**verdict.counts)
        assert_all_is_well(verdict)
        return verdict


@contextmanager
def set_stage(url: str, *, crew: Crew, oracle: Oracle, trial: Trial) -> Iterator[Stage]:
    """Record what happens in the database at this address."""
    with ExitStack() as after:
        with psycopg.connect(url, autocommit=True) as db:
            recorder.install(db)
        app = after.enter_context(Rowlock(url))
        yield Stage(url, app, crew, oracle, Sender(app, oracle), trial)
