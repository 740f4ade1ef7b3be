"""The doctor: all green on a healthy database, and each planted fault turns its own lines and no others."""

from __future__ import annotations

import asyncio
import re
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from uuid import uuid4

import psycopg
import pytest

from rowlock import Keep, Rowlock, RowlockError
from rowlock.db.embedded import disposable
from rowlock.db.embedded.server import EmbeddedPostgres
from rowlock.doctor import locks
from rowlock.doctor.claims import judge_load
from rowlock.doctor.server import judge_clock, judge_server
from rowlock.doctor.tables import judge_tables
from rowlock.errors import InvalidOption, SchemaMissing
from rowlock.model.stats.stats import Connections
from rowlock.store import workers
from rowlock.store.doctor import checkup_facts, queries
from rowlock.store.doctor.blueprint import blueprint
from rowlock.store.doctor.checkup_facts import Facts, gather
from rowlock.store.doctor.queries import Peak
from rowlock.store.doctor.trial import JobCost, Trial
from rowlock.store.query import Query
from rowlock.testing import travel
from rowlock.types import Checkup, Finding
from tests.engine import Engine
from tests.rows import put
from tests.waiting import until
from tests.worker.process import worker_process
from tests.worker.working import Db, one, working

HOUR = timedelta(hours=1)
LIMIT = 60.0


@pytest.fixture
def patient(app: Rowlock) -> Rowlock:
    """An app on a healthy database of its own, which has a live worker on the books."""
    register(app)
    return app


@pytest.fixture(scope="module")
def bed(server: EmbeddedPostgres, template: str) -> Iterator[Rowlock]:
    """An app on a database in which faults are planted that are easily taken out again."""
    with Rowlock(disposable.create(server.url, template=template)) as app:
        yield app


@pytest.fixture
def same_bed(bed: Rowlock) -> Iterator[tuple[Rowlock, Db]]:
    """That app, healthy again, and a look into its database."""
    with psycopg.connect(bed.database.conninfo(), autocommit=True) as db:
        db.execute(
            "truncate rowlock.jobs, rowlock.pauses, rowlock.minutes, rowlock.events, rowlock.schedules, rowlock.firings"
        )
        db.execute("delete from rowlock.workers")
        register(bed)
        yield bed, db


def register(app: Rowlock, **facts: str) -> None:
    query = workers.register(
        worker=str(uuid4()),
        host="h",
        pid=1,
        queues=["default"],
        slots=100,
        tasks=[],
        schedules=[],
        version=version("rowlock"),
        lease=HOUR,
    )
    app.database.run(Query(query.name, {**query.params, **facts}, query.read))


def ill(checkup: Checkup) -> dict[str, str]:
    """What is not green, but for fsync, which the tests' server does without."""
    found: dict[str, str] = {one.name: one.level for one in checkup.findings if one.level != "green"}
    assert found.pop("fsync", None) == "red"
    return found


# Well


def test_a_fresh_database_with_a_live_worker_is_all_green(app: Rowlock, durable: None) -> None:
    with working(app):
        until(lambda: app.stats().fleet.workers)

        checkup = app.doctor()

    assert list(checkup.at_level("amber")) + list(checkup.at_level("red")) == []
    assert checkup.worst == "green"
    assert checkup["claim index"].figure == "jobs_ready"
    assert len({finding.name for finding in checkup.findings}) == len(checkup.findings)


def test_a_busy_healthy_database_is_all_green(same_bed: tuple[Rowlock, Db]) -> None:
    patient, db = same_bed
    patient.enqueue_many(patient.call("t") for _ in range(300))
    db.execute("vacuum analyze rowlock.jobs")

    checkup = patient.doctor()

    assert ill(checkup) == {}
    assert checkup["claim pages"].figure.endswith("for 10 jobs")


def test_another_schema_is_as_well(url: str) -> None:
    for name in ("jobs", "user"):  # a table's own name, and a word that must be quoted
        with Rowlock(url, schema=name) as app:
            app.migrate()
            register(app)

            assert ill(app.doctor()) == {}


def test_nothing_of_the_trial_stays(same_bed: tuple[Rowlock, Db]) -> None:
    patient, db = same_bed
    patient.enqueue("t")
    kept = "select id, state, claims, xmin::text from rowlock.jobs"
    before = db.execute(kept).fetchall()

    asyncio.run(patient.adoctor())

    assert db.execute(kept).fetchall() == before
    assert one(db, "select count(*) from rowlock.history") == 0
    assert one(db, "select count(*) from rowlock.workers") == 1


