"""Functions that run with their owner's rights give nobody else these rights: S13, finding 10, T51."""

from __future__ import annotations

import psycopg
import pytest

from rowlock.db.partitions import drop_partitions
from rowlock.db.session import connect
from tests.faults.estate import LOGINS, OWNER, Db, Estate, make_expired_part
from tests.rows import put
from tests.worker.working import one

HOSTILE_DATES = ["infinity", "-infinity", "0001-01-01", "9999-12-31", "5874897-12-31", "4713-01-01 BC"]


@pytest.fixture
def fresh(estate: Estate) -> Estate:
    """With nothing left of another attack."""
    with estate.session(OWNER) as db:
        db.execute("create schema if not exists trap")
        everybody = ", ".join(LOGINS[role] for role in ("worker", "enqueue", "operator"))
        db.execute(f"grant all on schema trap to {everybody}".encode())
        db.execute("drop table if exists public.loot")
        db.execute("create table public.loot (who text)")
        db.execute("grant insert, select on public.loot to public")
    return estate


def test_no_function_of_ours_has_its_owners_rights_without_a_path_of_its_own(estate: Estate) -> None:
    with estate.session(OWNER) as db:
        rows = db.execute(
            """
            select proname, proconfig::text like '%%search_path=pg_catalog, pg_temp%%' from pg_proc
            where pronamespace = 'rowlock'::regnamespace and prosecdef
            """
        ).fetchall()

    assert dict(rows) == {
        "make_part": True,
        "drop_part": True,
        "take_back": True,
        "trip": True,
        "end_pauses": True,
        "clear_spare_events": True,
        "make_way": True,
        "sent_before": True,
        "send_signal": True,
        "terminate": True,
    }


# Every name, function, operator and cast that a definer uses, shadowed by its caller in a schema that comes first and
# in pg_temp; each tells on the role that it runs as.
TELL = "insert into public.loot values (current_user)"
TRAPS = [
    "create table pg_temp.history (id uuid, expires_on date)",
    "create table pg_temp.jobs (id uuid, task text, state text, claims int, key text, args json)",
    "create table pg_temp.keys (key text, task text, job uuid, until timestamptz)",
    "create table pg_temp.parked (queue text)",
    "create table pg_temp.signals (id uuid, job uuid, number int, name text, payload json, key text, sent_at time)",
    "create table pg_temp.steps (job uuid, state text, ended_at timestamptz, error json, child uuid)",
    "create table pg_temp.pauses (kind text, name text, until timestamptz, reason text, actor text, at timestamptz)",
    "create table pg_temp.events (kind text, actor text, details json)",
    "create table pg_temp.schedules (name text, paused_at timestamptz, paused_until timestamptz, next_at timestamptz)",
    "grant all on pg_temp.history, pg_temp.jobs, pg_temp.keys, pg_temp.pauses, pg_temp.events, pg_temp.steps to public",
    "create table trap.history (id uuid)",
    f"create function trap.tell() returns trigger language plpgsql as $$ begin {TELL}; return null; end $$",
    "create trigger tell after insert or update or delete on pg_temp.jobs execute function trap.tell()",
    "create trigger tell after insert or update or delete on pg_temp.keys execute function trap.tell()",
    "create trigger tell after insert or update or delete on pg_temp.history execute function trap.tell()",
    "create trigger tell after insert or update or delete on pg_temp.steps execute function trap.tell()",
    "create trigger tell after insert or update or delete on pg_temp.signals execute function trap.tell()",
    "create trigger tell after insert or update or delete on pg_temp.pauses execute function trap.tell()",
    "create trigger tell after insert or update or delete on pg_temp.events execute function trap.tell()",
    *(
        f"create function {schema}.{signature} language plpgsql as $$ begin {TELL}; return {answer}; end $$"
        for schema in ("trap", "pg_temp")
        for signature, answer in (
            ("format(text, text, text) returns text", "''"),
            ("format(text, text) returns text", "''"),
            ("to_char(date, text) returns text", "'_19990101'"),
            ("isfinite(date) returns boolean", "true"),
            ("now() returns timestamptz", "'infinity'::timestamptz"),
            ("array_position(uuid[], uuid) returns int", "1"),
            ("part_name(text, date, integer) returns text", "'jobs'"),
            ("channel(text) returns text", "''"),
            ("pg_notify(text, text) returns text", "''"),
            ("notify(text, text) returns text", "''"),
            ("notifies() returns boolean", "true"),
            ("octet_length(text) returns int", "1"),
            ("btrim(text) returns text", "''"),
            ("json_array_elements(json) returns json", "'{}'"),
            ("json_build_object(text, text, text, text, text, timestamptz) returns json", "'{}'"),
        )
    ),
    f"create function trap.minus(date, date) returns int language plpgsql as $$ begin {TELL}; return 0; end $$",
    f"create function trap.same(uuid, uuid) returns boolean language plpgsql as $$ begin {TELL}; return true; end $$",
    "create operator trap.- (leftarg = date, rightarg = date, function = trap.minus)",
    "create operator trap.= (leftarg = uuid, rightarg = uuid, function = trap.same)",
    "create domain trap.date as text",
    "set search_path = pg_temp, trap, pg_catalog, rowlock",
]


