"""Odd servers: whatever a database's or a role's defaults are, Rowlock works, and on the caller's connection too."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from urllib.parse import quote

import asyncpg
import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import TupleRow

from rowlock import Rowlock
from rowlock.db.session import Server, connect
from tests.depth import deep, deep_unless
from tests.faults.smoke import BULK, LATER, LEASE, SOON, Place, check_everything
from tests.worker.working import one, working

Db = psycopg.Connection[TupleRow]

# What stands in front of PostgreSQL's own things when `shadow` comes first: each of them lies, or fails.
SHADOWS = """
create schema shadow;
create function shadow.lies() returns text language plpgsql as $$ begin raise 'a shadow was called'; end $$;
create function shadow.now() returns timestamptz language sql as $$ select timestamptz '1999-01-01' $$;
create function shadow.statement_timestamp() returns timestamptz language sql as $$ select timestamptz '1999-01-01' $$;
create function shadow.clock_timestamp() returns timestamptz language sql as $$ select timestamptz '1999-01-01' $$;
create function shadow.random() returns float8 language sql as $$ select 0.5::float8 $$;
create function shadow.gen_random_uuid() returns uuid language sql as $$ select md5('')::uuid $$;
create function shadow.set_config(text, text, boolean) returns text language sql as $$ select shadow.lies() $$;
create function shadow.pg_backend_pid() returns integer language sql as $$ select 0 $$;
create function shadow.to_regclass(text) returns regclass language sql as $$ select null::regclass $$;
create function shadow.md5(text) returns text language sql as $$ select shadow.lies() $$;
create function shadow.pg_notify(text, text) returns void language sql as $$ select shadow.lies() $$;
create function shadow.hashtextextended(text, bigint) returns bigint language sql as $$ select 0::bigint $$;
create function shadow.equal(text, text) returns boolean language sql as $$ select shadow.lies() is null $$;
create function shadow.equal(uuid, uuid) returns boolean language sql as $$ select shadow.lies() is null $$;
create function shadow.less(timestamptz, timestamptz) returns boolean language sql
    as $$ select shadow.lies() is null $$;
create operator shadow.= (leftarg = text, rightarg = text, function = shadow.equal);
create operator shadow.= (leftarg = uuid, rightarg = uuid, function = shadow.equal);
create operator shadow.<= (leftarg = timestamptz, rightarg = timestamptz, function = shadow.less);
create table shadow.jobs (id text);
create table shadow.pg_class (oid text);
create table shadow.pg_namespace (oid text);
create type shadow.uuid as (lies text);
create domain shadow.text as pg_catalog.text check (false);
create domain shadow.timestamptz as pg_catalog.timestamptz check (false);
"""
HOSTILE = "shadow, public, pg_catalog"
# What users do have: schemas of their own in front, but not in front of pg_catalog.
CROWDED = "shadow, public"

ODD: dict[str, dict[str, str]] = {
    "as it comes": {},
    "serializable": {"default_transaction_isolation": "serializable"},
    "repeatable read": {"default_transaction_isolation": "repeatable read"},
    "deferrable": {"default_transaction_isolation": "serializable", "default_transaction_deferrable": "on"},
    "hostile search_path": {"search_path": HOSTILE},
    "odd times": {"timezone": "Pacific/Chatham", "datestyle": "SQL, DMY", "intervalstyle": "sql_standard"},
    "odd texts": {
        "bytea_output": "escape",
        "extra_float_digits": "-5",
        "backslash_quote": "off",
        "quote_all_identifiers": "on",
        "array_nulls": "off",
    },
    "impatient": {
        "statement_timeout": "200ms",
        "lock_timeout": "50ms",
        "idle_in_transaction_session_timeout": "100ms",
        "idle_session_timeout": "200ms",
    },
    "odd plans": {"enable_indexscan": "off", "enable_nestloop": "off", "plan_cache_mode": "force_custom_plan"},
}


def make_odd(url: str, settings: Mapping[str, str]) -> None:
    """Have every new session of this database begin so."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(SHADOWS)
        for name, value in settings.items():
            default(connection, name, value)