def test_a_checkup_is_a_value_that_json_can_hold(same_bed: tuple[Rowlock, Db]) -> None:
    patient, _ = same_bed
    checkup = patient.doctor()

    found = checkup.to_dict()

    assert (found["worst"], len(found["findings"])) == ("red", len(checkup.findings))
    assert found["findings"][0].keys() == {"group", "name", "level", "figure", "says", "do", "value"}
    with pytest.raises(KeyError):
        checkup["nothing of the kind"]


def test_a_finding_has_a_remedy_unless_it_is_green() -> None:
    with pytest.raises(ValueError, match="remedy"):
        Finding("server", "fsync", "red", "off", "so")
    with pytest.raises(ValueError, match="remedy"):
        Finding("server", "fsync", "green", "on", "so", do="nothing")


# Refused


def test_a_target_of_nothing_is_refused(app: Rowlock) -> None:
    with pytest.raises(InvalidOption, match="target"):
        app.doctor(target=timedelta(0))


def test_a_database_without_our_schema_is_said_to_have_none(database_url: str) -> None:
    with Rowlock(database_url) as app, pytest.raises(SchemaMissing, match="rowlock migrate"):
        app.doctor()


def test_inside_a_loop_the_sync_verb_is_refused(app: Rowlock) -> None:
    async def ask() -> None:
        app.doctor()

    with pytest.raises(RowlockError, match="adoctor"):
        asyncio.run(ask())


# Planted faults: what is done to the database, and the lines that must turn by it

FOR_THIS_DATABASE = "do $$ begin execute format('alter database %I set {}', current_database()); end $$"
PART = "do $$ begin execute format('drop table rowlock.history_%s', to_char(current_date + {}, 'YYYYMMDD')); end $$"
JOB = "select rowlock.enqueue('t', queue => '{}')"
SCHEDULE = """insert into rowlock.schedules (
        name, every, task, args, queue, priority, attempts, jitter, overlap, catch_up, at_boot, next_at, created_at,
        {columns}
    )
    values (
        'nightly', '1 hour', 't', '{{}}', 'default', 0, 1, '0', 'skip', 1, false, now() + {next_at}, now(), {values}
    )"""
MINUTE = """insert into rowlock.minutes values (date_trunc('minute', now()) - interval '2 min', gen_random_uuid(),
    'default', 't', {claimed}, {succeeded}, {failed}, 0, 0, 1, 1, 0, 0, 0, 0)"""

IN_THE_SCHEMA = {
    "a dropped index": ("drop index rowlock.jobs_ready", {"objects": "red", "claim index": "red"}),
    "a dropped function": ("drop function rowlock.cancel", {"objects": "red"}),
    "a dropped column": ("alter table rowlock.signals drop column taken_at", {"objects": "red"}),
    "a changed function": (
        "create or replace function rowlock.channel(queue text) returns text language sql return 'x' || queue",
        {"objects": "red"},
    ),
    "somebody's index": ("create index mine on rowlock.jobs (task)", {"objects": "amber"}),
    "somebody's trigger": (
        """create trigger mine before update on rowlock.jobs for each row
            execute function suppress_redundant_updates_trigger()""",
        {"objects": "amber"},
    ),
    "an index that was not finished": (
        "update pg_index set indisvalid = false where indexrelid = 'rowlock.keys_until'::regclass",
        {"indexes": "red"},
    ),
    "a definer without its path": (
        "alter function rowlock.drop_part(text, date, integer) reset search_path",
        {"definer functions": "red", "objects": "red"},
    ),
    "an unlogged table": ("alter table rowlock.jobs set unlogged", {"logged tables": "red"}),
    "a right for PUBLIC": ("grant select on rowlock.jobs to public", {"PUBLIC": "red"}),
    "a column for PUBLIC": ("grant select (args) on rowlock.jobs to public", {"PUBLIC": "red"}),
    "the schema for PUBLIC": ("grant usage on schema rowlock to public", {"PUBLIC": "amber"}),
    "an older schema": ("update rowlock.migrations set version = 0", {"migrations": "red", "objects": "amber"}),
    "a newer schema": ("update rowlock.migrations set version = 9999", {"migrations": "amber", "objects": "amber"}),
    "synchronous_commit off": (FOR_THIS_DATABASE.format("synchronous_commit = off"), {"synchronous_commit": "red"}),
    "another isolation": (
        FOR_THIS_DATABASE.format("default_transaction_isolation = serializable"),
        {"isolation": "amber"},
    ),
    "a server that is not to be written to": (
        FOR_THIS_DATABASE.format("default_transaction_read_only = on"),
        {"writable": "red", "claim index": "amber", "share of a core": "amber"},
    ),
    "autovacuum off for jobs": ("alter table rowlock.jobs set (autovacuum_enabled = off)", {"autovacuum": "red"}),
    "a missing part": (PART.format(3), {"partitions ahead": "red"}),
    "today's part missing": (PART.format(0), {"partitions ahead": "red"}),
    "parts that nobody makes": (PART.format(32), {"partitions ahead": "amber"}),
    "an expired part": (
        """create table rowlock.history_20240101 partition of rowlock.history
            for values from ('2024-01-01') to ('2024-01-02')""",
        {"retention": "red"},
    ),
    "a default part": (
        "create table rowlock.history_rest partition of rowlock.history default",
        {"default partition": "amber"},
    ),
}

