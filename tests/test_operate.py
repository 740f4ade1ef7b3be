"""Operators' verbs: each job is changed once or passed over, whatever happens meanwhile, and events say who and why."""

from __future__ import annotations

import asyncio
import getpass
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from rowlock import Filter, Retry, Rowlock, RowlockError
from rowlock.app.jobs import Done
from rowlock.db.session import converse
from rowlock.errors import InvalidOption
from rowlock.model.outcome import Blocked, Failed
from rowlock.model.record import State
from rowlock.model.row import ClaimedJob
from rowlock.model.verb import VERBS, VerbName
from rowlock.store import operations
from rowlock.store.find import windows
from rowlock.store.operations import BulkOperation
from tests.depth import deep
from tests.engine import Engine
from tests.rows import Db, counts, put, put_many
from tests.worker.working import one, work_off

LATER = datetime.now(UTC) + timedelta(days=1)


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    """A worker's statements, by hand."""
    engine = Engine(url)
    yield engine
    engine.close()


@pytest.fixture
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows so small that a test can stand between two of them."""
    monkeypatch.setattr(windows, "WINDOW", 10)
    monkeypatch.setattr(operations, "WINDOW", 10)


def done(verb: str, changed: int, passed_over: int = 0) -> Done:
    return Done(verb, changed, passed_over, None)  # type: ignore[arg-type]  # only ever a verb


# Retry


def test_a_failed_job_is_retried_from_the_start_and_keeps_its_id_and_its_past(app: Rowlock, db: Db) -> None:
    repaired = False

    @app.task(name="fragile", retry=Retry(attempts=1))
    def fragile(x: int) -> int:
        if not repaired:
            raise ConnectionError("no host")
        return x

    job = fragile.using(key="k", tags=["a"]).enqueue(5)
    work_off(app, db)
    repaired = True

    answer = app.jobs.retry(Filter(error="ConnectionError"), why="host is back")

    assert answer == done("retry", 1)
    (record,) = app.jobs.list().records
    assert (record.id, record.state, record.failures, record.claims, record.reason) == (job.id, "ready", 0, 1, None)
    assert (record.key, record.tags, record.args) == ("k", ("a",), {"x": 5})
    assert [error.type for error in record.errors] == ["ConnectionError"]
    assert fragile.using(key="k").enqueue(6).created is False
    work_off(app, db)
    assert one(db, "select (state, result, failures, claims)::text from rowlock.history") == "(succeeded,5,0,2)"
    assert counts(db) == (0, 1)


def test_only_failed_jobs_are_retried_unless_others_are_named(app: Rowlock, db: Db) -> None:
    for state in ("succeeded", "failed", "succeeded", "ready"):
        put(db, state)
    cancelled = put(db, "cancelled")

    preview = app.jobs.preview("retry", Filter())

    assert (preview.count, preview.passed_over, preview.states) == (1, 1, {"failed": 1})
    assert app.jobs.retry(Filter.all()) == done("retry", 1, 1)
    assert app.jobs.retry(Filter(ids=[cancelled])) == done("retry", 0, 1)
    assert app.jobs.retry(Filter(state="succeeded")) == done("retry", 2)
    assert app.jobs.retry(Filter(ids=[cancelled], state="cancelled")) == done("retry", 1)
    assert counts(db) == (5, 0)


def test_a_job_that_was_cancelled_before_its_time_is_retried_at_that_time(app: Rowlock, db: Db) -> None:
    tonight = datetime.now(UTC) + timedelta(hours=9)
    job = put(db, run_at=tonight)
    app.jobs.cancel(Filter(ids=[job]))

    app.jobs.retry(Filter(state="cancelled"))

    assert one(db, "select run_at from rowlock.jobs") == tonight


def test_a_job_whose_key_is_held_by_another_is_not_retried(app: Rowlock, db: Db) -> None:
    put(db, "ready", key="held")
    stays = put(db, "failed", key="held")
    put(db, "failed", key="free")

    answer = app.jobs.retry(Filter.all())

    assert answer == done("retry", 1, 1)
    assert one(db, "select id from rowlock.history") == stays
    assert db.execute("select key from rowlock.keys order by key").fetchall() == [("free",), ("held",)]


def test_of_two_ended_jobs_with_one_key_the_newer_is_retried(app: Rowlock, db: Db) -> None:
    older, newer = put(db, "failed", key="k"), put(db, "failed", key="k")

    answer = app.jobs.retry(Filter.all())

    assert answer == done("retry", 1, 1)
    assert (one(db, "select id from rowlock.jobs"), one(db, "select id from rowlock.history")) == (newer, older)
    assert one(db, "select job from rowlock.keys") == newer


# Cancel and delete


def test_cancelled_jobs_end_as_asked_and_running_ones_are_marked(app: Rowlock, db: Db) -> None:
    for state in ("ready", "waiting", "running", "failed"):
        put(db, state, key=f"k {state}", tags=["a"])

    answer = app.jobs.cancel(Filter(tag="a"))

    assert answer == done("cancel", 3)
    ended = db.execute(
        "select key, state, reason from rowlock.history where state = 'cancelled' order by id"
    ).fetchall()
    assert ended == [("k ready", "cancelled", "asked"), ("k waiting", "cancelled", "asked")]
    assert db.execute("select key from rowlock.keys").fetchall() == [("k running",)]
    assert db.execute("select state, cancel_at is not null from rowlock.jobs").fetchall() == [("running", True)]


def test_what_is_being_cancelled_is_passed_over(app: Rowlock, db: Db) -> None:
    put(db, "running")

    app.jobs.cancel(Filter.all())

    assert app.jobs.cancel(Filter.all()) == done("cancel", 0, 1)
    assert len(app.jobs.events()) == 1


def test_cancelled_jobs_are_kept_as_long_as_their_queue_says_or_else_the_app(app: Rowlock, db: Db) -> None:
    db.execute("insert into rowlock.queues (name, keep_cancelled) values ('short', '2 days')")
    put(db, queue="short")
    put(db, queue="other")

    app.jobs.cancel(Filter.all())

    days = (
        "select (expires_on - (rowlock.now() at time zone 'UTC')::date)::integer from rowlock.history where queue = %s"
    )
    assert (one(db, days, "short"), one(db, days, "other")) == (2, app.keep.cancelled.days)


def test_deleted_jobs_leave_only_events_and_running_ones_are_passed_over(app: Rowlock, db: Db) -> None:
    for state in ("ready", "waiting", "running", "failed", "succeeded", "cancelled"):
        put(db, state, key=f"k {state}")

    answer = app.jobs.delete(Filter.all())

    assert answer == done("delete", 5, 1)
    assert counts(db) == (1, 0)
    assert db.execute("select key from rowlock.keys").fetchall() == [("k running",)]
    assert {(event.kind, event.details["state"]) for event in app.jobs.events()} == {
        ("deleted", state) for state in ("ready", "waiting", "failed", "succeeded", "cancelled")
    }


@pytest.mark.parametrize("verb", ["cancel", "delete"])
def test_who_waits_for_a_job_is_told_that_it_is_over(app: Rowlock, db: Db, verb: str) -> None:
    listener = uuid4()
    job = put(db)
    db.execute("insert into rowlock.waiters (job, listener, at) values (%s, %s, rowlock.now())", [job, listener])
    db.execute(f'listen "rowlock:{listener}"'.encode())

    getattr(app.jobs, verb)(Filter(ids=[job]))

    assert [notice.channel for notice in db.notifies(timeout=10, stop_after=1)] == [f"rowlock:{listener}"]


# Move, reprioritise, run next


def test_moved_jobs_are_claimed_from_their_new_queue(app: Rowlock, db: Db, engine: Engine) -> None:
    moved, there = put(db, queue="slow"), put(db)
    put(db, "running", queue="slow")

    answer = app.jobs.move(Filter.all(), queue="default")

    assert answer == done("move", 1, 2)
    assert {UUID(row.id) for row in engine.claim()} == {moved, there}


def test_reprioritised_jobs_are_claimed_in_their_new_order(app: Rowlock, db: Db, engine: Engine) -> None:
    first, second = put(db), put(db)

    answer = app.jobs.reprioritise(Filter(ids=[second]), priority=1)

    assert answer == done("reprioritise", 1)
    assert [UUID(engine.claim(1)[0].id) for _ in range(2)] == [second, first]


def test_what_runs_next_comes_before_everything_else_of_its_queue(app: Rowlock, db: Db, engine: Engine) -> None:
    old = put(db, priority=4, run_at=datetime(2020, 1, 1, tzinfo=UTC))
    delayed = [put(db, priority=-4, run_at=LATER) for _ in range(2)]
    waits = put(db, "waiting")

    answer = app.jobs.run_next(Filter(ids=[*delayed, waits]))

    assert answer == done("run_next", 2, 1)
    assert [UUID(engine.claim(1)[0].id) for _ in range(3)] == [*delayed, old]


def test_the_last_to_be_run_next_is_first(app: Rowlock, db: Db, engine: Engine) -> None:
    jobs = [put(db) for _ in range(3)]

    for job in jobs:
        app.jobs.run_next(Filter(ids=[job]))

    assert [UUID(engine.claim(1)[0].id) for _ in range(3)] == jobs[::-1]


@pytest.mark.parametrize(
    ("state", "act"),
    [
        ("failed", lambda app: app.jobs.retry(Filter.all())),
        ("ready", lambda app: app.jobs.move(Filter.all(), queue="mail")),
        ("ready", lambda app: app.jobs.reprioritise(Filter.all(), priority=2)),
        ("ready", lambda app: app.jobs.run_next(Filter.all())),
    ],
)
def test_a_parked_worker_is_told_to_look_below_its_floor(
    app: Rowlock, db: Db, state: str, act: Callable[[Rowlock], Done]
) -> None:
    queue = "default" if act(app).verb == "move" else "mail"
    put(db, state, queue=queue)
    db.execute("insert into rowlock.parked (queue, worker) values ('mail', gen_random_uuid())")
    channel = one(db, "select rowlock.channel('mail')")
    db.execute(f'listen "{channel}"'.encode())

    act(app)

    assert [(notice.channel, notice.payload) for notice in db.notifies(timeout=10, stop_after=1)] == [
        (channel, "below")
    ]


# Bulk


@deep
def test_a_bulk_retry_that_is_interrupted_and_taken_up_again_loses_and_doubles_nothing(app: Rowlock, db: Db) -> None:
    put_many(db, 30_000, "failed")
    before = db.execute("select id from rowlock.history order by id").fetchall()
    told: list[Done] = []

    def interrupt(so_far: Done) -> None:
        told.append(so_far)
        if so_far.changed >= 10_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        app.jobs.retry(Filter.all(), track=interrupt)
    stopped = told[-1]
    live, ended = counts(db)
    rest = app.jobs.retry(Filter.all(), before=stopped.before)

    assert 10_000 <= stopped.changed < 30_000
    assert (live, ended) == (stopped.changed, 30_000 - stopped.changed)
    assert stopped.changed + rest.changed == 30_000
    assert db.execute("select id from rowlock.jobs order by id").fetchall() == before
    assert counts(db) == (30_000, 0)
    assert one(db, "select count(distinct job) from rowlock.events where kind = 'retried'") == 30_000
    assert one(db, "select count(*) from rowlock.events") == 30_000


@pytest.mark.parametrize("state", ["failed", "ready"])
def test_two_operators_at_once_change_every_job_once(url: str, db: Db, state: str) -> None:
    put_many(db, 10_000, state)
    verb = "retry" if state == "failed" else "cancel"

    def operate(name: str) -> Done:
        with Rowlock(url) as app:
            answer: Done = getattr(app.jobs, verb)(Filter.all(), by=name)
            return answer

    with ThreadPoolExecutor(2) as operators:
        answers = list(operators.map(operate, ["one", "other"]))

    assert sum(answer.changed for answer in answers) == 10_000
    assert counts(db) == ((10_000, 0) if state == "failed" else (0, 10_000))
    assert one(db, "select count(distinct job) from rowlock.events") == 10_000
    assert one(db, "select count(*) from rowlock.events") == 10_000


@pytest.mark.parametrize("verb", ["cancel", "delete"])
def test_against_a_worker_that_claims_every_job_ends_once(app: Rowlock, db: Db, url: str, verb: str) -> None:
    put_many(db, 10_000)

    def work() -> int:
        engine, worked = Engine(url), 0
        while rows := engine.claim(100):
            while rows:  # one that the operator looked at is locked until their window is committed
                settled = set(engine.settle(*rows))
                worked += len(settled)
                rows = [row for row in rows if row.token not in settled]
        engine.close()
        return worked

    with ThreadPoolExecutor(1) as worker:
        working = worker.submit(work)
        answer: Done = getattr(app.jobs, verb)(Filter(state=["ready"]))
        worked = working.result()

    assert answer.changed > 0
    assert worked + answer.changed == 10_000
    assert counts(db) == (0, 10_000 if verb == "cancel" else worked)
    assert one(db, "select count(distinct id) from rowlock.history") == counts(db)[1]


def test_a_job_that_is_claimed_after_it_was_found_is_left_to_its_worker(db: Db, url: str, engine: Engine) -> None:
    put_many(db, 20)
    operator = Engine(url)
    delete = BulkOperation(VERBS["delete"], Filter(), "me", None, on_live=operations.delete)
    claimed: list[ClaimedJob] = []

    def say(query: Any) -> list[Any]:  # noqa: ANN401  whatever is said
        rows = operator.run(query)
        if query.name == "job_scan":
            claimed.extend(engine.claim(5))
        return rows

    answer = converse(say, delete.window(Done("delete")))
    operator.close()

    assert answer == done("delete", 15, 5)
    assert len(engine.settle(*claimed)) == 5


@pytest.mark.parametrize(("states", "left"), [(["ready"], 5), (None, 0)], ids=["ready ones", "all"])
def test_cancel_keeps_to_the_states_that_were_asked_for(
    db: Db, url: str, engine: Engine, states: list[State] | None, left: int
) -> None:
    put_many(db, 20)
    operator = Engine(url)
    asked = Filter(state=states)
    on_live = partial(operations.cancel, states=VERBS["cancel"].states(asked), keep=timedelta(days=1))
    claimed: list[ClaimedJob] = []

    def say(query: Any) -> list[Any]:  # noqa: ANN401  whatever is said
        rows = operator.run(query)
        if query.name == "job_scan":
            claimed.extend(engine.claim(5))
        return rows

    answer = converse(say, BulkOperation(VERBS["cancel"], asked, "me", None, on_live=on_live).window(Done("cancel")))
    operator.close()

    assert answer == done("cancel", 20 - left, left)
    assert one(db, "select count(*) from rowlock.jobs where cancel_at is null") == left


def test_a_row_that_somebody_has_locked_is_passed_over_and_waited_for_by_nobody(app: Rowlock, db: Db, url: str) -> None:
    put_many(db, 3)
    with psycopg.connect(url) as other:
        other.execute("select from rowlock.jobs order by id limit 1 for update")

        answer = app.jobs.cancel(Filter.all())

    assert answer == done("cancel", 2, 1)


def test_a_connection_that_breaks_between_windows_is_replaced(app: Rowlock, db: Db, small_windows: None) -> None:
    put_many(db, 50, "failed")
    broken: list[Any] = []

    def break_once(so_far: Done) -> None:
        if not broken:
            others = "select pg_terminate_backend(pid, 5000) from pg_stat_activity where application_name = 'rowlock'"
            broken.extend(db.execute(others).fetchall())

    answer = app.jobs.retry(Filter.all(), track=break_once)

    assert broken
    assert answer == done("retry", 50)
    assert counts(db) == (50, 0)


def test_verbs_work_where_no_worker_has_made_partitions_for_long(app: Rowlock, db: Db) -> None:
    job = put(db)
    for (part,) in db.execute(
        "select inhrelid::regclass::text from pg_inherits where inhparent in "
        "('rowlock.events'::regclass, 'rowlock.history'::regclass)"
    ).fetchall():
        db.execute(f"drop table {part}".encode())

    answer = app.jobs.cancel(Filter(ids=[job]))

    assert answer == done("cancel", 1)
    assert app.jobs.retry(Filter(state="cancelled")) == done("retry", 1)


# Events


def test_events_say_who_did_what_when_and_why_newest_first(app: Rowlock, db: Db) -> None:
    job = put(db, queue="mail", priority=1)
    put(db)
    asked = Filter(ids=[job])

    app.jobs.move(asked, queue="slow", by="ada", why="too many")
    app.jobs.reprioritise(asked, priority=-1, by="ada")
    app.jobs.run_next(asked)
    app.jobs.cancel(asked, why="not needed")
    app.jobs.retry(Filter(ids=[job], state="cancelled"), by="bob")

    events = app.jobs.events(job)
    me = f"{getpass.getuser()}@{socket.gethostname()}"
    assert [(event.kind, event.actor) for event in events] == [
        ("retried", "bob"),
        ("cancelled", me),
        ("run_next", me),
        ("reprioritised", "ada"),
        ("moved", "ada"),
    ]
    assert {event.job for event in events} == {job}
    assert events[-1].details == {"task": "t", "queue": "slow", "why": "too many", "from": "mail"}
    assert (events[-2].details["from"], events[-2].details["priority"]) == (1, -1)
    assert events[1].details["why"] == "not needed"
    assert events[0].details["state"] == "cancelled"
    assert events[0].at.tzinfo is not None


def test_events_come_in_pages(app: Rowlock, db: Db) -> None:
    put_many(db, 25)
    app.jobs.cancel(Filter.all())

    first = app.jobs.events(limit=10)
    second = app.jobs.events(limit=10, before=first[-1])
    third = app.jobs.events(limit=10, before=second[-1])

    assert [len(page) for page in (first, second, third)] == [10, 10, 5]
    assert len({event.id for event in first + second + third}) == 25
    assert app.jobs.events(limit=10, before=third[-1]) == ()


# What is refused


@pytest.mark.parametrize(
    ("verb", "state", "advice"),
    [
        ("retry", "ready", "use run_next"),
        ("cancel", "failed", "use delete"),
        ("delete", "running", "for jobs that are waiting or parked or ready or succeeded"),
        ("run_next", "failed", "use retry"),
        ("run_next", "waiting", "jobs that are ready"),
    ],
)
def test_a_verb_refuses_jobs_that_it_could_never_change(verb: str, state: Any, advice: str) -> None:  # noqa: ANN401  a State
    with pytest.raises(InvalidOption, match=advice):
        getattr(Rowlock().jobs, verb)(Filter(state=state))


@pytest.mark.parametrize("verb", VERBS)
def test_an_empty_filter_changes_nothing_unless_every_job_is_meant(app: Rowlock, db: Db, verb: VerbName) -> None:
    state = VERBS[verb].targets(Filter()) - {"running", "parked"}
    put(db, min(state))
    queue: str | None = None  # what a bug, or a form that was left empty, makes of it
    change = partial(getattr(app.jobs, verb), **OPTIONS.get(verb, {}))

    with pytest.raises(InvalidOption, match=rf"{verb} would be for every job; .* Filter\.all\(\)"):
        change(Filter(queue=queue))
    shown = app.jobs.preview(verb, Filter(queue=queue))
    answer = change(Filter.all())

    assert (shown.count, answer.changed) == (1, 1)


@pytest.mark.parametrize(
    "ask",
    [
        lambda jobs: jobs.move(Filter.all(), queue="a,b"),
        lambda jobs: jobs.reprioritise(Filter.all(), priority=5),
        lambda jobs: jobs.cancel(Filter.all(), by=""),
        lambda jobs: jobs.cancel(Filter.all(), why="a\x00"),
        lambda jobs: jobs.cancel(Filter.all(), before="here"),
        lambda jobs: jobs.preview("explode", Filter()),
        lambda jobs: jobs.events("abc"),
        lambda jobs: jobs.events(limit=0),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_done(ask: Callable[[Any], object]) -> None:
    with pytest.raises(InvalidOption):
        ask(Rowlock().jobs)


# Twins

CALLS: dict[str, tuple[Any, ...]] = {
    "list": (Filter(),),
    "preview": ("delete", Filter()),
    "events": (),
    **{name: (Filter(task="t"),) for name in VERBS},
}
OPTIONS: dict[str, dict[str, Any]] = {"move": {"queue": "mail"}, "reprioritise": {"priority": 3}}


@pytest.mark.parametrize("name", CALLS)
def test_an_async_twin_does_the_same(app: Rowlock, db: Db, name: str) -> None:
    def world() -> None:
        db.execute("truncate rowlock.jobs, rowlock.history, rowlock.keys, rowlock.events")
        for state in ("ready", "waiting", "running", "failed", "cancelled"):
            put(db, state)

    async def ask() -> object:
        async with app:
            return await getattr(app.jobs, f"a{name}")(*CALLS[name], **OPTIONS.get(name, {}))

    world()
    plain = getattr(app.jobs, name)(*CALLS[name], **OPTIONS.get(name, {}))
    after = counts(db)
    if name in VERBS:
        world()
    twin = asyncio.run(ask())

    assert twin == plain
    assert counts(db) == after


@pytest.mark.parametrize("name", CALLS)
def test_a_sync_verb_refuses_to_block_an_event_loop(name: str) -> None:
    async def ask() -> None:
        getattr(Rowlock().jobs, name)(*CALLS[name], **OPTIONS.get(name, {}))

    with pytest.raises(RowlockError, match=f"await app.jobs.a{name}"):
        asyncio.run(ask())


def test_a_settled_failure_can_be_found_and_retried_while_others_wait(app: Rowlock, db: Db, engine: Engine) -> None:
    """The whole way by the engine's own statements: what they write is what filters read."""
    engine.enqueue(3)
    first, second, third = engine.claim()
    engine.settle(first, outcome=Failed('{"type": "app.Broken", "message": "no", "traceback": ""}', "exhausted"))
    engine.give_back(second, outcome=Blocked("code", "unknown task"))
    engine.settle(third)

    answer = app.jobs.retry(Filter(error="Broken", reason="exhausted"))

    assert answer == done("retry", 1)
    assert [record.state for record in app.jobs.list(Filter(ids=[first.id, second.id])).records] == ["waiting", "ready"]
    assert counts(db) == (2, 1)
