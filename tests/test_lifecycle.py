"""An app's life: made before anything exists, over forks and loops, inside other programs, and ended without a word."""

from __future__ import annotations

import asyncio
import gc
import os
import re
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path

import psycopg
import pytest
from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient
from psycopg.rows import TupleRow

from rowlock import Rowlock, RowlockError, Task
from rowlock.db.embedded.server import EmbeddedPostgres
from tests.waiting import auntil, until

Db = psycopg.Connection[TupleRow]

PROGRAM = """
import asyncio, os, sys
from rowlock import Rowlock

app = Rowlock()

@app.task(name="note")
def note(text: str) -> None: ...
"""


@pytest.fixture
def note(app: Rowlock) -> Task[[str], str]:
    @app.task(name="note")
    async def note(text: str) -> str:
        return text

    return note


def run(program: str, url: str, *options: str) -> None:
    """Run a program of its own that must end well, without a word on standard error."""
    done = subprocess.run(
        [sys.executable, *options, "-c", PROGRAM + program],
        env={**os.environ, "ROWLOCK_URL": url},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")


def texts(db: Db) -> list[str]:
    return sorted(text for (text,) in db.execute("select args->>'text' from rowlock.jobs"))


def results(db: Db) -> list[str]:
    return sorted(text for (text,) in db.execute("select result #>> '{}' from rowlock.history"))


def sessions(db: Db) -> int:
    """How many sessions, other than the test's own, are on its database."""
    row = db.execute(
        "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
    ).fetchone()
    return row[0] if row else 0


# Importing and making


def test_importing_rowlock_does_no_io_and_loads_no_framework() -> None:
    program = """
import sys, threading

outside = ("socket.", "subprocess.", "os.system", "os.fork", "os.posix_spawn", "os.mkdir", "os.remove", "os.rename")
done = []

def audit(event, args):
    writes = event == "open" and isinstance(args[1], str) and set(args[1]) & set("wax+")
    if event.startswith(outside) or writes and "__pycache__" not in str(args[0]):
        done.append((event, str(args)))

sys.addaudithook(audit)
import rowlock

assert not done, done
assert threading.active_count() == 1
loaded = {"asyncpg", "sqlalchemy", "django", "rich", "click", "fastapi", "pytest"} & set(sys.modules)
assert not loaded, loaded
"""

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)

    assert (done.returncode, done.stderr) == (0, "")


def test_an_app_can_be_made_and_given_tasks_before_its_database_exists(server: EmbeddedPostgres) -> None:
    with Rowlock(server.url_of("made_later")) as app:

        @app.task(name="note")
        def note(text: str) -> None: ...

        with psycopg.connect(server.url, autocommit=True) as admin:
            admin.execute("create database made_later")
        app.migrate()
        note.enqueue("a")

        with psycopg.connect(server.url_of("made_later")) as db:
            assert texts(db) == ["a"]