AMONG_THE_ROWS = {
    "a job without a worker": (JOB.format("lonely"), {"queues without a worker": "amber"}),
    "an old job without a worker": (
        f"{JOB.format('lonely')}; update rowlock.jobs set run_at = now() - interval '2 min'",
        {"queues without a worker": "red", "oldest job": "amber"},
    ),
    "a very old job": (
        f"{JOB.format('default')}; update rowlock.jobs set run_at = now() - interval '20 min'",
        {"oldest job": "red"},
    ),
    "a job that waits for code": (
        f"{JOB.format('default')}; update rowlock.jobs set state = 'waiting', waits_for = 'code'",
        {"waiting for code": "amber"},
    ),
    "a forgotten pause": (
        "insert into rowlock.pauses values ('queue', 'mail', null, 'a move', 'ann', now() - interval '2 days')",
        {"pauses": "amber"},
    ),
    "failures": (MINUTE.format(claimed=50, succeeded=40, failed=10), {"failures": "amber"}),
    "an outage": (MINUTE.format(claimed=50, succeeded=10, failed=40), {"failures": "red"}),
    "a schedule that nobody fires": (
        SCHEDULE.format(columns="held", values="null", next_at="'-1 hour'::interval"),
        {"schedules": "red"},
    ),
    "a forgotten schedule": (
        SCHEDULE.format(columns="paused_at", values="now() - interval '2 days'", next_at="'1 hour'::interval"),
        {"schedules": "amber"},
    ),
    "a schedule that fired while the clock was ahead": (
        SCHEDULE.format(columns="last_at", values="now() + interval '9 hours'", next_at="'10 hours'::interval"),
        {"schedules": "amber"},
    ),
    "a schedule whose job does not end": (
        f"""{SCHEDULE.format(columns="held", values="null", next_at="'1 hour'::interval")};
            insert into rowlock.firings
            select 'nightly', now() - number * interval '1 hour', null, 'overlap', now()
            from generate_series(1, 3) as number""",
        {"idle schedules": "amber"},
    ),
    "a schedule that has made a job of one of its last slots": (
        f"""{SCHEDULE.format(columns="held", values="null", next_at="'1 hour'::interval")};
            insert into rowlock.firings
            select 'nightly', now() - number * interval '1 hour', case when number = 3 then gen_random_uuid() end,
                case when number < 3 then 'overlap' end, now()
            from generate_series(1, 4) as number""",
        {},
    ),
    "a schedule that was paused for one of its last slots": (
        f"""{SCHEDULE.format(columns="held", values="null", next_at="'1 hour'::interval")};
            insert into rowlock.firings
            select 'nightly', now() - number * interval '1 hour', null,
                case when number = 3 then 'paused' else 'overlap' end, now()
            from generate_series(1, 3) as number""",
        {},
    ),
    "an orphaned schedule": (
        SCHEDULE.format(columns="declared", values="'{}'", next_at="'1 hour'::interval"),
        {"orphaned schedules": "amber"},
    ),
    "no worker": ("delete from rowlock.workers", {"live workers": "amber"}),
    "no worker for a job": (
        f"delete from rowlock.workers; {JOB.format('default')}",
        {"live workers": "red", "queues without a worker": "amber"},
    ),
    "a dead worker and nobody else": (
        "update rowlock.workers set lease = now() - interval '1 min'",
        {"live workers": "amber", "leases": "red"},
    ),
    "a worker that has missed a renewal": (
        "update rowlock.workers set lease = rowlock.now() + lasts / 3",
        {"leases": "red"},
    ),
    "a worker that has missed a renewal beside a fresh one": (
        f"""insert into rowlock.workers (id, host, pid, queues, slots, tasks, version, started_at, lease, lasts)
            values (gen_random_uuid(), 'h', 2, '{{}}', 1, '{{}}', '{version("rowlock")}', now(),
                now() + interval '5 s', '30 s')""",
        {"leases": "amber"},
    ),
    "a blocked event loop": (
        "update rowlock.workers set blocked = 3, blocked_by = 'crunch 1'",
        {"event loops": "red"},
    ),
    "nothing moves beside free slots": (
        f"""{JOB.format("default")}; update rowlock.jobs set run_at = now() - interval '2 min';
            update rowlock.workers set started_at = now() - interval '1 hour'""",
        {"oldest job": "red"},
    ),
    "a slot that was missed though a worker lived": (
        f"""{SCHEDULE.format(columns="held", values="null", next_at="'1 hour'::interval")};
            update rowlock.workers set started_at = now() - interval '1 hour';
            insert into rowlock.firings values ('nightly', now() - interval '20 min', null, 'missed', now())""",
        {"schedules": "amber"},
    ),
    "a slot that was missed while there was no worker": (
        f"""{SCHEDULE.format(columns="held", values="null", next_at="'1 hour'::interval")};
            insert into rowlock.firings values ('nightly', now() - interval '20 min', null, 'missed', now())""",
        {},
    ),
    "a stuck attempt": ("update rowlock.workers set stuck = 1", {"stuck attempts": "amber"}),
    "a worker full of stuck attempts": ("update rowlock.workers set stuck = slots", {"stuck attempts": "red"}),
    "a worker that began anew": (
        "update rowlock.workers set restarts = 1, fault = 'KeyError: 1'",
        {"worker faults": "amber"},
    ),
    "a worker that begins anew again and again": (
        "update rowlock.workers set restarts = 3, fault = 'KeyError: 1'",
        {"worker faults": "red"},
    ),
    "a worker that cannot settle": (
        "update rowlock.workers set failing = 'job_settle failed', failing_since = now() - interval '1 min'",
        {"failing statements": "red"},
    ),
    "a suspect": (
        f"{JOB.format('default')}; update rowlock.jobs set state = 'waiting', waits_for = 'suspect', crashes = 2",
        {"suspects": "amber"},
    ),
    "slow claims": (
        "update rowlock.workers set claims = 10, claimed = 10, claim_seconds = 1, claim_slowest = 0.2",
        {"claim time": "amber"},
    ),
    "poison": ("insert into rowlock.events (kind, actor) values ('poisoned', 'w')", {"rescues": "amber"}),
    "many rescues": (
        "insert into rowlock.events (kind, actor) select 'rescued', 'w' from generate_series(1, 20)",
        {"rescues": "amber"},
    ),
    "too much load": (
        MINUTE.format(claimed=60_000_000, succeeded=60_000_000, failed=0),
        {"share of a core": "red"},
    ),
}


