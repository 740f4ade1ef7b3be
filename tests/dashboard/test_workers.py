"""The page of workers: slots, leases, what they hold, and what becomes of those that have died."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from rowlock import Rowlock, current_job
from tests.dashboard.browser import Browser
from tests.rows import Db, put
from tests.waiting import until
from tests.worker.working import one, working

LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


def worker(db: Db, *, lease: str = "20 s", slots: int = 10, held: int = 0, **columns: Any) -> UUID:  # noqa: ANN401
    """A worker on the books, and jobs that it holds."""
    found = uuid4()
    row = {
        "host": "h",
        "pid": 1,
        "queues": ["default"],
        "stuck": 0,
        "stopping": False,
        "restarts": 0,
        "fault": None,
        "failing": None,
        **columns,
    }
    db.execute(
        """insert into rowlock.workers
               (id, host, pid, queues, slots, tasks, version, started_at, lease, lasts, stuck, stopping,
                restarts, fault, failing, failing_since)
           values (%(id)s, %(host)s, %(pid)s, %(queues)s, %(slots)s, '{}', '9.9', rowlock.now(),
               rowlock.now() + %(lease)s::interval, '30 s', %(stuck)s, %(stopping)s,
               %(restarts)s, %(fault)s, %(failing)s, rowlock.now() - interval '2 min')""",
        {**row, "id": found, "lease": lease, "slots": slots},
    )
    for _ in range(held):
        put(db, "running", worker=found)
    return found


def told(client: Browser) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get("/api/workers").json()["workers"]
    return found


def free_slots(page: str) -> int:
    """The squares that are drawn for slots without a job."""
    drawn = re.search(r'class="free" d="([^"]*)"', page)
    return 0 if drawn is None else drawn[1].count("z")


def test_without_a_worker_the_page_says_how_to_start_one(client: Browser) -> None:
    page = client.get("/workers").text

    assert "No worker is running" in page
    assert "rowlock worker --app MODULE" in page


def test_a_job_that_waits_for_a_slot_of_its_worker_is_told_from_one_that_runs(client: Browser, db: Db) -> None:
    holder = worker(db, slots=1)
    claimed = put(db, "running", worker=holder, begun=False, started_at=LONG_AGO)
    runs = put(db, "running", worker=holder, begun=True, started_at=datetime.now(UTC))

    [seen] = told(client)
    page = client.get("/workers").text

    assert [(job["id"], job["begun"]) for job in seen["jobs"]] == [(str(runs), True), (str(claimed), False)]
    assert page.count("claimed, waits for a slot") == 1
    assert "claimed, waits for a slot" in client.get(f"/jobs/{claimed}").text
    assert "claimed, waits for a slot" not in client.get(f"/jobs/{runs}").text


def test_a_worker_shows_what_it_runs_and_how_far_that_is(client: Browser, app: Rowlock, db: Db) -> None:
    @app.task(name="long")
    def long() -> None:
        current_job().progress(0.25, note="row 1 of <4>")
        until(lambda: one(db_of_handler, "select exists (select from rowlock.jobs where task = 'stop')"))

    db_of_handler = db
    job = long.enqueue()
    with working(app, slots=7):
        until(lambda: one(db, "select progress is not null from rowlock.jobs where id = %s", str(job.id)))
        [seen] = told(client)
        page = client.get("/workers").text
        put(db, "waiting", task="stop")

    assert (seen["slots"], seen["held"], seen["queues"]) == (7, 1, ["default"])
    assert seen["jobs"][0]["task"] == "long"
    assert seen["jobs"][0]["progress"]["share"] == 0.25
    assert "row 1 of &lt;4&gt;" in page
    assert "<strong>1</strong> of 7" in page
    assert free_slots(page) == 6


def test_the_jobs_of_a_worker_are_shown_up_to_ten(client: Browser, db: Db) -> None:
    worker(db, slots=100, held=23)

    page = client.get("/workers").text

    assert page.count('<li id="held-') == 10
    assert "and 13 more jobs" in page
    assert free_slots(page) == 77


def test_a_worker_of_very_many_slots_has_a_bar(client: Browser, db: Db) -> None:
    worker(db, slots=1000, held=3)

    page = client.get("/workers").text

    assert 'class="free"' not in page
    assert '<progress max="1000" value="3"' in page


def test_what_is_looked_at_of_a_worker_is_bounded(client: Browser, db: Db) -> None:
    worker(db, slots=1000, held=300)

    [seen] = told(client)

    assert seen["held"] == 300
    assert len(seen["jobs"]) == 256


def test_a_ghost_says_what_becomes_of_its_jobs(client: Browser, db: Db) -> None:
    worker(db, lease="-2 s", held=5, host="ghost")

    alone = client.get("/workers").text
    worker(db, host="alive")
    beside = client.get("/workers").text

    assert "Its 5 jobs wait for a worker that rescues them, and there is none: start one." in alone
    assert "Its 5 jobs are rescued within seconds, by any other worker." in beside
    assert beside.index("ghost") < beside.index("alive")


def test_a_late_worker_says_when_it_is_given_up(client: Browser, db: Db) -> None:
    worker(db, lease="9.9 s", held=1)

    page = client.get("/workers").text

    assert "It has not renewed its lease for 20 s. Unless it does, its job is rescued in 9." in page


def test_stuck_and_stopping_workers_say_so(client: Browser, db: Db) -> None:
    worker(db, stuck=2, stopping=True, restarts=3, fault="KeyError: 'a'", failing="rowlock settle: job_settle failed")

    page = client.get("/workers").text

    assert "2 attempts timed out and go on all the same" in page
    assert "stopping" in page
    assert "It restarted 3 times in a row after an internal error" in page
    assert 'It has been trying again and again for 2 min: <span class="wrap">rowlock settle: job_settle failed' in page


def test_a_worker_can_be_looked_for_by_host_and_pid(client: Browser, db: Db) -> None:
    worker(db, host="eu-1", pid=17)
    worker(db, host="us_1", pid=18)

    found = client.get("/api/workers", params={"named": "EU-1:1"}).json()["workers"]

    assert [one["host"] for one in found] == ["eu-1"]
    assert client.get("/api/workers", params={"named": "%"}).json()["workers"] == []


def test_of_a_large_fleet_the_first_are_shown(client: Browser, db: Db) -> None:
    for number in range(65):
        worker(db, host=f"host-{number:02}")

    fleet = client.get("/api/workers").json()

    assert len(fleet["workers"]) == 60
    assert fleet["more"]
    assert "There are more workers; narrow them down by host." in client.get("/workers").text