@pytest.mark.parametrize("role", ["worker", "enqueue", "operator"])
def test_what_a_caller_puts_before_our_names_is_never_run_as_the_owner(fresh: Estate, role: str) -> None:
    with fresh.session(role) as db, db.transaction(force_rollback=True):
        for trap in TRAPS:
            db.execute(trap.encode())

        if role == "worker":
            far = one(db, "select (pg_catalog.now() operator(pg_catalog.+) interval '400 days')::pg_catalog.date")
            db.execute("select rowlock.make_part('history', %s, 1)", [far])
            db.execute("select rowlock.drop_part('history', '2020-01-01', 1)")
            db.execute("select rowlock.trip('t', '1 hour', 'so')")
            db.execute("select rowlock.end_pauses('so')")
            db.execute("select rowlock.clear_spare_events()")
        db.execute("select rowlock.take_back('{00000000-0000-0000-0000-000000000000}'::uuid[])")
        db.execute("select rowlock.sent_before('{00000000-0000-0000-0000-000000000000}'::uuid[])")
        for _ in range(2):
            db.execute("select rowlock.enqueue('t', key => 'trapped', taken => 'replace', priority => 1)")
        caught = one(db, "select rowlock.enqueue('w', version => 1, key => 'caught')")
        for key in ("one", "one", "two"):
            db.execute("select rowlock.signal('caught', 'paid', key => %s)", [key])
        db.execute("select rowlock.send_signal(gen_random_uuid(), gen_random_uuid()::text, 'paid', '{}', null)")
        if role == "operator":
            ending = "select (rowlock.terminate(%s, 'ada', 'so', '1 day')).answer"
            assert one(db, ending, caught) == "terminated"

        told = {who for (who,) in db.execute("select who from public.loot")}
        owner = db.execute("select current_user").fetchone()
    assert told <= {LOGINS[role]}
    assert owner == (LOGINS[role],)


def test_the_traps_above_do_catch_a_function_without_a_path_of_its_own(fresh: Estate) -> None:
    with fresh.session(OWNER) as db:
        db.execute(
            """
            create or replace function public.careless(ids uuid[]) returns void language plpgsql security definer as
            $$ begin delete from jobs where id = any(ids); perform isfinite(current_date); end $$
            """
        )
    with fresh.session("enqueue") as db, db.transaction(force_rollback=True):
        for trap in TRAPS:
            db.execute(trap.encode())

        db.execute("select public.careless('{}')")

        told = {who for (who,) in db.execute("select who from public.loot")}
    with fresh.session(OWNER) as db:
        db.execute("drop function public.careless")
    assert OWNER in told


@pytest.mark.parametrize("day", HOSTILE_DATES)
@pytest.mark.parametrize("function", ["make_part", "drop_part"])
def test_no_date_leads_to_another_table(estate: Estate, function: str, day: str) -> None:
    with estate.session("worker") as db:
        before = tables(db)

        with pytest.raises(psycopg.errors.InvalidParameterValue):
            db.execute(f"select rowlock.{function}('history', %s, 1)".encode(), [day])
        with pytest.raises(psycopg.errors.InvalidParameterValue):
            db.execute(f"select rowlock.{function}('events', %s, 7)".encode(), [day])

        assert tables(db) == before