@pytest.mark.parametrize(("fault", "lines"), IN_THE_SCHEMA.values(), ids=IN_THE_SCHEMA.keys())
def test_a_fault_in_the_schema_turns_its_lines_and_no_others(
    patient: Rowlock, db: Db, fault: str, lines: dict[str, str]
) -> None:
    db.execute("set allow_system_table_mods = on")
    db.execute(fault.encode())
    patient.close()  # settings of a database are those of new sessions

    checkup = patient.doctor()

    assert ill(checkup) == lines
    assert all(finding.do for finding in checkup.findings if finding.level != "green")


@pytest.mark.parametrize(("fault", "lines"), AMONG_THE_ROWS.values(), ids=AMONG_THE_ROWS.keys())
def test_a_fault_among_the_rows_turns_its_lines_and_no_others(
    same_bed: tuple[Rowlock, Db], fault: str, lines: dict[str, str]
) -> None:
    app, db = same_bed
    db.execute(fault.encode())

    checkup = app.doctor()

    assert ill(checkup) == lines


def test_the_remedy_for_a_missing_index_is_its_statement(patient: Rowlock, db: Db) -> None:
    db.execute("drop index rowlock.jobs_parked")

    remedy = patient.doctor()["objects"].do
    db.execute(str(remedy).encode())

    assert patient.doctor()["objects"].level == "green"


