"""Rowlock in Django: its settings say where jobs are, its connection carries them, its `migrate` brings the tables."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from datetime import timedelta

import psycopg
import pytest
from asgiref.sync import sync_to_async
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.db import connection, connections, transaction
from django.test import override_settings
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import TupleRow

from rowlock import Job, Retry, Rowlock, Task
from rowlock.contrib.django import DjangoRowlock
from rowlock.contrib.django.apps import check_app, migrate, named_app
from rowlock.contrib.django.management.commands.rowlock import Command
from rowlock.db.django_alias import RequestConnections, address
from rowlock.errors import NotConfigured
from tests.db.django_site import DEFAULT, SQLITE, visit
from tests.waiting import until

Db = psycopg.Connection[TupleRow]

SOON = Retry(attempts=3, base=timedelta(milliseconds=10))
PLAIN = Rowlock()
HERE = DjangoRowlock()
ELSEWHERE = DjangoRowlock(SQLITE)


@pytest.fixture
def site(url: str) -> Iterator[str]:
    visit(url)
    yield url
    connection.close()
    HERE.database.let_go()


@pytest.fixture
def app(site: str) -> Iterator[DjangoRowlock]:
    with DjangoRowlock() as app:
        yield app


@pytest.fixture
def options(site: str, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def set_options(**wanted: object) -> None:
        monkeypatch.setitem(connections.settings[DEFAULT], "OPTIONS", wanted)

    return set_options


# Where jobs are


def test_the_database_is_the_one_that_the_settings_name(app: DjangoRowlock, site: str) -> None:
    found = app.database.address

    named = conninfo_to_dict(site)
    assert conninfo_to_dict(found.conninfo or "").items() >= named.items()
    assert found.source == "settings.DATABASES['default']"


def test_a_service_and_a_password_file_are_passed_on(options: Callable[..., None]) -> None:
    options(service="shop", passfile=".pgpass", sslmode="require")

    said = conninfo_to_dict(address(DEFAULT).conninfo or "")
    assert (said["service"], said["passfile"], said["sslmode"]) == ("shop", ".pgpass", "require")


def test_options_that_are_not_for_the_server_are_left_out(options: Callable[..., None]) -> None:
    options(
        server_side_binding=True, prepare_threshold=5, isolation_level=psycopg.IsolationLevel.SERIALIZABLE, pool=True
    )

    said = conninfo_to_dict(address(DEFAULT).conninfo or "")
    assert said.keys() == {"dbname", "user", "host", "port", "client_encoding"}


def test_a_role_to_assume_is_assumed(options: Callable[..., None], db: Db) -> None:
    db.execute("""do $$ begin create role "Shop\\Keeper 1"; exception when duplicate_object then null; end $$""")
    options(assume_role="Shop\\Keeper 1", options="-c work_mem=8MB")

    with psycopg.connect(address(DEFAULT).conninfo or "") as ours:
        said = ours.execute("select current_user, current_setting('work_mem')").fetchone()
    assert said == ("Shop\\Keeper 1", "8MB")


def test_a_database_of_another_kind_is_refused(site: str) -> None:
    with pytest.raises(NotConfigured, match=r"\['sqlite'\] is a sqlite database; Rowlock runs on PostgreSQL"):
        ELSEWHERE.stats()


@pytest.mark.parametrize("verb", [DjangoRowlock.stats, lambda app: app.queues.pauses()], ids=["apart", "joining"])
def test_an_alias_that_nobody_knows_is_refused(site: str, verb: Callable[[DjangoRowlock], object]) -> None:
    with pytest.raises(NotConfigured, match=r"no settings.DATABASES\['jobs'\]; it has default, sqlite"):
        verb(DjangoRowlock("jobs"))


def test_the_name_of_the_database_may_change_between_uses(app: DjangoRowlock, monkeypatch: pytest.MonkeyPatch) -> None:
    app.stats()
    before = app.database.address

    with connection._nodb_cursor() as cursor:  # as Django makes, copies and drops the databases of tests

        def left() -> list[tuple[int]]:
            cursor.execute(
                "select pid from pg_stat_activity where application_name = 'rowlock' and datname = %s",
                [conninfo_to_dict(before.conninfo or "")["dbname"]],
            )
            found: list[tuple[int]] = cursor.fetchall()
            return found

        until(lambda: not left(), what="the server to notice that we have hung up")
    monkeypatch.setitem(connections.settings[DEFAULT], "NAME", "other")

    assert "dbname=other" in (app.database.address.conninfo or "")


def test_what_is_said_of_the_database_is_passed_on(site: str) -> None:
    app = DjangoRowlock(pooler=True, listen_url="postgresql://around/it", deadline=timedelta(seconds=7))

    found = app.database
    said = (found.pooler.value, found.listen_url.value, found.deadline.value)
    assert said == (True, "postgresql://around/it", timedelta(seconds=7))


# Whose connection carries them


def test_a_job_belongs_to_the_atomic_block_around_it(app: DjangoRowlock) -> None:
    @app.task(name="note")
    def note(text: str) -> None: ...

    with suppress(ZeroDivisionError), transaction.atomic():
        note.enqueue("undone")
        raise ZeroDivisionError
    with transaction.atomic():
        kept = note.enqueue("kept")
        assert [record.id for record in app.jobs.list().records] == [kept.id]
        with app.within(None):
            assert app.jobs.list().records == ()

    assert [record.id for record in app.jobs.list().records] == [kept.id]


def test_async_code_enqueues_on_djangos_connection_too(app: DjangoRowlock) -> None:
    @app.task(name="note")
    def note(text: str) -> None: ...

    async def caller() -> Job[None]:
        try:
            return await note.aenqueue("a")
        finally:
            await sync_to_async(connections.close_all)()

    job = asyncio.run(caller())

    assert app.jobs.get(job.id) == job


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_connection_that_broke_is_not_given_to_the_next_attempt(app: DjangoRowlock, db: Db, kind: str) -> None:
    def backend(*, last: bool) -> int:
        with connection.cursor() as cursor:
            cursor.execute("select pg_backend_pid()")
            pid = int(cursor.fetchone()[0])
        if last:
            connection.close()
        return pid

    @app.task(name="plain", retry=SOON)
    def plain(*, last: bool) -> int:
        return backend(last=last)

    @app.task(name="awaited", retry=SOON)
    async def awaited(*, last: bool) -> int:
        return await sync_to_async(backend)(last=last)

    first, second = asyncio.run(_around_the_end_of_a_backend(app, plain if kind == "sync" else awaited, db))

    assert first != second


async def _around_the_end_of_a_backend(app: DjangoRowlock, task: Task[..., int], db: Db) -> tuple[int, int]:
    connections.settings[DEFAULT]["CONN_MAX_AGE"] = None  # else each attempt has a connection of its own anyway
    try:
        async with app.worker(slots=1, threads=1):
            first = await _result(task.aenqueue(last=False))
            db.execute("select pg_terminate_backend(%s, 10000)", [first])
            with app.within(None):  # the enqueue is not what is tried here
                return first, await _result(task.aenqueue(last=True))
    finally:
        connections.settings[DEFAULT]["CONN_MAX_AGE"] = 0
        await sync_to_async(connections.close_all)()


async def _result(enqueued: Awaitable[Job[int]]) -> int:
    return await (await enqueued).aresult(timedelta(seconds=30))


def test_old_connections_are_closed_around_an_attempt(site: str) -> None:
    connection.ensure_connection()

    with RequestConnections():
        before = connection.connection
        connection.ensure_connection()

    assert before is None
    assert connection.connection is None


def test_a_transaction_that_is_open_around_an_attempt_is_left_alone(site: str) -> None:
    with transaction.atomic():
        connection.ensure_connection()
        before = connection.connection

        with RequestConnections():
            pass

        assert connection.connection is before
        assert not before.closed


# Migrating


def test_migrate_brings_the_schema_and_may_do_so_again(database_url: str) -> None:
    visit(database_url)
    HERE.database.let_go()

    with override_settings(ROWLOCK_APP=f"{__name__}:HERE"):
        migrate(using=DEFAULT, verbosity=1)
        migrate(using=DEFAULT, verbosity=1)

    assert HERE.stats().unknown == {}
    HERE.database.let_go()


def test_migrate_passes_over_databases_that_are_not_ours(site: str, db: Db) -> None:
    db.execute("drop schema rowlock cascade")

    with override_settings(ROWLOCK_APP=f"{__name__}:ELSEWHERE"):
        migrate(using=DEFAULT, verbosity=1)
    with override_settings(ROWLOCK_APP=f"{__name__}:HERE"):
        migrate(using=SQLITE, verbosity=1)

    assert db.execute("select to_regnamespace('rowlock')").fetchone() == (None,)


@pytest.mark.parametrize(
    ("named", "sentence"),
    [
        (None, r'settings.ROWLOCK_APP is missing; name your app: ROWLOCK_APP = "shop.jobs:app"'),
        ("nowhere.jobs:app", r"settings.ROWLOCK_APP is 'nowhere.jobs:app': there is no module 'nowhere'"),
        (f"{__name__}:PLAIN", r"a plain Rowlock, .* make it a rowlock.contrib.django.DjangoRowlock"),
    ],
)
def test_a_wrong_setting_is_refused_in_words(site: str, named: str | None, sentence: str) -> None:
    with override_settings(ROWLOCK_APP=named), pytest.raises(ImproperlyConfigured, match=sentence):
        named_app()


def test_the_system_check_finds_a_missing_app_and_two_aliases_of_one_database(
    site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    twin = {**connections.settings[DEFAULT], "TEST": {"MIRROR": DEFAULT}}

    with override_settings(ROWLOCK_APP=None):
        missing = check_app()
    with override_settings(ROWLOCK_APP=f"{__name__}:HERE"):
        sound = check_app()
        monkeypatch.setitem(connections.settings, "direct", twin)
        doubled = check_app()
        monkeypatch.setitem(connections.settings, "direct", {**twin, "PORT": "6432", "TEST": {}})
        pooled = check_app()
        monkeypatch.setitem(connections.settings, "direct", {**twin, "NAME": "elsewhere", "TEST": {}})
        elsewhere = check_app()

    assert [(one.id, "ROWLOCK_APP is missing" in one.msg) for one in missing] == [("rowlock.E001", True)]
    assert sound == elsewhere == []
    assert [(one.id, "['direct'] are one database" in one.msg) for one in doubled] == [("rowlock.W001", True)]
    assert [(one.id, "['direct'] may be one database" in one.msg) for one in pooled] == [("rowlock.W002", True)]


# The command line


@pytest.fixture
def named(site: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(os.environ, "ROWLOCK_APP", "nothing.yet")
    with override_settings(ROWLOCK_APP=f"{__name__}:HERE"):
        yield


def test_the_command_line_takes_the_app_from_the_settings(named: None, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        Command().run_from_argv(["manage.py", "rowlock", "config", "--settings", "shop.settings", "--json"])

    assert end.value.code == 0
    assert "settings.DATABASES['default']" in capsys.readouterr().out


def test_without_an_app_in_the_settings_a_command_says_so(site: str, capsys: pytest.CaptureFixture[str]) -> None:
    with override_settings(ROWLOCK_APP=None):
        with pytest.raises(SystemExit) as end:
            Command().run_from_argv(["manage.py", "rowlock", "stats"])
        with pytest.raises(CommandError, match=r"settings.ROWLOCK_APP is missing"):
            call_command(Command(), "stats")

    assert end.value.code == 2
    assert "settings.ROWLOCK_APP is missing; name your app" in capsys.readouterr().err


def test_djangos_help_shows_the_options_that_there_are(named: None, capsys: pytest.CaptureFixture[str]) -> None:
    Command().print_help("manage.py", "rowlock")

    said = capsys.readouterr().out
    assert "worker" in said
    assert "--no-color" not in said


def test_other_code_can_call_a_command(named: None, capsys: pytest.CaptureFixture[str]) -> None:
    call_command(Command(), "jobs", "list", "--state", "failed", "--json")

    assert capsys.readouterr().err == ""


def test_other_code_learns_that_a_command_failed(named: None) -> None:
    with pytest.raises(CommandError, match="rowlock queues show nobodys ended with exit code") as failed:
        call_command(Command(), "queues", "show", "nobodys")

    assert isinstance(failed.value.__cause__, SystemExit)