@pytest.mark.parametrize(
    "table", ["jobs", "keys", "", "history; drop table rowlock.jobs", "events_", '"history"', "HISTORY"]
)
@pytest.mark.parametrize("function", ["make_part", "drop_part"])
def test_no_name_leads_to_another_table(estate: Estate, function: str, table: str) -> None:
    with estate.session("worker") as db:
        before = tables(db)

        with pytest.raises(psycopg.errors.InvalidParameterValue):
            db.execute(f"select rowlock.{function}(%s, '2020-01-01', 1)".encode(), [table])

        assert tables(db) == before


def test_a_worker_drops_nothing_that_has_not_expired_and_makes_nothing_that_nobody_wants(estate: Estate) -> None:
    with estate.session("worker") as db:
        before = tables(db)

        for text in (
            "select rowlock.drop_part('history', current_date, 1)",
            "select rowlock.drop_part('history', current_date + 1, 1)",
            "select rowlock.drop_part('history', null, 1)",
            "select rowlock.drop_part(null, '2020-01-01', 1)",
            "select rowlock.make_part('history', null, 1)",
            "select rowlock.make_part('history', current_date - 2, 1)",
            "select rowlock.make_part('history', current_date + 1000, 1)",
            "select rowlock.make_part('events', '2020-01-01', 7)",
            "select rowlock.make_part('history', current_date, 2)",
            "select rowlock.drop_part('history', '2020-01-01', 2)",
            "select rowlock.drop_part('history', '2020-01-01', null)",
        ):
            with pytest.raises(psycopg.errors.InvalidParameterValue):
                db.execute(text.encode())

        assert tables(db) == before


def test_a_worker_gives_up_soon_when_readers_are_in_the_way_of_a_drop(estate: Estate) -> None:
    with estate.session(OWNER) as db, connect(estate.url("worker"), name="upkeep") as upkeep:
        expired = make_expired_part(db)
        with estate.session(OWNER) as reader, reader.transaction():
            reader.execute("select from rowlock.history")

            assert drop_partitions(upkeep, "rowlock") == []

        assert drop_partitions(upkeep, "rowlock") == [expired.removeprefix("rowlock.")]
        assert one(db, "select to_regclass(%s)", expired) is None


def test_a_worker_trips_a_breaker_and_pauses_nothing_in_another_way(estate: Estate) -> None:
    with estate.session(OWNER) as db, estate.session("worker") as worker:
        db.execute("insert into rowlock.pauses (kind, name, actor, at) values ('task', 'held', 'ada', now())")

        tripped = [
            one(worker, "select rowlock.trip(%s, '1 hour', 'so')", task) for task in ("held", "failing", "failing")
        ]
        pauses = db.execute("select kind, name, actor, until is null from rowlock.pauses order by name desc").fetchall()

        db.execute("delete from rowlock.pauses")
    assert tripped == [False, True, False]
    assert pauses == [("task", "held", "ada", True), ("task", "failing", "breaker", False)]


def test_a_worker_ends_no_pause_that_holds_and_cannot_say_that_an_operator_did(estate: Estate) -> None:
    forged = "insert into rowlock.events (kind, actor, details) values ('resumed', 'ada', '{}')"
    dated = "insert into rowlock.events (kind, actor, login) values ('rescued', 'ada', 'ada')"
    with estate.session(OWNER) as db, estate.session("worker") as worker:
        db.execute("insert into rowlock.pauses (kind, name, actor, at) values ('queue', 'held', 'ada', now())")
        db.execute(
            "insert into rowlock.pauses (kind, name, until, actor, at) values ('queue', 'over', now(), 'ada', now())"
        )
        for name, until in (("held", None), ("lasts", "1 hour"), ("over", "-1 hour")):
            add_paused(db, name, until)

        ended = worker.execute("select kind, name from rowlock.end_pauses('ada')").fetchall()
        for text in ("delete from rowlock.pauses where name = 'held'", forged, dated):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                worker.execute(text.encode())

        left = db.execute("select name from rowlock.pauses").fetchall()
        paused = db.execute("select name from rowlock.schedules where paused_at is not null order by name").fetchall()
        [event] = db.execute("select kind, actor, login from rowlock.events where kind = 'pause_over'").fetchall()
        login = one(worker, "select session_user")
        db.execute("delete from rowlock.pauses; delete from rowlock.events where kind = 'pause_over'")
        db.execute("delete from rowlock.schedules")
    assert (ended, left) == ([("queue", "over")], [("held",)])
    assert paused == [("held",), ("lasts",)]
    assert event == ("pause_over", "ada", login)