def test_a_missing_table_is_found_and_the_rest_is_looked_at_all_the_same(patient: Rowlock, db: Db) -> None:
    db.execute("drop table rowlock.minutes")

    checkup = patient.doctor()

    assert "table minutes is missing" in checkup["objects"].figure
    assert checkup["full_page_writes"].level == "green"
    assert "minutes" in checkup["share of a core"].says


def test_an_old_worker_is_found(same_bed: tuple[Rowlock, Db]) -> None:
    patient, _ = same_bed
    engine = Engine(patient.database.conninfo())  # it registers with a version of its own

    checkup = patient.doctor()

    engine.close()
    assert ill(checkup) == {"versions": "amber"}
    assert checkup["versions"].figure == "test:1 is 0"


def test_a_dead_worker_is_found_beside_a_live_one(same_bed: tuple[Rowlock, Db]) -> None:
    patient, db = same_bed
    db.execute("update rowlock.workers set lease = now() - interval '30 s'")
    register(patient)

    checkup = patient.doctor()

    assert ill(checkup) == {"leases": "amber"}


def test_who_has_locked_the_jobs_is_the_first_line_and_the_rest_is_folded_into_it(
    patient: Rowlock, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "_RED", timedelta(0))
    job = patient.enqueue("t")
    with psycopg.connect(url, application_name="the migration") as holder:
        holder.execute("lock table rowlock.jobs in access exclusive mode")

        pid = holder.info.backend_pid

        checkup, explained = patient.doctor(), patient.jobs.explain(job.id)

    first = checkup.findings[0]
    assert (first.name, first.level, checkup.worst) == ("table locks", "red", "red")
    assert first.figure.startswith(f"jobs, by pid {pid} (the migration, ")
    assert re.search(r"; \d+ checks could not look because of it$", first.says)
    assert f"pg_terminate_backend({pid})" in str(first.do)
    assert not [one.name for one in checkup.findings if "somebody holds a lock" in one.says]
    assert (explained.code, explained.state) == ("locked", None)
    assert f"pid {pid} (the migration, " in explained.says
    assert f"pg_terminate_backend({pid})" in str(explained.do)


@pytest.mark.parametrize(
    ("locked", "says"),
    [
        ("lock table rowlock.pauses in access exclusive mode", "nobody else reads or writes it: no job is claimed"),
        ("lock table rowlock.queues in access exclusive mode", "nobody else reads or writes it"),
        ("lock table rowlock.{part} in share mode", "nobody else writes to it: no job is settled that is kept there"),
    ],
    ids=["pauses", "queues", "a part of history"],
)
def test_a_lock_on_any_table_of_ours_or_on_a_part_of_one_is_named(
    app: Rowlock, db: Db, url: str, locked: str, says: str
) -> None:
    parts = "select inhrelid::regclass::text from pg_inherits where inhparent = 'rowlock.history'::regclass limit 1"
    part = one(db, parts).removeprefix("rowlock.")
    with psycopg.connect(url, application_name="the migration") as holder:
        holder.execute(locked.format(part=part).encode())
        pid = holder.info.backend_pid

        found = app.database.run(queries.lock_holders(5))
        [finding] = locks.judge_locks(Facts("rowlock", (1, 1), lock_holders=found))

    table = part if "{part}" in locked else locked.split()[2].removeprefix("rowlock.")
    assert (finding.name, finding.level) == ("table locks", "amber")
    assert finding.figure.startswith(f"{table}, by pid {pid} (the migration, ")
    assert says in finding.says


def test_a_lock_on_a_whole_table_is_one_line_and_that_on_jobs_comes_first(url: str) -> None:
    with psycopg.connect(url) as first, psycopg.connect(url) as second, Rowlock(url) as app:
        first.execute("lock table rowlock.history, rowlock.events in exclusive mode")
        second.execute("lock table rowlock.jobs in share mode")

        found = app.database.run(queries.lock_holders(5))

    assert [(held.table, held.whole) for held in found] == [(name, name) for name in ("jobs", "history", "events")]


