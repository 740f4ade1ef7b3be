"""The schema: made by migrations, once, under any name, by whoever may; and refused when code and schema do not fit."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import date, timedelta

import psycopg
import pytest
from psycopg.rows import TupleRow

from rowlock import Keep, Rowlock
from rowlock.db.embedded.server import EmbeddedPostgres
from rowlock.db.migrate import check_schema, script
from rowlock.db.session import aconnect, connect
from rowlock.errors import InvalidOption, SchemaMissing
from rowlock.store.schema import migrations, newest
from tests.depth import deep
from tests.store import snapshot
from tests.waiting import auntil

ALL = [f"{migration.version:04d}_{migration.name}" for migration in migrations()]


def described(url: str, schema: str = "rowlock") -> str:
    with connect(url, name="look") as connection:
        return snapshot.snapshot(connection, schema)


# What migrations make


def test_schema_sql_is_the_sum_of_the_migrations(url: str) -> None:
    kept = snapshot.FILE.read_text(encoding="utf-8")

    assert described(url) == kept, "run: ./run python -m tests.store.snapshot"


def test_migrations_are_applied_once(database_url: str) -> None:
    app = Rowlock(database_url)

    first, second = app.migrate(), app.migrate()

    assert first == ALL
    assert second == []


def test_the_printed_script_makes_the_same_schema(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(script([*migrations()], "rowlock").encode())

    assert described(database_url) == snapshot.FILE.read_text(encoding="utf-8")
    assert Rowlock(database_url).migrate() == []


def test_a_migration_that_fails_leaves_nothing_behind(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("create schema rowlock create table history (mine text)")

        with pytest.raises(psycopg.errors.DuplicateTable):
            Rowlock(database_url).migrate()

        tables = connection.execute("select relname from pg_class where relnamespace = 'rowlock'::regnamespace")
        assert tables.fetchall() == [("history",)]


@deep
def test_ten_processes_that_migrate_at_once_leave_one_schema(database_url: str) -> None:
    program = (
        "import sys; from rowlock import Rowlock; print(flush=True); input(); print(Rowlock(sys.argv[1]).migrate())"
    )
    with ExitStack() as after:
        processes = [
            subprocess.Popen([sys.executable, "-c", program, database_url], stdin=-1, stdout=-1, stderr=-1, text=True)
            for _ in range(10)
        ]
        for process in processes:
            after.enter_context(process)
            after.callback(process.kill)
        for process in processes:
            assert process.stdout is not None
            process.stdout.readline()  # it has imported everything and waits

        for process in processes:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        said = [process.communicate(timeout=120) for process in processes]

    assert [errors for _, errors in said if errors] == []
    assert sorted(out for out, _ in said) == sorted([f"{ALL}\n", *["[]\n"] * 9])
    assert described(database_url) == snapshot.FILE.read_text(encoding="utf-8")


def test_an_owner_who_is_no_superuser_can_migrate_and_work(server: EmbeddedPostgres, database_url: str) -> None:
    with owner_of(database_url, server) as url:
        app = Rowlock(url)

        assert app.migrate() == ALL

        task = app.task(name="t")(_nothing)
        job = task.enqueue()
        asyncio.run(work_until_empty(app))
        with psycopg.connect(url) as connection:
            assert connection.execute("select id, state from rowlock.history").fetchall() == [(job.id, "succeeded")]
        app.close()


@contextmanager
def owner_of(database_url: str, server: EmbeddedPostgres) -> Iterator[str]:
    """A plain role that owns the database and nothing else; answers its address."""
    database = psycopg.conninfo.conninfo_to_dict(database_url)["dbname"]
    role = f"owner_of_{database}"
    with psycopg.connect(server.url, autocommit=True) as admin:
        admin.execute(f"create role {role} login nosuperuser nocreatedb nocreaterole")
        admin.execute(f"alter database {database} owner to {role}")
        try:
            yield psycopg.conninfo.make_conninfo(database_url, user=role)
        finally:
            admin.execute(f"alter database {database} owner to current_user")
            with psycopg.connect(database_url, autocommit=True) as inside:
                inside.execute(f"drop owned by {role}")
            admin.execute(f"drop role {role}")


# Under another name


def test_two_schemas_in_one_database_do_not_see_each_other(url: str, db: psycopg.Connection[TupleRow]) -> None:
    ran: list[str] = []
    here, there = Rowlock(url), Rowlock(url, schema="elsewhere")
    assert there.migrate() == ALL
    here_task = here.task(name="t")(lambda: ran.append("here"))
    there_task = there.task(name="t")(lambda: ran.append("there"))
    with here, there:
        first = here_task.using(key="k").enqueue()
        second = there_task.using(key="k").enqueue()
        assert (first.created, second.created) == (True, True)

        asyncio.run(work_until_empty(there))

        assert ran == ["there"]
        assert db.execute("select id, state from elsewhere.history").fetchall() == [(second.id, "succeeded")]
        assert db.execute("select id, state from rowlock.jobs").fetchall() == [(first.id, "ready")]
        assert db.execute("select from rowlock.history").fetchall() == []

        asyncio.run(work_until_empty(here))
        assert ran == ["there", "here"]


def test_a_schema_of_another_name_is_the_same_schema(url: str) -> None:
    Rowlock(url, schema="elsewhere").migrate()

    renamed = described(url, "elsewhere").replace('"elsewhere".', "rowlock.").replace("elsewhere.", "rowlock.")

    assert renamed == described(url)


def test_two_schemas_notify_on_different_channels(url: str, db: psycopg.Connection[TupleRow]) -> None:
    Rowlock(url, schema="elsewhere").migrate()

    channels = db.execute("select rowlock.channel('default'), elsewhere.channel('default')").fetchone()

    assert channels is not None
    assert channels[0] != channels[1]


@pytest.mark.parametrize(
    "name",
    [
        "",
        "Rowlock",
        "1st",
        "a-b",
        "a b",
        "a.b",
        'a"b',
        "a'b",
        "a;drop table x",
        "ä",
        "a\n",
        "a\x00",
        "a" * 42,
        "%s",
        "$a",
    ],
)
def test_a_schema_name_that_is_no_plain_identifier_is_refused_before_any_sql(name: str) -> None:
    with pytest.raises(InvalidOption):
        Rowlock("postgresql://nobody@nowhere.invalid/nothing", schema=name)


def test_a_schema_name_that_postgresql_keeps_for_itself_is_refused_before_any_sql() -> None:
    with pytest.raises(InvalidOption):
        Rowlock("postgresql://nobody@nowhere.invalid/nothing", schema="pg_jobs")


@pytest.mark.parametrize("name", ["user", "select"])
def test_a_schema_named_by_a_word_of_sql_works_or_is_refused_before_any_sql(name: str, database_url: str) -> None:
    try:
        app = Rowlock(database_url, schema=name)
    except InvalidOption:
        return

    assert app.migrate() == ALL
    with app:
        assert app.task(name="t")(_nothing).using(key="k").enqueue().created


@pytest.mark.parametrize("name", ["_", "jobs", "rowlock2", "a" * 41])
def test_a_schema_may_have_any_plain_name(name: str, database_url: str) -> None:
    app = Rowlock(database_url, schema=name)

    assert app.migrate() == ALL

    with app:
        assert app.task(name="t")(_nothing).using(key="k").enqueue().created


# Old code, new schema; new code, old schema


def checked(url: str, schema: str = "rowlock") -> None:
    async def check() -> None:
        async with await aconnect(url, name="check") as connection:
            await check_schema(connection, schema)

    asyncio.run(check())


def test_code_fits_the_schema_it_was_written_for(url: str) -> None:
    checked(url)


def test_a_database_without_the_schema_is_refused_with_what_to_do(database_url: str) -> None:
    with pytest.raises(SchemaMissing) as refused:
        checked(database_url)

    assert str(refused.value) == f"schema 'rowlock' lacks migrations {', '.join(ALL)}; run: rowlock migrate"


def test_a_schema_that_lacks_migrations_is_refused_with_what_to_do(url: str, db: psycopg.Connection[TupleRow]) -> None:
    db.execute("delete from rowlock.migrations where version = %s", [newest()])

    with pytest.raises(SchemaMissing, match=rf"lacks migrations {ALL[-1]}; run: rowlock migrate"):
        checked(url)


def test_a_newer_schema_that_says_it_is_compatible_is_used(url: str, db: psycopg.Connection[TupleRow]) -> None:
    db.execute("insert into rowlock.migrations (version, name, compatible) values (9999, 'more', %s)", [newest()])

    checked(url)

    assert Rowlock(url).migrate() == []


def test_a_newer_schema_that_needs_newer_code_is_refused_with_what_to_do(
    url: str, db: psycopg.Connection[TupleRow]
) -> None:
    db.execute("insert into rowlock.migrations (version, name, compatible) values (9999, 'other', 9998)")

    with pytest.raises(SchemaMissing) as refused:
        checked(url)

    assert str(refused.value) == (
        "schema 'rowlock' is at version 9999 and needs code for version 9998 or later, "
        f"this Rowlock is for {newest()}; upgrade it"
    )


def test_every_migration_says_which_code_can_use_what_it_leaves() -> None:
    assert [migration for migration in migrations() if not 1 <= migration.compatible <= migration.version] == []
    assert [migration.version for migration in migrations()] == [*range(1, newest() + 1)]


def test_vacuum_locks_nobody_out_to_cut_off_what_comes_and_goes_with_jobs(db: psycopg.Connection[TupleRow]) -> None:
    found = db.execute(
        """
        select class.relname from pg_class as class left join pg_class as toast on toast.oid = class.reltoastrelid
        where class.relnamespace = 'rowlock'::regnamespace and class.relkind = 'r'
            and 'vacuum_truncate=off' = any(class.reloptions)
            and (class.relname not in ('jobs', 'steps', 'signals') or 'vacuum_truncate=off' = any(toast.reloptions))
        order by 1
        """
    )
    assert [name for (name,) in found] == ["jobs", "keys", "parkings", "signals", "steps", "waiters"]


# Partitions


def test_migrate_makes_partitions_from_today_until_a_week_past_the_longest_retention(
    url: str, db: psycopg.Connection[TupleRow]
) -> None:
    today = db.execute("select (now() at time zone 'UTC')::date").fetchone()
    assert today is not None

    days = partition_days(db, "history")

    ahead = Keep().longest + timedelta(days=7)
    assert [today[0] + timedelta(days=n) for n in range(ahead.days)] == days
    assert partition_days(db, "events")[0] <= today[0]
    assert partition_days(db, "events")[-1] + timedelta(days=7) >= today[0] + ahead


def partition_days(db: psycopg.Connection[TupleRow], table: str) -> list[date]:
    found = db.execute(
        "select inhrelid::regclass::text from pg_inherits where inhparent = %s::regclass order by 1",
        [f"rowlock.{table}"],
    )
    return [date.fromisoformat(name.rpartition("_")[2]) for (name,) in found if not name.endswith("_spare")]


async def work_until_empty(app: Rowlock) -> None:
    with psycopg.connect(app.database.conninfo(), autocommit=True) as look:
        left = f"select not exists (select from {app.database.schema}.jobs)".encode()
        async with app.worker():
            await auntil(lambda: look.execute(left).fetchone() == (True,), what="the queue's end")


def _nothing() -> None:
    return None