def add_paused(db: Db, name: str, until: str | None) -> None:
    db.execute(
        """
        insert into rowlock.schedules (
            name, cron, task, args, queue, priority, attempts, jitter, overlap, catch_up, at_boot, next_at, created_at,
            paused_at, paused_until, paused_by
        )
        values (
            %s, '* * * * *', 't', '{}', 'q', 0, 1, '0', 'skip', 0, false, now() + interval '1 minute', now(),
            now() - interval '1 day', now() + %s::interval, 'ada'
        )
        """,
        [name, until],
    )


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("args", "json_build_object('x', repeat('x', 1048576))"),
        ("tags", "array(select 'tag' from generate_series(1, 33))"),
        ("tags", "array[repeat('x', 10000)]"),
    ],
)
def test_a_row_that_is_inserted_without_the_api_is_bounded_as_by_the_api(
    estate: Estate, column: str, value: str
) -> None:
    given = {"args": "'{}'", "tags": "null"} | {column: value}
    text = f"""
        insert into rowlock.jobs (id, queue, task, attempts, run_at, created_at, args, tags)
        values (gen_random_uuid(), 'q', 't', 1, now(), now(), {given["args"]}, {given["tags"]})
    """
    with estate.session("enqueue") as db, pytest.raises(psycopg.errors.CheckViolation, match=f"{column}_.*at_most"):
        db.execute(text.encode())


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("args", "json_build_object('x', repeat('x', 20000000))"),
        ("tags", "array[repeat('x', 400000)]"),
    ],
)
def test_what_is_compressed_when_it_comes_is_bounded_by_what_it_is_uncompressed(
    estate: Estate, column: str, value: str
) -> None:
    given = {"args": "'{}'", "tags": "null"} | {column: f"(select loot.{column} from loot)"}
    insert = f"""
        insert into rowlock.jobs (id, queue, task, attempts, run_at, created_at, args, tags)
        values (gen_random_uuid(), 'q', 't', 1, now(), now(), {given["args"]}, {given["tags"]})
    """
    with estate.session("enqueue") as db:
        db.execute("create temp table loot (args json, tags text[])")
        db.execute(f"insert into loot ({column}) values ({value})".encode())

        with pytest.raises(psycopg.errors.CheckViolation, match=f"{column}_.*at_most"):
            db.execute(insert.encode())


def test_an_enqueuer_cannot_take_back_a_job_that_is_not_there_twice(estate: Estate) -> None:
    with estate.session("enqueue") as db:
        job = one(db, "select rowlock.enqueue('t', queue => 'not taken back')")

        db.execute("select rowlock.take_back(%s)", [[job]])

        there = one(db, "select count(*) from rowlock.jobs where id = %s", job)
    with estate.session(OWNER) as db:
        db.execute("delete from rowlock.jobs where id = %s", [job])
    assert there == 1