def test_a_session_that_keeps_workers_from_a_duty_is_the_first_line(
    patient: Rowlock, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "_DUTY", (timedelta(0), timedelta(0)))
    with psycopg.connect(url, application_name="a forgotten psql") as holder:
        holder.execute("select from rowlock.duties where name in ('schedules', 'rescue') for update")

        pid = holder.info.backend_pid

        checkup = patient.doctor()

    first = checkup.findings[0]
    assert (first.name, first.level) == ("duty locks", "red")
    assert first.figure.startswith(f"rescue, schedules, by pid {pid} (a forgotten psql, ")
    assert "idle in transaction" in first.figure
    assert "its last query began" in first.says
    assert first.says.endswith("; jobs of dead workers stay where they are and no schedule fires")
    assert f"pg_terminate_backend({pid})" in str(first.do)


def test_rows_of_duties_that_two_sessions_share_are_said_with_one_of_them(
    patient: Rowlock, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "_DUTY", (timedelta(0), timedelta(0)))
    with psycopg.connect(url) as one_of_them, psycopg.connect(url) as other:
        for session in (one_of_them, other):
            session.execute("select from rowlock.duties for share")

        duty = patient.doctor()["duty locks"]

    assert (duty.level, duty.figure.startswith("duties, by pid ")) == ("red", True)


@pytest.mark.parametrize(("red_after", "level"), [(timedelta(0), "red"), (timedelta(days=1), "amber")])
def test_a_session_that_has_due_jobs_locked_is_named(
    patient: Rowlock, db: Db, monkeypatch: pytest.MonkeyPatch, red_after: timedelta, level: str
) -> None:
    monkeypatch.setattr(checkup_facts, "ROWS_LOCKED", timedelta(0))
    monkeypatch.setattr(locks, "_ROWS_RED", red_after)
    for run_at in (*(datetime.now(UTC),) * 3, datetime.now(UTC) + timedelta(hours=1)):
        put(db, queue="mail", run_at=run_at)
    with psycopg.connect(db.info.dsn, application_name="a forgotten psql") as holder:
        holder.execute("select from rowlock.jobs for update")
        pid = holder.info.backend_pid

        checkup = patient.doctor()

    first = checkup.findings[0]
    assert (first.name, first.level) == ("job locks", level)
    assert first.figure.startswith(f"3 due jobs in mail, by pid {pid} (a forgotten psql, ")
    assert "workers pass over what is locked" in first.says
    assert patient.doctor()["job locks"].level == "green"


def test_each_session_that_shares_a_lock_on_due_jobs_is_found(patient: Rowlock, db: Db, url: str) -> None:
    put(db, queue="mail")
    with psycopg.connect(url) as first, psycopg.connect(url) as second:
        pids = {session.info.backend_pid for session in (first, second)}
        for session in (first, second):
            session.execute("select from rowlock.jobs for share")

        found = patient.database.run(queries.row_holders(["mail"], held=timedelta(0), most=10))

    assert {one.pid for one in found} == pids
    assert {one.jobs for one in found} == {1}


def test_a_worker_whose_process_is_stopped_is_told_of_within_its_lease(app: Rowlock, url: str) -> None:
    with worker_process(url, lease=600.0) as process:
        until(lambda: app.stats().fleet.workers, what="a worker", limit=LIMIT)
        process.send_signal(signal.SIGSTOP)
        with travel(app, timedelta(minutes=6)):  # of ten: it should have renewed after three and a third
            leases, job = app.doctor()["leases"], app.enqueue("hold")
            explained = job.explain()
        process.send_signal(signal.SIGCONT)

    assert (leases.level, leases.figure.endswith(f":{process.pid}")) == ("red", True)
    assert leases.says.startswith("has not renewed its lease for 6 min: its process is stopped, ")
    assert explained.code == "workers_stand_still"
    assert f":{process.pid} has not renewed its lease for 6 min: " in explained.says