def default(connection: Db, name: str, value: str) -> None:
    database = sql.Identifier(connection.info.dbname)
    # A search_path is a list, and must not become one name.
    told = sql.SQL(value) if name == "search_path" else sql.Literal(value)
    connection.execute(sql.SQL("alter database {} set {} = {}").format(database, sql.Identifier(name), told))


# It knows nothing of the database's oddities.
PLAIN = " ".join(
    f"-c {setting}"
    for setting in (
        "search_path=pg_catalog",
        "timezone=UTC",
        "datestyle=ISO",
        "intervalstyle=postgres",
        "default_transaction_isolation=read\\ committed",
        "default_transaction_read_only=off",
        "statement_timeout=0",
        "lock_timeout=0",
        "idle_session_timeout=0",
        "idle_in_transaction_session_timeout=0",
    )
)


@pytest.fixture
def db(url: str) -> Iterator[Db]:
    """A look into the app's database that nothing can confuse."""
    with psycopg.connect(url, autocommit=True, options=PLAIN) as connection:
        yield connection


@pytest.mark.parametrize("oddity", deep_unless("serializable".__eq__, ODD))
def test_everything_works_whatever_the_databases_defaults_are(url: str, db: Db, oddity: str) -> None:
    make_odd(url, ODD[oddity])

    with Rowlock(url) as app:
        check_everything(Place(app, db))


@pytest.mark.parametrize("pooler", [False, True], ids=["direct", "for one transaction"])
def test_our_sessions_are_the_same_whatever_the_databases_defaults_are(
    url: str,
    database_url: str,
    pooler: bool,  # noqa: FBT001
) -> None:
    make_odd(url, {name: value for settings in ODD.values() for name, value in settings.items()})

    plain, odd = [in_force(Server(each, pooler)) for each in (database_url, url)]

    assert odd == plain
    assert plain["transaction_isolation"] == "read committed"


def in_force(server: Server) -> dict[str, str]:
    """What our statements run under, of all that was made odd."""
    names = {name for settings in ODD.values() for name in settings}
    names -= {name for name in names if name.startswith("default_transaction_")}  # what came of it is what counts
    names -= set(ODD["odd texts"]) - {"array_nulls"}  # which change nothing that we say or read
    names -= {"enable_indexscan", "enable_nestloop"}  # at worst slow
    names -= {"idle_session_timeout"} if server.pooler else set()  # behind a pooler, its own matter
    with connect(server, name="rowlock test") as session, session.transaction():
        return {name: one(session, f"show {name}") for name in {*names, "transaction_isolation"}}


@pytest.mark.parametrize(
    "oddity",
    deep_unless(
        lambda oddity: oddity == "odd times", ["serializable", "hostile search_path", "odd times", "impatient"]
    ),
)
def test_an_odd_database_is_migrated(database_url: str, oddity: str) -> None:
    make_odd(database_url, ODD[oddity])

    with Rowlock(database_url) as app:
        applied = app.migrate()

        assert applied[0] == "0001_jobs"
        assert app.migrate() == []


# The caller's own connection

Lend = Callable[[str], AbstractContextManager["Lent"]]


class Lent:
    """A connection of the caller's, and how things are said and committed there."""

    def __init__(self, connection: Any, say: Callable[[str], Any], enqueue: Callable[..., Any]) -> None:  # noqa: ANN401
        self.connection = connection
        self.say = say
        self.enqueue = enqueue


@contextmanager
def by_psycopg(url: str) -> Iterator[Lent]:
    with psycopg.connect(url) as connection:

        def say(text: str) -> Any:  # noqa: ANN401  whatever the query asks for
            cursor = connection.execute(text.encode())
            row = cursor.fetchone() if cursor.description else None
            return row[0] if row else None

        yield Lent(connection, say, lambda app, calls: app.enqueue_many(calls, connection=connection))


