"""A whole Django project with two databases: `manage.py migrate`, `manage.py test`, and a process beside Django."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from rowlock.db.embedded import disposable
from rowlock.db.embedded.server import EmbeddedPostgres
from tests.depth import deep, deep_unless
from tests.waiting import until

FILES = {
    "manage.py": """
import os, sys
from django.core.management import execute_from_command_line

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings")
execute_from_command_line(sys.argv)
""",
    "settings.py": """
import os

ENGINE = "django.db.backends.postgresql"
DATABASES = {
    "default": {"ENGINE": ENGINE, "NAME": os.environ["DEFAULT_NAME"]},
    "jobs": {"ENGINE": ENGINE, "NAME": os.environ["JOBS_NAME"]},
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
INSTALLED_APPS = ["rowlock.contrib.django", "shop"]
ROWLOCK_APP = "shop.jobs:app"
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"ours": {"format": "as the project says: %(message)s"}},
    "handlers": {"ours": {"class": "logging.StreamHandler", "formatter": "ours"}},
    "root": {"handlers": ["ours"], "level": "INFO"},
}
""",
    "shop/__init__.py": "",
    "shop/models.py": """
from django.db import models


class Note(models.Model):
    text = models.TextField()
""",
    "shop/jobs.py": """
from contextlib import asynccontextmanager

from rowlock.contrib.django import DjangoRowlock



@asynccontextmanager
async def lifespan(_app):
    from shop.models import Note

    await Note.objects.acount()
    yield
    await Note.objects.acount()


app = DjangoRowlock("jobs", schema="work", lifespan=lifespan)
""",
    "shop/tasks.py": """
import atexit

from shop.jobs import app
from shop.models import Note


@app.task
def note(text: str) -> str:
    Note.objects.create(text=text)
    return text


@app.task
async def count() -> int:
    return await Note.objects.acount()


atexit.register(print, "left in order")
""",
    "shop/tests.py": """
from datetime import timedelta

from django.db import connections
from django.test import TestCase, TransactionTestCase
from rowlock import Filter
from rowlock.testing import assert_enqueued, drain, travel
from shop.models import Note
from shop.tasks import app, note

assert not app.jobs.list().records  # before there is a test database, and on a connection that is kept


class Committed:
    databases = {"default", "jobs"}

    def tearDown(self):
        app.jobs.delete(Filter.all())  # Django empties its own tables only

    def test_our_own_connections_find_the_test_database(self):
        job = note.enqueue("a")
        self.assertEqual(len(app.jobs.list().records), 1)
        self.assertEqual(drain(app, raising=True).succeeded, 1)
        self.assertEqual(job.result(timeout=timedelta(seconds=5)), "a")
        self.assertEqual(Note.objects.count(), 1)


class One(Committed, TransactionTestCase):
    pass


class Other(Committed, TransactionTestCase):
    pass


class RolledBack(TestCase):
    databases = {"default", "jobs"}

    def test_jobs_run_in_the_transaction_of_the_test(self):
        jobs = connections["jobs"]
        note.using(delay=timedelta(days=1)).enqueue("a")
        assert_enqueued(note, connection=jobs)
        with travel(app, timedelta(days=1), connection=jobs):
            self.assertEqual(drain(app, connection=jobs, raising=True).succeeded, 1)
        self.assertEqual(Note.objects.count(), 1)
""",
}


@pytest.fixture
def names(server: EmbeddedPostgres) -> tuple[str, str]:
    """The addresses of two empty databases."""
    return disposable.create(server.url), disposable.create(server.url)


@pytest.fixture
def environment(names: tuple[str, str], tmp_path: Path) -> dict[str, str]:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    default, jobs = (conninfo_to_dict(url) for url in names)
    place = {"PGHOST": default["host"], "PGPORT": default["port"], "PGUSER": default["user"]}
    named = {"DEFAULT_NAME": default["dbname"], "JOBS_NAME": jobs["dbname"], "PYTHONWARNINGS": "error"}
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("ROWLOCK_", "DJANGO_"))}
    return ours | {name: str(value) for name, value in (place | named).items()}


def python(*command: str, folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def has_schema(url: str) -> bool:
    with psycopg.connect(url) as connection:
        return connection.execute("select to_regnamespace('work') is not null").fetchone() == (True,)


def test_migrate_brings_the_tables_to_the_database_of_the_app_and_to_no_other(
    environment: dict[str, str], names: tuple[str, str], tmp_path: Path
) -> None:
    default, jobs = names

    first = python("manage.py", "migrate", folder=tmp_path, environment=environment)
    alone = has_schema(default), has_schema(jobs)
    second = python("manage.py", "migrate", "--database", "jobs", folder=tmp_path, environment=environment)
    third = python("manage.py", "migrate", "--database", "jobs", folder=tmp_path, environment=environment)

    assert alone == (False, False)
    assert (has_schema(default), has_schema(jobs)) == (False, True)
    assert ["Applied 0001_jobs to the schema work" in said for said in (first, second, third)] == [False, True, False]


@deep
@pytest.mark.parametrize("parallel", deep_unless(lambda parallel: parallel == "1", ["1", "2"]))
def test_tests_find_their_databases_and_leave_none_behind(
    environment: dict[str, str], names: tuple[str, str], tmp_path: Path, parallel: str, server: EmbeddedPostgres
) -> None:
    python("manage.py", "migrate", "-v0", "--run-syncdb", folder=tmp_path, environment=environment)
    python("manage.py", "migrate", "-v0", "--database", "jobs", folder=tmp_path, environment=environment)

    said = python("manage.py", "test", "--parallel", parallel, folder=tmp_path, environment=environment)

    assert "Ran 3 tests" in said
    with psycopg.connect(server.url) as connection:
        mine = [f"test_{conninfo_to_dict(url)['dbname']}%" for url in names]
        left = connection.execute("select datname from pg_database where datname like any(%s)", [mine]).fetchall()
    assert left == []


def test_a_process_that_django_did_not_start_knows_the_tasks(environment: dict[str, str], tmp_path: Path) -> None:
    program = "from shop.jobs import app; print(*app.load())"

    said = python("-c", program, folder=tmp_path, environment=environment | {"DJANGO_SETTINGS_MODULE": "settings"})

    assert said.split() == ["shop.tasks.note", "shop.tasks.count", "left", "in", "order"]


def test_a_worker_logs_as_the_project_says_and_leaves_in_order_after_async_code(
    environment: dict[str, str], names: tuple[str, str], tmp_path: Path
) -> None:
    python("manage.py", "migrate", "-v0", "--run-syncdb", folder=tmp_path, environment=environment)
    python("manage.py", "migrate", "-v0", "--database", "jobs", folder=tmp_path, environment=environment)
    log = tmp_path / "worker.log"

    command = [sys.executable, "manage.py", "rowlock", "worker"]
    with (
        psycopg.connect(names[1], autocommit=True) as look,
        log.open("w") as said,
        subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=said, stderr=said) as worker,
    ):
        look.execute("select work.enqueue('shop.tasks.count')")
        until(lambda: look.execute("select state from work.history").fetchall() == [("succeeded",)], what="the job")
        worker.terminate()

    lines = log.read_text().splitlines()
    assert "left in order" in lines
    assert not [line for line in lines if "was still running" in line]
    works = [line for line in lines if "works on" in line]
    assert len(works) == 1
    assert works[0].startswith("as the project says: ")
