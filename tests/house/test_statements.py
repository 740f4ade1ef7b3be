"""SQL files: how they read, who uses them, and that a real server accepts them with what their builders give."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from importlib import import_module
from pkgutil import walk_packages
from typing import Any, get_type_hints
from uuid import uuid4

import psycopg
import pytest

from rowlock import store
from rowlock.db.session import converse, run
from rowlock.model.filter import Filter
from rowlock.model.ids import NIL, TOP, new_id, new_ids
from rowlock.model.key import Key
from rowlock.model.outcome import Blocked, Cancelled, Failed, HandedBack, Parked, Restarted, Retried, Snoozed, Succeeded
from rowlock.model.pause import Breaker
from rowlock.model.record import COLUMNS, JobRecord
from rowlock.model.results import Cursor, Event
from rowlock.model.row import ClaimedJob, NewJob, Orphan
from rowlock.model.schedule.cron import Cron
from rowlock.model.schedule.rule import Every
from rowlock.model.schedule.schedule import ScheduleSpec
from rowlock.model.spec import Keep
from rowlock.model.workflow.step import NewChild, StepUpdate
from rowlock.store import (
    claim,
    clock,
    enqueue,
    events,
    explain,
    jobs,
    operations,
    pauses,
    queues,
    roles,
    schema,
    settle,
    transaction,
    upkeep,
    workers,
)
from rowlock.store.columns import COPIED
from rowlock.store.doctor import queries
from rowlock.store.find import windows
from rowlock.store.find.windows import Match
from rowlock.store.query import Copy, Query, numbered, statement, target
from rowlock.store.schedules import declare, fire
from rowlock.store.schedules import statements as schedules
from rowlock.store.schema import Span
from rowlock.store.stats import counts, minutes, series, server
from rowlock.store.stats import workers as watched
from rowlock.store.workflows import records, signals, steps, timeline
from tests.house.conftest import House
from tests.house.reading import Source, Statement, called, made_by_migrations, migrations, package, statements

TABLES = made_by_migrations("table") | {"migrations"}
FUNCTIONS = made_by_migrations("function")

DAY = timedelta(days=1)
WORKER = str(uuid4())
CLAIMED = ClaimedJob(
    new_id(), str(uuid4()), "t", "{}", "q", 0, "2024-01-01 00:00:00+00", 0, 0, 1, 10, None, False, None, None
)
OTHER = CLAIMED._replace(id=new_id(), token=str(uuid4()))
PLAIN = NewJob(new_id(), "q", "t", "{}", 0, 10)
LADEN = NewJob(new_id(), "q", "t", "{}", 4, 1, datetime.now(UTC), None, DAY, ("a", 'b "c"'), "key")
LATER = NewJob(new_id(), "q", "t", "{}", -4, 1, None, DAY)
CHILD = NewJob(new_id(), "q", "w", "{}", 0, 1, version=2, parent=new_id())
STEP = StepUpdate('a "b"', 1, "step", "done", "[1]", '{"x": "ü"}', attempts=2, ago=0.25, signal=new_id())
WAIT = StepUpdate("1/go", 2, "signal", "open", error='{"type": "E"}', delay=DAY, until=datetime.now(UTC), form="{}")
REPLACING = LADEN._replace(id=new_id(), meaning=Key("key", taken="debounce", at_most=DAY), is_priority_named=True)
UNIQUE = PLAIN._replace(id=new_id(), key="unique", meaning=Key("unique", period=DAY, taken="raise"))
EVERYTHING = Filter(
    queue="q",
    task="t",
    tag="a",
    key="key",
    args={"x": [1, "ü"]},
    since=datetime.now(UTC) - DAY,
    until=datetime.now(UTC),
    error="E",
    reason="poison",
    ids=[uuid4()],
)
LIVE = [Match(new_id(), "t", "ready", None, None), Match(new_id(), "t", "running", None, None)]
ENDED = [Match(new_id(), "t", "failed", date(2024, 1, 1), None), Match(new_id(), "t", "cancelled", date.max, None)]
RECORD = JobRecord.read(
    [
        new_id(),
        "t",
        "q",
        "ready",
        -4,
        0,
        0,
        0,
        10,
        "2024-01-01 00:00:00+00",
        "2024-01-01 00:00:00+00",
        *[None] * (len(COLUMNS) - 11),
    ]
)
BY_CLOCK = ScheduleSpec(
    name='a "b"', rule=Cron("0 9 * * *", "Europe/Paris"), task="t", tags=("a", 'b "c"'), expires=DAY, at_boot=True
)
BY_SPAN = ScheduleSpec(name="s", rule=Every(DAY), task="w", attempts=1, version=2)
SCHEDULED = declare.StoredSchedule(
    "s", "12", "0 9 * * *", "Europe/Paris", None, "{}", None, "2024-01-01 00:00:00+00", None
)
SLOTS = [
    fire.ScheduleSlot(datetime.now(UTC), new_id(), None, DAY),
    fire.ScheduleSlot(datetime.now(UTC), None, "missed"),
]
MOMENT = datetime.now(UTC)
SCHEDULE = ScheduleSpec(name="s", rule=Cron("0 3 * * *", "Europe/Paris"), task="t")
LOOK: dict[str, Any] = {"before": TOP, "down_to": NIL, "limit": 5, "whole": True}
WHO: dict[str, Any] = {"actor": "me", "why": "so"}
NOBODY: dict[str, Any] = {"actor": "me", "why": None}

# Every builder with values such as it meets; one more where a parameter can be empty.
BUILT: dict[Callable[..., Query[Any]], list[Query[Any]]] = {
    pauses.count_failures: [
        pauses.count_failures(
            [pauses.TaskFailures("t", 2, "E", Breaker()), pauses.TaskFailures('a "b"', 1, "E", Breaker(failures=1))]
        )
    ],
    pauses.forget_failures: [pauses.forget_failures(age=DAY)],
    clock.aim_clock: [
        clock.aim_clock(to=datetime.now(UTC)),
        clock.aim_clock(by=DAY),
        clock.aim_clock(by=-DAY),
        clock.aim_clock(ahead="-1.5"),
    ],
    clock.move_clock: [clock.move_clock()],
    explain.candidates: [explain.candidates(queue="q", task="t")],
    explain.tasks: [explain.tasks("q")],
    explain.ahead: [explain.ahead(RECORD)],
    explain.suspects_ahead: [explain.suspects_ahead(RECORD, [RECORD.id])],
    explain.hold: [explain.hold(uuid4())],
    explain.holder: [explain.holder("key")],
    enqueue.put_keyed: [enqueue.put_keyed([LADEN, REPLACING, UNIQUE, LADEN._replace(version=2)])],
    enqueue.sent_before: [enqueue.sent_before([new_id()])],
    enqueue.sweep_keys: [enqueue.sweep_keys(5), enqueue.sweep_keys(5, without=["k"])],
    enqueue.peek_key: [enqueue.peek_key(), enqueue.peek_key(without=["k"])],
    enqueue.insert: [enqueue.insert([PLAIN, LADEN, LATER, CHILD])],
    enqueue.insert_one: [
        enqueue.insert_one(PLAIN),
        enqueue.insert_one(LADEN),
        enqueue.insert_one(LATER),
        enqueue.insert_one(CHILD),
    ],
    claim.claim: [
        claim.claim(lanes=[claim.Lane("q", 0), claim.Lane("q", -1, "2024-01-01", new_id())], limit=5, worker=WORKER)
    ],
    claim.claim_suspect: [
        claim.claim_suspect(queues=["q"], worker=WORKER),
        claim.claim_suspect(queues=["q"], worker=WORKER, only=new_id()),
    ],
    claim.peek_suspects: [claim.peek_suspects(queues=["q"], limit=5)],
    claim.begin: [claim.begin([(CLAIMED, 1.5), (OTHER, 0.0)])],
    jobs.find: [jobs.find("01a1", most=5)],
    claim.take_up: [
        claim.take_up(queues=["q"], tasks=["t", "u@2"], limit=5, worker=WORKER),
        claim.take_up(queues=["q"], tasks=["t"], limit=1, worker=WORKER, only=new_id()),
    ],
    claim.peek_refused: [claim.peek_refused(queues=["q"], tasks=["t", "u@2"], limit=5, worker=WORKER)],
    settle.settle_alike: [
        settle.settle_alike([(CLAIMED, Succeeded("1"))], keep=lambda _job, _end: DAY, told={}),
        settle.settle_alike([(CLAIMED._replace(version=1), HandedBack())], keep=lambda _job, _end: DAY, told={}),
    ],
    settle.settle_jobs: [
        settle.settle_jobs([(CLAIMED, Succeeded("1"), DAY), (OTHER, Failed("{}", "exhausted"), DAY)]),
        settle.settle_jobs([(CLAIMED, Cancelled("asked"), DAY), (OTHER, Succeeded(None), None)]),
    ],
    settle.return_jobs: [
        settle.return_jobs([(CLAIMED, Retried("{}", DAY)), (OTHER, Snoozed(DAY))]),
        settle.return_jobs([(CLAIMED, Blocked("code", "unknown task")), (OTHER, HandedBack())]),
    ],
    jobs.held: [jobs.held([CLAIMED]), jobs.held([])],
    jobs.cancelling: [jobs.cancelling(worker=WORKER)],
    jobs.lock: [jobs.lock(new_id())],
    jobs.fence: [jobs.fence(CLAIMED)],
    jobs.progress: [jobs.progress([(CLAIMED, 0.25, 'a "note"'), (OTHER, 1.0, None)])],
    jobs.show: [jobs.show(new_id())],
    claim.lanes: [claim.lanes()],
    jobs.live: [jobs.live()],
    upkeep.orphans: [
        upkeep.orphans(limit=5, lost=True),
        upkeep.orphans(limit=5, lost=False, without=[str(uuid4())]),
    ],
    upkeep.rescue: [upkeep.rescue([Orphan(new_id(), str(uuid4()))], crashes=3, keep=Keep(), actor="me")],
    workers.disown: [workers.disown([(new_id(), str(uuid4()))], worker=WORKER)],
    upkeep.pardon: [upkeep.pardon(worker=WORKER, since=DAY)],
    workers.hand_back: [workers.hand_back(worker=WORKER), workers.hand_back(worker=WORKER, known=[new_id()])],
    clock.hasten: [clock.hasten(by=DAY, queues=["q"])],
    clock.compare_with_jobs: [clock.compare_with_jobs(queues=["q"])],
    pauses.pause: [
        pauses.pause(kind="queue", name="q", until=datetime.now(UTC), duration=None, **WHO),
        pauses.pause(kind="task", name="t", until=None, duration=DAY, **NOBODY),
    ],
    pauses.resume: [pauses.resume(kind="queue", name="q", **WHO), pauses.resume(kind="task", name="t", **NOBODY)],
    pauses.listed: [pauses.listed()],
    pauses.expire: [pauses.expire(actor="me")],
    pauses.release: [pauses.release("t"), pauses.release("t", limit=1, without=[WORKER])],
    pauses.peek: [pauses.peek("t"), pauses.peek("t", without=[WORKER])],
    declare.stored: [declare.stored([]), declare.stored(["s", 'a "b"'])],
    declare.write: [
        declare.write(
            [
                declare.ScheduleWrite(BY_CLOCK, "{}", None, datetime.now(UTC)),
                declare.ScheduleWrite(BY_SPAN, "{}", "1234", "2024-01-01 00:00:00+00"),
            ]
        )
    ],
    declare.correct: [declare.correct([(SCHEDULED, datetime.now(UTC))])],
    fire.due: [
        fire.due(limit=5),
        fire.due(limit=5, left_out=["12 s", '13 a "b"'], boots=["s"], booted_before=datetime.now(UTC)),
    ],
    fire.fire: [
        fire.fire([]),
        fire.fire(
            [
                fire.PlannedFiring('a "b"', "12", datetime.now(UTC), None, None, True, []),
                fire.PlannedFiring("s", "12", datetime.now(UTC), datetime.now(UTC), datetime.now(UTC), False, SLOTS),
            ]
        ),
    ],
    fire.make_room: [fire.make_room([new_id()], schedule="s", keep=DAY)],
    fire.remove: [fire.remove(5)],
    upkeep.expire: [upkeep.expire(keep=DAY), upkeep.expire(keep=DAY, limit=1, without=[new_id()])],
    upkeep.unblock: [upkeep.unblock(), upkeep.unblock(limit=1, without=[new_id()])],
    upkeep.peek_blocked: [upkeep.peek_blocked(), upkeep.peek_blocked(without=[new_id()])],
    upkeep.peek_expired: [upkeep.peek_expired(), upkeep.peek_expired(without=[new_id()])],
    queues.settings: [queues.settings()],
    queues.channels: [queues.channels(["q", "ü"])],
    claim.peek: [claim.peek(lanes=[claim.Lane("q", 0), claim.Lane("ü", -1, "2024-01-01", new_id())], limit=5)],
    claim.set_aside: [claim.set_aside(new_id(), reason="PostgreSQL refuses\n'it'")],
    queues.tell: [queues.tell()],
    queues.due_in: [queues.due_in([claim.Lane("q", 0), claim.Lane("ü", -1, "2024-01-01", new_id())], within=DAY)],
    queues.used: [queues.used(), queues.used(["q", "r"])],
    queues.blocked: [queues.blocked(["t", "u"])],
    windows.scan_live: [
        windows.scan_live(EVERYTHING, states=frozenset({"ready"}), ids=[new_id()], **LOOK),
        windows.scan_live(Filter(), states=frozenset({"ready"}), ids=None, **LOOK),
    ],
    windows.scan_ended: [
        windows.scan_ended(EVERYTHING, states=frozenset({"failed"}), ids=[new_id()], **LOOK),
        windows.scan_ended(Filter(), states=frozenset({"succeeded"}), ids=None, **LOOK),
        windows.scan_ended(EVERYTHING, states=frozenset({"failed"}), ids=None, end=datetime.now(UTC), **LOOK),
    ],
    windows.outline_live: [
        windows.outline_live(EVERYTHING, states=frozenset({"ready"}), ids=[new_id()], **LOOK),
        windows.outline_live(Filter(), states=frozenset({"ready"}), ids=None, **LOOK),
    ],
    windows.outline_ended: [
        windows.outline_ended(EVERYTHING, states=frozenset({"failed"}), ids=[new_id()], **LOOK),
        windows.outline_ended(Filter(), states=frozenset({"succeeded"}), ids=None, **LOOK),
        windows.outline_ended(EVERYTHING, states=frozenset({"failed"}), ids=None, end=datetime.now(UTC), **LOOK),
    ],
    roles.missing: [roles.missing("rowlock")],
    transaction.set_search_path: [
        transaction.set_search_path("pg_catalog", local=True),
        transaction.set_search_path('"$user", public', local=False),
    ],
    schema.version: [schema.version()],
    schema.lookup: [schema.lookup("rowlock")],
    schema.now: [schema.now()],
    schema.today: [schema.today()],
    schema.partitions: [schema.partitions(table) for table in schema.PARTITIONED],
    schema.partition: [schema.partition("history", Span(datetime.now(UTC).date() + timedelta(days=400), 1))],
    schema.drop: [
        schema.drop("history", Span(date(2020, 1, 1), 1)),
        schema.drop("events", Span(date(2019, 12, 29), 7)),
    ],
    schema.owned: [schema.owned()],
    schema.clear_spare: [schema.clear_spare()],
    schema.partition_lock: [schema.partition_lock()],
    schema.longest_retention: [schema.longest_retention()],
    schedules.listed: [schedules.listed(None), schedules.listed("s")],
    schedules.outlined: [schedules.outlined(None), schedules.outlined("s")],
    schedules.lock: [schedules.lock("s")],
    schedules.add: [
        schedules.add(SCHEDULE, next_at=datetime.now(UTC), **WHO),
        schedules.add(
            replace(SCHEDULE, rule=Every(DAY), expires=DAY, tags=("a",)), next_at=datetime.now(UTC), **NOBODY
        ),
    ],
    schedules.edit: [
        schedules.edit(SCHEDULE, edits=None, next_at=datetime.now(UTC), changes={}, **NOBODY),
        schedules.edit(SCHEDULE, edits={"queue": "ü"}, next_at=datetime.now(UTC), changes={"a": ["b", None]}, **WHO),
    ],
    schedules.pause: [
        schedules.pause("s", until=datetime.now(UTC), duration=None, **WHO),
        schedules.pause("s", until=None, duration=DAY, **NOBODY),
    ],
    schedules.resume: [schedules.resume("s", next_at=datetime.now(UTC), **WHO)],
    schedules.remove: [schedules.remove("s", **WHO), schedules.remove("s", **NOBODY)],
    schedules.run: [schedules.run("s", job_id=new_id(), **WHO)],
    schedules.firings: [schedules.firings("s", limit=5)],
    schedules.recent: [schedules.recent(["s", 'a "b"'], limit=5), schedules.recent([], limit=5)],
    signals.send: [
        signals.send(new_id(), target=new_id(), name="paid", payload='{"a": "ü"}', key="k"),
        signals.send(new_id(), target="key", name="paid", payload=None, key=None),
    ],
    signals.tell: [
        signals.tell(new_id(), target=new_id(), name="paid", payload='{"a": "ü"}', key="k", **WHO),
        signals.tell(new_id(), target="key", name="paid", payload=None, key=None, **NOBODY),
    ],
    jobs.statuses: [jobs.statuses([new_id()]), jobs.statuses([])],
    watched.worker_rows: [watched.worker_rows()],
    server.connections: [server.connections()],
    server.lock_waits: [server.lock_waits(5)],
    server.sizes: [server.sizes()],
    server.snapshots: [server.snapshots(5)],
    server.vacuum: [server.vacuum()],
    queries.attempts: [queries.attempts(worker=WORKER)],
    queries.begin_trial: [queries.begin_trial(DAY)],
    queries.claim: [queries.claim("q", limit=5, worker=WORKER)],
    queries.clock: [queries.clock()],
    queries.cost_of: [queries.cost_of(enqueue.insert_one(PLAIN))],
    queries.described: [queries.described()],
    queries.notifications: [queries.notifications()],
    queries.overrides: [queries.overrides(["fsync", "synchronous_commit"])],
    queries.peak: [queries.peak(5)],
    queries.policies: [queries.policies()],
    queries.rights: [queries.rights()],
    queries.schedules: [queries.schedules(late=DAY, most=5)],
    queries.server: [queries.server()],
    queries.settings: [queries.settings(["fsync"])],
    queries.standbys: [queries.standbys()],
    queries.tables: [queries.tables()],
    queries.transactions: [queries.transactions(5)],
    queries.lock_holders: [queries.lock_holders(5)],
    schema.blockers: [schema.blockers("rowlock", held_for=timedelta(seconds=1), most=5)],
    queries.duty_holders: [queries.duty_holders(5)],
    queries.row_holders: [queries.row_holders(["q", "ü"], held=DAY, most=5), queries.row_holders([], held=DAY, most=5)],
    watched.claimed: [watched.claimed([WORKER]), watched.claimed([])],
    watched.underway: [watched.underway([WORKER], limit=5), watched.underway([], limit=5)],
    watched.watched_workers: [watched.watched_workers("host:1", limit=5), watched.watched_workers(None, limit=5)],
    series.ended_by_minute: [series.ended_by_minute(since=datetime.now(UTC), most=5)],
    counts.begin_reading: [counts.begin_reading(DAY)],
    counts.parked: [counts.parked(5)],
    counts.approvals: [counts.approvals(5)],
    counts.probe: [counts.probe(["q", "ü"], limit=5)],
    counts.ready: [counts.ready(5)],
    counts.rescues: [counts.rescues(5)],
    counts.running: [counts.running(5)],
    counts.suspects: [counts.suspects(5)],
    counts.failed: [counts.failed(5)],
    counts.waiting: [counts.waiting(5)],
    minutes.done: [minutes.done(DAY)],
    minutes.remove: [minutes.remove(5)],
    minutes.merge: [minutes.merge(age=DAY, limit=5)],
    minutes.breakdown: [minutes.breakdown(DAY, most=5)],
    minutes.series: [
        minutes.series(since=datetime.now(UTC), step=DAY, queue="q", task="ü", most=5),
        minutes.series(since=datetime.now(UTC), step=DAY, queue=None, task=None, most=5),
    ],
    minutes.write: [
        minutes.write(
            [
                minutes.Tally(28_000_000, "q", "t", 3, 1, 0, 1, 0, 0.5, 0.25, (0, 2, 0, 1, 0), 0.5, 0.25, (3, 0)),
                minutes.Tally(28_000_000, "ü", 'a "b"', 1, 0, 0, 0, 0, 0.0, 0.0, (0, 0), 0.0, 0.0, (0, 0)),
            ],
            worker=WORKER,
            claims=minutes.Claims(2, 4, 0.5, 0.25),
        )
    ],
    events.latest: [
        events.latest(limit=5),
        events.latest(limit=5, job=new_id(), before=Event(uuid4(), datetime.now(UTC), "moved", None, "me", {})),
    ],
    events.login: [
        events.login("logged_in", actor="ann", address="127.0.0.1", role="operator"),
        events.login("login_failed", actor="unknown", address="::1", role=None),
    ],
    events.scan: [
        events.scan(kind=None, actor=None, job=None, before=None, limit=5),
        events.scan(kind="moved", actor="me", job=uuid4(), before=Cursor(datetime.now(UTC), uuid4()), limit=5),
    ],
    operations.retry: [operations.retry(ENDED, **WHO), operations.retry(ENDED, **NOBODY)],
    operations.cancel: [operations.cancel(LIVE, states=["ready"], keep=DAY, **WHO)],
    operations.delete: [operations.delete(LIVE, **WHO)],
    operations.delete_ended: [operations.delete_ended(ENDED, **WHO)],
    operations.move: [operations.move(LIVE, queue="q", **WHO)],
    operations.edit: [
        operations.edit(new_id(), args='{"x": 1}', **WHO),
        operations.edit(new_id(), args="{}", **NOBODY),
    ],
    operations.record_enqueued: [
        operations.record_enqueued(new_id(), task="t", queue="q", like=new_id(), **WHO),
        operations.record_enqueued(new_id(), task="t", queue="q", like=None, **NOBODY),
    ],
    operations.cancel_unlocked: [operations.cancel_unlocked([new_id()], keep=DAY, **WHO)],
    operations.reprioritise: [operations.reprioritise(LIVE, priority=-4, **WHO)],
    operations.run_next: [operations.run_next(LIVE, **WHO)],
    records.scan: [
        records.scan(records.WorkflowFilter(), before=TOP, limit=5),
        records.scan(
            records.WorkflowFilter(workflow="w", version=2, states=("failed",), queue="q", key="k"),
            before=NIL,
            limit=5,
        ),
    ],
    records.scan_live: [
        records.scan_live(records.WorkflowFilter(states=("waiting", "ready")), before=TOP, limit=5),
        records.scan_live(
            records.WorkflowFilter(workflow="w", version=2, states=("running",), queue="q", key="k"),
            before=NIL,
            limit=5,
        ),
    ],
    timeline.advances: [timeline.advances([uuid4(), uuid4()]), timeline.advances([])],
    timeline.signal_waits: [timeline.signal_waits(uuid4())],
    timeline.trace: [timeline.trace(uuid4())],
    timeline.values: [timeline.values(uuid4(), ["charge#2", '1/a "b"'])],
    records.steps: [records.steps(uuid4())],
    records.steps_outline: [records.steps_outline(uuid4())],
    records.signals: [records.signals(uuid4())],
    records.signals_outline: [records.signals_outline(uuid4())],
    records.children: [records.children(uuid4())],
    explain.open_steps: [explain.open_steps(uuid4())],
    explain.step_sum: [explain.step_sum(uuid4())],
    explain.step_error: [explain.step_error(uuid4(), "charge#2")],
    steps.recall_workflows: [steps.recall_workflows([str(uuid4())])],
    steps.recall_steps: [steps.recall_steps([str(uuid4())])],
    records.fork: [
        records.fork(uuid4(), new_id=new_id(), step="1/charge", args=None, version=None, **NOBODY),
        records.fork(uuid4(), new_id=new_id(), step="charge", args='{"x": 1}', version=2, **WHO),
    ],
    records.terminate: [records.terminate(uuid4(), keep=DAY, **WHO)],
    steps.record: [
        steps.record([(CLAIMED, STEP)], told={CLAIMED.token: '{"at": "ü"}'}),
        steps.record([(CLAIMED, WAIT), (OTHER, STEP), (CLAIMED, STEP)], told={}),
    ],
    steps.spawn: [steps.spawn([(CLAIMED, NewChild("child#2", 3, '{"x": 1}', CHILD))])],
    steps.load: [steps.load([new_id(), new_id()])],
    steps.load_signals: [steps.load_signals([new_id()])],
    settle.settle_workflows: [
        settle.settle_workflows(
            [
                (CLAIMED, Succeeded("1", undoable=True), DAY),
                (OTHER, Failed('{"type": "E"}', "raised"), DAY),
                (CLAIMED._replace(id=new_id()), Cancelled("asked"), None),
            ],
            told={CLAIMED.token: "{}"},
        )
    ],
    settle.return_workflows: [
        settle.return_workflows(
            [
                (CLAIMED, Parked(2, "signal", "2024-01-01 00:00:00+00")),
                (OTHER, Parked(None, None, undoing=True)),
                (CLAIMED._replace(id=new_id()), Blocked("code", "changed code")),
                (CLAIMED._replace(id=new_id()), Blocked("code", "its code raised KeyError", "{}", DAY)),
                (OTHER._replace(id=new_id()), HandedBack()),
                (OTHER._replace(id=new_id()), Snoozed(DAY)),
            ],
            told={OTHER.token: '{"at": 1}'},
        )
    ],
    settle.restart_workflow: [settle.restart_workflow(CLAIMED, Restarted('{"x": 1}', 2, '{"at": 1}'))],
    settle.workflow_state: [settle.workflow_state(CLAIMED)],
    settle.abandon_children: [settle.abandon_children([new_id(), new_id()], actor="me")],
    jobs.add_waiters: [jobs.add_waiters(listener=WORKER, jobs=[new_id(), new_id()])],
    jobs.remove_waiters: [jobs.remove_waiters(listener=WORKER, jobs=[new_id()])],
    jobs.clear_waiters: [jobs.clear_waiters(age=DAY)],
    jobs.ends: [jobs.ends([new_id()]), jobs.ends([])],
    workers.register: [
        workers.register(
            worker=WORKER,
            host="h",
            pid=1,
            queues=["q"],
            slots=1,
            tasks=["t"],
            schedules=["s"],
            version="0",
            lease=DAY,
        )
    ],
    workers.serve: [workers.serve(worker=WORKER, queues=["q", "ü"])],
    workers.serving: [workers.serving(queues=["q", "ü"], but=WORKER)],
    workers.known_tasks: [workers.known_tasks()],
    workers.renew: [workers.renew(worker=WORKER), workers.renew(worker=WORKER, blocked=1.5, blocked_by="t 1")],
    workers.held: [workers.held(worker=WORKER)],
    workers.enter: [workers.enter(worker=WORKER)],
    workers.leave: [workers.leave(worker=WORKER)],
    workers.find_dead: [workers.find_dead(worker=WORKER, pause=timedelta(seconds=1))],
    workers.take_duty: [workers.take_duty("rescue"), workers.take_duty("rescue", worker=WORKER)],
    workers.take_turn: [workers.take_turn("keys", every=timedelta(minutes=1))],
    workers.finish_duty: [workers.finish_duty("keys")],
    workers.bury: [workers.bury()],
    workers.tell: [workers.tell(worker=WORKER, stuck=2, stopping=True)],
    workers.park: [workers.park(worker=WORKER, queues=["q"])],
    workers.unpark: [workers.unpark(worker=WORKER, queues=["q"], number=7)],
}


# How they read


def test_an_sql_file_says_first_what_it_does() -> None:
    first = {one.name: one.text.splitlines()[0] for one in (*statements(), *migrations())}

    assert {name: line for name, line in first.items() if not re.fullmatch(r"-- [A-Z`].*[^,]", line)} == {}


def test_an_sql_file_shouts_nowhere() -> None:
    shouts = {one.name: re.findall(r"\b\w*[A-Z]\w*\b", one.bare) for one in (*statements(), *migrations())}

    assert {name: words for name, words in shouts.items() if words} == {}


def test_a_statement_file_holds_one_statement() -> None:
    ends = {one.name: (one.bare.strip()[-1], one.bare.count(";")) for one in statements()}

    assert {name: end for name, end in ends.items() if end != (";", 1)} == {}


def test_an_sql_file_writes_the_schema_out() -> None:
    bare = {one.name: names for one in (*statements(), *migrations()) if (names := without_schema(one))}

    assert bare == {}


def without_schema(one: Statement) -> list[str]:
    """The tables and functions of ours that it names without their schema."""
    ctes = set(re.findall(r"\b(\w+) as (?:materialized )?\(", one.bare))
    spoken_of = re.findall(r"\b(?:from|join|into|update|table|copy|only)\s+([\w.]+)", one.bare)
    calls = re.findall(r"([\w.]+)\s?\(", one.bare)
    return [name for name in spoken_of if name in TABLES - ctes] + [name for name in calls if name in FUNCTIONS]


def test_a_parameter_stands_outside_of_quotes() -> None:
    outside = {one.name: set(re.findall(r"(?<!:):([a-z_]+)\b", one.bare)) for one in statements()}

    assert {one.name: one.parameters for one in statements() if one.parameters != outside[one.name]} == {}


def test_a_statement_that_ends_a_job_copies_the_columns_that_all_copy() -> None:
    inserts = {one.name: one.bare.partition("insert into rowlock.history (")[2] for one in statements()}
    ending = {name: text for name, text in inserts.items() if text}

    assert ending
    assert {name for name, text in ending.items() if text.count("{copied}") != 2} == set()


def test_a_function_that_ends_a_job_copies_the_same_columns() -> None:
    insert = re.compile(
        r"insert into rowlock\.history \((?P<columns>[^)]*)\)\s*values \((?P<values>.*?)\n\s*\);", re.DOTALL
    )
    found = [match for one in migrations() for match in insert.finditer(one.without_comments)]

    assert len(found) == "".join(one.without_comments for one in migrations()).count("insert into rowlock.history")
    for match in found:
        copied = re.findall(r"\b(?:live|it)\.(\w+)", match["values"])
        assert set(COPIED) - set(match["columns"].replace(",", " ").split()) == set()
        assert set(COPIED) - set(copied) == set()


def test_the_rules_know_every_table_and_function(house: House) -> None:
    tables = house.connection.execute(
        """
        select relname from pg_class
        where relnamespace = %s::regnamespace and relkind in ('r', 'p')
            and (not relispartition or relname = 'events_spare')
        """,
        [house.schema],
    ).fetchall()
    functions = house.connection.execute(
        "select distinct proname from pg_proc where pronamespace = %s::regnamespace", [house.schema]
    ).fetchall()

    assert {name for (name,) in tables} == TABLES
    assert {name for (name,) in functions} == FUNCTIONS


# Who uses them


def test_every_file_is_used_and_every_name_has_its_file() -> None:
    assert sorted({name for name, _ in built()} | named()) == [one.name for one in statements()]


def test_every_builder_gives_the_parameters_its_file_takes() -> None:
    takes = {one.name: one.parameters for one in statements()}

    wrong = {name: given ^ takes[name] for name, given in built() if given != takes[name]}

    assert wrong == {}


def test_every_builder_is_tried_below() -> None:
    public = {
        function
        for module in [import_module(found.name) for found in walk_packages(store.__path__, "rowlock.store.")]
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__
        and not name.startswith("_")
        and "Query" in str(get_type_hints(function).get("return")).partition("[")[0]
    }

    assert public == BUILT.keys()


def built() -> Iterator[tuple[str, set[str]]]:
    """The file and the parameters of every query that the store builds."""
    for source in package():
        for call in source.calls():
            match call:
                case ast.Call(func=ast.Name(id="Query"), args=[ast.Constant(value=str(name)), ast.Dict(keys=keys), _]):
                    yield (
                        name,
                        {key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)},
                    )
                case ast.Call(func=ast.Name(id="Copy"), args=[ast.Constant(value=str(name)), _]):
                    yield name, set()
                case _:
                    assert called(call) not in {"Query", "Copy"} or not in_store(source), ast.unparse(call)


def in_store(source: Source) -> bool:
    return source.room == "store"


def named() -> set[str]:
    """The files that are named without a builder."""
    calls = [call for source in package() for call in source.calls() if called(call) == "statement"]
    return {str(arg.value) for call in calls for arg in call.args[:1] if isinstance(arg, ast.Constant)}


# What a real server says to them


# PREPARE takes what has a plan; these are run as they are, by the tests after this one.
PLANLESS = ("copy", "do", "explain", "savepoint", "rollback", "release", "begin", "commit")


def test_every_statement_can_be_prepared(house: House) -> None:
    with_plans = [one for one in statements() if not re.match(rf"\s*({'|'.join(PLANLESS)})\b", one.bare)]

    refused = {one.name: error for one in with_plans if (error := prepare(house, one))}

    assert refused == {}
    prepared = "select name, cardinality(parameter_types) from pg_prepared_statements where name like 'house_%'"
    counts: dict[str, int] = dict(house.connection.execute(prepared).fetchall())
    assert counts == {f"house_{one.name}": len(one.parameters) for one in with_plans}


def prepare(house: House, one: Statement) -> str | None:
    """Prepare a statement, and return what the server has against it."""
    text, names = numbered(one.name, house.schema)
    types = f"({', '.join(['text'] * len(names))})" if names else ""
    # SQL's PREPARE knows no EXPLAIN, though the protocol does: then what it explains is prepared here.
    plain = re.sub(r"^\s*explain \([^)]*\)", "", text)
    try:
        house.connection.execute(f"prepare house_{one.name} {types} as {plain}".encode())
    except psycopg.Error as error:
        return str(error)
    return None


def test_every_statement_runs_with_what_its_builder_gives(house: House) -> None:
    for query in (query for built in BUILT.values() for query in built):
        with house.connection.transaction(force_rollback=True):
            run(house.connection.cursor(), query, house.schema)


def test_both_renderings_of_a_statement_ask_for_the_same() -> None:
    for one in statements():
        text, names = numbered(one.name, "other")
        by_name = {f"${number}": f"%({name})s" for number, name in enumerate(names, 1)}

        back = re.sub(r"\$\d+", lambda match: by_name[match[0]], text.replace("%", "%%"))  # noqa: B023

        assert back == statement(one.name, "other")


def test_json_leaves_the_database_as_text(house: House) -> None:
    # A caller's connection may turn json into something else on its way, and not all drivers can be told not to.
    # (What EXPLAIN answers cannot be cast; nobody runs it on a caller's connection.)
    queries = [query for built in BUILT.values() for query in built if query.name != "claim_probe"]
    json = {}
    for query in queries:
        with house.connection.transaction(force_rollback=True):
            cursor = house.connection.execute(statement(query.name, house.schema), query.params)
        columns = cursor.description or []
        json[query.name] = [column.name for column in columns if column.type_display in {"json", "jsonb"}]

    assert {name: columns for name, columns in json.items() if columns} == {}, "cast these columns to text"


def test_rows_of_jobs_have_the_columns_by_which_they_are_read(house: House) -> None:
    read = {
        ("job_claim", "job_claim_suspect", "job_take_up"): (*ClaimedJob._fields, "set_config"),
        ("job_show", "job_live"): COLUMNS,
        ("job_scan", "history_scan", "job_outline", "history_outline"): (
            *("looked", "edge", "newest", "expires_on"),
            *COLUMNS,
        ),
    }
    expected = {name: columns for names, columns in read.items() for name in names}

    returned = {}
    for query in (query for built in BUILT.values() for query in built if query.name in expected):
        with house.connection.transaction(force_rollback=True):
            cursor = house.connection.execute(statement(query.name, house.schema), query.params)
        returned[query.name] = tuple(column.name for column in cursor.description or [])

    assert returned == expected


def test_every_copy_names_its_table_and_columns() -> None:
    copies = [one for one in statements() if one.bare.strip().startswith("copy")]

    assert copies
    for one in copies:
        table, columns = target(one.name)
        assert one.bare.strip() == f"copy rowlock.{table} ({', '.join(columns)}) from stdin;"


def test_every_conversation_runs_with_what_its_builder_gives(house: House) -> None:
    many = [PLAIN._replace(id=job_id) for job_id in new_ids(enqueue.LOAD_FROM)]

    with house.connection.transaction(force_rollback=True):
        run_one = partial(run, house.connection.cursor(), schema=house.schema)
        converse(run_one, enqueue.enqueue_all([PLAIN, LADEN, LATER]))
        again = [PLAIN, LADEN._replace(id=new_id())]
        converse(run_one, enqueue.enqueue_all(again, resend=True))
        converse(run_one, enqueue.enqueue_all(many))
        there = house.connection.execute(f"select count(*) from {house.schema}.jobs".encode()).fetchone()

    assert there == (3 + len(many),)


def test_a_statement_that_nothing_builds_is_no_statement() -> None:
    with pytest.raises(FileNotFoundError):
        statement("job_forget", "rowlock")


def test_blocks_of_a_copy_are_made_late() -> None:
    conversation = enqueue.enqueue_all([PLAIN] * enqueue.LOAD_FROM)
    next(conversation)

    copy = conversation.send(["2024-01-01 00:00:00+00"])

    assert isinstance(copy, Copy)
    assert not isinstance(copy.blocks, (list, tuple, str))