HELD = {"key": "theirs", "task": "t", "args": '{"n": 2}', "replaces": True}
MAKE_WAY = (
    "select rowlock.make_way(%(key)s, %(holder)s, %(task)s, %(replaces)s, %(args)s, 'epoch', null, 4::int2, null)"
)


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("ready", {"task": "another"}),
        ("ready", {"key": "another"}),
        ("ready", {"replaces": False}),
        ("running", {"task": "another"}),
        ("running", {"key": "another"}),
        ("running", {"replaces": False}),
        ("without a key", {}),
        ("another's key", {}),
    ],
)
def test_an_enqueuer_changes_no_job_but_the_holder_of_its_own_tasks_key(
    estate: Estate, state: str, said: dict[str, object]
) -> None:
    with estate.session(OWNER) as owner, estate.session("enqueue") as db:
        job = put(
            owner,
            state if state == "running" else "ready",
            task="t",
            key=None if state == "without a key" else "theirs",
        )
        if state == "another's key":
            owner.execute("update rowlock.keys set job = gen_random_uuid()")
        before = owner.execute("select j::text from rowlock.jobs as j").fetchall()
        keys = owner.execute("select k::text from rowlock.keys as k").fetchall()

        db.execute(MAKE_WAY, HELD | {"holder": job} | said)

        after = owner.execute("select j::text from rowlock.jobs as j").fetchall()
        kept = owner.execute("select k::text from rowlock.keys as k").fetchall()
        owner.execute("delete from rowlock.jobs; delete from rowlock.keys")
    assert (after, kept) == (before, keys)


def test_an_enqueuer_replaces_what_has_not_started_and_nothing_else_of_it(estate: Estate) -> None:
    with estate.session(OWNER) as owner, estate.session("enqueue") as db:
        job = put(owner, task="t", key="theirs", queue="q", args={"n": 1}, attempts=3, claims=2, failures=1)
        facts = "select queue, task, state, attempts, claims, failures, key, created_at, args ->> 'n' from rowlock.jobs"
        [before] = owner.execute(facts.encode()).fetchall()

        answered = one(db, "select rowlock.enqueue('t', %s, key => 'theirs', taken => 'replace')", HELD["args"])
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            db.execute("update rowlock.jobs set args = '{}'")

        [after] = owner.execute(facts.encode()).fetchall()
        said = owner.execute(
            "select kind, actor = login, details ->> 'key' from rowlock.events where job = %s", [job]
        ).fetchall()
        owner.execute("delete from rowlock.jobs; delete from rowlock.keys; delete from rowlock.events")
    assert answered == job
    assert said == [("rewritten", True, "theirs")]
    assert (after[:-1], before[-1], after[-1]) == (before[:-1], "1", "2")


@pytest.mark.parametrize("until", [None, "1 hour", "-1 hour"])
def test_an_enqueuer_frees_no_key_of_an_ended_job_but_one_whose_period_is_over(
    estate: Estate, until: str | None
) -> None:
    with estate.session(OWNER) as owner, estate.session("enqueue") as db:
        job = put(owner, "succeeded", task="t", key="theirs")
        owner.execute("insert into rowlock.keys values ('theirs', 't', %s, now() + %s::interval)", [job, until])

        free = db.execute(MAKE_WAY, HELD | {"holder": job, "replaces": False}).fetchone()

        held = one(owner, "select count(*) from rowlock.keys")
        owner.execute("delete from rowlock.keys; delete from rowlock.history")
    assert (free, held) == (((True,), 0) if until == "-1 hour" else ((False,), 1))


def test_an_enqueuer_tells_a_live_workflow_and_changes_nothing_else_of_it(estate: Estate) -> None:
    facts = "select to_jsonb(job) - array['wakes', 'wakes_at', 'state', 'waits_for', 'run_at'] from rowlock.jobs as job"
    with estate.session(OWNER) as owner, estate.session("enqueue") as db:
        job = put(owner, "waiting", task="w", version=1, claims=1, waits_for="signal", wakes_at=1, key="theirs")
        before = owner.execute(facts.encode()).fetchall()

        answers = [one(db, "select rowlock.signal('theirs', 'paid', key => %s)", key) for key in ("a", "a", "b")]
        for text in (
            "select * from rowlock.signals",
            "delete from rowlock.signals",
            "update rowlock.jobs set wakes = 9",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                db.execute(text.encode())

        after = owner.execute(facts.encode()).fetchall()
        stored = owner.execute("select job, key from rowlock.signals order by number").fetchall()
        owner.execute("delete from rowlock.jobs; delete from rowlock.keys; delete from rowlock.signals")
    assert answers == ["sent", "duplicate", "sent"]
    assert stored == [(job, "a"), (job, "b")]
    assert after == before


def tables(db: Db) -> list[tuple[str, ...]]:
    query = "select relname::text from pg_class where relnamespace = 'rowlock'::regnamespace order by 1"
    return db.execute(query.encode()).fetchall()