def test_a_worker_whose_event_loop_is_blocked_says_so_with_its_renewal(app: Rowlock) -> None:
    over = threading.Event()

    @app.task(name="crunch")
    async def crunch() -> None:
        over.wait(LIMIT)

    job = crunch.enqueue()
    with working(app, lease=timedelta(seconds=3)):
        found = until(lambda: [loops] if (loops := app.doctor()["event loops"]).level != "green" else [], limit=LIMIT)[
            0
        ]
        behind, running = crunch.enqueue().explain(), job.explain()
        over.set()
        until(lambda: app.doctor()["event loops"].level == "green", limit=LIMIT)

    assert found.level == "red"
    assert f" by crunch {job.id} when it last renewed its lease, " in found.says
    assert (behind.code, running.code) == ("workers_stand_still", "running")
    assert f"But {behind.facts['workers'][0]} had its event loop blocked for " in running.says


def test_a_lease_that_is_over_for_long_is_red(same_bed: tuple[Rowlock, Db]) -> None:
    app, db = same_bed
    register(app)
    db.execute(
        "update rowlock.workers set lease = rowlock.now() - interval '2 min' "
        "where id = (select id from rowlock.workers limit 1)"
    )

    leases = app.doctor()["leases"]

    assert leases.level == "red"
    assert leases.do is not None
    assert leases.do.startswith("nobody rescues their jobs")


def test_a_clock_that_a_test_has_moved_is_found(same_bed: tuple[Rowlock, Db]) -> None:
    patient, _ = same_bed
    with travel(patient, timedelta(seconds=5)):
        checkup = patient.doctor()

    assert ill(checkup) == {"moved clock": "red"}


def test_what_is_paused_is_not_late_and_is_told(same_bed: tuple[Rowlock, Db]) -> None:
    patient, db = same_bed
    patient.enqueue("t")
    db.execute("update rowlock.jobs set run_at = now() - interval '1 hour'")
    patient.queues.pause("default")

    checkup = patient.doctor()

    assert ill(checkup) == {}
    assert "paused, and not counted: default" in checkup["oldest job"].says


def test_the_target_is_the_callers(same_bed: tuple[Rowlock, Db]) -> None:
    patient, db = same_bed
    patient.enqueue("t")
    db.execute("update rowlock.jobs set run_at = now() - interval '1 hour'")

    late, in_time = patient.doctor(), patient.doctor(target=timedelta(days=1))

    assert (late["oldest job"].level, in_time["oldest job"].level) == ("red", "green")


def test_a_held_snapshot_with_dead_rows_is_found_and_its_holder_named(patient: Rowlock, db: Db, url: str) -> None:
    patient.enqueue_many(patient.call("t") for _ in range(3_000))
    with psycopg.connect(url, application_name="the forgotten report") as holder:
        holder.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        holder.execute("select")
        # a thousand transactions go by, and thirty thousand rows die
        db.execute(
            "do $$ begin for n in 1..1000 loop begin create temp table x (); raise ''; exception when others then end; "
            "end loop; end $$"
        )
        for _ in range(10):
            db.execute("update rowlock.jobs set claims = claims + 1")
        db.execute("select pg_stat_force_next_flush()")
        until(lambda: one(db, "select pg_stat_get_dead_tuples('rowlock.jobs'::regclass)") >= 30_000)

        checkup = patient.doctor()

        pid = holder.info.backend_pid

    found = ill(checkup)
    assert {"dead rows": "amber", "oldest snapshot": "amber"}.items() <= found.items()
    assert found.keys() <= {"dead rows", "oldest snapshot", "claim pages"}  # which has them in its way
    assert "'the forgotten report'" in checkup["oldest snapshot"].says
    assert f"pg_terminate_backend({pid})" in (checkup["oldest snapshot"].do or "")


def test_roles_are_compared_with_what_this_version_grants(patient: Rowlock, db: Db) -> None:
    patient.migrate(roles=True)
    well = patient.doctor()["roles"]

    db.execute("grant delete on rowlock.history to rowlock_viewer")
    beyond = patient.doctor()
    db.execute("revoke select on rowlock.jobs from rowlock_worker")
    lacking = patient.doctor()
    db.execute("alter table rowlock.events disable row level security")
    patient.migrate(roles=True)
    fixed = patient.doctor()

    assert (well.level, well.figure) == ("green", "5 as made")
    assert ill(beyond) == {"roles": "amber"}
    assert beyond["roles"].figure == "rowlock_viewer has delete on table history"
    assert ill(lacking) == {"roles": "red"}
    assert "rowlock_worker lacks select on table jobs" in lacking["roles"].figure
    assert ill(fixed) == {}


