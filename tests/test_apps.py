"""The whole small apps in examples/ are started as their users would start them, called, and seen to do their jobs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import TupleRow

from tests.depth import deep
from tests.waiting import until

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
PROGRAMS = Path(sys.executable).parent

FASTAPI = EXAMPLES / "fastapi_sqlalchemy"
DJANGO = EXAMPLES / "django_shop"
FLASK = EXAMPLES / "flask_app"
SCRIPT = EXAMPLES / "script"

Db = psycopg.Connection[TupleRow]


@pytest.fixture
def environment(database_url: str) -> dict[str, str]:
    """What tells an app where its database is, which is empty, in the two ways that the examples know."""
    place = conninfo_to_dict(database_url)
    libpq = {"PGDATABASE": place["dbname"], "PGHOST": place["host"], "PGPORT": place["port"], "PGUSER": place["user"]}
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("ROWLOCK_", "PYTEST_"))}
    return {
        **ours,
        **{name: str(value) for name, value in libpq.items()},
        "DATABASE_URL": database_url,
        "PYTHONWARNINGS": "error,ignore::ResourceWarning",  # a pool need not be closed at the end of a process
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


@pytest.fixture
def look(database_url: str) -> Iterator[Db]:
    """A look into the app's database."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        yield connection


def run(*command: str, folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a command of the app to its end."""
    line = [str(PROGRAMS / command[0]), *command[1:]]
    done = subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done


@contextmanager
def running(*command: str, folder: Path, environment: dict[str, str], log: Path) -> Iterator[None]:
    """Inside it, a command goes on; at the end it is told to stop, and stops well."""
    line = [str(PROGRAMS / command[0]), *command[1:]]
    with (
        log.open("w") as said,
        subprocess.Popen(line, cwd=folder, env=environment, stdout=said, stderr=said) as process,
    ):
        try:
            yield
        finally:
            process.terminate()
    assert process.returncode in {0, -15}, log.read_text()  # Flask's server knows no better end than the signal
    assert "Traceback" not in log.read_text()


def address(log: Path) -> str:
    """Where a server says that it listens."""
    found: list[str] = until(lambda: re.findall(r"http://127\.0\.0\.1:\d+", log.read_text()), what="the server's start")
    return found[0]


def confirmed(look: Db, table: str = "orders") -> bool:
    return look.execute(f"select confirmed from {table}".encode()).fetchone() == (True,)


@deep
def test_fastapi_places_an_order_and_answers_the_result(environment: dict[str, str], look: Db, tmp_path: Path) -> None:
    log = tmp_path / "uvicorn.log"

    with (
        running("uvicorn", "shop:api", "--port", "0", folder=FASTAPI, environment=environment, log=log),
        httpx.Client(base_url=address(log), timeout=30) as client,
    ):
        placed = client.post("/orders", json={"item": "boat"})
        came_of_it = client.get(f"/jobs/{placed.json()['job']}")
        nothing = client.get(f"/jobs/{'0' * 32}")

    assert placed.status_code == 201
    assert came_of_it.json() == {"state": "succeeded", "result": "one boat, coming up"}
    assert nothing.status_code == 404
    assert confirmed(look)
    assert look.execute("select count(*) from rowlock.workers").fetchone() == (0,)


@deep
def test_a_job_that_takes_its_time_is_answered_as_it_is(environment: dict[str, str], look: Db, tmp_path: Path) -> None:
    log = tmp_path / "uvicorn.log"

    ask = """select rowlock.enqueue('shop.confirm', '{"order": 0}', queue => 'of nobody')"""

    with (
        running("uvicorn", "shop:api", "--port", "0", folder=FASTAPI, environment=environment, log=log),
        httpx.Client(base_url=address(log), timeout=30) as client,
    ):
        (job,) = look.execute(ask).fetchone() or ()
        came_of_it = client.get(f"/jobs/{job}")

    assert (came_of_it.status_code, came_of_it.json()) == (202, {"state": "ready", "result": None})


@deep
def test_django_places_an_order_in_atomic_and_a_worker_confirms_it(
    environment: dict[str, str], look: Db, tmp_path: Path
) -> None:
    manage = ("python", "manage.py")
    run(*manage, "makemigrations", "--check", folder=DJANGO, environment=environment)
    run(*manage, "migrate", folder=DJANGO, environment=environment)
    post = "Client().post('/orders', {'item': 'boat'}, headers={'host': 'localhost'})"
    ask = f"from django.test import Client; print({post}.status_code)"

    said = run(*manage, "shell", "--no-imports", "-c", ask, folder=DJANGO, environment=environment).stdout
    [worker] = re.findall(r"\$ (python manage.py rowlock worker.*) &", (DJANGO / "README.md").read_text())
    with running(
        *worker.split(), "--processes", "2", folder=DJANGO, environment=environment, log=tmp_path / "worker.log"
    ):
        until(lambda: confirmed(look, "shop_order"), what="the confirmation")
        until(lambda: look.execute("select count(*) from rowlock.workers").fetchone() == (2,), what="two workers")

    assert said.split() == ["201"]


@deep
def test_django_runs_its_own_tests(environment: dict[str, str]) -> None:
    done = run("python", "manage.py", "test", folder=DJANGO, environment=environment)

    assert "Ran 2 tests" in done.stderr


@deep
def test_flask_places_an_order_in_its_session_and_a_worker_confirms_it(
    environment: dict[str, str], look: Db, tmp_path: Path
) -> None:
    run("flask", "--app", "shop", "migrate", folder=FLASK, environment=environment)
    web, worker = tmp_path / "flask.log", tmp_path / "worker.log"

    serve = ("flask", "--app", "shop", "run", "--port", "0")
    with running(*serve, folder=FLASK, environment=environment, log=web):
        refused = httpx.post(f"{address(web)}/orders", data={})
        placed = httpx.post(f"{address(web)}/orders", data={"item": "boat"})
    assert (refused.status_code, placed.status_code) == (400, 201)

    work = ("rowlock", "worker", "--app", "shop:jobs", "--queues", "mail")
    with running(*work, folder=FLASK, environment=environment, log=worker):
        until(lambda: confirmed(look), what="the confirmation")


@deep
def test_the_script_prints_what_its_jobs_answered(environment: dict[str, str]) -> None:
    done = run("python", "totals.py", "1000", "-1", "200", folder=SCRIPT, environment=environment)

    first, second, third = done.stdout.splitlines()
    assert first == "1000: total 499500, last seen at 900 of 1000"
    assert second == "-1: failed: ValueError"
    assert third == "200: total 19900, last seen at 100 of 200"


@pytest.mark.parametrize("folder", [FASTAPI, DJANGO, FLASK, SCRIPT], ids=lambda folder: folder.name)
def test_an_app_is_short_and_explains_itself(folder: Path) -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in folder.rglob("*.py")}
    tests = {path: text for path, text in texts.items() if path.name == "tests.py"}

    assert [path.name for path, text in texts.items() if not text.startswith('"""')] == []
    assert sum(len(text.splitlines()) for path, text in texts.items() if path not in tests) <= 120