@contextmanager
def by_asyncpg(url: str) -> Iterator[Lent]:
    with asyncio.Runner() as runner:
        connection = runner.run(asyncpg.connect(url))
        transaction = connection.transaction()
        runner.run(transaction.start())

        def enqueue(app: Rowlock, calls: list[Any]) -> Any:  # noqa: ANN401  jobs
            return runner.run(app.aenqueue_many(calls, connection=connection))

        yield Lent(connection, lambda text: runner.run(connection.fetchval(text)), enqueue)
        runner.run(transaction.commit())
        runner.run(connection.close())


@pytest.mark.parametrize("lend", [by_psycopg, by_asyncpg])
@pytest.mark.parametrize("oddity", ["serializable", "hostile search_path", "crowded search_path", "odd times"])
def test_jobs_join_the_transaction_of_an_odd_connection_and_leave_it_as_it_was(
    url: str, db: Db, oddity: str, lend: Lend
) -> None:
    settings = {"search_path": CROWDED} if oddity == "crowded search_path" else ODD[oddity]
    make_odd(url, settings)
    name, value = next(iter(settings.items()))

    with Rowlock(url) as app:
        place = Place(app, db)
        with lend(url) as lent:
            lent.say("create table public.orders (n integer)")
            held = [place.add.using(key="k", run_at=LATER).bind(1, 1), place.add.bind(2, 2)]
            first, second = lent.enqueue(app, held)
            [again] = lent.enqueue(app, held[:1])
            bulk = lent.enqueue(app, [place.add.using(queue="bulk").bind(n, n) for n in range(BULK)])
            after = lent.say(f"show {name}")
            unseen = one(db, "select count(*) from rowlock.jobs")

        assert (unseen, again.id, len(bulk)) == (0, first.id, BULK)
        assert after == value
        assert one(db, "select run_at from rowlock.jobs where id = %s", first.id) == LATER
        assert one(db, "select count(*) from rowlock.jobs") == BULK + 2
        with working(app):
            assert second.result(SOON) == 4


# A server that cannot be written to


@deep
def test_a_worker_waits_until_its_database_can_be_written_to_again(url: str, db: Db) -> None:
    with Rowlock(url) as app:
        place = Place(app, db)
        with working(app, lease=LEASE):
            assert place.add.enqueue(1, 1).result(SOON) == 2
            default(db, "default_transaction_read_only", "on")
            end_sessions(db)
            with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
                place.add.enqueue(2, 2)
            with Rowlock(f"{url}&options={quote('-c default_transaction_read_only=off')}") as elsewhere:
                waiting = elsewhere.enqueue("add", a=3, b=3)
            default(db, "default_transaction_read_only", "off")

            assert app.jobs.get(waiting.id).result(SOON) == 6
            assert place.add.enqueue(4, 4).result(SOON) == 8


def end_sessions(db: Db) -> None:
    """End every session of ours, as a switch to another server does."""
    db.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity "
        "where datname = current_database() and application_name like 'rowlock%%'"
    )


@pytest.mark.parametrize(
    ("address", "chosen"),
    [
        ("postgresql://a,b/shop", "read-write"),
        ("host=a,b dbname=shop", "read-write"),
        ("hostaddr=10.0.0.1,10.0.0.2", "read-write"),
        ("postgresql://a/shop", None),
        ("postgresql://a,b/shop?target_session_attrs=any", "any"),
    ],
)
def test_of_several_hosts_the_one_that_can_write_is_chosen_unless_somebody_says_otherwise(
    address: str, chosen: str | None
) -> None:
    server = Rowlock(address, listen_url=address).database.server()

    for conninfo in (server.conninfo, server.listen):
        assert conninfo_to_dict(conninfo or "").get("target_session_attrs") == chosen