def test_parts_are_wanted_for_as_long_as_the_app_keeps_its_jobs(patient: Rowlock, url: str) -> None:
    with Rowlock(url, keep=Keep(failed=timedelta(days=90))) as app:
        checkup = app.doctor()

    assert ill(checkup)["partitions ahead"] == "red"
    assert ill(patient.doctor()) == {}


# Judgement, of figures that are dear to make


@pytest.fixture
def facts(same_bed: tuple[Rowlock, Db]) -> Facts:
    """What a healthy database says."""
    return same_bed[0].database.converse(lambda: gather("rowlock"))


def levels(findings: Iterator[Finding]) -> dict[str, str]:
    return {finding.name: finding.level for finding in findings if finding.level != "green"}


@pytest.mark.parametrize(
    ("age", "level"), [(250_000_000, None), (310_000_000, "amber"), (1_600_000_000, "red")], ids=str
)
def test_wraparound_is_seen_coming(facts: Facts, age: int, level: str | None) -> None:
    assert facts.server is not None

    found = levels(judge_server(replace(facts, server=facts.server._replace(age=age))))

    assert found.get("wraparound") == level


@pytest.mark.parametrize(("major", "level"), [(13, "red"), (14, None), (18, None), (19, "amber")])
def test_a_server_that_nobody_has_tried_is_told(facts: Facts, major: int, level: str | None) -> None:
    assert facts.server is not None

    found = levels(judge_server(replace(facts, server=facts.server._replace(version=major * 10_000))))

    assert found.get("version") == level


@pytest.mark.parametrize(("used", "level"), [(100, None), (170, "amber"), (190, "red"), (195, "red")])
def test_connections_run_out(facts: Facts, used: int, level: str | None) -> None:
    assert facts.stats is not None
    database = replace(facts.stats.database, connections=Connections(used, 200))

    found = levels(judge_server(replace(facts, stats=replace(facts.stats, database=database))))

    assert found.get("connections") == level


@pytest.mark.parametrize(("seconds", "level"), [(0.5, None), (-3, "amber"), (40, "red"), (-40, "red")])
def test_clocks_are_compared(facts: Facts, seconds: float, level: str | None) -> None:
    found = levels(judge_clock(facts, ahead=timedelta(seconds=seconds), unsure=timedelta(milliseconds=5)))

    assert found.get("clock") == level


@pytest.mark.parametrize(("megabytes", "level"), [(50, None), (500, "amber"), (50_000, "red")])
def test_bloat_is_what_the_live_rows_do_not_need(facts: Facts, megabytes: int, level: str | None) -> None:
    assert facts.tables is not None
    tables = [
        table._replace(size=megabytes * 1_000_000, live=1_000) if table.name == "jobs" else table
        for table in facts.tables
    ]

    found = levels(judge_tables(replace(facts, tables=tables)))

    assert found.get("bloat") == level


@pytest.mark.parametrize(("jobs_per_second", "level"), [(100, "green"), (4_000, "amber"), (8_000, "red")])
def test_the_load_is_a_share_of_one_core(facts: Facts, jobs_per_second: int, level: str) -> None:
    assert facts.stats is not None
    cost = JobCost(*[timedelta(microseconds=us) for us in (60, 20, 20)])
    peak = Peak(facts.stats.at, 60 * jobs_per_second)

    [found] = judge_load(replace(facts, peak=peak), Trial(job=cost))

    assert found.level == level
    assert found.value == pytest.approx(jobs_per_second * 100e-6)
    assert "one core does 10,000 jobs/s" in found.says


def test_the_blueprint_knows_everything_that_the_migrations_make(db: Db) -> None:
    kinds = {
        kind: {name for one_kind, _, name in blueprint() if one_kind == kind} for kind in ("table", "index", "function")
    }
    relations = """select relname from pg_class where relnamespace = 'rowlock'::regnamespace and relkind = any(%s)
        and not relispartition"""

    assert kinds["table"] == {name for (name,) in db.execute(relations, [["r", "p"]])}
    assert kinds["index"] == {name for (name,) in db.execute(relations, [["i", "I"]])}
    assert kinds["function"] == {
        name for (name,) in db.execute("select proname from pg_proc where pronamespace = 'rowlock'::regnamespace")
    }
    assert all(re.fullmatch(r"\w+", name) for names in kinds.values() for name in names)
