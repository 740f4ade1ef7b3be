"""PostgreSQL crashes at each statement around the wake of a workflow, and whoever is told of an error sends it again.

An immediate restart takes the claims along whose commit has not reached the disk. What was acknowledged is there: a
workflow that was told a word goes on with it, and one that was cancelled ends, however often somebody said so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import Event

import psycopg
import pytest

from rowlock import RowlockError
from tests.faults import workflows
from tests.faults.conftest import MakeStage
from tests.faults.proxy import Call, Proxy
from tests.faults.servers import Cluster, Servers, complaints
from tests.faults.stage import LIMIT, Stage
from tests.faults.striking import Point
from tests.faults.victims import CLAIM, SETTLE, at
from tests.waiting import until

CALLER, OWN = "rowlock", "own transaction"

BEGINNING = at(CLAIM, "job_claim") + at(SETTLE, "step_record", "workflow_return")
SAYING = [Point("signal_send", CALLER), Point("transaction_commit", OWN)]
WAKING = at(CLAIM, "job_claim") + at(SETTLE, "step_record", "workflow_settle")
ENDING = at(CALLER, "job_cancel") + at(CLAIM, "job_claim") + at(SETTLE, "workflow_settle")


@dataclass
class Site:
    """A server that crashes where a statement passes the proxy in front of it."""

    server: Cluster
    proxy: Proxy
    stage: Stage

    def crashes_at(self, point: Point, *, after: bool = True) -> Event:
        """Crash and start it again when the statement comes, or when its answer does, which then nobody hears."""
        happened = Event()

        def crash() -> None:
            self.server.halt()
            self.server.start()
            happened.set()
            raise ConnectionResetError

        self.proxy.forget()
        self.proxy.on(point.name, Call(crash, after=after), nth=point.nth, who=point.who)
        return happened


@pytest.fixture
def site(servers: Servers, make_stage: MakeStage) -> Iterator[Site]:
    server = servers.start({"wal_writer_delay": "10s"})  # so that claims are lost for certain
    with Proxy(server.url) as proxy:
        yield Site(server, proxy, make_stage(proxy.url, lease=30, app="tests.faults.workflows"))


def test_a_workflow_goes_on_with_what_it_was_told_wherever_the_server_crashes(site: Site) -> None:
    site.stage.crew.start()[0].works()

    for point in BEGINNING:
        happened = site.crashes_at(point)
        job = begin(site)
        until(happened.is_set, what=f"a crash at {point}", limit=LIMIT)
        insist(lambda: tell(site, job))  # noqa: B023  it is called in here
    for after in (False, True):
        for point in SAYING:
            job = begin(site)
            happened = site.crashes_at(point, after=after)
            insist(lambda: tell(site, job, in_own_transaction=point.who == OWN))  # noqa: B023  it is called in here
            # The server takes connections again before the thread that has started it says so.
            until(happened.is_set, what=f"a crash at {point}", limit=LIMIT)
    for point in WAKING:
        job = begin(site)
        happened = site.crashes_at(point)
        insist(lambda: tell(site, job))  # noqa: B023  it is called in here
        until(happened.is_set, what=f"a crash at {point}", limit=LIMIT)

    with site.server.connect() as db:
        site.stage.all_is_well(db, exact_crashes=False)
        query = "select distinct state, json_array_length(steps -> 'signals'), crashes from rowlock.history"
        assert db.execute(query).fetchall() == [("succeeded", 1, 0)]
    words = [(line["n"], line["value"]) for line in site.stage.oracle.read("knows") if line["step"] == "word"]
    assert len(set(words)) == len(BEGINNING) + 2 * len(SAYING) + len(WAKING)
    assert complaints(site.server.log) == []


def test_a_cancelled_workflow_ends_wherever_the_server_crashes(site: Site) -> None:
    site.stage.crew.start()[0].works()

    for point in ENDING:
        job = begin(site)
        happened = site.crashes_at(point)
        insist(lambda: site.stage.app.jobs.get(job).cancel())  # noqa: B023  it is called in here
        until(happened.is_set, what=f"a crash at {point}", limit=LIMIT)

    with site.server.connect() as db:
        site.stage.all_is_well(db, exact_crashes=False)
        query = "select state, crashes, count(*)::integer from rowlock.history group by 1, 2"
        assert db.execute(query).fetchall() == [("cancelled", 0, len(ENDING))]
    assert complaints(site.server.log) == []


def begin(site: Site) -> str:
    """A workflow that waits to be told something."""
    job = site.stage.sender.send(workflows.take_a_word.bind)
    waits = "select waits_for = 'signal' from rowlock.jobs where id = %s"
    until(lambda: outside(site, waits, job), what="a workflow that waits", limit=LIMIT)
    return job


def outside(site: Site, query: str, *params: object) -> object:
    """What a look around the proxy finds; nothing while the server is away."""
    try:
        with site.server.connect() as db:
            row = db.execute(query.encode(), params).fetchone()
    except psycopg.OperationalError:
        return None
    return None if row is None else row[0]


def tell(site: Site, job: str, *, in_own_transaction: bool = False) -> None:
    """Send the word once, alone or in a transaction of the sender's own."""
    if not in_own_transaction:
        site.stage.app.signal(job, "word", "said", key="once")
        return
    with psycopg.connect(site.proxy.url, application_name=OWN) as connection:
        site.stage.app.signal(job, "word", "said", key="once", connection=connection)


def insist(do: Callable[[], object]) -> None:
    """Do it until it is acknowledged, as whoever is told of an error can."""

    def is_done() -> bool:
        try:
            do()
        except (psycopg.Error, RowlockError):
            return False
        return True

    until(is_done, what="an answer", limit=LIMIT)
