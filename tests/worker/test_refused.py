"""What PostgreSQL does not accept, or fails at every time: it costs the job that it belongs to, and no other."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections import deque
from contextlib import suppress
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from rowlock import Rowlock
from rowlock.db import partitions, session
from rowlock.db.errors import Refused
from rowlock.db.session import CommitLost, Server, connect
from rowlock.db.worker_connection import ReconnectingConnection
from rowlock.model.ids import new_id
from rowlock.model.outcome import Succeeded
from rowlock.model.row import NewJob
from rowlock.store import claim, enqueue
from rowlock.store.query import DEFAULT_SCHEMA, LARGEST_STATEMENT, Query, first
from rowlock.worker import settle, step_recorder
from rowlock.workflow.context import Context
from tests.engine import Engine
from tests.waiting import until
from tests.worker.working import Db, ended, one, work_off, work_until, working

MEBIBYTE = 1024 * 1024
APART = "select count(*) = 1 from pg_stat_activity where application_name = 'rowlock settle apart'"
HOUR = timedelta(hours=1)


def breaks(db: Db, table: str, when: str, state: str = "XX001") -> None:
    """Every write of such a row fails, as one whose TOAST block is lost, or that is too large."""
    db.execute(
        f"""create function public.broken() returns trigger language plpgsql as
        $$ begin raise exception 'unexpected chunk number' using errcode = '{state}'; end $$"""
    )
    db.execute(
        f"create trigger broken before insert or update on rowlock.{table} for each row when ({when}) "
        "execute function public.broken()".encode()
    )


def counts_tries(db: Db) -> None:
    """Every statement that writes history counts, in a sequence: that counts on, whatever is rolled back."""
    db.execute("create sequence public.tries")
    db.execute(
        """create function public.tried() returns trigger language plpgsql as
        $$ begin perform nextval('public.tries'); return null; end $$"""
    )
    db.execute("create trigger tried before insert on rowlock.history execute function public.tried()")


@pytest.fixture(autouse=True)
def _in_haste(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rowlock.worker.refused._FIRST_PAUSE", 0.01)
    monkeypatch.setattr("rowlock.worker.refused._LONGEST_PAUSE", 0.1)
    monkeypatch.setattr("rowlock.worker.step_recorder._FIRST_PAUSE", 0.01)


@pytest.mark.parametrize("state", ["XX001", "54000", "21000", "0A000", "53200"])
def test_an_outcome_that_cannot_be_written_fails_its_job_and_holds_up_no_other(
    app: Rowlock, db: Db, state: str
) -> None:
    runs: list[int] = []

    @app.task(name="quick")
    async def quick(n: int) -> int:
        runs.append(n)
        return n

    breaks(db, "history", "new.result::text = '13'", state)
    app.enqueue_many(quick.bind(n) for n in range(20))
    work_off(app, db)

    assert sorted(runs) == list(range(20))
    assert one(db, "select count(*) from rowlock.history where state = 'succeeded'") == 19
    failed = db.execute("select reason, args->>'n', errors[1]->>'message' from rowlock.history where state = 'failed'")
    assert failed.fetchall() == [("refused", "13", "unexpected chunk number")]


def test_a_server_that_is_out_of_memory_costs_no_job_however_long_it_lasts(app: Rowlock, db: Db) -> None:
    @app.task(name="quick")
    async def quick() -> None: ...

    db.execute("create sequence public.failed")
    breaks(db, "history", "nextval('public.failed') > 0", "53200")  # a sequence counts on, whatever is rolled back
    app.enqueue_many(quick.bind() for _ in range(2))
    with working(app):
        until(lambda: one(db, "select last_value >= 60 from public.failed"))
        assert one(db, "select count(*) = 2 from rowlock.jobs where state = 'running'")
        db.execute("drop trigger broken on rowlock.history")
        until(lambda: len(ended(db)) == 2)

    assert ended(db) == [("quick", "succeeded", None, 0)] * 2


def test_a_job_that_cannot_end_in_any_way_is_set_aside_and_says_why(app: Rowlock, db: Db) -> None:
    runs: list[int] = []

    @app.task(name="quick")
    async def quick(n: int) -> None:
        runs.append(n)

    breaks(db, "history", "new.args->>'n' = '3'")
    app.enqueue_many(quick.bind(n) for n in range(5))
    work_off(app, db)
    work_until(app, lambda: one(db, "select count(*) = 1 from rowlock.parked"))  # a new worker does not take it up

    assert sorted(runs) == [0, 1, 2, 3, 4]
    assert len(ended(db)) == 4
    query = "select state, waits_for, reason, args->>'n' from rowlock.jobs"
    assert db.execute(query).fetchall() == [
        ("waiting", "code", "PostgreSQL refuses to end it: unexpected chunk number", "3")
    ]


@pytest.mark.parametrize("state", ["XX001", "XX000"])
def test_a_job_that_cannot_be_claimed_is_set_aside_and_those_behind_it_run(app: Rowlock, db: Db, state: str) -> None:
    @app.task(name="quick")
    async def quick(n: int) -> None: ...

    breaks(db, "jobs", "new.state = 'running' and new.args->>'n' = '1'", state)
    app.enqueue_many(quick.bind(n) for n in range(5))
    work_off(app, db)

    assert len(ended(db)) == 4
    query = "select state, waits_for, reason, args->>'n' from rowlock.jobs"
    assert db.execute(query).fetchall() == [
        ("waiting", "code", "PostgreSQL refuses to claim it: unexpected chunk number", "1")
    ]


def test_a_job_that_can_neither_be_claimed_nor_set_aside_keeps_no_other_from_it(app: Rowlock, db: Db) -> None:
    @app.task(name="quick")
    async def quick(n: int) -> None: ...

    app.enqueue_many(quick.bind(n) for n in range(5))
    breaks(db, "jobs", "new.args->>'n' = '1'")
    work_until(app, lambda: len(ended(db)) == 4)

    assert db.execute("select state, args->>'n' from rowlock.jobs").fetchall() == [("ready", "1")]


def test_a_job_is_set_aside_without_its_arguments_being_read(db: Db) -> None:
    """They may be what cannot be read. Compressed when they come, they are read once, to see how long they are."""
    columns = "id, queue, task, attempts, run_at, created_at, args"
    values = "gen_random_uuid(), 'default', 'quick', 1, now(), now(), args"
    reads = """select pg_stat_get_xact_numscans(indexrelid) from pg_index
        where indrelid = (select reltoastrelid from pg_class where oid = 'rowlock.jobs'::regclass)"""
    db.execute("create temp table copied as select json_build_object('text', repeat('x', 900000)) as args")

    with db.transaction():
        db.execute(f"insert into rowlock.jobs ({columns}) select {values} from copied".encode())
        job, before = one(db, "select id::text from rowlock.jobs"), one(db, reads)
        aside = session.run(db.cursor(), claim.set_aside(job, reason="cannot be read"), DEFAULT_SCHEMA)
        after = one(db, reads)
        one(db, "select sum(length(args::text)) from rowlock.jobs")
        read = one(db, reads)

    assert len(aside) == 1
    assert (after - before, read - after) == (0, 1)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("history", "rowlock settle: job_settle failed (unexpected chunk number)"),
        ("jobs", "rowlock claim: job_claim failed (unexpected chunk number)"),
    ],
)
def test_what_a_worker_tries_again_and_again_stands_in_its_row_until_it_works(
    app: Rowlock, db: Db, monkeypatch: pytest.MonkeyPatch, table: str, said: str
) -> None:
    monkeypatch.setattr("rowlock.worker.registration._FAILING_FOR", 0.1)

    @app.task(name="quick")
    async def quick() -> None: ...

    breaks(db, table, "new.state in ('running', 'succeeded')", "42501")
    quick.enqueue()
    with working(app):
        until(lambda: one(db, "select max(failing) from rowlock.workers") == said)
        assert one(db, "select failing_since <= now() from rowlock.workers")
        db.execute(f"drop trigger broken on rowlock.{table}".encode())
        until(lambda: len(ended(db)) == 1 and one(db, "select failing is null from rowlock.workers"))


def test_while_no_job_can_be_claimed_none_is_set_aside(app: Rowlock, db: Db) -> None:
    @app.task(name="quick")
    async def quick() -> None: ...

    db.execute("create sequence public.failed")
    breaks(db, "jobs", "new.state = 'running' and nextval('public.failed') > 0", "53200")
    app.enqueue_many(quick.bind() for _ in range(2))
    with working(app):
        until(lambda: one(db, "select last_value >= 30 from public.failed"))
        assert one(db, "select count(*) = 2 from rowlock.jobs where state = 'ready'")
        db.execute("drop trigger broken on rowlock.jobs")
        until(lambda: len(ended(db)) == 2)


@pytest.mark.parametrize("shared", [False, True])
def test_a_wait_that_is_given_twice_is_one_wait(app: Rowlock, db: Db, *, shared: bool) -> None:
    @app.task(name="quick")
    async def quick() -> None: ...

    @app.workflow(name="w")
    async def w(ctx: Context) -> str:
        said = ctx.signal("go")
        if not shared:
            return str((await ctx.any(said, said)).value)
        return str((await asyncio.gather(ctx.any(said, ctx.sleep(HOUR)), ctx.any(said, ctx.sleep(2 * HOUR))))[1].value)

    job = w.enqueue()
    with working(app):
        until(
            lambda: one(
                db, "select count(*) = 1 from rowlock.jobs where claims = 1 and token is null and reason is null"
            )
        )
        quick.enqueue()
        until(lambda: len(ended(db)) == 1)
        app.signal(job.id, "go", "gone")
        until(lambda: len(ended(db)) == 2)

    assert job.result() == "gone"


def test_a_step_that_cannot_be_remembered_fails_its_workflow_and_no_other(app: Rowlock, db: Db) -> None:
    async def give(n: int) -> int:
        return n

    @app.workflow(name="w")
    async def w(ctx: Context, n: int) -> int:
        return await ctx.step(give, n)

    breaks(db, "steps", "new.value::text = '3'")
    app.enqueue_many(w.bind(n) for n in range(6))
    work_off(app, db)

    query = "select state, args->>'n' from rowlock.history where state <> 'succeeded'"
    assert db.execute(query).fetchall() == [("failed", "3")]
    assert len(ended(db)) == 6


def test_a_workflow_that_would_remember_too_much_fails_and_is_warned_before(
    app: Rowlock, db: Db, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(step_recorder, "LARGEST_RECORD", 2 * MEBIBYTE)
    undone: list[str] = []

    async def large() -> str:
        return "x" * 600_000

    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        ctx.undo(undone.append, "undone")
        for _ in range(5):
            await ctx.step(large)

    w.enqueue()
    with caplog.at_level(logging.WARNING):
        work_off(app, db)

    [(state, error)] = db.execute("select state, errors[1]->>'message' from rowlock.history").fetchall()
    assert state == "failed"
    told = "step 'large#4' failed (1 attempt): the workflow would remember 2 MiB, more than 2; keep what is large"
    assert error.startswith(told)
    assert undone == ["undone"]
    assert "remembers 1 MiB, and may remember no more than 2" in caplog.text


def test_a_workflow_with_a_large_record_ends_where_nobody_waits_for_it(
    app: Rowlock, db: Db, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settle, "_LARGE_RECORD", 1000)

    async def large() -> str:
        return "x" * 2000

    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        await ctx.step(large)

    w.enqueue()
    with working(app):
        until(lambda: len(ended(db)) == 1)
        assert one(db, f"{APART} and datname = current_database()")


def test_jobs_without_a_partition_hold_up_no_other(app: Rowlock, db: Db, monkeypatch: pytest.MonkeyPatch) -> None:
    @app.task(name="quick", history=False)
    async def quick() -> None: ...

    @app.task(name="kept")
    async def kept() -> None: ...

    def runs(db: Db) -> bool:
        return bool(one(db, "select state = 'running' from rowlock.jobs"))

    making, allowed = partitions.make_partitions, threading.Event()

    def make(*args: object, **options: object) -> None:
        if not allowed.is_set():
            raise psycopg.errors.InsufficientPrivilege("no")
        making(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(partitions, "make_partitions", make)  # as upkeep knows it: its first round may come late
    with working(app):
        until(lambda: one(db, "select count(*) = 1 from rowlock.parked"))
        monkeypatch.setattr("rowlock.worker.settle.make_partitions", make)
        for (name,) in db.execute(
            "select inhrelid::regclass::text from pg_inherits where inhparent = 'rowlock.history'::regclass"
        ):
            db.execute(f"drop table {name}".encode())
        counts_tries(db)
        kept.enqueue()
        until(lambda: one(db, f"{APART} and datname = current_database()"))
        quick.enqueue()
        until(lambda: one(db, "select count(*) = 1 from rowlock.jobs"))
        tries = one(db, "select last_value from public.tries")
        until(lambda: one(db, "select last_value - %s > 10 from public.tries", tries) or not runs(db))
        assert runs(db)  # however often it was tried, and although others could be settled: the job is not to blame
        allowed.set()
        until(lambda: len(ended(db)) == 1)

    assert ended(db) == [("kept", "succeeded", None, 0)]


def test_a_statement_carries_no_more_than_so_much(app: Rowlock, db: Db) -> None:
    new = [NewJob(new_id(), "default", "t", "x" * (LARGEST_STATEMENT // 3), 0, 1) for _ in range(7)]

    assert [len(chunk) for chunk in enqueue.chunks(new)] == [3, 3, 1]


def test_a_settle_takes_no_more_than_a_statement_carries(url: str) -> None:
    nobody: Any = None

    async def batches() -> list[int]:
        settler = settle.Settler(
            link=ReconnectingConnection(url, "rowlock", name="test"),
            keep=nobody,
            keep_cancelled=HOUR,
            settled=nobody,
            breakers=nobody,
            make_partitions=nobody,
            actor="test",
            is_ours=nobody,
        )
        for _ in range(3):
            settler.add(nobody, Succeeded("x" * (LARGEST_STATEMENT // 2)))
        return [len(settler._take()) for _ in range(3)]

    assert asyncio.run(batches()) == [2, 1, 0]


def test_what_workflows_remember_goes_into_statements_of_no_more_than_so_much() -> None:
    left = deque("x" * (LARGEST_STATEMENT // size) for size in (2, 2, 2, 1))

    taken = [step_recorder._fill(left, lambda text: (1, len(text))) for _ in range(3)]

    assert [len(batch) for batch in taken] == [2, 1, 1]


def test_of_a_workflow_that_was_taken_away_its_worker_keeps_nothing(
    app: Rowlock, db: Db, monkeypatch: pytest.MonkeyPatch
) -> None:
    robbed, recorders = threading.Event(), list[step_recorder.StepRecorder]()

    class Recorder(step_recorder.StepRecorder):
        def __init__(self, **given: Any) -> None:  # noqa: ANN401  its own
            super().__init__(**given)
            recorders.append(self)

    async def rob() -> None:
        db.execute("update rowlock.jobs set state = 'ready', token = null, run_at = rowlock.now() + interval '1 h'")
        try:
            await asyncio.Event().wait()
        finally:
            robbed.set()

    @app.workflow(name="w")
    async def w(ctx: Context) -> None:
        await ctx.step(str, "what is remembered")
        await ctx.step(rob)

    @app.task(name="quick")
    async def quick() -> None: ...

    monkeypatch.setattr(settle, "StepRecorder", Recorder)
    w.enqueue()
    with working(app, lease=timedelta(seconds=1)):
        until(robbed.is_set)
        quick.enqueue()
        until(lambda: ended(db))  # whatever its worker does when an attempt is lost, it has done

    assert [(recorder._sizes, recorder.last_states) for recorder in recorders] == [({}, {})]


def test_what_is_read_for_an_attempt_that_is_over_is_not_kept(url: str, db: Db) -> None:
    engine = Engine(url)
    engine.enqueue()
    [row] = engine.claim()
    engine.close()

    async def go() -> dict[str, int]:
        recorder = step_recorder.StepRecorder(wake=lambda: None, actor="test", is_ours=lambda: True)
        link = ReconnectingConnection(url, "rowlock", name="test")
        loading = asyncio.ensure_future(recorder.load(row))
        await asyncio.sleep(0)
        loading.cancel()
        await asyncio.wait([loading])
        await recorder.run_due(link)
        await link.close()
        return recorder._sizes

    assert asyncio.run(go()) == {}


def test_behind_a_pooler_nobody_gets_into_the_transaction_of_another(url: str, db: Db) -> None:
    """One that fails would take the others along: their COMMIT answers ROLLBACK, and no error."""
    new = [NewJob(new_id(), "default", "t", "{}", 0, 1) for _ in range(30)]
    refused: Query[str] = Query("job_cancelling", {"worker": "no uuid"}, first)

    async def go() -> list[object]:
        link = ReconnectingConnection(Server(url, pooler=True), "rowlock", name="test")
        said = [link.run(query) for job in new for query in (enqueue.insert([job]), refused)]
        answers = await asyncio.gather(*said, return_exceptions=True)
        await link.close()
        return list(answers)

    answers = asyncio.run(go())

    assert answers[::2] == [[job.id] for job in new]
    assert all(isinstance(answer, Refused) for answer in answers[1::2])
    assert one(db, "select count(*) from rowlock.jobs") == 30


def test_a_transaction_that_has_failed_is_not_taken_for_committed(url: str) -> None:
    with (
        connect(url, name="test") as connection,
        pytest.raises(CommitLost, match="cannot be committed"),
        connection.transaction(),
        suppress(psycopg.errors.DivisionByZero),
    ):
        connection.execute("select 1 / 0")


def test_the_server_ends_what_an_engine_session_has_given_up_on(url: str) -> None:
    with connect(url, name="test", deadline=5.0, engine=True) as connection:
        query = "select name, setting from pg_settings where name = any(%s)"
        names = ["statement_timeout", "client_connection_check_interval", "tcp_user_timeout"]
        settings: dict[str, str] = dict(connection.execute(query, [names]).fetchall())

    assert settings["statement_timeout"] == "7000"
    assert settings["client_connection_check_interval"] == ("1000" if sys.platform == "linux" else "0")
    assert settings["tcp_user_timeout"] == "0"  # over a Unix socket there is none, whatever is asked for


@pytest.mark.parametrize(("local", "asked"), [(False, True), (True, False)], ids=["ours", "lent by a pooler"])
def test_the_server_gives_up_a_session_of_ours_whose_client_reads_nothing(*, local: bool, asked: bool) -> None:
    """The test server is reached by a socket on which PostgreSQL keeps no such setting: so what is asked for counts."""
    said = session._configure(170000, 5.0, None, engine=True, local=local)

    assert ("set_config('tcp_user_timeout', '60s', false)" in said) is asked
