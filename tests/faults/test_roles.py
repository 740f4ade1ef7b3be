"""What each role may do and may not, on a real server, by real logins: S12, S23, T51."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from uuid import UUID, uuid4

import psycopg
import pytest

from rowlock import Filter, Job, Key, Rowlock, RowlockError, Task
from rowlock.db.session import connect, run
from rowlock.store import events
from rowlock.store.query import Conversation, alone
from rowlock.store.roles import ALL, ROLES, Role
from rowlock.workflow.context import Context
from tests.cli.conftest import Type, shop, typed
from tests.cli.programs import Shop
from tests.faults.estate import OWNER, STRANGER, Db, Estate, as_user, make_expired_part
from tests.house.reading import statements
from tests.rows import put
from tests.waiting import auntil
from tests.worker.working import one
from tests.workflow.remembering import end, put_failure, put_signal, put_step, put_workflow

__all__ = ["shop", "typed"]  # fixtures

NOTHING = Role("nothing", {}, ())
EVERYBODY = [*ROLES, NOTHING]
PRIVILEGES = ("select", "insert", "update", "references")
TABLE_PRIVILEGES = ("select", "insert", "update", "delete", "truncate", "references", "trigger")

# The statements that a role's clients say. What is in none of them takes no rights: savepoints, times, catalogues.
ENQUEUES = {
    *("job_enqueue", "job_put", "job_put_keyed", "job_load", "job_sent_before", "job_take_back", "queue_wake"),
    *("queue_channels", "signal_send"),
}
RESULTS = {"job_endings", "waiter_enter", "waiter_leave"}
WORKS = {
    *(
        "claim_probe",
        "job_claim",
        "job_claim_suspect",
        "job_begin",
        "job_take_up",
        "job_settle",
        "job_return",
        "job_progress",
        "job_held",
    ),
    *(
        "job_hand_back",
        "job_hasten",
        "clock_compare",
        "job_rescue",
        "job_orphans",
        "job_pardon",
        "job_disown",
        "job_fence",
        "job_lock",
    ),
    *("job_cancelling", "job_release", "worker_register", "worker_renew", "worker_held", "worker_enter"),
    *("worker_leave", "worker_look", "worker_bury", "worker_tell", "worker_park", "worker_unpark", "worker_list"),
    *("pause_expire", "pause_list", "queue_settings", "queue_blocked", "retention_longest", "minute_write"),
    *(
        "minute_merge",
        "minute_remove",
        "minute_sum",
        "minute_breakdown",
        "minute_series",
        "partition_make",
        "partition_drop",
        "waiter_clear",
    ),
    *("lane_list", "lane_count", "lane_due", "running_count", "waiting_count", "parked_count", "job_live"),
    "event_clear",
    *(
        "job_set_aside",
        "lane_peek",
        "suspect_peek",
        "expired_peek",
        "blocked_peek",
        "refused_peek",
        "released_peek",
        "swept_peek",
        "queue_used",
        "worker_know",
        "worker_serve",
        "worker_serving",
    ),
    *("breaker_count", "breaker_remove", "job_expire", "key_sweep"),
    *("schedule_declared", "schedule_declare", "schedule_correct", "schedule_due", "schedule_fire", "firing_remove"),
    *("step_load", "step_record", "step_spawn", "signal_load", "workflow_settle", "workflow_return"),
    *("workflow_restart", "workflow_state", "workflow_unblock", "child_abandon"),
    "job_replace",
    *("duty_take", "duty_turn", "duty_done", "partition_lock", "event_clear", "lane_tell"),
}
EXAMINES = {
    "duty_holders",
    "row_holders",
    "minute_peak",
    "schedule_check",
}  # rowlock doctor; the rest of what it asks is about catalogues
LOOKS = {
    *(
        "lane_peek",
        "suspect_peek",
        "blocked_peek",
        "refused_peek",
        "released_peek",
        "queue_used",
        "worker_know",
        "worker_serving",
    ),
    *("worker_match", "task_gather", "lane_ahead", "suspect_wait", "suspect_ahead"),
    *(
        "job_outline",
        "history_outline",
        "event_list",
        "event_scan",
        "pause_list",
        "queue_settings",
        "retention_longest",
    ),
    *(
        "lane_list",
        "lane_count",
        "running_count",
        "waiting_count",
        "parked_count",
        "trouble_count",
        "approval_count",
        "rescue_count",
        "minute_sum",
    ),
    *("minute_breakdown", "minute_series", "claim_probe", "worker_list", "job_locate", "job_find", "queue_blocked"),
    *("schedule_outline", "firing_list", "firing_recent"),
    *("minute_pulse", "minute_claims", "job_underway"),
    *("workflow_list", "step_outline", "signal_outline", "child_list", "step_open", "step_sum"),
    *("workflow_live", "workflow_progress", "job_hold"),
}
OPERATES = {
    *("job_scan", "history_scan", "job_show", "job_live", "job_cancel", "job_retry", "job_delete", "history_delete"),
    *("job_edit", "event_enqueued", "event_login"),
    *(
        "job_move",
        "job_reprioritise",
        "job_run_next",
        "job_release",
        "pause_set",
        "pause_end",
        "partition_make",
        "partition_lock",
    ),
    *("job_held", "job_lock", "job_endings", "key_look"),
    *("schedule_list", "schedule_lock", "schedule_add", "schedule_edit", "schedule_pause", "schedule_resume"),
    *("schedule_run", "schedule_remove"),
    *(
        "step_list",
        "signal_list",
        "workflow_fork",
        "workflow_terminate",
        "workflow_recall",
        "step_recall",
        "step_error",
    ),
    *("step_peek", "step_ask", "signal_trace", "signal_tell"),
}
SAYS = {
    "enqueue": ENQUEUES,
    "results": RESULTS,
    "worker": ENQUEUES | WORKS | EXAMINES | {"attempt_list"},  # it may try a claim out
    "viewer": LOOKS | EXAMINES,
    "operator": ENQUEUES | LOOKS | OPERATES | EXAMINES | {"lane_tell"},
    "nothing": set[str](),
}


# What a role is not meant to say and can: they find nothing here. With something to change, the event is refused.
BESIDE = {
    "enqueue": {"key_look", "released_peek", "swept_peek"},
    "results": {"job_find"},
    "worker": {
        "job_find",
        *("worker_match", "task_gather", "lane_ahead", "key_look", "suspect_wait", "suspect_ahead"),
        *("job_edit", "job_hold"),
        *("job_cancel", "job_delete", "job_move", "job_outline", "job_reprioritise", "job_run_next", "job_scan"),
        *("rescue_count", "waiter_leave"),
        *("schedule_list", "schedule_lock", "schedule_outline", "schedule_pause", "schedule_resume", "schedule_run"),
        *("firing_list", "child_list", "signal_outline"),
        *("minute_pulse", "minute_claims", "job_underway"),
        "signal_tell",
    },
    "operator": {
        *("attempt_list", "key_sweep", "job_cancelling", "job_expire", "job_orphans", "worker_held"),
        *("job_replace", "schedule_declared", "schedule_declare", "schedule_correct", "schedule_due", "schedule_fire"),
        *("step_load", "step_spawn", "signal_load", "workflow_state", "child_abandon"),
        *("duty_take", "duty_turn", "duty_done", "job_set_aside", "expired_peek", "swept_peek"),
        "workflow_unblock",
    },
}


# The rights, as PostgreSQL knows them


@pytest.mark.parametrize("role", EVERYBODY, ids=lambda role: role.name)
def test_a_role_has_on_every_column_what_the_manifest_says_and_nothing_more(estate: Estate, role: Role) -> None:
    with estate.session(OWNER) as db:
        rows = db.execute(
            """
            select relname, attname, privilege, has_column_privilege(%s, pg_class.oid, attnum, privilege)
            from pg_class join pg_attribute on attrelid = pg_class.oid cross join unnest(%s::text[]) as privilege
            where relnamespace = 'rowlock'::regnamespace and relkind in ('r', 'p', 'v', 'S') and not relispartition
                and attnum > 0 and not attisdropped
            """,
            [who(role), list(PRIVILEGES)],
        ).fetchall()

    has = {(table, column, privilege) for table, column, privilege, may in rows if may}
    columns = {(table, column) for table, column, _, _ in rows}
    wanted = {
        (table, column, privilege)
        for table, column in columns
        for privilege, granted in role.rights.get(table, {}).items()
        if privilege != "delete" and (granted == ALL or column in granted)
    }
    assert has == wanted
    assert role.rights.keys() <= {table for table, _ in columns}


@pytest.mark.parametrize("role", EVERYBODY, ids=lambda role: role.name)
def test_a_role_has_on_every_table_what_the_manifest_says_and_on_parts_nothing(estate: Estate, role: Role) -> None:
    with estate.session(OWNER) as db:
        rows = db.execute(
            """
            select relname, privilege
            from pg_class cross join unnest(%s::text[]) as privilege
            where relnamespace = 'rowlock'::regnamespace and relkind in ('r', 'p', 'v', 'S')
                and has_table_privilege(%s, pg_class.oid, privilege)
            """,
            [list(TABLE_PRIVILEGES), who(role)],
        ).fetchall()

    wanted = {
        (table, privilege)
        for table, rights in role.rights.items()
        for privilege, columns in rights.items()
        if columns == ALL
    }
    assert set(rows) == wanted


@pytest.mark.parametrize("role", EVERYBODY, ids=lambda role: role.name)
def test_a_role_may_call_what_the_manifest_says_and_nothing_more(estate: Estate, role: Role) -> None:
    with estate.session(OWNER) as db:
        rows = db.execute(
            "select proname, has_function_privilege(%s, oid, 'execute') from pg_proc "
            "where pronamespace = 'rowlock'::regnamespace",
            [who(role)],
        ).fetchall()

    assert {name for name, may in rows if may} == set(role.functions)


@pytest.mark.parametrize("role", EVERYBODY, ids=lambda role: role.name)
def test_a_role_may_use_the_schema_and_make_nothing_in_it(estate: Estate, role: Role) -> None:
    with estate.session(OWNER) as db:
        uses = one(db, "select has_schema_privilege(%s, 'rowlock', 'usage')", who(role))
        makes = one(db, "select has_schema_privilege(%s, 'rowlock', 'create')", who(role))

    assert uses == (role is not NOTHING)
    assert not makes


def test_there_is_nothing_in_the_schema_that_the_manifest_does_not_know_of(estate: Estate) -> None:
    with estate.session(OWNER) as db:
        others = db.execute(
            """
            select relname from pg_class
            where relnamespace = 'rowlock'::regnamespace and relkind not in ('r', 'p', 'v', 'i', 'I', 'S')
            """
        ).fetchall()
        functions = {
            name for (name,) in db.execute("select proname from pg_proc where pronamespace = 'rowlock'::regnamespace")
        }

    assert others == [], "whatever this is has rights, too: put it into the manifest"
    assert functions - {name for role in ROLES for name in role.functions} == {"part_name"}


def test_the_roles_cannot_log_in_and_are_in_no_other_role(estate: Estate) -> None:
    with estate.session(OWNER) as db:
        rows = db.execute(
            """
            select rolname, rolcanlogin or rolsuper or rolcreaterole or rolcreatedb or rolbypassrls
                or exists (select from pg_auth_members where member = pg_roles.oid)
            from pg_roles where rolname = any(%s)
            """,
            [[who(role) for role in ROLES]],
        ).fetchall()

    assert dict(rows) == {who(role): False for role in ROLES}


def test_without_roles_everybody_else_has_nothing_either(url: str) -> None:
    with psycopg.connect(url) as db:
        functions = db.execute(
            "select proname from pg_proc where pronamespace = 'rowlock'::regnamespace "
            "and has_function_privilege('pg_monitor', oid, 'execute')"
        ).fetchall()
        uses = one(db, "select has_schema_privilege('pg_monitor', 'rowlock', 'usage')")

    assert functions == []
    assert not uses


def who(role: Role) -> str:
    return STRANGER if role is NOTHING else role.full_name("rowlock")


# The rights, as our statements meet them


@pytest.mark.parametrize("role", EVERYBODY, ids=lambda role: role.name)
def test_a_role_can_say_the_statements_of_its_clients_and_no_others(estate: Estate, role: Role) -> None:
    from tests.house.test_statements import BUILT  # noqa: PLC0415  it builds every statement there is

    queries = [query for queries in BUILT.values() for query in queries if not query.name.startswith("clock_")]
    login = STRANGER if role is NOTHING else role.name
    free = free_of_rights()

    refused = set()
    with connect(estate.url(login), name="test") as connection:
        for query in queries:
            try:
                with connection.transaction(force_rollback=True):
                    run(connection.cursor(), query, "rowlock")
            except psycopg.errors.InsufficientPrivilege:
                refused.add(query.name)

    said = {query.name for query in queries}
    lacking = refused & SAYS[role.name]
    beyond = said - refused - free - SAYS[role.name] - BESIDE.get(role.name, set())
    assert not lacking, f"grant {role.name} what these need, in store/roles.py"
    assert not beyond, (
        "list a new statement above with those who say it; if nobody should, somebody has too many rights"
    )


def test_the_lists_of_statements_name_only_what_there_is() -> None:
    known = {one.name for one in statements()}

    assert set().union(*SAYS.values()) - known == set()


@pytest.mark.parametrize("role", [role for role in ROLES if role.events], ids=lambda role: role.name)
def test_the_kinds_of_events_are_those_that_the_statements_of_a_role_add(role: Role) -> None:
    added = [
        one.without_comments.partition("insert into rowlock.events")[2].partition(
            ":actor" if ":actor" in one.text else "actor"
        )[0]
        for one in statements()
        if one.name in SAYS[role.name]
    ]

    kinds = {kind for text in added for kind in re.findall(r"(?:select|then|else)\s+'(\w+)'", text)}

    assert kinds == set(role.events)


def free_of_rights() -> set[str]:
    """Statements about times, catalogues and transactions; of ours they name nothing but what every role may read."""
    tables = r"\browlock\.(?!now\b|migrations\b)\w+"
    return {one.name for one in statements() if not re.search(tables, one.bare)}


# Each does its work


def test_a_client_that_may_only_enqueue_enqueues_in_every_way(estate: Estate) -> None:
    queue, key = f"q-{uuid4()}", f"key-{uuid4()}"
    with estate.app("enqueue") as app, psycopg.connect(estate.url("enqueue")) as own:
        task = declared(app, queue)

        task.enqueue("plainly")
        app.enqueue_many([task.bind("two"), task.bind("at once")])
        app.enqueue_many([task.bind("by COPY") for _ in range(600)])
        task.using(connection=own).enqueue("in a transaction of its own")
        own.commit()
        first = task.using(key=key).enqueue("with a key")
        second = task.using(key=key).enqueue("with a key")
        changed = task.using(key=Key(key, taken="replace")).enqueue("in its place")
        own.autocommit = True
        by_sql = one(own, "select rowlock.enqueue('t', queue => %s, key => %s)", queue, f"{key} in SQL")
        again = one(own, "select rowlock.enqueue('t', queue => %s, key => %s)", queue, f"{key} in SQL")
        flow = one(own, "select rowlock.enqueue('w', queue => %s, version => 1)", queue)
        signals = [app.signal(flow, "paid", key="once"), app.signal(flow, "paid", key="once", connection=own)]
        signals.append(one(own, "select rowlock.signal(%s, 'paid', key => 'once')", str(flow)))

    with estate.session(OWNER) as db:
        assert one(db, "select count(*) from rowlock.jobs where queue = %s", queue) == 1 + 2 + 600 + 1 + 1 + 1 + 1
        clear(db, queue)
        db.execute("delete from rowlock.signals where job = %s", [flow])
    assert signals == [True, False, "duplicate"]
    assert (first.id, first.created, second.created) == (second.id, True, False)
    assert by_sql == again
    assert (changed.id, changed.created) == (first.id, False)


def test_a_client_that_may_only_enqueue_takes_back_what_it_sent_twice(estate: Estate) -> None:
    queue = f"q-{uuid4()}"
    with estate.session(OWNER) as db, estate.session("enqueue") as client:
        ended, live = put(db, "succeeded", queue=queue), put(db, queue=queue)
        insert = """insert into rowlock.jobs (id, queue, task, attempts, run_at, created_at, args)
            values (%s, %s, 't', 1, now(), now(), '{}')"""
        client.execute(insert, [ended, queue])

        client.execute("select rowlock.take_back(%s)", [[ended, live]])

        left = db.execute("select id from rowlock.jobs where queue = %s", [queue]).fetchall()
        clear(db, queue)
    assert left == [(live,)]


def test_a_worker_works_and_keeps_house_without_owning_anything(estate: Estate) -> None:
    queue = f"q-{uuid4()}"
    with estate.session(OWNER) as db, Rowlock(estate.url("worker")) as app:
        tried: list[str] = []
        task = declared(app, queue, tried.append)
        make_duties_due(db)
        expired = make_expired_part(db)
        orphan = put(db, "running", queue=queue, task="t", args={"word": "rescued"})

        task.enqueue("enqueued")
        gone = "select to_regclass(%s) is null"
        ends = "select count(*) from rowlock.history where queue = %s and state = 'succeeded'"
        work(
            app,
            queue,
            lambda: one(db, ends, queue) == 2 and one(db, gone, expired),
        )

        rescues = db.execute("select kind from rowlock.events where job = %s", [orphan]).fetchall()
        clear(db, queue)
    assert sorted(tried) == ["enqueued", "rescued"]
    assert rescues == [("rescued",)]


def test_a_worker_runs_workflows_without_owning_anything(estate: Estate) -> None:
    queue = f"q-{uuid4()}"
    with estate.session(OWNER) as db, Rowlock(estate.url("worker")) as app:
        task = declared(app, queue)
        undone: list[str] = []

        @app.workflow(name="w", queue=queue, fails_on=ValueError)
        async def w(ctx: Context, turn: int) -> None:
            ctx.state["turn"] = turn
            await ctx.using(name="step").step(str, turn)
            if turn == 0:
                await ctx.signal("go")
            if turn == 1:
                late = ctx.run(task.using(delay=timedelta(days=1)).bind("left"))
                await ctx.any(late, ctx.sleep(timedelta(microseconds=1)))
                ctx.restart(2)
            ctx.undo(undone.append, "it")
            await ctx.run(task.bind("child"))
            await ctx.sleep(timedelta(microseconds=1))
            raise ValueError("no")

        w.enqueue(0)
        app.signal(w.using(key=f"k-{queue}").enqueue(1), "heard")
        over = "select count(*) from rowlock.history where queue = %s"
        parked = "select count(*) from rowlock.jobs where queue = %s and waits_for = 'signal'"
        work(app, queue, lambda: one(db, over, queue) == 3 and one(db, parked, queue) == 1)

        ends = db.execute("select task, state from rowlock.history where queue = %s order by 1, 2", [queue]).fetchall()
        events = db.execute(
            "select kind, details ->> 'workflow' is not null from rowlock.events where details ->> 'queue' = %s",
            [queue],
        ).fetchall()
        db.execute("delete from rowlock.keys where key = %s", [f"k-{queue}"])
        for (job,) in db.execute("select id from rowlock.jobs where queue = %s and version = 1", [queue]).fetchall():
            forget(db, job)
        clear(db, queue)
    assert ends == [("t", "cancelled"), ("t", "succeeded"), ("w", "failed")]
    assert undone == ["it"]
    assert events == [("abandoned", True)]


def test_who_waits_for_results_needs_no_other_right(estate: Estate) -> None:
    queue = f"q-{uuid4()}"
    with estate.session(OWNER) as db, estate.app("results") as app:
        put(db, "succeeded", queue=queue)
        done = put(db, "succeeded", queue=queue, result='"well done"')
        task = declared(app, queue)

        job = handle(app, task, done)

        assert job.result(timeout=timedelta(seconds=20)) == "well done"
        assert job.result(timeout=timedelta(0)) == "well done"
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            task.enqueue("anything")
        clear(db, queue)


LOOKED_WITH = [
    ["jobs", "list", "--queue", "{queue}"],
    ["jobs", "show", "{ended}"],
    ["jobs", "events"],
    ["explain", "{ended}"],
    ["stats"],
    ["workers"],
    ["queues", "list"],
    ["tasks", "list"],
    ["schedules", "list"],
    ["schedules", "show", "{queue}"],
    ["jobs", "list", "--state", "failed"],
    ["jobs", "failures"],
]


def test_a_viewer_sees_jobs_without_their_data(estate: Estate, typed: Type) -> None:
    queue, secret = f"q-{uuid4()}", f"secret-{uuid4()}"
    with estate.session(OWNER) as db:
        live = put(db, queue=queue, args={"word": secret}, tags=["a"])
        ended = put(db, "failed", queue=queue, args={"word": secret}, result=f'"{secret}"', error="E")
        with estate.app(OWNER) as own:
            own.schedules.add(queue, own.call("t", word="x"), "@daily")
            own.schedules.edit(queue, args={"word": secret})
        with estate.app("viewer") as app:
            page = app.jobs.list(Filter(queue=queue))
            shown = app.jobs.get(ended).record()
            tagged = app.jobs.list(Filter(queue=queue, tag="a", state="ready"))
            stats = app.stats()
            scheduled = app.schedules.get(queue)
            explained = [app.jobs.explain(job) for job in (live, ended)]
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                app.jobs.list(Filter(args={"word": secret}))
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                app.jobs.list(Filter(error="E"))
        printed = [
            typed(*(word.format(queue=queue, ended=ended) for word in command), "--url", estate.url("viewer"))
            for command in LOOKED_WITH
        ]
        clear(db, queue)

    assert [(record.id, record.args, record.errors) for record in page.records] == [(ended, None, ()), (live, None, ())]
    assert (shown.state, shown.args, shown.result, shown.errors) == ("failed", None, None, ())
    assert [record.id for record in tagged.records] == [live]
    assert stats.queues[queue].runnable is not None
    assert set(stats.unknown) <= {"snapshots"}
    assert [said.code for said in printed] == [0] * len(LOOKED_WITH), [said.err for said in printed]
    assert "not this role's to read" in printed[1].out
    assert (scheduled.cron, scheduled.args, scheduled.declared, scheduled.edits) == ("@daily", None, None, None)
    assert [found.code for found in explained] == ["no_worker", "failed"]
    assert all(found.unknown == {"arguments, errors": "not this role's to read"} for found in explained)
    assert "(its errors are not this role's to read)" in explained[1].says
    assert not [said for said in printed if secret in said.out + said.err]


def log_in(kind: str) -> Conversation[list[None]]:
    return alone(events.login(kind, actor="ann", address="::1", role=None))


def test_an_operator_sees_everything_and_has_every_verb(estate: Estate) -> None:
    queue = f"q-{uuid4()}"
    with estate.session(OWNER) as db, estate.app("operator") as app:
        jobs = [put(db, queue=queue, args={"n": n}, key=f"{queue} {n}") for n in range(5)]
        failed = put(db, "failed", queue=queue)
        put(db, "failed", queue=queue)

        seen = app.jobs.list(Filter(ids=jobs[:1])).records[0]
        edited = app.jobs.edit(jobs[0], args={"n": -1})
        done = [
            app.jobs.move(Filter(ids=jobs[:1]), queue=f"{queue}-2"),
            app.jobs.reprioritise(Filter(ids=jobs[1:2]), priority=2),
            app.jobs.run_next(Filter(ids=jobs[2:3])),
            app.jobs.cancel(Filter(ids=jobs[3:4])),
            app.jobs.delete(Filter(ids=jobs[4:5])),
            app.jobs.retry(Filter(ids=[failed])),
            app.jobs.delete(Filter(queue=queue, state="failed")),
        ]
        app.queues.pause(queue, why="a test")
        app.tasks.pause(f"t-{queue}")
        paused = [pause.queue or pause.task for pause in (*app.queues.pauses(), *app.tasks.pauses())]
        resumed = [app.queues.resume(queue), app.tasks.resume(f"t-{queue}")]
        app.enqueue("t", x=1)
        app.jobs.enqueue(app.call("t", x=2), like=failed)
        app.schedules.add(queue, app.call("t", n=0), "@daily")
        app.schedules.edit(queue, rule="@hourly", args={"n": 1})
        app.schedules.pause(queue)
        app.schedules.resume(queue)
        app.schedules.run_now(queue)
        scheduled = app.schedules.remove(queue)
        workflow = put_workflow(db, queue=queue)
        put_step(db, workflow, "charge")
        app.workflows.fork(workflow, from_step="charge")
        app.signal(workflow, "paid", by="ann")
        with estate.session("operator") as sql:
            in_sql = one(sql, "select rowlock.cancel(%s)", jobs[1])
        for kind in ("logged_in", "logged_out", "login_failed"):
            app.database.converse(partial(log_in, kind))
        kinds = {event.kind for event in app.jobs.events(limit=100)}

        forget(db, workflow)
        clear(db, queue)
        clear(db, f"{queue}-2")
        clear(db, "default")
    assert (seen.args, edited) == ({"n": 0}, ("n",))
    assert [one.changed for one in done] == [1] * 7
    assert {queue, f"t-{queue}"} <= set(paused)
    assert resumed == [True, True]
    assert scheduled.args == {"n": 1}
    assert in_sql == "cancelled"
    operator = next(role for role in ROLES if role.name == "operator")
    assert kinds >= set(operator.events)


def test_an_operator_looks_into_workflows_and_has_them_go_on(estate: Estate) -> None:
    queue = f"q-{uuid4()}"
    with estate.session(OWNER) as db, estate.app("operator") as app, estate.session("operator") as sql:
        waits, sleeps, failed = (put_workflow(db, state, queue=queue) for state in ("waiting", "ready", "ready"))
        put_step(db, failed, "reserve", at=1, value="r-1")
        put_step(db, failed, "charge", at=2, state="failed")
        put_failure(db, failed, "charge", at=4)
        put_signal(db, failed, "hurry", payload={"x": 1})
        end(db, failed, "failed")

        ended = app.workflows.show(failed)
        cancelled = (app.jobs.cancel(Filter(ids=[waits])).changed, one(sql, "select rowlock.cancel(%s)", sleeps))
        retried = app.jobs.retry(Filter(ids=[failed])).changed
        live = app.workflows.show(failed)
        listed = app.workflows.list(Filter(queue=queue))

        forget(db, failed)
        clear(db, queue)
    assert [step.result for step in ended][:2] == ["r-1", None]
    assert [signal.payload for signal in ended.signals] == [{"x": 1}]
    assert (cancelled, retried) == ((1, "cancelled"), 1)
    assert [step.key for step in live] == ["reserve"]
    assert live.signals == ended.signals
    assert [record.id for record in listed.records] == [failed, sleeps, waits]


def test_a_viewer_sees_what_workflows_did_and_not_with_what(estate: Estate) -> None:
    queue = f"q-{uuid4()}"
    with estate.session(OWNER) as db, estate.app("viewer") as app:
        live, past = put_workflow(db, queue=queue, args={"card": "4242"}), put_workflow(db, queue=queue)
        for job in (live, past):
            put_step(db, job, "charge", at=1, took=2, input=["4242"], value="paid", error={"type": "E"})
            put_signal(db, job, "hurry", payload="4242")
        end(db, past, "succeeded", result='"4242"', workflow_state='"4242"')

        listed = app.workflows.list(Filter(queue=queue))
        seen = [app.workflows.show(job) for job in (live, past)]

        forget(db, live)
        clear(db, queue)
    assert [(record.id, record.current_step) for record in listed.records] == [(past, "charge"), (live, "charge")]
    assert [[step.key for step in timeline] for timeline in seen] == [["charge"], ["charge"]]
    assert [[step.duration for step in timeline] for timeline in seen] == [[timedelta(seconds=2)]] * 2
    assert [signal.name for signal in seen[0].signals] == ["hurry"]
    assert "4242" not in json.dumps([timeline.to_dict() for timeline in seen])
    assert "paid" not in json.dumps([timeline.to_dict() for timeline in seen])


# None does what is not its own


ANYBODY = {role.name for role in ROLES}
FORBIDDEN = {
    "truncate rowlock.jobs": ANYBODY,
    "truncate rowlock.events": ANYBODY,
    "drop table rowlock.jobs": ANYBODY,
    "create table rowlock.mine (x int)": ANYBODY,
    "create function rowlock.mine() returns int language sql return 1": ANYBODY,
    "create or replace function rowlock.now() returns timestamptz language sql return now()": ANYBODY,
    "create trigger t before insert on rowlock.jobs execute function suppress_redundant_updates_trigger()": ANYBODY,
    "create policy p on rowlock.events": ANYBODY,
    "alter table rowlock.events disable row level security": ANYBODY,
    "set role keeper": ANYBODY,
    "delete from rowlock.events": ANYBODY,
    "update rowlock.events set actor = 'somebody else'": ANYBODY,
    "select * from rowlock.events": {"enqueue", "results", "worker"},
    "insert into rowlock.events (kind, actor) values ('deleted', 'me')": ANYBODY - {"operator"},
    "insert into rowlock.events (kind, actor) values ('rescued', 'me')": ANYBODY - {"worker"},
    "insert into rowlock.events (kind, actor, at) values ('deleted', 'me', 'yesterday')": ANYBODY,
    "update rowlock.jobs set args = '{}'": ANYBODY - {"worker", "operator"},
    "update rowlock.jobs set token = null": ANYBODY - {"worker"},
    "select args from rowlock.jobs": {"enqueue", "results", "viewer"},
    "select token from rowlock.jobs": {"enqueue", "results", "viewer"},
    "delete from rowlock.jobs": {"enqueue", "results", "viewer"},
    "delete from rowlock.keys": {"enqueue", "results", "viewer"},
    "insert into rowlock.jobs (id, state) values (gen_random_uuid(), 'running')": ANYBODY,
    "insert into rowlock.jobs (id, token) values (gen_random_uuid(), gen_random_uuid())": ANYBODY,
    "select result from rowlock.history": {"enqueue", "worker", "viewer"},
    "select args from rowlock.history": {"enqueue", "results", "worker", "viewer"},
    "delete from rowlock.history": {"enqueue", "results", "worker", "viewer"},
    "update rowlock.history set state = 'succeeded'": ANYBODY,
    "insert into rowlock.history (id) values (gen_random_uuid())": {"enqueue", "results", "viewer"},
    "insert into rowlock.pauses (kind, name) values ('queue', 'q')": {"enqueue", "results", "worker", "viewer"},
    "insert into rowlock.events (kind, actor) values ('paused', 'breaker')": ANYBODY - {"operator"},
    "insert into rowlock.breakers (task, failed_at) values ('t', '{}')": ANYBODY - {"worker"},
    "select failed_at from rowlock.breakers": ANYBODY - {"worker"},
    "select rowlock.trip('t', '1 hour', 'so')": ANYBODY - {"worker"},
    "update rowlock.queues set keep_failed = '0'": {"enqueue", "results", "worker", "viewer"},
    "update rowlock.workers set lease = 'infinity'": ANYBODY - {"worker"},
    "delete from rowlock.workers": ANYBODY - {"worker"},
    "insert into rowlock.migrations (version) values (99)": ANYBODY,
    "select args from rowlock.schedules": {"enqueue", "results", "viewer"},
    "select declared, edits from rowlock.schedules": {"enqueue", "results", "viewer"},
    "update rowlock.schedules set edits = null": ANYBODY - {"operator"},
    "update rowlock.schedules set paused_at = null, paused_until = null": ANYBODY - {"operator"},
    "update rowlock.schedules set paused_by = 'ada', paused_why = 'so'": ANYBODY - {"operator"},
    "update rowlock.schedules set args = '{}'": {"enqueue", "results", "viewer"},
    "delete from rowlock.schedules": ANYBODY - {"operator"},
    "delete from rowlock.firings": ANYBODY - {"worker"},
    "update rowlock.firings set job = null": ANYBODY,
    "select rowlock.token(gen_random_uuid(), 1)": ANYBODY - {"worker"},
    "select rowlock.make_part('history', current_date, 1)": {"enqueue", "results", "viewer"},
    "select rowlock.drop_part('history', '2020-01-01', 1)": ANYBODY - {"worker"},
    "select rowlock.part_name('history', '2020-01-01', 1)": ANYBODY,
    "select rowlock.cancel(gen_random_uuid())": ANYBODY - {"operator"},
    "select input, result, state, last_error from rowlock.workflows": ANYBODY - {"operator"},
    "select input from rowlock.workflow_steps": ANYBODY - {"operator"},
    "select result, error from rowlock.workflow_steps": ANYBODY - {"operator"},
    "select id from rowlock.workflows": {"enqueue", "results", "worker"},
    "select payload from rowlock.signals": {"enqueue", "results", "viewer"},
    "select value from rowlock.steps": {"enqueue", "results", "viewer"},
    "update rowlock.steps set value = null": ANYBODY - {"worker"},
    "select steps from rowlock.history": ANYBODY - {"operator"},
    "select workflow_state from rowlock.jobs": {"enqueue", "results", "viewer"},
    "select rowlock.enqueue('t')": {"results", "viewer", STRANGER},
    "select rowlock.signal('k', 'paid')": {"results", "viewer", STRANGER},
    "insert into rowlock.signals (job) values (gen_random_uuid())": ANYBODY - {"operator"},
    "select from rowlock.jobs": {STRANGER},
    "select rowlock.now()": {STRANGER},
}


def test_a_worker_cannot_act_as_an_operator(estate: Estate) -> None:
    queue = f"q-{uuid4()}"
    with estate.session(OWNER) as db, estate.app("worker") as app:
        job = put(db, queue=queue)

        for act in (app.jobs.delete, app.jobs.cancel, app.jobs.run_next):
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
                act(Filter(ids=[job], state="ready"))

        states = db.execute("select state, priority from rowlock.jobs where id = %s", [job]).fetchall()
        clear(db, queue)
    assert states == [("ready", 0)]


@pytest.mark.parametrize("text", FORBIDDEN)
def test_nobody_else_may(estate: Estate, text: str) -> None:
    accepted = []
    for login in sorted(FORBIDDEN[text]):
        with estate.session(login) as db:
            try:
                db.execute(text.encode())
            except psycopg.errors.InsufficientPrivilege:
                continue
            accepted.append(login)

    assert accepted == []


# Made again and again, by those who may


def test_what_was_granted_by_hand_is_taken_back_and_what_was_taken_is_given_again(estate: Estate) -> None:
    with estate.session(OWNER) as db:
        db.execute("grant all on all tables in schema rowlock to rowlock_viewer")
        db.execute("grant select (args) on rowlock.jobs to rowlock_enqueue")
        db.execute("revoke all on all functions in schema rowlock from rowlock_worker")

        with estate.app(OWNER) as app:
            assert app.migrate(roles=True) == []

        assert not one(db, "select has_table_privilege('rowlock_viewer', 'rowlock.jobs', 'delete')")
        assert not one(db, "select has_column_privilege('rowlock_enqueue', 'rowlock.jobs', 'args', 'select')")
        assert one(db, "select has_function_privilege('rowlock_worker', 'rowlock.token(uuid, integer)', 'execute')")


def test_an_owner_who_may_not_make_roles_is_told_what_to_have_said(database_url: str) -> None:
    schema = f"s_{uuid4().hex[:8]}"
    with psycopg.connect(database_url, autocommit=True) as admin:
        admin.execute("drop role if exists tenant")
        admin.execute("create role tenant login")
        admin.execute(f'grant create on database "{admin.info.dbname}" to tenant'.encode())
        with Rowlock(as_user(database_url, "tenant"), schema=schema) as app:
            with pytest.raises(RowlockError, match="CREATEROLE") as refused:
                app.migrate(roles=True)
            said = [line for line in str(refused.value).splitlines() if line.startswith("create role")]
            for line in said:
                admin.execute(line.encode())

            applied = app.migrate(roles=True)

        assert len(said) == len(ROLES)
        assert applied
        assert one(admin, "select has_table_privilege(%s, %s, 'delete')", f"{schema}_worker", f"{schema}.jobs")


def test_the_command_line_makes_the_roles_and_prints_what_it_would_say(shop: Shop, database_url: str) -> None:
    schema = f"s_{uuid4().hex[:8]}"
    printed = shop.run("migrate", "--roles", "--sql", "--url", database_url, "--schema", schema)
    with psycopg.connect(database_url, autocommit=True) as admin:
        admin.execute(printed.output.encode())
        by_hand = one(admin, "select has_table_privilege(%s, %s, 'delete')", f"{schema}_worker", f"{schema}.jobs")

    made = shop.run("migrate", "--roles", "--url", database_url, "--schema", schema)

    assert printed.process.returncode == 0, printed.errors
    assert by_hand
    assert made.process.returncode == 0, made.errors
    assert f"role {schema}_operator has its rights" in made.output


# Between the lines


def declared(app: Rowlock, queue: str, tell: Callable[[str], object] = len) -> Task[[str], str]:
    async def t(word: str) -> str:
        tell(word)
        return word

    return app.task(name="t", queue=queue)(t)


def handle(app: Rowlock, task: Task[[str], str], job_id: UUID) -> Job[str]:
    return Job(str(job_id), task="t", queue="q", room=app.waiting_room, handler=task.handler)


def work(app: Rowlock, queue: str, happened: Callable[[], object]) -> None:
    async def until_then() -> None:
        async with app.worker(queues=[queue]):
            await auntil(happened, what="the work of a worker", limit=90)

    asyncio.run(until_then())


def make_duties_due(db: Db) -> None:
    """As if no worker of an earlier test had done them: retention comes round once an hour for the whole fleet."""
    db.execute("update rowlock.duties set begun_at = default, done = default")
    db.execute("select setval('rowlock.looked_at', 1)")


def forget(db: Db, job: UUID) -> None:
    db.execute("delete from rowlock.steps where job = %s", [job])
    db.execute("delete from rowlock.signals where job = %s", [job])


def clear(db: Db, queue: str) -> None:
    db.execute("delete from rowlock.keys where job in (select id from rowlock.jobs where queue = %s)", [queue])
    db.execute("delete from rowlock.jobs where queue = %s", [queue])
    db.execute("delete from rowlock.history where queue = %s", [queue])