def test_the_environment_may_be_set_after_the_app_was_made(url: str, db: Db, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("ROWLOCK_URL", "DATABASE_URL", "ROWLOCK_SCHEMA"):
        monkeypatch.delenv(variable, raising=False)
    app = Rowlock()

    monkeypatch.setenv("ROWLOCK_URL", url)
    monkeypatch.setenv("ROWLOCK_SCHEMA", "elsewhere")
    with app:
        app.migrate()
        app.enqueue("anything")

    assert db.execute("select task from elsewhere.jobs").fetchall() == [("anything",)]


def test_imports_are_what_a_worker_loads(url: str, db: Db, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shop_app.py").write_text("from rowlock import Rowlock\napp = Rowlock(imports=['shop_mail'])\n")
    (tmp_path / "shop_mail.py").write_text(
        "from shop_app import app\n@app.task\nasync def welcome(text: str) -> str:\n    return text\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("ROWLOCK_URL", url)
    from shop_app import app  # type: ignore[import-not-found]  # noqa: PLC0415  written just now

    async def work() -> None:
        async with app, app.worker():
            await app.aenqueue("shop_mail.welcome", text="hello")
            await auntil(lambda: results(db))

    assert "shop_mail.welcome" not in app.tasks.names()
    asyncio.run(work())

    assert results(db) == ["hello"]


# Over forks

CHILDREN = """
def enqueue(name):
    for n in range(5):
        note.enqueue(f"{name} sync {n}")
    async def enqueue_more():
        await asyncio.gather(*(note.aenqueue(f"{name} async {n}") for n in range(5)))
    asyncio.run(enqueue_more())

def fork(name):
    child = os.fork()
    if not child:
        enqueue(name)
        sys.exit()
    return child

children = [fork(f"child {n}") for n in range(3)]
enqueue("parent")
assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0, 0]
note.enqueue("parent at the end")
"""


def everything(*names: str) -> list[str]:
    return sorted(f"{name} {kind} {n}" for name in names for kind in ("sync", "async") for n in range(5))


def test_children_that_are_forked_after_the_import_and_their_parent_all_enqueue(url: str, db: Db) -> None:
    run(CHILDREN, url)

    family = everything("parent", "child 0", "child 1", "child 2")
    assert texts(db) == sorted([*family, "parent at the end"])


def test_children_that_are_forked_after_the_first_use_do_not_disturb_their_parents_sessions(url: str, db: Db) -> None:
    look = """
import psycopg
other = psycopg.connect(os.environ["ROWLOCK_URL"], autocommit=True)

def sessions():
    query = "select pid from pg_stat_activity where application_name = 'rowlock' and datname = current_database()"
    return {pid for pid, in other.execute(query)}

note.enqueue("before")
before = sessions()
assert before
"""
    looks_again = """
assert before <= sessions()
other.close()
"""

    run(look + CHILDREN + looks_again, url)

    family = everything("parent", "child 0", "child 1", "child 2")
    assert texts(db) == sorted(["before", *family, "parent at the end"])


def test_a_child_that_is_forked_while_a_thread_of_its_parent_looks_the_address_up_is_not_stuck(
    url: str, db: Db
) -> None:
    program = """
note.enqueue("before")
app.close()
with app.database._starting:
    child = os.fork()
    if not child:
        note.enqueue("child")
        sys.exit()
assert os.waitpid(child, 0)[1] == 0
"""

    run(program, url)

    assert texts(db) == ["before", "child"]


# Over event loops


def test_two_loops_one_after_the_other_have_a_worker_each(app: Rowlock, note: Task[[str], str], db: Db) -> None:
    async def work(text: str) -> None:
        async with app.worker():
            await note.aenqueue(text)
            await auntil(lambda: text in results(db))

    asyncio.run(work("first"))
    asyncio.run(work("second"))

    assert results(db) == ["first", "second"]


def test_a_sync_enqueue_inside_a_running_loop_is_refused_and_names_the_async_one(
    app: Rowlock, note: Task[[str], str], db: Db
) -> None:
    async def enqueue() -> None:
        with pytest.raises(RowlockError, match="use `await task"):
            note.enqueue("a")
        with pytest.raises(RowlockError, match="aenqueue"):
            app.enqueue_many([note.bind("b")])

    asyncio.run(enqueue())

    assert texts(db) == []


# Threads


def test_twenty_threads_that_begin_at_once_all_enqueue(app: Rowlock, note: Task[[str], str], db: Db) -> None:
    together = threading.Barrier(20, timeout=60)

    def enqueue(name: str) -> None:
        together.wait()
        note.enqueue(name)

    with ThreadPoolExecutor(20) as threads:
        list(threads.map(enqueue, map(str, range(20))))

    assert texts(db) == sorted(map(str, range(20)))


# The end


@pytest.mark.parametrize(
    "use",
    [
        'note.enqueue("a")',
        'asyncio.run(note.aenqueue("a"))',
        'asyncio.run(note.using(key="k").aenqueue("a"))',
        'app.enqueue_many([note.bind("a")])',
        'note.enqueue("a"); sys.exit()',
        'loop = asyncio.new_event_loop(); loop.run_until_complete(note.aenqueue("a")); loop.close()',
    ],
)
def test_a_program_may_end_without_closing_its_app(url: str, db: Db, use: str) -> None:
    run(use, url, "-W", "error")

    assert texts(db) == ["a"]
    until(lambda: not sessions(db), what="the end of its sessions")


def test_with_closes_the_apps_connections(url: str, db: Db) -> None:
    with Rowlock(url) as app:
        app.enqueue("anything")
        until(lambda: sessions(db) == 1, what="one session: others may still be about to end")

    until(lambda: not sessions(db), what="the end of its sessions")


def test_async_with_closes_the_apps_connections(url: str, db: Db) -> None:
    async def use() -> None:
        async with Rowlock(url) as app:
            await app.aenqueue("anything")
            await asyncio.to_thread(app.enqueue, "anything")
            await auntil(lambda: sessions(db) == 2, what="two sessions: others may still be about to end")
        await auntil(lambda: not sessions(db), what="the end of its sessions")

    asyncio.run(use())


def test_an_app_that_nobody_holds_any_more_takes_its_connections_along(url: str, db: Db) -> None:
    app = Rowlock(url)
    app.enqueue("anything")
    until(lambda: sessions(db) == 1, what="one session: others may still be about to end")

    del app
    gc.collect()

    until(lambda: not sessions(db), what="the end of its sessions")


# Inside a web app


def test_a_worker_in_a_web_apps_lifespan_runs_what_a_request_enqueues(
    app: Rowlock, note: Task[[str], str], db: Db
) -> None:
    @asynccontextmanager
    async def lifespan(_api: FastAPI) -> AsyncIterator[None]:
        async with app, app.worker(slots=5):
            yield

    api = FastAPI(lifespan=lifespan)

    @api.post("/notes/{text}", status_code=202)
    async def take(text: str) -> str:
        return str((await note.aenqueue(text)).id)

    @api.post("/sync-notes/{text}", status_code=202)
    def take_in_a_thread(text: str) -> str:
        return str(note.enqueue(text).id)

    async def serve() -> list[int]:
        transport = ASGITransport(api)
        async with api.router.lifespan_context(api), AsyncClient(transport=transport, base_url="http://test") as client:
            codes = [(await client.post(path)).status_code for path in ("/notes/a", "/sync-notes/b")]
            await auntil(lambda: len(results(db)) == 2, what="the end of both jobs")
            return codes

    codes = asyncio.run(serve())

    assert codes == [202, 202]
    assert results(db) == ["a", "b"]
    assert db.execute("select from rowlock.workers").fetchall() == []
    until(lambda: not sessions(db), what="the end of all sessions")


def test_a_process_that_only_enqueues_imports_no_more_than_it_needs(url: str, db: Db) -> None:
    """A web process pays for each module at its start: at most 60 of ours, and nothing that only workers use."""
    program = PROGRAM + "note.enqueue('x')\nprint(*(name for name in sys.modules if name.startswith('rowlock')))"
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"ROWLOCK_URL": url},
        capture_output=True,
        text=True,
        check=True,
    )

    modules = ended.stdout.split()
    workers = {name for name in modules if re.match(r"rowlock\.(worker|workflow|doctor|explain|dashboard)\.", name)}
    assert db.execute("select count(*) from rowlock.jobs").fetchone() == (1,)
    assert len(modules) <= 60
    assert workers == {"rowlock.worker.around"}
