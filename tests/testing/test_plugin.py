"""The pytest plugin, in projects of its users: pytest runs there as a program of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from rowlock.db.embedded.server import EmbeddedPostgres
from tests.depth import deep
from tests.worker.working import one

SHOP = """
from datetime import timedelta
from rowlock import Rowlock

app = Rowlock()

@app.task
def confirm(order: int) -> str:
    return f"order {order}"

@app.task
async def remind(order: int) -> None:
    await confirm.aenqueue(order)
"""

ELSEWHERE = """
import os, pytest

@pytest.fixture(scope="session")
def rowlock_server():
    return os.environ["SERVER_OF_OURS"]
"""


class Project:
    """A folder with a program and its tests."""

    def __init__(self, folder: Path, **files: str) -> None:
        self.folder = folder
        for name, text in {"shop": SHOP, **files}.items():
            (folder / f"{name}.py").write_text(text)

    def test(self, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run its tests; warnings are errors."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("ROWLOCK_URL", "PYTEST_"))}
        command = [sys.executable, "-m", "pytest", "-W", "error", "-p", "no:cacheprovider", *options]
        return subprocess.run(
            command, cwd=self.folder, env=clean | environment, capture_output=True, text=True, timeout=240, check=False
        )

    def said(self) -> list[str]:
        """What its tests have written down."""
        return sorted({line for file in self.folder.glob("said-*") for line in file.read_text().splitlines()})


@deep
def test_every_process_has_a_server_and_every_test_a_database_of_its_own(tmp_path: Path) -> None:
    project = Project(
        tmp_path,
        conftest="""
import psycopg, pytest

@pytest.fixture(scope="session")
def rowlock_template(rowlock_template):
    with psycopg.connect(rowlock_template) as connection:
        connection.execute("create table orders (number integer)")
    return rowlock_template
""",
        test_shop="""
import os
from datetime import timedelta
from pathlib import Path
import psycopg, pytest
from rowlock.testing import assert_enqueued, assert_not_enqueued, drain, travel
from shop import app, confirm, remind

@pytest.mark.parametrize("order", range(4))
def test_an_order(order, rowlock_app, rowlock_url, rowlock_server):
    Path(f"said-{order}").write_text(rowlock_server)
    assert rowlock_app is app and os.environ["ROWLOCK_URL"] == rowlock_url
    with psycopg.connect(rowlock_url) as connection:
        connection.execute("insert into orders values (%s)", [order])
        assert connection.execute("select count(*) from orders").fetchone() == (1,)
    job = confirm.using(key="the only one").enqueue(order)
    assert job.created
    remind.using(delay=timedelta(days=1)).enqueue(order)
    assert_enqueued(confirm.bind(order))
    assert drain(app).succeeded == 1
    assert job.result() == f"order {order}"
    with travel(app, timedelta(days=1)):
        assert drain(app).succeeded == 2
    assert_not_enqueued(remind)
""",
    )

    done = project.test("-n", "2", "--dist", "load", "-o", "rowlock_app=shop:app")

    servers = project.said()
    assert "4 passed" in done.stdout, done.stdout + done.stderr
    assert len(servers) == 2
    folders = [Path(parse_qs(urlsplit(server).query)["host"][0]) for server in servers]
    assert [folder for folder in folders if folder.exists()] == []


@deep
def test_another_server_can_be_used_and_is_left_as_it_was(tmp_path: Path, server: EmbeddedPostgres) -> None:
    project = Project(
        tmp_path,
        conftest=ELSEWHERE,
        test_shop="""
from pathlib import Path
from rowlock import Rowlock

def test_the_database_is_there(rowlock_url):
    Path("said-url").write_text(rowlock_url)
    with Rowlock() as app:
        assert app.enqueue("far away").created

def test_a_schema_of_another_name_is_made(rowlock_app, monkeypatch):
    assert rowlock_app.database.schema == "of_mine"
    assert rowlock_app.enqueue("far away").created

def test_a_test_that_fails(rowlock_app):
    raise LookupError
""",
    )
    (tmp_path / "shop.py").write_text(
        "from rowlock import Rowlock\napp = Rowlock('postgresql://nowhere/', schema='of_mine')"
    )

    done = project.test(SERVER_OF_OURS=server.url, ROWLOCK_APP="shop")

    assert "1 failed, 2 passed" in done.stdout, done.stdout + done.stderr
    [url] = project.said()
    with psycopg.connect(server.url) as connection:
        name = conninfo_to_dict(url)["dbname"]
        assert one(connection, "select count(*) from pg_database where datname = %s", name) == 0


def test_an_app_that_nobody_named_is_asked_for(tmp_path: Path, server: EmbeddedPostgres) -> None:
    project = Project(tmp_path, conftest=ELSEWHERE, test_shop="def test_it(rowlock_app): pass")

    done = project.test(SERVER_OF_OURS=server.url)

    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert 'name your app in pytest\'s settings: rowlock_app = "module:name", or in $ROWLOCK_APP' in done.stdout


def test_without_a_postgresql_it_says_what_to_do(tmp_path: Path) -> None:
    project = Project(tmp_path, test_shop="def test_it(rowlock_url): pass")

    done = project.test(ROWLOCK_PG_BIN=str(tmp_path / "nowhere"))

    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert "where no PostgreSQL server of version 14 or newer can be run" in done.stdout


def test_a_project_that_uses_none_of_it_loads_none_of_it(tmp_path: Path) -> None:
    project = Project(
        tmp_path,
        test_shop="""
import sys

def test_it():
    assert "pytest_rowlock" in sys.modules
    assert not {"rowlock", "psycopg", "pydantic"} & set(sys.modules)
""",
    )

    done = project.test()

    assert "1 passed" in done.stdout, done.stdout + done.stderr
