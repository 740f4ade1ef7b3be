"""Workers behind a proxy that are struck at one statement or another, and the account of what became of their jobs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
from psycopg.rows import TupleRow

from rowlock import Rowlock
from tests.faults.check import assert_all_is_well, check
from tests.faults.crew import LIMIT, Crew, Member
from tests.faults.oracle import Oracle
from tests.faults.proxy import Proxy
from tests.faults.seeds import Trial
from tests.faults.sending import Sender
from tests.faults.striking import Mode, Point, strike
from tests.waiting import until

Db = psycopg.Connection[TupleRow]

OPTIONS = {"lease": 3, "renew": 0.4, "deadline": 0.6, "grace": 0.2, "slots": 4, "app": "tests.faults.stations"}

CLAIM, SETTLE, RENEW, START = "rowlock claim", "rowlock settle", "rowlock renew", "rowlock start"


def at(who: str, *names: str) -> list[Point]:
    return [Point(name, who) for name in names]


@dataclass
class Victims:
    """A database behind a proxy, and the workers that are struck there."""

    url: str
    proxy: Proxy
    crew: Crew
    oracle: Oracle
    app: Rowlock
    db: Db

    def __post_init__(self) -> None:
        self.sender = Sender(self.app, self.oracle)
        self.runs = 0

    def victim(self) -> Member:
        """A worker that works behind the proxy: the last one, if it lives."""
        [*_, last] = self.crew.living() or self.crew.start()
        return last.works()

    @contextmanager
    def struck(self, point: Point, mode: Mode, *, victim: Callable[[], Member]) -> Iterator[threading.Event]:
        """What is done inside it leads to the statement, which is struck; then all is well again."""
        self.proxy.forget()
        happened = strike(self.proxy, point, mode, kill=lambda: victim().kill())
        try:
            yield happened
            until(happened.is_set, what=f"{mode} at {point}", limit=LIMIT)
        except BaseException as error:
            error.add_note(f"{mode} at {point}")
            raise
        finally:
            self.proxy.forget()
        self.runs += 1

    def state(self, job: str) -> str | None:
        """Where a job is."""
        found = self.db.execute(
            """
            select state from rowlock.jobs where id = %(id)s
            union all select state from rowlock.history where id = %(id)s
            """,
            {"id": job},
        ).fetchall()
        assert len(found) == 1, f"job {job} is in {len(found)} places"
        return str(found[0][0])

    def ends(self, job: str, *states: str) -> None:
        """Wait for a job's end."""
        live = {"ready", "running", "waiting"}
        until(lambda: self.state(job) not in live, what=f"the end of job {job}", limit=LIMIT)
        assert self.state(job) in states

    def runs_now(self, job: str) -> None:
        until(lambda: self.state(job) == "running", what=f"a start of job {job}", limit=LIMIT)

    def conclude(self, trial: Trial, *, exact_crashes: bool, queues: Sequence[str] = ("default",)) -> None:
        """Faults off: a worker that nothing stands before does what is left, and all is well."""
        self.crew.kill()
        self.crew.start(url=self.url, queues=",".join(queues))[0].works()
        query = "select not exists (select from rowlock.jobs)"
        until(lambda: self.db.execute(query).fetchone() == (True,), what="the end of all jobs", limit=LIMIT)
        self.crew.stop()
        assert_all_is_well(check(self.oracle, self.db, exact_crashes=exact_crashes))
        trial.counts.pop("seed")
        trial.count(runs=self.runs)
